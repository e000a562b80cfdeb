/* What weft costs over a network beside bare calls of libfabric: two PEs on two hosts, in one run. Built and run by
 * scripts/bench_network.sh. Each figure is taken by both in turn, round by round, in the same two processes: the bare
 * endpoint is one of this program's own, of the provider that FI_PROVIDER names; its address goes over by weft. Bare
 * calls wait by looking: at the queue of completions and, of a put, at the word that it writes. The rate of small puts
 * is beside puts of weft's that each wait for their completion. */
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weft.h"

#define MIB ((size_t)1 << 20)
#define MEMORY (2 * MIB)
#define ROUNDS_MAX 101
#define WORDS 64
#define MESSAGE 72
#define PIECE ((size_t)32 << 10) /* of a bulk transfer: fastest, of 4 KiB to 1 MiB */
#define PIECES_OPEN_MAX 8 /* of those; more make no difference */

typedef struct bare {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    void *descriptor;
    fi_addr_t peer;
    unsigned char *memory; /* word 0: told by the peer; word 1: an atomic; from page 1: data */
    uint64_t remote; /* the peer's memory as its provider counts it */
    uint64_t key;
} bare;

typedef struct contact {
    unsigned char name[64];
    uint64_t remote;
    uint64_t key;
} contact;

typedef struct bench {
    weft_world *world;
    int me;
    int other;
    bare bare;
    uint64_t *words; /* weft's, as the bare memory */
    unsigned char *data;
    uint64_t told;
    uint64_t bare_told;
} bench;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "ofi: %s: %s\n", what, why);
    exit(1);
}

static void must(int error, const char *what)
{
    if (error != 0) {
        fail(what, fi_strerror(error < 0 ? -error : error));
    }
}

static void check(weft_status status)
{
    if (status != WEFT_OK) {
        fail(weft_status_name(status), weft_last_error());
    }
}

static double now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* ---- bare calls ---- */

static void bare_open(bench *b)
{
    bare *net = &b->bare;
    struct fi_info *hints = fi_allocinfo();
    struct fi_cq_attr cq = {.size = 1024, .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
    struct fi_av_attr av = {0};
    contact all[2];
    contact mine = {0};
    size_t bytes = sizeof mine.name;
    hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
    hints->mode = FI_CONTEXT;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
    must(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &net->info), "fi_getinfo");
    for (const struct fi_info *i = net->info; i != NULL; i = i->next) { /* not the loopback interface */
        if (strcmp(i->domain_attr->name, "lo") != 0) {
            struct fi_info *chosen = fi_dupinfo(i);
            net->info = chosen;
            break;
        }
    }
    must(fi_fabric(net->info->fabric_attr, &net->fabric, NULL), "fi_fabric");
    must(fi_domain(net->fabric, net->info, &net->domain, NULL), "fi_domain");
    must(fi_av_open(net->domain, &av, &net->av, NULL), "fi_av_open");
    must(fi_cq_open(net->domain, &cq, &net->cq, NULL), "fi_cq_open");
    must(fi_endpoint(net->domain, net->info, &net->ep, NULL), "fi_endpoint");
    must(fi_ep_bind(net->ep, &net->av->fid, 0), "fi_ep_bind");
    must(fi_ep_bind(net->ep, &net->cq->fid, FI_SEND | FI_RECV), "fi_ep_bind");
    must(fi_enable(net->ep), "fi_enable");
    net->memory = aligned_alloc(4096, MEMORY);
    memset(net->memory, 0, MEMORY);
    must(fi_mr_reg(net->domain, net->memory, MEMORY,
                   FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE | FI_SEND | FI_RECV, 0, 77, 0, &net->mr, NULL),
         "fi_mr_reg");
    net->descriptor = fi_mr_desc(net->mr);
    must(fi_getname(&net->ep->fid, mine.name, &bytes), "fi_getname");
    mine.remote = (net->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0 ? (uint64_t)(uintptr_t)net->memory : 0;
    mine.key = fi_mr_key(net->mr);
    contact *in;
    contact *out;
    check(weft_calloc(b->world, 2, sizeof mine, (void **)&out));
    check(weft_malloc(b->world, sizeof mine, (void **)&in));
    *in = mine;
    check(weft_putmem(b->world, out + b->me, &mine, sizeof mine, b->other));
    check(weft_barrier(b->world));
    memcpy(all, out, sizeof all);
    net->remote = all[b->other].remote;
    net->key = all[b->other].key;
    if (fi_av_insert(net->av, all[b->other].name, 1, &net->peer, 0, NULL) != 1) {
        fail("fi_av_insert", "refused");
    }
}

static int bare_look(bare *net)
{
    struct fi_cq_entry entry;
    const ssize_t count = fi_cq_read(net->cq, &entry, 1);
    if (count == -FI_EAVAIL) {
        fail("fi_cq_read", "an operation failed");
    }
    return count == 1;
}

static void bare_await(bare *net)
{
    while (!bare_look(net)) {
    }
}

static void bare_put(bare *net, size_t at, const void *from, size_t bytes, struct fi_context *context)
{
    ssize_t error;
    while ((error = fi_write(net->ep, from, bytes, net->descriptor, net->peer, net->remote + at, net->key, context)) ==
           -FI_EAGAIN) {
        (void)bare_look(net);
    }
    must((int)error, "fi_write");
}

static void bare_get(bare *net, size_t at, void *to, size_t bytes, struct fi_context *context)
{
    ssize_t error;
    while ((error = fi_read(net->ep, to, bytes, net->descriptor, net->peer, net->remote + at, net->key, context)) ==
           -FI_EAGAIN) {
        (void)bare_look(net);
    }
    must((int)error, "fi_read");
}

/* The peer's word 0 becomes what this side has said so far, plus 1. */
static void bare_tell(bench *b, uint64_t value)
{
    struct fi_context context;
    uint64_t *word = (uint64_t *)(void *)b->bare.memory + 2;
    *word = value;
    bare_put(&b->bare, 0, word, sizeof *word, &context);
    bare_await(&b->bare);
}

static void bare_hear(bench *b, uint64_t value)
{
    const uint64_t *word = (const uint64_t *)(const void *)b->bare.memory;
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value) {
        (void)bare_look(&b->bare);
    }
}

static void bare_ping_pong(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        b->bare_told++;
        if (b->me == 0) {
            bare_tell(b, b->bare_told);
            bare_hear(b, b->bare_told);
        } else {
            bare_hear(b, b->bare_told);
            bare_tell(b, b->bare_told);
        }
    }
}

/* What a put of weft's is at least: a message, with a header, that the other side stores. */
static void bare_messages(bench *b, int count)
{
    bare *net = &b->bare;
    unsigned char *in = net->memory + 512;
    struct fi_context contexts[1];
    for (int i = 0; i < count; i++) {
        for (int turn = 0; turn < 2; turn++) {
            const int sends = turn == b->me;
            ssize_t error;
            while ((error = sends ? fi_send(net->ep, net->memory + 256, MESSAGE, net->descriptor, net->peer, contexts)
                                  : fi_recv(net->ep, in, MESSAGE, net->descriptor, FI_ADDR_UNSPEC, contexts)) ==
                   -FI_EAGAIN) {
                (void)bare_look(net);
            }
            must((int)error, "a message");
            bare_await(net);
        }
    }
}

static void bare_gets(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        struct fi_context context;
        bare_get(&b->bare, 8, b->bare.memory + 24, 8, &context);
        bare_await(&b->bare);
    }
}

static void bare_fetches(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        struct fi_context context;
        uint64_t *local = (uint64_t *)(void *)b->bare.memory + 4;
        ssize_t error;
        local[0] = 1;
        while ((error = fi_fetch_atomic(b->bare.ep, local, 1, b->bare.descriptor, local + 1, b->bare.descriptor,
                                        b->bare.peer, b->bare.remote + 8, b->bare.key, FI_UINT64, FI_SUM, &context)) ==
               -FI_EAGAIN) {
            (void)bare_look(&b->bare);
        }
        must((int)error, "fi_fetch_atomic");
        bare_await(&b->bare);
    }
}

/* Each MiB in pieces, which keep the processor's caches warm on both sides. */
static void bare_pieces(bench *b, int count,
                        void (*move)(bare *net, size_t at, unsigned char *local, size_t bytes,
                                     struct fi_context *context))
{
    struct fi_context contexts[PIECES_OPEN_MAX];
    const size_t pieces = (size_t)count * (MIB / PIECE);
    for (size_t i = 0; i < pieces + PIECES_OPEN_MAX; i++) {
        if (i >= PIECES_OPEN_MAX) { /* they complete in their order */
            bare_await(&b->bare);
        }
        if (i < pieces) {
            const size_t at = 4096 + i % (MIB / PIECE) * PIECE;
            move(&b->bare, at, b->bare.memory + at, PIECE, &contexts[i % PIECES_OPEN_MAX]);
        }
    }
}

static void put_piece(bare *net, size_t at, unsigned char *local, size_t bytes, struct fi_context *context)
{
    bare_put(net, at, local, bytes, context);
}

static void get_piece(bare *net, size_t at, unsigned char *local, size_t bytes, struct fi_context *context)
{
    bare_get(net, at, local, bytes, context);
}

/* All have arrived when the get behind them has come back. */
static void bare_stream(bench *b, int count)
{
    bare_pieces(b, count, put_piece);
    bare_gets(b, 1);
}

static void bare_fetch_stream(bench *b, int count)
{
    bare_pieces(b, count, get_piece);
}

/* ---- the same by weft ---- */

static void own_ping_pong(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        b->told++;
        if (b->me == 0) {
            check(weft_uint64_p(b->world, b->words, b->told, b->other));
        }
        check(weft_uint64_wait_until(b->world, b->words, WEFT_CMP_GE, b->told));
        if (b->me == 1) {
            check(weft_uint64_p(b->world, b->words, b->told, b->other));
        }
    }
}

static void own_signals(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        b->told++;
        if (b->me == 0) {
            check(
                weft_putmem_signal(b->world, b->words + 8, &b->told, 8, b->words, b->told, WEFT_SIGNAL_SET, b->other));
        }
        check(weft_uint64_wait_until(b->world, b->words, WEFT_CMP_GE, b->told));
        if (b->me == 1) {
            check(
                weft_putmem_signal(b->world, b->words + 8, &b->told, 8, b->words, b->told, WEFT_SIGNAL_SET, b->other));
        }
    }
}

static void own_gets(bench *b, int count)
{
    uint64_t value;
    for (int i = 0; i < count; i++) {
        check(weft_getmem(b->world, &value, b->words + 1, 8, b->other));
    }
}

static void own_fetches(bench *b, int count)
{
    uint64_t value;
    for (int i = 0; i < count; i++) {
        check(weft_uint64_atomic_fetch_add(b->world, b->words + 1, 1, b->other, &value));
    }
}

static void own_stream(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        check(weft_putmem_nbi(b->world, b->data, b->data, MIB, b->other));
    }
    check(weft_quiet(b->world));
}

static void own_fetch_stream(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        check(weft_getmem_nbi(b->world, b->data, b->data, MIB, b->other));
    }
    check(weft_quiet(b->world));
}

static void own_small(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        check(weft_putmem_nbi(b->world, b->words + 16 + i % 32, &b->told, 8, b->other));
    }
    check(weft_quiet(b->world));
}

static void own_one_by_one(bench *b, int count)
{
    static const uint64_t zero;
    for (int i = 0; i < count; i++) { /* with its signal each is a message */
        check(weft_putmem_signal(b->world, b->words + 16 + i % 32, &zero, 8, b->words + 60, 1, WEFT_SIGNAL_SET,
                                 b->other));
    }
    check(weft_quiet(b->world));
}

/* ---- rounds ---- */

typedef struct row {
    const char *name;
    void (*mine)(bench *b, int count);
    void (*theirs)(bench *b, int count);
    int both; /* PE 1 takes part, too; else it waits in a barrier */
    int count;
    double bar; /* weft's time over the other's */
} row;

static const row rows[] = {
    {"put and wait, one way", own_ping_pong, bare_ping_pong, 1, 200, 1.25},
    {"put beside a message of 72 B", own_ping_pong, bare_messages, 1, 200, 1.25},
    {"get of 8 B", own_gets, bare_gets, 0, 200, 1.25},
    {"fetch_add", own_fetches, bare_fetches, 0, 200, 1.25},
    {"put of 1 MiB", own_stream, bare_stream, 0, 16, 1 / 0.9},
    {"get of 1 MiB", own_fetch_stream, bare_fetch_stream, 0, 16, 1 / 0.9},
    {"put_signal beside weft's put", own_signals, own_ping_pong, 1, 200, 1.2},
    {"8 B puts beside a message each", own_small, own_one_by_one, 0, 4000, 1 / 5.0},
};

static int is_bare(void (*of)(bench *b, int count))
{
    return of == bare_gets || of == bare_fetches || of == bare_stream || of == bare_fetch_stream;
}

static double time_of(bench *b, const row *r, void (*of)(bench *b, int count))
{
    check(weft_barrier(b->world));
    const double start = now_us();
    if (r->both || b->me == 0) {
        of(b, r->count);
    }
    const double took = now_us() - start;
    if (!r->both && b->me == 1) { /* bare calls need the target's looks */
        while (__atomic_load_n(b->words + 62, __ATOMIC_ACQUIRE) == 0) {
            if (is_bare(of)) {
                (void)bare_look(&b->bare); /* the word comes by weft's thread */
            } else {
                check(weft_uint64_wait_until(b->world, b->words + 62, WEFT_CMP_NE, 0));
            }
        }
        b->words[62] = 0;
    } else if (!r->both) {
        check(weft_uint64_p(b->world, b->words + 62, 1, b->other));
    }
    check(weft_barrier(b->world));
    return took / r->count;
}

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Sorts them. */
static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 15;
    bench b = {0};
    double mine[ROUNDS_MAX];
    double theirs[ROUNDS_MAX];
    double ratios[ROUNDS_MAX];
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fail("rounds", "1 to 101");
    }
    check(weft_world_create(NULL, &b.world));
    b.me = weft_world_pe(b.world);
    b.other = 1 - b.me;
    check(weft_calloc(b.world, WORDS, 8, (void **)&b.words));
    check(weft_malloc(b.world, MIB, (void **)&b.data));
    memset(b.data, 1, MIB);
    bare_open(&b);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (int round = -1; round < rounds; round++) { /* the first is to warm up */
            const double other = time_of(&b, &rows[r], rows[r].theirs);
            const double own = time_of(&b, &rows[r], rows[r].mine);
            if (round >= 0) {
                mine[round] = own;
                theirs[round] = other;
                ratios[round] = own / other;
            }
        }
        if (b.me == 0) {
            const double ratio = median(ratios, rounds);
            const double half = rows[r].both ? 2 : 1;
            const double middle = median(mine, rounds) / half;
            const double other = median(theirs, rounds) / half;
            printf("%-30s %9.2f us, beside %9.2f us: %.2f (bar %.2f)%s; the least %.2f beside %.2f\n", rows[r].name,
                   middle, other, ratio, rows[r].bar, ratio > rows[r].bar ? "  MISSED" : "", mine[0] / half,
                   theirs[0] / half);
            (void)fflush(stdout);
        }
    }
    check(weft_world_destroy(b.world));
    return 0;
}

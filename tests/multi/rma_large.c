/* PES: 2 5 */
/* Goal: large puts and gets, which a network may do by its own means, arrive whole and in their order among small ones:
 * a get sees what its PE put before, a large put behind a fence comes after what was put before it, a signal after its
 * data; registered ranges may overlap; and a get that has failed writes nothing any more into the caller's memory.
 * Method: in a ring each PE puts to its right neighbour. Bytes name sender and round; a consumer looks at two words of
 * which the one must not be behind the other. Over a network PE 0 reads from a PE that is stopped. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/os.h"
#include "support/check.h"
#include "support/pattern.h"
#include "support/pe_main.h"

#define BLOCK_BYTES ((size_t)600 << 10)
#define LARGE_BYTES ((size_t)150 << 10)
#define SHORTER_BYTES ((size_t)300)
#define PUT_ROUNDS 30
#define SIGHT_ROUNDS 200
#define ORDER_ROUNDS 200 /* one byte's worth: a word of a large put may come in parts */
#define SIGNAL_ROUNDS 60
#define STOPPING_NS UINT64_C(100000000) /* until all threads of a process have the signal */
#define LATE_NS UINT64_C(500000000) /* for what comes late */
#define PATIENCE_NS UINT64_C(20000000000)

typedef struct ring {
    weft_world *world;
    int me;
    int left;
    int right;
    unsigned char *block; /* symmetric; written by left */
    unsigned char *heap; /* symmetric; to put from */
    uint64_t *words; /* symmetric: 0 by left, 1 by right, 2 and 3 by others */
    unsigned char *own; /* not symmetric */
} ring;

/* ---- whole ---- */

static void put_and_get(const ring *r)
{
    uint64_t seed = pe_common_seed(r->world);
    for (int round = 0; round < PUT_ROUNDS; round++) {
        const size_t bytes = 257 + random_below(&seed, round % 3 == 0 ? 4096 : (unsigned)(BLOCK_BYTES - 257));
        const size_t at = random_below(&seed, (unsigned)(BLOCK_BYTES - bytes) + 1);
        unsigned char *source = round % 2 == 0 ? r->heap : r->own;
        memset(r->block, POISON, BLOCK_BYTES);
        pattern_fill(source, bytes, r->me, (size_t)round);
        CHECK_OK(weft_barrier(r->world));
        CHECK_OK(weft_putmem(r->world, r->block + at, source, bytes, r->right));
        memset(source, 0, bytes); /* it can be reused */
        CHECK_OK(weft_barrier(r->world));
        pattern_check(r->block + at, bytes, r->left, (size_t)round, "a large put");
        poison_check(r->block, at, "before it");
        poison_check(r->block + at + bytes, BLOCK_BYTES - at - bytes, "behind it");
        memset(r->own, POISON, BLOCK_BYTES);
        CHECK_OK(weft_getmem(r->world, r->own, r->block + at, bytes, r->right));
        pattern_check(r->own, bytes, r->me, (size_t)round, "what was put is got");
        poison_check(r->own + bytes, BLOCK_BYTES - bytes, "behind what is got");
        CHECK_OK(weft_barrier(r->world));
    }
}

/* ---- in order ---- */

static void put_then_get(const ring *r)
{
    uint64_t *back = (uint64_t *)(void *)r->own;
    for (uint64_t round = 1; round <= SIGHT_ROUNDS; round++) {
        const size_t place = (size_t)round * 37 % (LARGE_BYTES / 8);
        if (round % 3 == 0) {
            memset(r->own, (int)round, LARGE_BYTES);
            CHECK_OK(weft_putmem(r->world, r->block, r->own, LARGE_BYTES, r->right));
        }
        CHECK_OK(weft_uint64_p(r->world, (uint64_t *)(void *)r->block + place, round, r->right));
        CHECK_OK(weft_getmem(r->world, back, r->block, LARGE_BYTES, r->right));
        CHECK_SAY(back[place] == round, "round %llu: a get sees %llu", (unsigned long long)round,
                  (unsigned long long)back[place]);
    }
}

/* Who looks at the data of a put that is under way is in a race with it, which ThreadSanitizer tells. */
#ifdef __SANITIZE_THREAD__
enum { LOOKS_AT_DATA = 0 };
#else
enum { LOOKS_AT_DATA = 1 };
#endif

/* Without calls: what comes is seen to by the library's thread meanwhile. */
static void watch_order(const ring *r)
{
    const uint64_t until = wefti_os_now_ns() + PATIENCE_NS;
    const uint64_t *last = (const uint64_t *)(const void *)(r->block + LARGE_BYTES - 8);
    uint64_t seen = 0;
    while (seen < ORDER_ROUNDS && wefti_os_now_ns() < until) {
        seen = __atomic_load_n(last, __ATOMIC_ACQUIRE);
        const uint64_t before = __atomic_load_n(r->words, __ATOMIC_ACQUIRE);
        CHECK_SAY(before >= seen, "a put before the fence is at %llu, one behind it at %llu",
                  (unsigned long long)before, (unsigned long long)seen);
    }
    CHECK(seen == ORDER_ROUNDS);
}

/* The shorter ones are there soon after what came before them. */
static void put_behind_fence(const ring *r)
{
    uint64_t *last = (uint64_t *)(void *)(r->heap + LARGE_BYTES - 8);
    memset(r->heap, 0, LARGE_BYTES);
    for (uint64_t round = 1; round <= ORDER_ROUNDS; round++) {
        *last = round;
        const size_t at = round % 8 == 0 ? 0 : LARGE_BYTES - SHORTER_BYTES;
        for (uint64_t i = 0; i < 8; i++) {
            CHECK_OK(weft_uint64_atomic_add(r->world, r->words + 3, 1, r->right));
        }
        CHECK_OK(weft_uint64_p(r->world, r->words, round, r->right));
        CHECK_OK(weft_fence(r->world));
        CHECK_OK(weft_putmem(r->world, r->block + at, r->heap + at, LARGE_BYTES - at, r->right));
    }
}

static void in_order(const ring *r)
{
    memset(r->block, 0, BLOCK_BYTES);
    memset(r->words, 0, 4 * sizeof *r->words);
    CHECK_OK(weft_barrier(r->world));
    if (r->me == 0) {
        put_behind_fence(r);
    } else if (r->left == 0 && LOOKS_AT_DATA) {
        watch_order(r);
    }
    CHECK_OK(weft_barrier(r->world));
}

static void with_signals(const ring *r)
{
    memset(r->words, 0, 4 * sizeof *r->words);
    CHECK_OK(weft_barrier(r->world));
    for (uint64_t round = 1; round <= SIGNAL_ROUNDS; round++) {
        pattern_fill(r->heap, LARGE_BYTES, r->me, (size_t)round);
        CHECK_OK(
            weft_putmem_signal(r->world, r->block, r->heap, LARGE_BYTES, r->words, round, WEFT_SIGNAL_SET, r->right));
        CHECK_OK(weft_uint64_wait_until(r->world, r->words, WEFT_CMP_GE, round));
        pattern_check(r->block, LARGE_BYTES, r->left, (size_t)round, "data behind a signal");
        CHECK_OK(weft_uint64_p(r->world, r->words + 1, round, r->left)); /* the next may come */
        CHECK_OK(weft_uint64_wait_until(r->world, r->words + 1, WEFT_CMP_GE, round));
    }
    CHECK_OK(weft_barrier(r->world));
}

/* ---- late ---- */

/* Without calls, whose deadline is short here. */
static void wait_for_word(const uint64_t *word)
{
    const uint64_t until = wefti_os_now_ns() + PATIENCE_NS;
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0 && wefti_os_now_ns() < until) {
        wefti_os_sleep_ns(1000000);
    }
    CHECK_SAY(__atomic_load_n(word, __ATOMIC_ACQUIRE) != 0, "nothing was said");
}

static void get_from_stopped(const ring *r, int stopped, pid_t process)
{
    CHECK_OK(weft_quiet(r->world)); /* a get first awaits what was put */
    (void)kill(process, SIGSTOP);
    wefti_os_sleep_ns(STOPPING_NS);
    memset(r->own, POISON, BLOCK_BYTES);
    CHECK_STATUS(weft_getmem(r->world, r->own, r->block, BLOCK_BYTES, stopped), WEFT_ERR_TIMEOUT);
    CHECK_NAMES(stopped);
    memset(r->own, POISON, BLOCK_BYTES); /* the caller's again */
    (void)kill(process, SIGCONT);
    const uint64_t until = wefti_os_now_ns() + LATE_NS;
    uint64_t value;
    while (wefti_os_now_ns() < until) { /* answered behind what is late */
        (void)weft_getmem(r->world, &value, r->words + 3, sizeof value, stopped);
    }
    poison_check(r->own, BLOCK_BYTES, "memory of a call that has failed");
    CHECK_OK(weft_getmem(r->world, r->own, r->block, BLOCK_BYTES, stopped));
    pattern_check(r->own, BLOCK_BYTES, stopped, 0, "from who goes on");
}

static void late(const ring *r)
{
    const int last = weft_world_pes(r->world) - 1;
    memset(r->words, 0, 4 * sizeof *r->words);
    pattern_fill(r->block, BLOCK_BYTES, r->me, 0);
    CHECK_OK(weft_barrier(r->world));
    if (r->me == 0) {
        wait_for_word(r->words + 2);
        get_from_stopped(r, last, (pid_t)r->words[2]);
        for (int pe = 1; pe <= last; pe++) {
            CHECK_OK(weft_uint64_p(r->world, r->words + 3, 1, pe));
        }
    } else {
        if (r->me == last) {
            CHECK_OK(weft_uint64_p(r->world, r->words + 2, (uint64_t)getpid(), 0));
        }
        wait_for_word(r->words + 3);
    }
    CHECK_OK(weft_barrier(r->world));
}

/* ---- from and to registered memory ---- */

#define REGIONS 3

/* Regions that share bytes, two of them all: each is a region of its own, whose end leaves the others as they are, and
 * what goes from or to shared bytes goes as from any others. */
static void through_regions(const ring *r)
{
    weft_region *regions[REGIONS] = {NULL};
    unsigned char *const shared = r->own + LARGE_BYTES;
    for (int i = 0; i < REGIONS; i++) {
        CHECK_OK(weft_register(r->world, i == 0 ? r->own : shared, 2 * LARGE_BYTES, &regions[i]));
    }
    for (int left = REGIONS; left >= 0; left--) {
        for (int i = 0; i < left; i++) {
            CHECK(weft_region_address(regions[i]) == (i == 0 ? r->own : shared) &&
                  weft_region_bytes(regions[i]) == 2 * LARGE_BYTES);
        }
        pattern_fill(shared, LARGE_BYTES, r->me, (size_t)left);
        CHECK_OK(weft_barrier(r->world));
        CHECK_OK(weft_putmem(r->world, r->block, shared, LARGE_BYTES, r->right));
        CHECK_OK(weft_barrier(r->world));
        pattern_check(r->block, LARGE_BYTES, r->left, (size_t)left, "what was put from shared bytes");
        memset(r->own, POISON, BLOCK_BYTES);
        CHECK_OK(weft_getmem_nbi(r->world, shared, r->block, LARGE_BYTES, r->right));
        CHECK_OK(weft_quiet(r->world));
        pattern_check(shared, LARGE_BYTES, r->me, (size_t)left, "what was got into shared bytes");
        poison_check(r->own, LARGE_BYTES, "before shared bytes");
        poison_check(shared + LARGE_BYTES, LARGE_BYTES, "behind shared bytes");
        CHECK_OK(weft_unregister(left > 0 ? regions[left - 1] : NULL));
    }
    CHECK_OK(weft_barrier(r->world)); /* before what comes next changes the blocks that others get */
}

/* What WEFT_RMA_ORDER asks for is what is used, where the provider has it, as that for TCP does. */
static void check_order(weft_world *world)
{
    char map[1024];
    const char *order = getenv("WEFT_RMA_ORDER");
    const int completes = order != NULL && strcmp(order, "completion") == 0;
    const int counted = order != NULL && strcmp(order, "counted") == 0;
    CHECK(weft_world_transport_map(world, map, sizeof map) < sizeof map);
    CHECK_SAY(strstr(map, completes ? "large puts by itself, each to its completion"
                          : counted ? "large puts by itself, counted as they arrive"
                                    : "large puts by itself, in its order") != NULL,
              "%s", map);
}

static void body(weft_world *world)
{
    const int pes = weft_world_pes(world);
    ring r = {.world = world, .me = weft_world_pe(world), .own = malloc(BLOCK_BYTES)};
    r.left = (r.me + pes - 1) % pes;
    r.right = (r.me + 1) % pes;
    r.block = pe_zeroed(world, BLOCK_BYTES);
    r.heap = pe_zeroed(world, BLOCK_BYTES);
    r.words = pe_zeroed(world, 4 * sizeof *r.words);
    put_and_get(&r);
    put_then_get(&r);
    CHECK_OK(weft_barrier(world));
    in_order(&r);
    with_signals(&r);
    through_regions(&r);
    if (getenv("WEFT_NODE_ID") != NULL) {
        check_order(world);
        late(&r);
    }
    CHECK_OK(weft_free(world, r.words));
    CHECK_OK(weft_free(world, r.heap));
    CHECK_OK(weft_free(world, r.block));
    free(r.own);
}

int main(int argc, char **argv)
{
    (void)setenv("WEFT_DEADLINE", "4", 0);
    return pe_main(argc, argv, body);
}

/* Goal: puts and gets of any size, from and to any alignment, move exactly their bytes.
 * Method: all sizes to 300 bytes and those around powers of two, at offsets that differ in source and destination;
 * every byte names its sender and its place, and everything else in a poisoned destination must still be poison. Copies
 * so large that they pass the caches are followed by a fence and a flag, not a barrier. From what size on they do
 * follows from the last cache that a core uses, as the kernel names it, not from all caches of a machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/pattern.h"
#include "support/pe_main.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LARGEST ((size_t)1 << 20)
#define OFFSET_STEP 6
#else
#define LARGEST (WEFTI_STREAM_BYTES + ((size_t)1 << 20))
#define OFFSET_STEP 1
#endif

#define GUARD 32 /* bytes looked at on both sides */
#define OFFSETS 17
#define ROOM (((size_t)1 << 20) + 4096)

/* Between a PE and its right neighbour: what it writes there, and words that only it writes. */
typedef struct line {
    uint64_t done; /* the neighbour's data is there */
    uint64_t unused[7];
} line;

static const size_t sizes[] = {511,   512,    513,    1000,   1023,          1024,    1025,         2047,  2048,
                               2049,  4095,   4096,   4097,   8191,          8193,    65535,        65536, 65537,
                               99999, 262143, 262144, 262145, (1 << 20) - 1, 1 << 20, (1 << 20) + 3};

/* What lies at the destination after a transfer of `bytes` to `at`. */
static void check_place(const unsigned char *at, size_t bytes, int from, size_t first, const char *what)
{
    poison_check(at - GUARD, GUARD, what);
    pattern_check(at, bytes, from, first, what);
    poison_check(at + bytes, GUARD, what);
}

typedef struct place {
    weft_world *world;
    unsigned char *inbox; /* symmetric: the left neighbour puts here */
    unsigned char *outbox; /* symmetric, holds this PE's pattern from index 0 on: the left neighbour gets from here */
    unsigned char *local;
    int me;
    int left;
    int right;
} place;

/* Put to the right, from local memory at one alignment to the inbox at another. */
static void put_one(const place *p, size_t bytes, size_t from, size_t to, int nbi)
{
    unsigned char *dest = p->inbox + GUARD + to;
    unsigned char *source = p->local + from;
    memset(dest - GUARD, POISON, bytes + 2 * (size_t)GUARD);
    pattern_fill(source, bytes, p->me, bytes);
    CHECK_OK(weft_barrier(p->world));
    if (nbi) {
        CHECK_OK(weft_putmem_nbi(p->world, dest, source, bytes, p->right));
        CHECK_OK(weft_quiet(p->world));
    } else {
        CHECK_OK(weft_putmem(p->world, dest, source, bytes, p->right));
        memset(source, POISON, bytes); /* it may be reused */
    }
    CHECK_OK(weft_barrier(p->world));
    check_place(dest, bytes, p->left, bytes, nbi ? "putmem_nbi" : "putmem");
}

static void get_one(const place *p, size_t bytes, size_t from, size_t to, int nbi)
{
    unsigned char *dest = p->local + GUARD + to;
    memset(dest - GUARD, POISON, bytes + 2 * (size_t)GUARD);
    if (nbi) {
        CHECK_OK(weft_getmem_nbi(p->world, dest, p->outbox + from, bytes, p->right));
        CHECK_OK(weft_quiet(p->world));
    } else {
        CHECK_OK(weft_getmem(p->world, dest, p->outbox + from, bytes, p->right));
    }
    check_place(dest, bytes, p->right, from, nbi ? "getmem_nbi" : "getmem");
}

/* Small sizes, many at a time between two barriers. */
static void move_small(const place *p)
{
    for (size_t to = 0; to < OFFSETS; to += OFFSET_STEP) {
        size_t from = to * 5 % OFFSETS;
        size_t end = GUARD + to;
        memset(p->inbox, POISON, ROOM);
        CHECK_OK(weft_barrier(p->world));
        for (size_t bytes = 0; bytes <= 300; bytes++) {
            pattern_fill(p->local + from, bytes, p->me, end);
            CHECK_OK(weft_putmem(p->world, p->inbox + end, p->local + from, bytes, p->right));
            end += bytes + GUARD;
            get_one(p, bytes, from + bytes, to, bytes % 2 == 0);
        }
        CHECK_OK(weft_barrier(p->world));
        end = GUARD + to;
        for (size_t bytes = 0; bytes <= 300; bytes++) {
            check_place(p->inbox + end, bytes, p->left, end, "a small put");
            end += bytes + GUARD;
        }
        CHECK_OK(weft_barrier(p->world));
    }
}

static void move_large(const place *p)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t round = 0; round<3; round += sizes[i]> 5000 && OFFSET_STEP > 1 ? 2 : 1) {
            size_t to = (i * 7 + round * 11) % OFFSETS;
            size_t from = round == 0 ? to : (i * 3 + round) % OFFSETS;
            put_one(p, sizes[i], from, to, round == 2);
            get_one(p, sizes[i], from, to, round == 2);
        }
    }
}

/* One put that exceeds the caches; who sees the flag behind the fence sees all of it. */
static void move_largest(weft_world *world)
{
    int me = weft_world_pe(world);
    int pes = weft_world_pes(world);
    int left = (me + pes - 1) % pes;
    if (pes > 2) {
        return; /* time and memory */
    }
    unsigned char *inbox = pe_poisoned(world, LARGEST + 256);
    line *mine = pe_zeroed(world, sizeof *mine);
    unsigned char *local = malloc(LARGEST);
    for (uint64_t round = 1; round <= 2; round++) {
        size_t bytes = LARGEST - round * 1001;
        pattern_fill(local, bytes, me, round);
        CHECK_OK(weft_putmem(world, inbox + 64 + round, local, bytes, (me + 1) % pes));
        CHECK_OK(weft_fence(world));
        CHECK_OK(weft_uint64_p(world, &mine->done, round, (me + 1) % pes));
        CHECK_OK(weft_uint64_wait_until(world, &mine->done, WEFT_CMP_EQ, round));
        pattern_check(inbox + 64 + round, bytes, left, round, "a put past the caches");
        CHECK_OK(weft_barrier(world));
    }
    poison_check(inbox, 64, "before the largest put");
    poison_check(inbox + LARGEST, 256, "behind the largest put");
    free(local);
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, mine));
    CHECK_OK(weft_free(world, inbox));
}

static void check_stream_bytes(void)
{
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
    size_t kib = 0;
    if (file != NULL) {
        if (fscanf(file, "%zuK", &kib) != 1) {
            kib = 0;
        }
        fclose(file);
    }
    const size_t share = kib * 1024 / 4 * 3;
    CHECK(kib == 0 || wefti_stream_bytes() <= (share > WEFTI_STREAM_BYTES ? share : WEFTI_STREAM_BYTES));
}

static void body(weft_world *world)
{
    check_stream_bytes();
    int pes = weft_world_pes(world);
    place p = {.world = world, .me = weft_world_pe(world)};
    p.left = (p.me + pes - 1) % pes;
    p.right = (p.me + 1) % pes;
    p.inbox = pe_poisoned(world, ROOM);
    p.outbox = pe_poisoned(world, ROOM);
    p.local = malloc(ROOM);
    pattern_fill(p.outbox, ROOM, p.me, 0);
    CHECK_OK(weft_barrier(world));
    move_small(&p);
    move_large(&p);
    CHECK_OK(weft_barrier(world));
    pattern_check(p.outbox, ROOM, p.me, 0, "what was got from");
    free(p.local);
    CHECK_OK(weft_free(world, p.outbox));
    CHECK_OK(weft_free(world, p.inbox));
    move_largest(world);
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, body);
}

/* PES: 2 5 */
/* Goal: while heaps grow, several times, under PEs that have keys of each other's memory already, puts and gets, also
 * those that have only begun, move what they should: to blocks that were there before, and to the last bytes of blocks
 * that have just come to be.
 * Method: in a ring, a thread of each PE puts a block of its right neighbour's and gets it again, without end, by turns
 * waited for and only begun, while another allocates: each block makes the heap grow. Of a new block all of it, its
 * first and its last bytes are put and got at once, as the first use of that memory, and again some time later, when a
 * key of it is to be had. Bytes name their sender and the round. */
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/pattern.h"
#include "support/pe_main.h"

#define OLD_BYTES ((size_t)96 << 10) /* of a block that the thread uses */
#define OLD_BLOCKS 4
#define GROWTHS 9
#define FIRST_BYTES                                                                                                    \
    ((size_t)80 << 10) /* of the first new block; each is half as large again, and more than the heap has */
#define LARGEST_BYTES ((size_t)3 << 20)
#define END_BYTES ((size_t)40 << 10) /* at a new block's ends: more than goes by message by itself */
#define LATER_NS UINT64_C(120000000) /* a PE asks for another key no more often */

typedef struct ring {
    weft_world *world;
    int me;
    int left;
    int right;
    unsigned char *old; /* symmetric: OLD_BLOCKS of OLD_BYTES, written by left's thread */
    int is_over; /* for the thread */
    uint64_t rounds; /* of the thread */
} ring;

/* ---- what was there before ---- */

static void use_old(void *argument)
{
    ring *r = argument;
    unsigned char *source = malloc(OLD_BYTES);
    unsigned char *got = malloc((size_t)OLD_BLOCKS * OLD_BYTES);
    check_as_pe(r->me);
    for (size_t round = 0; !__atomic_load_n(&r->is_over, __ATOMIC_ACQUIRE); round++) {
        for (size_t i = 0; i < OLD_BLOCKS; i++) {
            pattern_fill(source, OLD_BYTES, r->me, round + i);
            CHECK_OK(round % 2 == 0 ? weft_putmem(r->world, r->old + i * OLD_BYTES, source, OLD_BYTES, r->right)
                                    : weft_putmem_nbi(r->world, r->old + i * OLD_BYTES, source, OLD_BYTES, r->right));
            CHECK_OK(round % 2 == 0 ? WEFT_OK : weft_quiet(r->world));
        }
        memset(got, POISON, (size_t)OLD_BLOCKS * OLD_BYTES);
        for (size_t i = 0; i < OLD_BLOCKS; i++) {
            CHECK_OK(round % 3 == 0
                         ? weft_getmem(r->world, got + i * OLD_BYTES, r->old + i * OLD_BYTES, OLD_BYTES, r->right)
                         : weft_getmem_nbi(r->world, got + i * OLD_BYTES, r->old + i * OLD_BYTES, OLD_BYTES, r->right));
        }
        CHECK_OK(weft_quiet(r->world));
        for (size_t i = 0; i < OLD_BLOCKS; i++) {
            pattern_check(got + i * OLD_BYTES, OLD_BYTES, r->me, round + i, "of an old block while heaps grow");
        }
        r->rounds++;
    }
    free(got);
    free(source);
}

/* ---- what has just come to be ---- */

/* Put these bytes of the right neighbour's block, and get them again. */
static void put_and_get(const ring *r, unsigned char *block, size_t at, size_t bytes, size_t round,
                        unsigned char *scratch)
{
    pattern_fill(scratch, bytes, r->me, round + at);
    CHECK_OK(weft_putmem(r->world, block + at, scratch, bytes, r->right));
    memset(scratch, POISON, bytes);
    CHECK_OK(weft_getmem_nbi(r->world, scratch, block + at, bytes, r->right));
    CHECK_OK(weft_quiet(r->world));
    pattern_check(scratch, bytes, r->me, round + at, "what was put to a new block is got");
}

static void use_new(const ring *r, unsigned char *block, size_t bytes, size_t round, unsigned char *scratch)
{
    put_and_get(r, block, bytes - END_BYTES, END_BYTES, round, scratch);
    put_and_get(r, block, 0, END_BYTES, round, scratch);
    put_and_get(r, block, 0, bytes, round, scratch);
    CHECK_OK(weft_barrier(r->world));
    pattern_check(block, bytes, r->left, round, "a new block");
    CHECK_OK(weft_barrier(r->world));
}

static size_t bytes_of(int growth)
{
    size_t bytes = FIRST_BYTES;
    for (int i = 0; i < growth; i++) {
        bytes += bytes / 2;
    }
    return bytes < LARGEST_BYTES ? bytes : LARGEST_BYTES;
}

static uint64_t heap_bytes(weft_world *world)
{
    weft_counters counters;
    CHECK_OK(weft_world_counters(world, &counters));
    return counters.heap_bytes_reserved;
}

static void grow(const ring *r)
{
    unsigned char *scratch = malloc(LARGEST_BYTES);
    unsigned char *blocks[GROWTHS];
    int grown = 0;
    for (int i = 0; i < GROWTHS; i++) {
        const uint64_t before = heap_bytes(r->world);
        blocks[i] = pe_poisoned(r->world, bytes_of(i));
        grown += heap_bytes(r->world) > before;
        use_new(r, blocks[i], bytes_of(i), (size_t)i, scratch);
        if (i % 3 == 2) {
            wefti_os_sleep_ns(LATER_NS);
            use_new(r, blocks[i], bytes_of(i), (size_t)i + 100, scratch);
        }
    }
    CHECK_SAY(grown >= 3, "of %d blocks %d made the heap grow", GROWTHS, grown);
    for (int i = GROWTHS - 1; i >= 0; i--) {
        CHECK_OK(weft_free(r->world, blocks[i]));
    }
    free(scratch);
}

static void body(weft_world *world)
{
    const int pes = weft_world_pes(world);
    ring r = {.world = world, .me = weft_world_pe(world)};
    wefti_os_thread *thread;
    r.left = (r.me + pes - 1) % pes;
    r.right = (r.me + 1) % pes;
    r.old = pe_poisoned(world, (size_t)OLD_BLOCKS * OLD_BYTES);
    if (!CHECK_OK(wefti_os_thread_start(&thread, use_old, &r))) {
        exit(1);
    }
    grow(&r);
    __atomic_store_n(&r.is_over, 1, __ATOMIC_RELEASE);
    wefti_os_thread_join(thread);
    CHECK(r.rounds > 0);
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, r.old));
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, body);
}

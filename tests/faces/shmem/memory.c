/* Goal: memory management (9.3).
 * Method: each routine's block is aligned, symmetric, as large as asked for and as it says filled; what has no memory
 * is a null pointer on all PEs, and nothing is lost by many allocations. */
#include "faces/shmem/check.h"

/* Every PE writes its number into the whole block of its neighbour. */
static void check_block_of(unsigned char *block, size_t bytes)
{
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    unsigned char *mine = malloc(bytes);
    memset(mine, me + 1, bytes);
    shmem_barrier_all();
    shmem_putmem(block, mine, bytes, (me + 1) % pes);
    shmem_barrier_all();
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; i++) {
        wrong += block[i] != (unsigned char)((me + pes - 1) % pes + 1);
    }
    CHECK_SAY(wrong == 0, "%zu of %zu bytes are wrong", wrong, bytes);
    shmem_barrier_all();
    free(mine);
}

/* Each PE asks for another size: the blocks have room for the largest, and one offset. */
static void check_uneven(void)
{
    const size_t largest = 64 * (size_t)shmem_n_pes();
    unsigned char *uneven = shmem_malloc(64 * ((size_t)shmem_my_pe() + 1));
    unsigned char *behind = shmem_malloc(16);
    CHECK(uneven != NULL && behind != NULL);
    CHECK(behind >= uneven + largest || behind + 16 <= uneven);
    check_block_of(uneven, largest);
    check_block_of(behind, 16);
    shmem_free(uneven);
    shmem_free(behind);
}

int main(void)
{
    shmem_init();
    check_uneven();
    CHECK(shmem_malloc(0) == NULL);
    CHECK(shmem_calloc(0, 8) == NULL && shmem_calloc(8, 0) == NULL);
    CHECK(shmem_align(64, 0) == NULL);
    CHECK(shmem_malloc_with_hints(0, SHMEM_MALLOC_ATOMICS_REMOTE) == NULL);
    CHECK(shmem_realloc(NULL, 0) == NULL);
    shmem_free(NULL);
    for (size_t bytes = 1; bytes <= (1 << 20); bytes = bytes * 5 + 3) {
        unsigned char *block = shmem_malloc(bytes);
        CHECK(block != NULL && ((uintptr_t)block & 7) == 0);
        check_block_of(block, bytes);
        shmem_free(block);
        unsigned char *zeroed = shmem_calloc(bytes, 3);
        CHECK(zeroed != NULL);
        size_t not_zero = 0;
        for (size_t i = 0; i < 3 * bytes; i++) {
            not_zero += zeroed[i] != 0;
        }
        CHECK(not_zero == 0);
        check_block_of(zeroed, 3 * bytes);
        shmem_free(zeroed);
    }
    for (size_t alignment = sizeof(void *); alignment <= (size_t)16 << 20; alignment *= 2) {
        unsigned char *block = shmem_align(alignment, 100);
        CHECK(block != NULL && ((uintptr_t)block & (alignment - 1)) == 0);
        check_block_of(block, 100);
        shmem_free(block);
    }
    unsigned char *between = shmem_align(4000, 63); /* as a public test asks: more than that, a power of two */
    CHECK(between != NULL && ((uintptr_t)between & 4095) == 0);
    shmem_free(between);
    for (long hints = 0; hints <= (SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE); hints++) {
        unsigned char *block = shmem_malloc_with_hints(333, hints);
        CHECK(block != NULL);
        check_block_of(block, 333);
        shmem_free(block);
    }
    unsigned char *grown = shmem_malloc(100);
    memset(grown, 7, 100);
    shmem_barrier_all();
    grown = shmem_realloc(grown, 100000);
    CHECK(grown != NULL && grown[0] == 7 && grown[99] == 7);
    check_block_of(grown, 100000);
    memset(grown, 9, 100000);
    grown = shmem_realloc(grown, 50);
    CHECK(grown != NULL && grown[0] == 9 && grown[49] == 9);
    CHECK(shmem_realloc(grown, 0) == NULL);
    grown = shmem_realloc(NULL, 10);
    CHECK(grown != NULL);
    shmem_free(grown);
    CHECK(shmem_malloc((size_t)1 << 55) == NULL); /* there is none */
    CHECK(shmem_calloc(1, (size_t)1 << 55) == NULL);
    CHECK(shmem_calloc((size_t)1 << 40, (size_t)1 << 40) == NULL); /* more than a size_t counts */
    void *old = shmalloc(64); /* deprecated names */
    CHECK(old != NULL);
    old = shrealloc(old, 6400);
    CHECK(old != NULL);
    shfree(old);
    old = shmemalign(4096, 64);
    CHECK(old != NULL && ((uintptr_t)old & 4095) == 0);
    shfree(old);
    void *blocks[500];
    for (int i = 0; i < 500; i++) {
        blocks[i] = shmem_malloc((size_t)(i % 17 + 1) * 100);
        CHECK(blocks[i] != NULL);
    }
    for (int i = 499; i >= 0; i -= 1) {
        shmem_free(blocks[(i * 7) % 500]);
    }
    return check_end();
}

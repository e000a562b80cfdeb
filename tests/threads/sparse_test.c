/* Goal: the sparse part of a heap is one memory for its PE's own mappings and for every other PE's puts, gets and
 * atomics; has memory only where it was written; is nobody's to allocate or free; and ends with the world but not with
 * a mapping of it. Method: PEs as threads map the file where weft_world_sparse says, and look at each other's pages
 * both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/pes.h"

#define PES 3
#define SPARSE_BYTES (((size_t)4 << 30) - 5) /* rounded up to pages */
#define LAST_WORD (((size_t)4 << 30) - 8)

static int be_quiet(void **state)
{
    (void)state;
    return setenv("WEFT_LOG", "none", 1);
}

static void create(weft_threads *meeting, weft_world **worlds)
{
    weft_world_config configs[PES];
    pes_outcome outcomes[PES];
    for (int pe = 0; pe < PES; pe++) {
        configs[pe] = pes_config(meeting, pe, PES);
        configs[pe].sparse_bytes = SPARSE_BYTES;
        configs[pe].heap_bytes = 1 << 16;
    }
    pes_create(configs, PES, outcomes);
    for (int pe = 0; pe < PES; pe++) {
        CHECK_SAY(outcomes[pe].status == WEFT_OK, "PE %d: %s", pe, outcomes[pe].text);
        worlds[pe] = outcomes[pe].world;
    }
}

static uint64_t file_bytes(int descriptor)
{
    struct stat about;
    CHECK(fstat(descriptor, &about) == 0);
    return (uint64_t)about.st_blocks * 512;
}

static uint64_t *word_at(const weft_sparse *sparse, size_t offset)
{
    return (uint64_t *)(void *)((unsigned char *)sparse->address + offset);
}

static uint64_t *map_last_page(const weft_sparse *sparse)
{
    const size_t page = wefti_os_page_bytes();
    unsigned char *mapped = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, sparse->descriptor,
                                 (off_t)(sparse->offset + sparse->bytes - page));
    CHECK(mapped != MAP_FAILED);
    return (uint64_t *)(void *)(mapped + page - sizeof(uint64_t));
}

/* ---- one memory ---- */

static uint64_t *own_words[PES]; /* mapped a second time; they outlive the world */

static void reach_mappings(weft_world *world, void *context)
{
    const int pe = weft_world_pe(world);
    const int next = (pe + 1) % PES;
    weft_sparse sparse;
    uint64_t seen = 0;
    (void)context;
    CHECK_OK(weft_world_sparse(world, &sparse));
    CHECK(sparse.bytes == (size_t)4 << 30 && (uintptr_t)sparse.address % wefti_os_page_bytes() == 0);
    own_words[pe] = map_last_page(&sparse);
    CHECK(*own_words[pe] == 0);
    uint64_t *symmetric = word_at(&sparse, LAST_WORD);
    *own_words[pe] = 100 + (uint64_t)pe;
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_uint64_g(world, symmetric, next, &seen));
    CHECK(seen == 100 + (uint64_t)next);
    CHECK(weft_ptr(world, symmetric, next) != NULL && weft_addr_accessible(world, symmetric, next));
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_uint64_atomic_add(world, symmetric, 1000, next));
    CHECK_OK(weft_barrier(world));
    CHECK(*own_words[pe] == 1100 + (uint64_t)pe);
    CHECK_OK(weft_barrier(world));
}

/* ---- nobody's block ---- */

static void allocate_beyond(weft_world *world, void *context)
{
    weft_sparse sparse;
    void *block = NULL;
    (void)context;
    CHECK_OK(weft_world_sparse(world, &sparse));
    CHECK_STATUS(weft_free(world, sparse.address), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_realloc(world, sparse.address, 64, &block), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_malloc(world, (size_t)15 << 20, &block)); /* of the 16 MiB beside it */
    CHECK((uintptr_t)block >= (uintptr_t)sparse.address + sparse.bytes);
    memset(block, 1, (size_t)15 << 20);
    CHECK(*word_at(&sparse, LAST_WORD) >= 1000);
    CHECK_OK(weft_free(world, block));
}

static void test_one_memory(void **state)
{
    (void)state;
    weft_threads *meeting = pes_meeting(PES);
    weft_world *worlds[PES];
    weft_sparse sparse;
    create(meeting, worlds);
    CHECK_OK(weft_world_sparse(worlds[0], &sparse));
    CHECK(file_bytes(sparse.descriptor) < (uint64_t)4 << 20);
    pes_run_in(PES, worlds, reach_mappings, NULL);
    pes_run_in(PES, worlds, allocate_beyond, NULL);
    CHECK(file_bytes(sparse.descriptor) < (uint64_t)64 << 20);
    pes_destroy_world(PES, worlds);
    for (int pe = 0; pe < PES; pe++) {
        CHECK(*own_words[pe] == 1100 + (uint64_t)pe);
        const size_t page = wefti_os_page_bytes();
        CHECK(munmap((unsigned char *)own_words[pe] + sizeof(uint64_t) - page, page) == 0);
    }
    weft_threads_destroy(meeting);
}

static void test_leaves_nothing(void **state)
{
    ledger before = ledger_read();
    test_one_memory(state);
    ledger_assert_same(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_one_memory),
        CHECKED_TEST(test_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, be_quiet, NULL);
}

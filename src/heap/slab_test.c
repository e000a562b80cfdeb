/* Goal: a slab hands out no byte twice, from several threads too, says by a NULL that it is full, and takes back what
 * it gave only.
 *
 * Method: a block that begins in the middle of a cache line, carved and freed at random by four threads, which write
 * into their pieces and find that again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "os/os.h"
#include "support/check.h"
#include "weft/slab.h"

enum { BYTES = 1 << 16, SHIFT = 24, THREADS = 4, STEPS = 3000, HELD = 16 };

static _Alignas(4096) unsigned char memory[BYTES + 64];

static weft_slab *open_slab(size_t bytes)
{
    weft_slab *slab = NULL;
    CHECK_OK(weft_slab_create(memory + SHIFT, bytes, &slab));
    return slab;
}

static weft_slab_use use_of(weft_slab *slab)
{
    weft_slab_use use = WEFT_SLAB_USE_INIT;
    CHECK_OK(weft_slab_query(slab, &use));
    return use;
}

static void pieces_are_aligned_and_the_lowest_that_fit(void **state)
{
    (void)state;
    weft_slab *slab = open_slab(BYTES);
    void *one = NULL;
    void *two = NULL;
    void *three = NULL;
    CHECK(use_of(slab).bytes == BYTES - (64 - SHIFT));
    CHECK_OK(weft_slab_alloc(slab, 1, 0, &one));
    CHECK_OK(weft_slab_alloc(slab, 100, 512, &two));
    CHECK_OK(weft_slab_alloc(slab, 64, 64, &three));
    CHECK(one == memory + 64 && two == memory + 512 && three == memory + 128);
    CHECK(use_of(slab).pieces == 3 && use_of(slab).bytes_used == 64 + 128 + 64);
    CHECK_STATUS(weft_slab_destroy(slab), WEFT_ERR_STATE);
    CHECK_OK(weft_slab_free(slab, one));
    CHECK_STATUS(weft_slab_free(slab, one), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_free(slab, (unsigned char *)two + 64), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_free(slab, memory), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_slab_alloc(slab, 64, 0, &one));
    CHECK(one == memory + 64);
    CHECK_OK(weft_slab_free(slab, one));
    CHECK_OK(weft_slab_free(slab, two));
    CHECK_OK(weft_slab_free(slab, three));
    CHECK_OK(weft_slab_free(slab, NULL));
    CHECK_OK(weft_slab_destroy(slab));
    CHECK_OK(weft_slab_destroy(NULL));
}

/* What counts is the address of a piece, however short the slab is. */
static void pieces_may_be_aligned_to_more_than_the_slab_has(void **state)
{
    (void)state;
    weft_slab *slab = NULL;
    void *piece = NULL;
    CHECK_OK(weft_slab_create(memory, 100, &slab));
    CHECK_OK(weft_slab_alloc(slab, 100, 4096, &piece));
    CHECK(piece == memory);
    CHECK_OK(weft_slab_free(slab, piece));
    CHECK_OK(weft_slab_alloc(slab, 1, (size_t)1 << 63, &piece));
    CHECK(piece == NULL);
    CHECK_OK(weft_slab_destroy(slab));
}

static void a_full_slab_gives_null(void **state)
{
    (void)state;
    weft_slab *slab = open_slab(64 - SHIFT + 256);
    void *all = NULL;
    void *none = memory;
    CHECK_OK(weft_slab_alloc(slab, 257, 0, &none));
    CHECK(none == NULL);
    CHECK_OK(weft_slab_alloc(slab, 256, 0, &all));
    CHECK(all == memory + 64);
    none = memory;
    CHECK_OK(weft_slab_alloc(slab, 1, 0, &none));
    CHECK(none == NULL);
    none = memory;
    CHECK_OK(weft_slab_alloc(slab, 0, 0, &none));
    CHECK(none == NULL);
    none = memory;
    CHECK_OK(weft_slab_alloc(slab, 1, (size_t)1 << 62, &none));
    CHECK(none == NULL);
    CHECK(weft_slab_contains(slab, all) && weft_slab_contains(slab, memory + 64 + 255));
    CHECK(!weft_slab_contains(slab, memory + 63) && !weft_slab_contains(slab, memory + 64 + 256));
    CHECK(!weft_slab_contains(NULL, all));
    CHECK_OK(weft_slab_free(slab, all));
    CHECK_OK(weft_slab_destroy(slab));
    slab = open_slab(8); /* less than up to the first line */
    CHECK_OK(weft_slab_alloc(slab, 1, 0, &none));
    CHECK(none == NULL && use_of(slab).bytes == 0);
    CHECK_OK(weft_slab_destroy(slab));
}

typedef struct user {
    weft_slab *slab;
    uint64_t random;
    unsigned char mark;
    unsigned char *held[HELD];
    size_t bytes[HELD];
    long refused;
} user;

static void drop(user *u, int i)
{
    for (size_t at = 0; at < u->bytes[i]; at++) {
        if (!check_that(u->held[i][at] == u->mark, __FILE__, __LINE__, "byte %zu of a piece is %u, not %u", at,
                        u->held[i][at], u->mark)) {
            break;
        }
    }
    CHECK_OK(weft_slab_free(u->slab, u->held[i]));
    u->held[i] = NULL;
}

static void carve(void *argument)
{
    user *u = argument;
    for (int step = 0; step < STEPS; step++) {
        int i = (int)random_below(&u->random, HELD);
        if (u->held[i] != NULL) {
            drop(u, i);
            continue;
        }
        void *piece = NULL;
        u->bytes[i] = 1 + random_below(&u->random, 4000);
        CHECK_OK(weft_slab_alloc(u->slab, u->bytes[i], (size_t)64 << random_below(&u->random, 4), &piece));
        u->held[i] = piece;
        u->refused += piece == NULL;
        memset(piece != NULL ? piece : &u->mark, u->mark, piece != NULL ? u->bytes[i] : 1);
    }
    for (int i = 0; i < HELD; i++) {
        if (u->held[i] != NULL) {
            drop(u, i);
        }
    }
}

static void threads_carve_at_once(void **state)
{
    (void)state;
    static user users[THREADS];
    wefti_os_thread *threads[THREADS];
    weft_slab *slab = open_slab(BYTES);
    long refused = 0;
    for (int i = 0; i < THREADS; i++) {
        users[i] = (user){.slab = slab, .random = test_seed() + (uint64_t)i, .mark = (unsigned char)(i + 1)};
        CHECK_OK(wefti_os_thread_start(&threads[i], carve, &users[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        wefti_os_thread_join(threads[i]);
        refused += users[i].refused;
    }
    CHECK(refused > 0); /* it was full at times */
    CHECK(use_of(slab).pieces == 0 && use_of(slab).bytes_used == 0);
    CHECK_OK(weft_slab_destroy(slab));
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    weft_slab *slab = NULL;
    void *piece = memory;
    CHECK_STATUS(weft_slab_create(NULL, 64, &slab), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_create(memory, 64, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_create(memory, 0, &slab), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_create(memory, SIZE_MAX, &slab), WEFT_ERR_ARGUMENT);
    CHECK(slab == NULL);
    slab = open_slab(BYTES);
    CHECK_STATUS(weft_slab_alloc(NULL, 1, 0, &piece), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_alloc(slab, 1, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_alloc(slab, 1, 96, &piece), WEFT_ERR_ARGUMENT);
    CHECK(piece == memory);
    CHECK_STATUS(weft_slab_free(NULL, memory), WEFT_ERR_ARGUMENT);
    weft_slab_use use = {.size = 8};
    CHECK_STATUS(weft_slab_query(slab, &use), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_query(slab, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_query(NULL, &use), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_slab_destroy(slab));
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(pieces_are_aligned_and_the_lowest_that_fit),
                                       CHECKED_TEST(pieces_may_be_aligned_to_more_than_the_slab_has),
                                       CHECKED_TEST(a_full_slab_gives_null), CHECKED_TEST(threads_carve_at_once),
                                       CHECKED_TEST(what_cannot_be_is_refused)};
    (void)setenv("WEFT_LOG", "none", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

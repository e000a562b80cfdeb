/* Goal: the directory says of each PE who is the lowest that shares its node, process, processors and control group;
 * says why PEs do not fit; and is refused where its numbers are none. Method: random hellos of few values each, beside
 * a search over all pairs; then directories with one number spoilt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/torture.h"
#include "world/directory.h"

#define PES_MAX 40
#define ROUNDS 400

typedef union made {
    wefti_directory directory;
    unsigned char room[sizeof(wefti_directory) + PES_MAX * sizeof(wefti_directory_pe)];
} made;

static void fill(wefti_hello *all, int pes, uint64_t *random)
{
    memset(all, 0, (size_t)pes * sizeof *all);
    for (int pe = 0; pe < pes; pe++) {
        all[pe].pe = (uint32_t)pe;
        all[pe].pes = (uint32_t)pes;
        all[pe].heap_auto_bytes = 1000 + random_below(random, 1000);
        all[pe].identity.process[15] = (unsigned char)random_below(random, 5);
        all[pe].cores = (wefti_os_cores){.count = 1 + (unsigned)random_below(random, 3),
                                         .mark = (uint64_t)random_below(random, 3) << 60};
        all[pe].left.group_mark = random_below(random, 3);
        all[pe].left.group = random_below(random, 2) == 0 ? UINT64_MAX : 1000;
        memset(all[pe].secret, pe + 1, sizeof all[pe].secret);
    }
}

static int same_process(const wefti_hello *a, const wefti_hello *b)
{
    return memcmp(a->identity.process, b->identity.process, sizeof a->identity.process) == 0;
}

static int same_cores(const wefti_hello *a, const wefti_hello *b)
{
    return a->cores.mark == b->cores.mark;
}

static int same_group(const wefti_hello *a, const wefti_hello *b)
{
    return a == b ||
           (a->left.group != UINT64_MAX && b->left.group != UINT64_MAX && a->left.group_mark == b->left.group_mark);
}

static uint32_t lowest(const wefti_hello *all, int pe, int (*is_same)(const wefti_hello *, const wefti_hello *))
{
    int other = 0;
    while (!is_same(&all[other], &all[pe])) {
        other++;
    }
    return (uint32_t)other;
}

static void test_lowest(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (int round = 0; round < ROUNDS; round++) {
        wefti_hello all[PES_MAX];
        made to;
        int pes = 1 + (int)random_below(&random, PES_MAX);
        uint64_t least = UINT64_MAX;
        int shares = 0;
        fill(all, pes, &random);
        memset(&to, 0xa5, sizeof to);
        assert_int_equal(wefti_directory_make(all, pes, &to), WEFT_OK);
        assert_int_equal(to.directory.status, WEFT_OK);
        assert_int_equal(to.directory.verdict.status, WEFT_OK);
        for (int pe = 0; pe < pes; pe++) {
            const wefti_directory_pe *entry = &to.directory.pes[pe];
            assert_int_equal(entry->node, 0);
            assert_int_equal(entry->process, lowest(all, pe, same_process));
            assert_int_equal(entry->cores, lowest(all, pe, same_cores));
            assert_int_equal(entry->cores_count, all[pe].cores.count);
            assert_int_equal(entry->group, lowest(all, pe, same_group));
            least = all[pe].heap_auto_bytes < least ? all[pe].heap_auto_bytes : least;
            shares |= entry->process != (uint32_t)pe;
        }
        assert_memory_equal(to.directory.secret, all[0].secret, sizeof all[0].secret);
        assert_int_equal(to.directory.heap_auto_bytes, least);
        assert_int_equal(wefti_directory_shares_process(&to.directory, pes), shares);
        assert_int_equal(wefti_directory_check(&to.directory, pes), WEFT_OK);
    }
}

static void test_reasons(void **state)
{
    (void)state;
    wefti_hello all[8];
    made to;
    uint64_t random = 11;
    fill(all, 8, &random);
    all[5].heap_bytes = 7;
    assert_int_equal(wefti_directory_make(all, 8, &to), WEFT_OK);
    assert_int_equal(to.directory.status, WEFT_ERR_MISMATCH);
    assert_true(text_names_pe(to.directory.text, 5));
    all[6].status = WEFT_ERR_PEER; /* waited; 7 did not */
    all[7].status = WEFT_ERR_MEMORY;
    assert_int_equal(wefti_directory_make(all, 8, &to), WEFT_OK);
    assert_int_equal(to.directory.verdict.status, WEFT_ERR_MEMORY);
    assert_int_equal(to.directory.verdict.cause, 7);
    all[3].build = 9; /* without one build nothing else can be read */
    assert_int_equal(wefti_directory_make(all, 8, &to), WEFT_OK);
    assert_int_equal(to.directory.status, WEFT_ERR_MISMATCH);
    assert_int_equal(to.directory.verdict.status, WEFT_OK);
    assert_true(text_names_pe(to.directory.text, 3));
}

static void test_no_directory(void **state)
{
    (void)state;
    wefti_hello all[8];
    made good;
    uint64_t random = 13;
    fill(all, 8, &random);
    assert_int_equal(wefti_directory_make(all, 8, &good), WEFT_OK);
    uint32_t *const spoilt[] = {&good.directory.pes[2].node, &good.directory.pes[2].process,
                                &good.directory.pes[2].cores, &good.directory.pes[2].group};
    for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
        uint32_t was = *spoilt[i];
        *spoilt[i] = 3;
        assert_int_equal(wefti_directory_check(&good.directory, 8), WEFT_ERR_MISMATCH);
        *spoilt[i] = was;
        assert_int_equal(wefti_directory_check(&good.directory, 8), WEFT_OK);
    }
    good.directory.pes[4].cores_count = 0;
    assert_int_equal(wefti_directory_check(&good.directory, 8), WEFT_ERR_MISMATCH);
    good.directory.pes[4].cores_count = 1;
    good.directory.pes[1].node = 1;
    good.directory.pes[3].node = 1;
    assert_int_equal(wefti_directory_check(&good.directory, 8), WEFT_OK);
    good.directory.pes[1].node = 0; /* which then is the lowest of a node to which it does not belong */
    assert_int_equal(wefti_directory_check(&good.directory, 8), WEFT_ERR_MISMATCH);
}

/* The PEs that are as many PEs behind the first of their node as `pe` is, of unequal nodes whose PEs are mixed. */
static weft_status sort_by_slot(void *context)
{
    const wefti_directory *directory = context;
    int slots[PES_MAX];
    int on_node[PES_MAX] = {0};
    for (int pe = 0; pe < PES_MAX; pe++) {
        slots[pe] = on_node[directory->pes[pe].node]++;
    }
    for (int pe = 0; pe < PES_MAX; pe++) {
        int32_t *members = NULL;
        int count = -1;
        int number = -1;
        WEFT_TRY(wefti_directory_same_slot(directory, PES_MAX, pe, &members, &count, &number));
        int found = 0;
        for (int other = 0; other < PES_MAX; other++) {
            if (slots[other] == slots[pe]) {
                assert_true(found < count);
                assert_int_equal(members[found++], other);
            }
        }
        assert_int_equal(found, count);
        assert_int_equal(members[number], pe);
        wefti_free(members);
    }
    return WEFT_OK;
}

static made mixed_nodes(void)
{
    made to;
    int first[4] = {-1, -1, -1, -1};
    uint64_t random = 17;
    memset(&to, 0, sizeof to);
    for (int pe = 0; pe < PES_MAX; pe++) {
        const int node = (int)random_below(&random, 4);
        first[node] = first[node] < 0 ? pe : first[node];
        to.directory.pes[pe].node = (uint32_t)first[node];
    }
    return to;
}

static void test_same_slot(void **state)
{
    (void)state;
    made nodes = mixed_nodes();
    assert_int_equal(sort_by_slot(&nodes.directory), WEFT_OK);
}

static void test_same_slot_without_memory(void **state)
{
    (void)state;
    made nodes = mixed_nodes();
    assert_true(torture(sort_by_slot, &nodes.directory) >= 3 * PES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lowest),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_no_directory),
        cmocka_unit_test(test_same_slot),
        cmocka_unit_test(test_same_slot_without_memory),
    };
    setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests_name("directory", tests, NULL, NULL);
}

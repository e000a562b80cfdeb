/* Goal: processes that disagree on a configuration, or that nothing connects, all get the same status and text, which
 * names who it is about, and no memory is made; processes that do not come are named.
 * Method: PEs are processes with the environment that weftrun gives, one of which, each in turn, has a wrong config or
 * another node's name. This program has a memfd_create of its own, which ends a process that was to make none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "support/check.h"
#include "support/crew.h"
#include "support/load.h"
#include "weft.h"

#define PES 5

static int may_make_memory;

/* Takes the place of the C library's. */
int memfd_create(const char *name, unsigned flags)
{
    if (!may_make_memory) {
        _exit(4);
    }
    return (int)syscall(SYS_memfd_create, name, flags);
}

typedef struct plan {
    const char *name;
    void (*spoil)(weft_world_config *config, int pe);
    weft_status wanted;
    int offender; /* spoils its config; -1: all do */
    int missing; /* this one does not come; -1: all do */
    int makes_memory; /* before it fails, or it succeeds */
    uint64_t deadline_ns;
} plan;

static void create(const crew *c, int pe, void *context)
{
    const plan *p = context;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world = NULL;
    may_make_memory = p->makes_memory;
    config.pe = pe;
    config.pes = PES;
    config.heap_max_bytes = 1 << 22;
    config.deadline_ns = p->deadline_ns;
    if (pe == p->missing) {
        return;
    }
    if (p->spoil != NULL && (pe == p->offender || p->offender < 0)) {
        p->spoil(&config, pe);
    }
    uint64_t start = wefti_os_now_ns();
    weft_status status = weft_world_create(&config, &world);
    if (status == WEFT_OK) {
        status = weft_barrier(world);
    }
    crew_tell(c, pe, 1, status, start);
}

/* Run the plan; reports[pe], of which those that came are counted. */
static int run(const plan *p, uint64_t *random, crew_report reports[PES])
{
    crew c;
    crew_report report;
    int wanted = PES - (p->missing >= 0);
    int count = 0;
    uint64_t until_ns = wefti_os_now_ns() + load_patience_ns(20000 * WEFTI_MILLISECOND_NS);
    memset(reports, 0, PES * sizeof *reports);
    crew_start(&c, PES, random, create, (void *)(uintptr_t)p);
    while (count < wanted && crew_hear(&c, &report, until_ns)) {
        reports[report.pe] = report;
        count++;
    }
    crew_end(&c);
    return CHECK_SAY(count == wanted, "%s: only %d of %d came back", p->name, count, wanted);
}

/* All that came have the wanted status, one text, and it names this PE. */
static void check_all(const plan *p, const crew_report reports[PES], int named, int same_text)
{
    int first = p->missing == 0 ? 1 : 0;
    for (int pe = 0; pe < PES; pe++) {
        const crew_report *r = &reports[pe];
        if (pe == p->missing) {
            continue;
        }
        CHECK_SAY(r->status == p->wanted, "%s, offender %d: PE %d got %s: %s", p->name, p->offender, pe,
                  weft_status_name(r->status), r->text);
        CHECK_SAY(named < 0 || text_names_pe(r->text, named), "%s: PE %d is not named to PE %d by \"%s\"", p->name,
                  named, pe, r->text);
        CHECK_SAY(!same_text || strcmp(r->text, reports[first].text) == 0, "%s: PE %d was told \"%s\", PE %d \"%s\"",
                  p->name, pe, r->text, first, reports[first].text);
    }
}

/* ---- configurations ---- */

static void more_pes(weft_world_config *config, int pe)
{
    (void)pe;
    config->pes++;
}

static void next_number(weft_world_config *config, int pe)
{
    config->pe = (pe + 1) % PES;
}

static void other_heap_max(weft_world_config *config, int pe)
{
    (void)pe;
    config->heap_max_bytes *= 2;
}

static void other_heap(weft_world_config *config, int pe)
{
    (void)pe;
    config->heap_bytes = 1 << 16;
}

static void test_disagreement(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    plan plans[] = {
        {.name = "more PEs", .spoil = more_pes},
        {.name = "larger heap_max_bytes", .spoil = other_heap_max},
        {.name = "other heap_bytes", .spoil = other_heap},
    };
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        plan *p = &plans[i];
        p->wanted = WEFT_ERR_MISMATCH;
        p->missing = -1;
        p->deadline_ns = 10000 * WEFTI_MILLISECOND_NS;
        for (p->offender = 0; p->offender < PES; p->offender++) {
            crew_report reports[PES];
            if (run(p, &random, reports)) {
                check_all(p, reports, p->offender, 0);
            }
        }
    }
}

/* PE 0 is where the others meet: when none is, it is missing. */
static void test_two_of_one_number(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    plan p = {.name = "a duplicate number", .spoil = next_number, .missing = -1};
    for (p.offender = 0; p.offender < PES; p.offender++) {
        crew_report reports[PES];
        p.wanted = p.offender == 0 ? WEFT_ERR_TIMEOUT : WEFT_ERR_MISMATCH;
        p.deadline_ns = load_patience_ns((p.offender == 0 ? 400 : 10000) * WEFTI_MILLISECOND_NS);
        if (run(&p, &random, reports)) {
            check_all(&p, reports, p.offender == 0 ? 0 : (p.offender + 1) % PES, 0);
        }
    }
}

static void test_missing(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    plan p = {.name = "a missing PE", .wanted = WEFT_ERR_TIMEOUT, .offender = -2};
    for (p.missing = 0; p.missing < PES; p.missing += 2) {
        crew_report reports[PES];
        p.deadline_ns = load_patience_ns(400 * WEFTI_MILLISECOND_NS);
        if (run(&p, &random, reports)) {
            check_all(&p, reports, p.missing, 0);
        }
        for (int pe = 0; pe < PES; pe++) {
            CHECK(pe == p.missing || reports[pe].ns < p.deadline_ns + load_patience_ns(1500 * WEFTI_MILLISECOND_NS));
        }
    }
}

/* ---- nodes ---- */

static void own_node(weft_world_config *config, int pe)
{
    (void)config;
    (void)pe;
    setenv("WEFT_NODE_ID", "another machine", 1);
    setenv("WEFT_TRANSPORT", "map", 1);
}

static void node_by_parity(weft_world_config *config, int pe)
{
    (void)config;
    setenv("WEFT_NODE_ID", pe % 2 == 0 ? "even" : "odd", 1);
    setenv("WEFT_TRANSPORT", "map", 1);
}

static void same_node(weft_world_config *config, int pe)
{
    (void)config;
    (void)pe;
    setenv("WEFT_NODE_ID", "one name for all", 1);
}

static void test_nodes_that_nothing_connects(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    plan p = {.name = "a PE on another node",
              .spoil = own_node,
              .wanted = WEFT_ERR_UNREACHABLE,
              .missing = -1,
              .makes_memory = 1,
              .deadline_ns = 10000 * WEFTI_MILLISECOND_NS};
    crew_report reports[PES];
    for (p.offender = 0; p.offender < PES; p.offender++) {
        if (run(&p, &random, reports)) {
            check_all(&p, reports, p.offender, 1); /* one of the pair */
        }
    }
    p.name = "nodes that alternate";
    p.spoil = node_by_parity;
    p.offender = -1;
    if (run(&p, &random, reports)) {
        check_all(&p, reports, 0, 1);
        check_all(&p, reports, 1, 1);
    }
}

static void test_one_node_by_name(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    plan p = {.name = "one node by name",
              .spoil = same_node,
              .wanted = WEFT_OK,
              .offender = -1,
              .missing = -1,
              .makes_memory = 1,
              .deadline_ns = 10000 * WEFTI_MILLISECOND_NS};
    crew_report reports[PES];
    if (run(&p, &random, reports)) {
        check_all(&p, reports, -1, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_disagreement),     CHECKED_TEST(test_two_of_one_number),
        CHECKED_TEST(test_missing),          CHECKED_TEST(test_nodes_that_nothing_connects),
        CHECKED_TEST(test_one_node_by_name),
    };
    setenv("WEFT_LOG", "none", 1);
    unsetenv("WEFT_BOOTSTRAP");
    unsetenv("WEFT_NODE_ID");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

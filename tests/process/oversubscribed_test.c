/* Goal: what a PE of a crowded node costs does not grow with the others: its page tables, and its descriptors: PE 0
 * lets those wait elsewhere for whom it has none. Method: 128 PEs as processes, whatever the processors, create a world
 * and use it. A word in the slot of every PE would cost a page of page table each in each process: far less is allowed.
 * Then all have room for few descriptors, and once one of them does not come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/durations.h"
#include "base/error.h"
#include "os/os.h"
#include "support/check.h"
#include "support/crew.h"
#include "support/ledger.h"
#include "weft.h"

#define DEADLINE_NS (60000 * WEFTI_MILLISECOND_NS)
#ifdef __SANITIZE_ADDRESS__
#define SLOT_KB_MAX 16 /* with those of the sanitizer's own memory */
#else
#define SLOT_KB_MAX 2 /* of page tables for another PE */
#endif

static uint64_t page_table_kb(void)
{
    char line[128];
    unsigned long kb = 0;
    FILE *from = fopen("/proc/self/status", "r");
    while (from != NULL && fgets(line, sizeof line, from) != NULL && sscanf(line, "VmPTE: %lu", &kb) != 1) {
    }
    if (from != NULL) {
        (void)fclose(from);
    }
    return kb;
}

/* Everything that all do together: allocate, meet, make a team and end it. */
static weft_status use(weft_world *world)
{
    void *block;
    weft_team *team;
    WEFT_TRY(weft_malloc(world, 1000, &block));
    WEFT_TRY(weft_barrier(world));
    WEFT_TRY(weft_team_split_strided(weft_team_world(world), 0, 1, weft_world_pes(world), &team));
    WEFT_TRY(weft_team_barrier(team));
    WEFT_TRY(weft_team_destroy(team));
    return weft_free(world, block);
}

static weft_status create_and_use(void)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    config.deadline_ns = DEADLINE_NS;
    config.heap_max_bytes = (size_t)8 << 20;
    const uint64_t before = page_table_kb();
    WEFT_TRY(weft_world_create(&config, &world));
    weft_status status = use(world);
    const uint64_t grown = page_table_kb() - before;
    if (status == WEFT_OK && grown > (uint64_t)weft_world_pes(world) * SLOT_KB_MAX) {
        status = wefti_error(WEFT_ERR_MEMORY, "page tables have grown by %llu KB", (unsigned long long)grown);
    }
    weft_status ended = weft_world_destroy(world);
    return status == WEFT_OK ? ended : status;
}

static void run_pe(const crew *c, int pe, void *context)
{
    (void)context;
    uint64_t start = wefti_os_now_ns();
    crew_tell(c, pe, 1, create_and_use(), start);
}

static void run_all(void (*body)(const crew *c, int pe, void *context))
{
    crew c;
    crew_report report;
    uint64_t random = test_seed();
    uint64_t until_ns = wefti_os_now_ns() + 2 * DEADLINE_NS;
    crew_start(&c, CREW_PES_MAX, &random, body, NULL);
    for (int i = 0; i < CREW_PES_MAX && CHECK(crew_hear(&c, &report, until_ns)); i++) {
        CHECK_SAY(report.status == WEFT_OK, "PE %d got %s: %s", report.pe, weft_status_name(report.status),
                  report.text);
    }
    crew_end(&c);
}

static void test_page_tables(void **state)
{
    (void)state;
    run_all(run_pe);
}

#define ROOM 20 /* descriptors */

static void limit_descriptors(int pe)
{
    const rlim_t room = (rlim_t)ledger_read().descriptors + ROOM + (pe == 0 ? ROOM : 0u);
    const struct rlimit limit = {.rlim_cur = room, .rlim_max = room};
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void run_poor_pe(const crew *c, int pe, void *context)
{
    limit_descriptors(pe);
    run_pe(c, pe, context);
}

/* What a world of all takes here and now, to its end. */
static uint64_t world_ns;

static void test_descriptors(void **state)
{
    (void)state;
    const uint64_t start_ns = wefti_os_now_ns();
    run_all(run_poor_pe);
    world_ns = wefti_os_now_ns() - start_ns;
}

#define ABSENT 100
#define SHORT_NS (1500 * WEFTI_MILLISECOND_NS)

/* Its deadline is short, and it warns long before. */
static void run_poor_pe_in_vain(const crew *c, int pe, void *context)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    if (pe == ABSENT) {
        return;
    }
    limit_descriptors(pe);
    config.deadline_ns = *(const uint64_t *)context;
    config.warn_ns = config.deadline_ns / 8;
    uint64_t start = wefti_os_now_ns();
    crew_tell(c, pe, 1, weft_world_create(&config, &world), start);
}

/* Those that wait elsewhere have come: only the absent one is named. In the deadline all others can have come, on a
 * machine in use, too. */
static void test_absent(void **state)
{
    (void)state;
    crew c;
    crew_report report;
    uint64_t random = test_seed();
    uint64_t deadline_ns = SHORT_NS + 4 * world_ns;
    uint64_t until_ns = wefti_os_now_ns() + DEADLINE_NS + 3 * deadline_ns;
    crew_start(&c, CREW_PES_MAX, &random, run_poor_pe_in_vain, &deadline_ns);
    for (int i = 1; i < CREW_PES_MAX && CHECK(crew_hear(&c, &report, until_ns)); i++) {
        CHECK_SAY(report.status == WEFT_ERR_TIMEOUT, "PE %d got %s: %s", report.pe, weft_status_name(report.status),
                  report.text);
        for (int pe = 0; pe < CREW_PES_MAX; pe++) {
            CHECK_SAY(text_names_pe(report.text, pe) == (pe == ABSENT), "PE %d was told of PE %d: %s", report.pe, pe,
                      report.text);
        }
    }
    crew_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_page_tables),
        CHECKED_TEST(test_descriptors),
        CHECKED_TEST(test_absent),
    };
    setenv("WEFT_LOG", "none", 1);
    unsetenv("WEFT_BOOTSTRAP");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

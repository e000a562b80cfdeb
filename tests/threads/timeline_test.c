/* Goal: counters and the timeline know what a world did, also when several threads of a PE work at once, when there are
 * too many events, and when the file cannot be written. Method: PEs as threads make known calls on several teams with
 * WEFT_TRACE set, read their counters and count names in the file. What the file looks like as JSON is
 * tests/tools/timeline.py's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/pes.h"
#include "support/torture.h"
#include "weft.h"

#define PES 3
#define ROUNDS 40

static char path[] = "/tmp/weft-timeline-test-XXXXXX";

static long times_in_file(const char *word)
{
    long times = 0;
    FILE *file = fopen(path, "r");
    char line[1024];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        times += strstr(line, word) != NULL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return times;
}

static void empty_file(void)
{
    CHECK(truncate(path, 0) == 0);
}

static void *words_of(weft_world *world, size_t count)
{
    void *block = NULL;
    CHECK_OK(weft_calloc(world, count, sizeof(int64_t), &block));
    return block;
}

/* Each collective another number of times. */
static void call_all(weft_world *world, void *context)
{
    (void)context;
    weft_team *team = weft_team_world(world);
    weft_counters counters;
    int64_t *from = words_of(world, 2 * PES);
    int64_t *to = words_of(world, 2 * PES);
    CHECK_OK(weft_world_counters(world, &counters));
    CHECK(counters.barriers == 0 && counters.create_ns > 0 && counters.heap_allocs == 2);
    for (int i = 0; i < 9; i++) {
        CHECK_OK(i % 2 ? weft_sync(world) : weft_barrier(world));
        CHECK(i >= 8 || weft_int64_broadcast(team, to, from, 1, 0) == WEFT_OK);
        CHECK(i >= 7 || weft_int64_collect(team, to, from, 1) == WEFT_OK);
        CHECK(i >= 6 || weft_int64_fcollect(team, to, from, 1) == WEFT_OK);
        CHECK(i >= 5 || weft_int64_alltoall(team, to, from, 1) == WEFT_OK);
        CHECK(i >= 4 || weft_int64_alltoalls(team, to, from, 1, 1, 1) == WEFT_OK);
        CHECK(i >= 3 || weft_int64_sum_reduce(team, to, from, 1) == WEFT_OK);
        CHECK(i >= 2 || weft_int64_sum_reduce_scatter(team, to, from, 1) == WEFT_OK);
        CHECK(i >= 1 || weft_int64_sum_inscan(team, to, from, 1) == WEFT_OK);
    }
    CHECK_OK(weft_world_counters(world, &counters));
    CHECK(counters.barriers == 9 && counters.broadcasts == 8 && counters.collects == 7 && counters.fcollects == 6);
    CHECK(counters.alltoalls == 5 && counters.strided_alltoalls == 4 && counters.reduces == 3);
    CHECK(counters.reduce_scatters == 2 && counters.scans == 1);
}

static void test_calls_are_counted_and_traced(void **state)
{
    (void)state;
    empty_file();
    ledger before = ledger_read();
    pes_run(PES, call_all, NULL);
    ledger_assert_same(&before);
    CHECK(times_in_file("\"weft_world_create\"") == PES);
    CHECK(times_in_file("\"weft_sync\"") == 4 * PES && times_in_file("\"weft_barrier\"") == 5 * PES);
    CHECK(times_in_file("\"weft_broadcast\"") == 8 * PES && times_in_file("\"weft_collect\"") == 7 * PES);
    CHECK(times_in_file("\"weft_fcollect\"") == 6 * PES && times_in_file("\"weft_alltoall\"") == 5 * PES);
    CHECK(times_in_file("\"weft_alltoalls\"") == 4 * PES && times_in_file("\"weft_reduce\"") == 3 * PES);
    CHECK(times_in_file("\"weft_reduce_scatter\"") == 2 * PES && times_in_file("\"weft_scan\"") == PES);
    CHECK(times_in_file("\"thread_name\"") == PES && times_in_file("\"process_name\"") == 1);
}

static void sync_often(void *team)
{
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(weft_team_sync(team));
    }
}

/* Two teams at once: the world's in this thread, another in a thread of its own. */
static void use_two_threads(weft_world *world, void *context)
{
    (void)context;
    weft_team *team = NULL;
    weft_ctx *ctx = NULL;
    wefti_os_thread *thread = NULL;
    weft_counters counters;
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, PES, &team));
    CHECK_OK(wefti_os_thread_start(&thread, sync_often, team));
    sync_often(weft_team_world(world));
    wefti_os_thread_join(thread);
    CHECK_OK(weft_world_counters(world, &counters));
    CHECK(counters.barriers == 2 * ROUNDS);
    CHECK_OK(weft_ctx_create(team, 0, &ctx));
    CHECK_OK(weft_ctx_destroy(ctx));
    CHECK_OK(weft_team_destroy(team));
}

static void test_two_threads_of_a_pe(void **state)
{
    (void)state;
    empty_file();
    pes_run(PES, use_two_threads, NULL);
    CHECK(times_in_file("\"weft_team_sync\"") == 2 * ROUNDS * PES);
    CHECK(times_in_file(", thread 1\"") == PES);
    CHECK(times_in_file("\"weft_team_split_strided\"") == PES && times_in_file("\"weft_team_destroy\"") == PES);
    CHECK(times_in_file("\"weft_ctx_create\"") == PES);
}

static void sync_world_often(weft_world *world, void *context)
{
    (void)context;
    sync_often(weft_team_world(world));
}

static void test_events_beyond_the_limit_are_counted(void **state)
{
    (void)state;
    char wanted[64];
    const long taken = 10;
    empty_file();
    CHECK(setenv("WEFT_TRACE_EVENTS", "10", 1) == 0);
    pes_run(PES, sync_world_often, NULL);
    CHECK(unsetenv("WEFT_TRACE_EVENTS") == 0);
    CHECK(times_in_file("\"ph\": \"X\"") == taken * PES);
    /* creation and its four phases in one process are events too */
    (void)snprintf(wanted, sizeof wanted, "\"dropped\": %ld}", ROUNDS + 5 - taken);
    CHECK(times_in_file(wanted) == PES);
}

/* A call that fails is written at once; its error is what the caller reads, whatever becomes of the file. */
static void fail_once(weft_world *world, void *context)
{
    (void)context;
    if (weft_world_pe(world) == 0) {
        CHECK_OK(weft_world_abort(world, 7));
    }
    while (weft_sync(world) != WEFT_ERR_ABORTED) {
        wefti_os_yield();
    }
    CHECK_SAY(strstr(weft_last_error(), "abort") != NULL, "the last error is \"%s\"", weft_last_error());
}

static void test_errors_stay_the_callers(void **state)
{
    (void)state;
    CHECK(setenv("WEFT_LOG", "none", 1) == 0);
    empty_file();
    pes_run(PES, fail_once, NULL);
    CHECK(setenv("WEFT_TRACE", "/nonexistent/folder/file", 1) == 0);
    pes_run(PES, fail_once, NULL);
    CHECK(setenv("WEFT_TRACE", path, 1) == 0 && unsetenv("WEFT_LOG") == 0);
}

static void test_worlds_do_not_need_the_file(void **state)
{
    (void)state;
    CHECK(setenv("WEFT_LOG", "none", 1) == 0);
    CHECK(setenv("WEFT_TRACE", "/nonexistent/folder/file", 1) == 0);
    pes_run(PES, sync_world_often, NULL);
    CHECK(setenv("WEFT_TRACE", path, 1) == 0);
    CHECK(unsetenv("WEFT_LOG") == 0);
}

static weft_status live_once(void *context)
{
    (void)context;
    weft_world *world;
    WEFT_TRY(weft_world_create(NULL, &world));
    weft_status status = weft_barrier(world);
    weft_status end = weft_world_destroy(world);
    return status != WEFT_OK ? status : end;
}

static void test_failing_calls(void **state)
{
    (void)state;
    empty_file();
    CHECK(torture(live_once, NULL) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_calls_are_counted_and_traced),        CHECKED_TEST(test_two_threads_of_a_pe),
        CHECKED_TEST(test_events_beyond_the_limit_are_counted), CHECKED_TEST(test_errors_stay_the_callers),
        CHECKED_TEST(test_worlds_do_not_need_the_file),         CHECKED_TEST(test_failing_calls),
    };
    int descriptor = mkstemp(path);
    if (descriptor < 0 || setenv("WEFT_TRACE", path, 1) != 0) {
        return 1;
    }
    (void)close(descriptor);
    int failed = cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
    (void)unlink(path);
    return failed;
}

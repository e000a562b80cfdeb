/* support/torture.c: repeat a piece of work with each of its fault points failing in turn. */
#include "support/torture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "support/check.h"
#include "support/ledger.h"
#include "weft/protocol/mem.h"

/* One of so many fault points is tried by processes. What faults show is statuses and leaks, so builds with
 * ThreadSanitizer try a share of them, drawn afresh, and those with AddressSanitizer all. */
#define STRIDE (WEFTI_TSAN ? 3 : 1)

static int is_failing;

int torture_is_failing(void)
{
    return is_failing;
}

#ifdef WEFT_FAULTS

/* Returns the number of fault points passed. */
static uint64_t run_failing(torture_work work, void *context, uint64_t nth)
{
    ledger before = ledger_read();
    wefti_thread_text()[0] = '\0';
    wefti_fault_arm(nth, 1);
    is_failing = 1;
    weft_status status = work(context);
    is_failing = 0;
    uint64_t passed = wefti_fault_passed();
    wefti_fault_arm(0, 0);
    if (status != WEFT_OK) {
        assert_string_not_equal(weft_status_name(status), "WEFT_ERR_(unknown)");
        assert_string_not_equal(weft_last_error(), "");
    }
    ledger_assert_same(&before);
    return passed;
}

/* Every `step`-th fault point from `first` on. How many there are is taken from a run in which none fails: one with a
 * fault may have run out of its time before it came there. */
static uint64_t run_some(torture_work work, void *context, uint64_t first, uint64_t step)
{
    wefti_fault_arm(0, 0);
    assert_int_equal(work(context), WEFT_OK);
    const uint64_t points = wefti_fault_passed();
    uint64_t nth = first;
    for (; run_failing(work, context, nth) >= nth || nth < points; nth += step) {
    }
    assert_int_equal(work(context), WEFT_OK);
    return nth;
}

int torture(torture_work work, void *context)
{
    setenv("WEFT_LOG", "none", 1);
    const uint64_t beyond = run_some(work, context, 1, 1);
    unsetenv("WEFT_LOG");
    return (int)(beyond - 1);
}

/* Every `step`-th fault point from `first` on. */
static _Noreturn void run_share(torture_work work, void *context, uint64_t first, uint64_t step)
{
    setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failed assertion ends this process, not the test alone */
    (void)run_some(work, context, first, step);
    exit(check_failures() != 0);
}

void torture_apart(torture_work work, void *context, int processes)
{
    pid_t started[TORTURE_PROCESSES_MAX];
    const uint64_t step = (uint64_t)processes * STRIDE;
    uint64_t seed = STRIDE > 1 ? test_seed() : 0;
    const uint64_t drawn = (uint64_t)processes * random_below(&seed, STRIDE);
    assert_in_range(processes, 1, TORTURE_PROCESSES_MAX);
    (void)fflush(NULL);
    for (int i = 0; i < processes; i++) {
        started[i] = fork();
        if (started[i] == 0) {
            run_share(work, context, drawn + (uint64_t)i + 1, step);
        }
    }
    for (int i = 0; i < processes; i++) {
        int status = -1;
        CHECK_SAY(waitpid(started[i], &status, 0) == started[i] && status == 0,
                  "every %llu-th fault point from the %llu-th on: the process ended with wait status 0x%x",
                  (unsigned long long)step, (unsigned long long)drawn + (unsigned)i + 1, (unsigned)status);
    }
}

#else

int torture(torture_work work, void *context)
{
    (void)work;
    (void)context;
    skip();
    return 0;
}

void torture_apart(torture_work work, void *context, int processes)
{
    (void)processes;
    (void)torture(work, context);
}

#endif

/* support/torture.c: repeat a piece of work with each of its fault points failing in turn. */
#include "support/torture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "support/ledger.h"

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

int torture_some(torture_work work, void *context, uint64_t first, uint64_t step)
{
    setenv("WEFT_LOG", "none", 1);
    assert_int_equal(work(context), WEFT_OK);
    uint64_t nth = first;
    while (run_failing(work, context, nth) >= nth) {
        nth += step;
    }
    assert_int_equal(work(context), WEFT_OK);
    unsetenv("WEFT_LOG");
    return (int)(nth - 1);
}

#else

int torture_some(torture_work work, void *context, uint64_t first, uint64_t step)
{
    (void)work;
    (void)context;
    (void)first;
    (void)step;
    skip();
    return 0;
}

#endif

int torture(torture_work work, void *context)
{
    return torture_some(work, context, 1, 1);
}

/* Goal: time is monotonic and in nanoseconds; a sleep is neither nothing nor for ever; a waiter that shares a processor
 * polls less often before it yields. Method: compare around sleeps, with room for a loaded machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "os/os.h"

static void test_time_does_not_go_back(void **state)
{
    (void)state;
    uint64_t last_ns = wefti_os_now_ns();
    for (int i = 0; i < 100000; i++) {
        uint64_t now_ns = wefti_os_now_ns();
        assert_true(now_ns >= last_ns);
        last_ns = now_ns;
    }
    wefti_os_yield();
}

static void test_a_sleep_takes_its_time(void **state)
{
    (void)state;
    uint64_t start_ns = wefti_os_now_ns();
    wefti_os_sleep_ns(20000000);
    uint64_t slept_ns = wefti_os_now_ns() - start_ns;
    assert_true(slept_ns >= 20000000);
    assert_true(slept_ns < UINT64_C(20000000000));
}

/* Once at least: what has come already is found without a pause. */
static void test_looks_before_a_pause(void **state)
{
    (void)state;
    const uint32_t alone = wefti_os_spins(1, 0);
    const uint32_t shared = wefti_os_spins(2, 0);
    assert_true(alone > shared);
    assert_int_equal(wefti_os_spins(1, 1), shared);
    for (unsigned pes_per_core = 3; pes_per_core < 100; pes_per_core++) {
        assert_int_equal(wefti_os_spins(pes_per_core, 0), 1);
        assert_int_equal(wefti_os_spins(pes_per_core, 1), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_does_not_go_back),
        cmocka_unit_test(test_a_sleep_takes_its_time),
        cmocka_unit_test(test_looks_before_a_pause),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}

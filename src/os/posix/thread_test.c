/* Goal: threads run and end, monitors exclude, wake and give up in time, and each thread has its own state.
 * Method: a counter that only a monitor protects, a hand-over between two threads, deadlines in the past and the near
 * future; torture. ThreadSanitizer builds see the exclusion itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>

#include "os/os.h"
#include "support/torture.h"

#define THREADS 4
#define ROUNDS 1000
#define NEVER_NS UINT64_MAX

typedef struct shared_count {
    wefti_os_monitor *monitor;
    int count;
} shared_count;

static void count_up(void *argument)
{
    shared_count *shared = argument;
    for (int i = 0; i < ROUNDS; i++) {
        wefti_os_monitor_enter(shared->monitor);
        shared->count++;
        wefti_os_monitor_leave(shared->monitor);
    }
}

static void test_monitor_excludes(void **state)
{
    (void)state;
    shared_count shared = {0};
    wefti_os_thread *threads[THREADS];
    assert_int_equal(wefti_os_monitor_create(&shared.monitor), WEFT_OK);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(wefti_os_thread_start(&threads[i], count_up, &shared), WEFT_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        wefti_os_thread_join(threads[i]);
    }
    assert_int_equal(shared.count, THREADS * ROUNDS);
    wefti_os_monitor_destroy(shared.monitor);
    wefti_os_monitor_destroy(NULL);
}

/* Wait for odd numbers and make them even. */
static void make_even(void *argument)
{
    shared_count *shared = argument;
    wefti_os_monitor_enter(shared->monitor);
    while (shared->count < 2 * ROUNDS) {
        if (shared->count % 2 == 1) {
            shared->count++;
            wefti_os_monitor_notify_all(shared->monitor);
        } else {
            (void)wefti_os_monitor_wait(shared->monitor, NEVER_NS);
        }
    }
    wefti_os_monitor_leave(shared->monitor);
}

static void test_monitor_wakes(void **state)
{
    (void)state;
    shared_count shared = {0};
    wefti_os_thread *thread;
    assert_int_equal(wefti_os_monitor_create(&shared.monitor), WEFT_OK);
    assert_int_equal(wefti_os_thread_start(&thread, make_even, &shared), WEFT_OK);
    wefti_os_monitor_enter(shared.monitor);
    while (shared.count < 2 * ROUNDS) {
        if (shared.count % 2 == 0) {
            shared.count++;
            wefti_os_monitor_notify_all(shared.monitor);
        } else {
            assert_int_equal(wefti_os_monitor_wait(shared.monitor, wefti_os_now_ns() + UINT64_C(60000000000)), 1);
        }
    }
    wefti_os_monitor_leave(shared.monitor);
    wefti_os_thread_join(thread);
    wefti_os_monitor_destroy(shared.monitor);
}

static void test_monitor_gives_up(void **state)
{
    (void)state;
    wefti_os_monitor *monitor;
    assert_int_equal(wefti_os_monitor_create(&monitor), WEFT_OK);
    wefti_os_monitor_enter(monitor);
    assert_int_equal(wefti_os_monitor_wait(monitor, 0), 0);
    uint64_t until_ns = wefti_os_now_ns() + 10000000;
    while (wefti_os_monitor_wait(monitor, until_ns)) {
    }
    assert_true(wefti_os_now_ns() >= until_ns);
    wefti_os_monitor_leave(monitor);
    wefti_os_monitor_destroy(monitor);
}

static void read_state(void *argument)
{
    wefti_thread_state **seen = argument;
    seen[0] = wefti_thread_state_own();
    seen[1] = wefti_thread_state_own();
}

static void test_state_is_the_threads_own(void **state)
{
    (void)state;
    wefti_thread_state *seen[2];
    wefti_os_thread *thread;
    assert_int_equal(wefti_os_thread_start(&thread, read_state, seen), WEFT_OK);
    wefti_os_thread_join(thread);
    assert_non_null(seen[0]);
    assert_ptr_equal(seen[0], seen[1]);
    assert_ptr_not_equal(seen[0], wefti_thread_state_own());
}

static void read_mask(void *argument)
{
    pthread_sigmask(SIG_SETMASK, NULL, argument);
}

static void test_signals_go_to_the_program(void **state)
{
    (void)state;
    sigset_t before;
    sigset_t there;
    sigset_t after;
    wefti_os_thread *thread;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(wefti_os_thread_start(&thread, read_mask, &there), WEFT_OK);
    wefti_os_thread_join(thread);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&there, SIGTERM), 1);
    assert_int_equal(sigismember(&there, SIGINT), 1);
    assert_int_equal(sigismember(&there, SIGSEGV), 0);
    assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

static void do_nothing(void *argument)
{
    (void)argument;
}

static weft_status start_and_join(void *context)
{
    wefti_os_thread *thread;
    (void)context;
    WEFT_TRY(wefti_os_thread_start(&thread, do_nothing, NULL));
    wefti_os_thread_join(thread);
    return WEFT_OK;
}

static weft_status make_monitor(void *context)
{
    wefti_os_monitor *monitor;
    (void)context;
    WEFT_TRY(wefti_os_monitor_create(&monitor));
    wefti_os_monitor_destroy(monitor);
    return WEFT_OK;
}

static void test_failing_calls(void **state)
{
    (void)state;
    /* Each has so many calls that can fail, and was tried with each of them failing. */
    assert_int_equal(torture(start_and_join, NULL), 2);
    assert_int_equal(torture(make_monitor, NULL), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_monitor_excludes),          cmocka_unit_test(test_monitor_wakes),
        cmocka_unit_test(test_monitor_gives_up),          cmocka_unit_test(test_state_is_the_threads_own),
        cmocka_unit_test(test_signals_go_to_the_program), cmocka_unit_test(test_failing_calls),
    };
    return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}

/* Goal: stacks of their own keep their values, and switching costs no system call's time.
 * Method: coroutines pass control round in a ring, each with values in registers and on its stack that only it knows.
 * */
#include "testing/sim/coroutine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <time.h>

#define COUNT 5
#define ROUNDS 1000
#define STACK_BYTES ((size_t)512 << 10)

static wefti_coroutine ring[COUNT + 1]; /* the last is the thread */
static uint64_t sums[COUNT];
static int ended;

static void pass(int self)
{
    wefti_coroutine_switch(&ring[self], &ring[self + 1]);
}

static uint64_t recurse(int self, int depth, double factor)
{
    volatile uint64_t own = (uint64_t)depth * 17 + (uint64_t)self;
    pass(self);
    uint64_t below = depth > 0 ? recurse(self, depth - 1, factor * 1.5) : (uint64_t)factor;
    pass(self);
    return own + below;
}

static void body(void *argument)
{
    int self = *(const int *)argument;
    for (int round = 0; round < 4; round++) {
        sums[self] += recurse(self, 20, 1.0 + self);
    }
    ended++;
    for (;;) {
        pass(self);
    }
}

static void test_stacks_are_apart(void **state)
{
    (void)state;
    wefti_stacks stacks;
    int numbers[COUNT];
    assert_true(wefti_stacks_init(&stacks, COUNT, STACK_BYTES, 1));
    wefti_coroutine_init_thread(&ring[COUNT]);
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = i;
        wefti_coroutine_init(&ring[i], wefti_stacks_at(&stacks, (size_t)i), STACK_BYTES, body, &numbers[i]);
    }
    while (ended < COUNT) {
        wefti_coroutine_switch(&ring[COUNT], &ring[0]);
    }
    for (int i = 0; i < COUNT; i++) {
        uint64_t wanted = 0;
        double factor = 1.0 + i;
        for (int depth = 20; depth >= 0; depth--) {
            wanted += (uint64_t)depth * 17 + (uint64_t)i;
            factor *= depth > 0 ? 1.5 : 1;
        }
        assert_int_equal(sums[i], 4 * (wanted + (uint64_t)factor));
        wefti_coroutine_fini(&ring[i]);
    }
    wefti_stacks_fini(&stacks);
}

static wefti_coroutine here;
static wefti_coroutine there;

static void answer(void *argument)
{
    (void)argument;
    for (;;) {
        wefti_coroutine_switch(&there, &here);
    }
}

static void test_a_switch_takes_no_system_call(void **state)
{
    (void)state;
    wefti_stacks stacks;
    struct timespec begin;
    struct timespec end;
    assert_true(wefti_stacks_init(&stacks, 1, STACK_BYTES, 1));
    wefti_coroutine_init_thread(&here);
    wefti_coroutine_init(&there, wefti_stacks_at(&stacks, 0), STACK_BYTES, answer, NULL);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < 100000; i++) {
        wefti_coroutine_switch(&here, &there);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
    print_message("%.1f ns a switch\n", ns / 200000);
    wefti_coroutine_fini(&there);
    wefti_stacks_fini(&stacks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stacks_are_apart),
        cmocka_unit_test(test_a_switch_takes_no_system_call),
    };
    return cmocka_run_group_tests_name("coroutine", tests, NULL, NULL);
}

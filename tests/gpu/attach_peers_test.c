/* Goal: GPUs that cannot reach each other's memory, or not by atomics, are told at attaching, with the remedy; and the
 * remedy is one. Method: two PEs on two GPUs of the fake driver (src/testing/fake_driver), which says of its peers what
 * the environment says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "weft.h"

static weft_status create(weft_world *worlds[2])
{
    weft_threads *meeting = NULL;
    weft_world_config configs[2];
    weft_device_config devices[2];
    assert_int_equal(weft_threads_create(2, &meeting), WEFT_OK);
    for (int i = 0; i < 2; i++) {
        const weft_world_config config = WEFT_WORLD_CONFIG_INIT;
        const weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
        devices[i] = device;
        devices[i].choice = WEFT_DEVICE_ORDINAL;
        devices[i].ordinal = i;
        devices[i].heap_max_bytes = (size_t)32 << 20;
        configs[i] = config;
        configs[i].heap_max_bytes = (size_t)1 << 20;
        configs[i].device = &devices[i];
        configs[i].bootstrap = WEFT_BOOTSTRAP_THREADS;
        configs[i].threads = meeting;
        configs[i].pe = i;
        configs[i].pes = 2;
    }
    weft_status status = weft_world_create_many(configs, 2, worlds);
    weft_threads_destroy(meeting);
    return status;
}

static void expect_refusal(const char *variable, const char *words)
{
    weft_world *worlds[2] = {NULL, NULL};
    assert_int_equal(setenv(variable, "1", 1), 0);
    assert_int_equal(create(worlds), WEFT_ERR_UNREACHABLE);
    assert_non_null(strstr(weft_last_error(), words));
    assert_non_null(strstr(weft_last_error(), "WEFT_CUDA_DOMAIN=1"));
    assert_int_equal(setenv("WEFT_CUDA_DOMAIN", "1", 1), 0);
    assert_int_equal(create(worlds), WEFT_OK);
    assert_int_equal(unsetenv("WEFT_CUDA_DOMAIN"), 0);
    assert_int_equal(unsetenv(variable), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weft_world_destroy(worlds[i]), WEFT_OK);
    }
}

static void test_no_access(void **state)
{
    (void)state;
    expect_refusal("WEFT_FAKE_NO_PEERS", "cannot access");
}

static void test_no_atomics(void **state)
{
    (void)state;
    expect_refusal("WEFT_FAKE_NO_PEER_ATOMICS", "no atomics there");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_access), cmocka_unit_test(test_no_atomics)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

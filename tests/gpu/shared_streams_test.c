/* Goal: the PEs of a process on a GPU share the library's streams, of which each takes one of the GPU's 32 hardware
 * queues; with the last PE they are gone.
 * Method: worlds of several PEs a GPU of the fake driver, which counts streams. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "weft.h"

enum { PES = 6 };

static int count_streams(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    assert_non_null(driver);
    int (*count)(void);
    *(void **)&count = dlsym(driver, "fakeStreams");
    assert_non_null(count);
    const int streams = count();
    dlclose(driver);
    return streams;
}

/* PE i on GPU i % gpus. */
static void create(int gpus, weft_world *worlds[PES])
{
    weft_threads *meeting = NULL;
    weft_world_config configs[PES];
    weft_device_config devices[PES];
    assert_int_equal(weft_threads_create(PES, &meeting), WEFT_OK);
    for (int i = 0; i < PES; i++) {
        const weft_world_config config = WEFT_WORLD_CONFIG_INIT;
        const weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
        devices[i] = device;
        devices[i].choice = WEFT_DEVICE_ORDINAL;
        devices[i].ordinal = i % gpus;
        devices[i].heap_max_bytes = (size_t)32 << 20;
        configs[i] = config;
        configs[i].heap_max_bytes = (size_t)1 << 20;
        configs[i].device = &devices[i];
        configs[i].bootstrap = WEFT_BOOTSTRAP_THREADS;
        configs[i].threads = meeting;
        configs[i].pe = i;
        configs[i].pes = PES;
    }
    assert_int_equal(weft_world_create_many(configs, PES, worlds), WEFT_OK);
    weft_threads_destroy(meeting);
}

static void test_shared(void **state)
{
    (void)state;
    weft_world *first[PES];
    weft_world *second[PES];
    create(1, first);
    assert_int_equal(count_streams(), 1);
    create(2, second);
    assert_int_equal(count_streams(), 2);
    for (int i = 0; i < PES; i++) {
        assert_int_equal(weft_world_destroy(first[i]), WEFT_OK);
    }
    assert_int_equal(count_streams(), 2);
    for (int i = 0; i < PES; i++) {
        const uint64_t value = 7;
        weft_device_info info;
        assert_int_equal(weft_device_query(second[i], &info), WEFT_OK);
        assert_int_equal(weft_putmem(second[i], info.heap, &value, sizeof value, (i + 1) % PES), WEFT_OK);
    }
    for (int i = 0; i < PES; i++) {
        assert_int_equal(weft_world_destroy(second[i]), WEFT_OK);
    }
    assert_int_equal(count_streams(), 0);
}

/* Two GPUs that do not reach each other: those of the proxies, too. */
static void test_proxies(void **state)
{
    (void)state;
    weft_world *worlds[PES];
    assert_int_equal(setenv("WEFT_FAKE_NO_PEERS", "1", 1), 0);
    create(2, worlds);
    assert_int_equal(unsetenv("WEFT_FAKE_NO_PEERS"), 0);
    assert_int_equal(count_streams(), 4);
    for (int i = 0; i < PES; i++) {
        assert_int_equal(weft_world_destroy(worlds[i]), WEFT_OK);
    }
    assert_int_equal(count_streams(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shared), cmocka_unit_test(test_proxies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

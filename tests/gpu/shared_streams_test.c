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

#include "gpu/support/device_pes.h"
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

static void test_shared(void **state)
{
    (void)state;
    weft_world *first[PES];
    weft_world *second[PES];
    assert_int_equal(gpu_pes_create(PES, 1, first), WEFT_OK);
    assert_int_equal(count_streams(), 1);
    assert_int_equal(gpu_pes_create(PES, 2, second), WEFT_OK);
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

/* Two GPUs that do not reach each other: the two of the proxies, too. */
static void test_proxies(void **state)
{
    (void)state;
    weft_world *worlds[PES];
    assert_int_equal(setenv("WEFT_FAKE_NO_PEERS", "1", 1), 0);
    assert_int_equal(gpu_pes_create(PES, 2, worlds), WEFT_OK);
    assert_int_equal(unsetenv("WEFT_FAKE_NO_PEERS"), 0);
    assert_int_equal(count_streams(), 6);
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

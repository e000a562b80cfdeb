/* Goal: attaching a device leaves nothing behind, whichever allocation, system call or driver call of it fails.
 * Method: repeat world with device, allocation that grows the heap, destruction, with each fault point failing in turn,
 * on the fake driver (src/testing/fake_driver), which this test must find as libcuda.so.1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/torture.h"
#include "weft.h"

static weft_status attach_and_use(void *context)
{
    (void)context;
    weft_world *world;
    void *block = NULL;
    uint64_t seen = 0;
    uint64_t value = 77;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    config.bootstrap = WEFT_BOOTSTRAP_AUTO;
    config.pes = 1;
    config.heap_max_bytes = (size_t)1 << 20;
    device.choice = WEFT_DEVICE_ORDINAL;
    device.heap_max_bytes = (size_t)32 << 20;
    config.device = &device;
    WEFT_TRY(weft_world_create(&config, &world));
    weft_status status = weft_device_malloc(world, (size_t)5 << 20, &block);
    if (status == WEFT_OK) {
        status = weft_uint64_p(world, block, value, 0);
    }
    if (status == WEFT_OK) {
        status = weft_uint64_g(world, block, 0, &seen);
    }
    if (status == WEFT_OK) {
        assert_true(seen == value);
        status = weft_device_free(world, block);
    }
    assert_int_equal(weft_world_destroy(world), WEFT_OK);
    return status;
}

static void test_torture(void **state)
{
    (void)state;
    (void)torture(attach_and_use, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_torture)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

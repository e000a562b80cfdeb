/* Goal: a program whose kernels were compiled with the device headers of another weft is told so when it asks for what
 * they read; one that names a GPU that is not there is told which, and how many there are. Method: a PE on a GPU of the
 * fake driver, and what the inline calls of such headers would pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "weft.h"

static weft_world *world;

static weft_status create_on(int ordinal, weft_world **made)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    device.choice = WEFT_DEVICE_ORDINAL;
    device.ordinal = ordinal;
    device.heap_max_bytes = (size_t)32 << 20;
    config.heap_max_bytes = (size_t)1 << 20;
    config.device = &device;
    config.pes = 1;
    return weft_world_create(&config, made);
}

static int create(void **state)
{
    (void)state;
    (void)setenv("WEFT_LOG", "none", 1);
    (void)setenv("WEFT_FAKE_GPUS", "3", 1);
    return create_on(0, &world) != WEFT_OK;
}

static int destroy(void **state)
{
    (void)state;
    return weft_world_destroy(world) != WEFT_OK;
}

static void expect_refusal(weft_status status, const char *version)
{
    assert_int_equal(status, WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_last_error(), "compiled with the device headers of weft"));
    assert_non_null(strstr(weft_last_error(), version));
    assert_non_null(strstr(weft_last_error(), weft_version_text()));
}

static void test_other_headers(void **state)
{
    (void)state;
    const wefti_headers others[] = {{WEFTI_VIEW_ABI, WEFT_DEV_ABI + 1, 9 << 16 | 8 << 8 | 7},
                                    {WEFTI_VIEW_ABI, WEFT_DEV_ABI - 1, 9 << 16 | 8 << 8 | 7}};
    weft_dev dev;
    weft_dev untouched;
    weft_dev_team team;
    memset(&dev, 0x5a, sizeof dev);
    memset(&untouched, 0x5a, sizeof untouched);
    memset(&team, 0x5a, sizeof team);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        expect_refusal(wefti_world_dev(world, &dev, &others[i]), "9.8.7");
        expect_refusal(wefti_team_dev(weft_team_world(world), &team, &others[i]), "9.8.7");
    }
    assert_memory_equal(&dev, &untouched, sizeof dev);
    assert_memory_equal(&team.world, &untouched, sizeof untouched);
}

static void test_the_same_headers(void **state)
{
    (void)state;
    weft_dev dev;
    weft_dev_team team;
    assert_int_equal(weft_world_dev(world, &dev), WEFT_OK);
    assert_int_equal(weft_team_dev(weft_team_world(world), &team), WEFT_OK);
    assert_true(dev.abi == WEFT_DEV_ABI && team.world.abi == WEFT_DEV_ABI);
}

static void test_numbers(void **state)
{
    (void)state;
    const int numbers[] = {4321, -7};
    for (int i = 0; i < 2; i++) {
        char named[32];
        weft_world *none = NULL;
        assert_int_equal(create_on(numbers[i], &none), WEFT_ERR_ARGUMENT);
        assert_null(none);
        (void)snprintf(named, sizeof named, "no GPU %d:", numbers[i]);
        assert_non_null(strstr(weft_last_error(), named));
        assert_non_null(strstr(weft_last_error(), "sees 3,"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_other_headers), cmocka_unit_test(test_the_same_headers),
                                       cmocka_unit_test(test_numbers)};
    return cmocka_run_group_tests(tests, create, destroy);
}

/* Goal: GPUs that cannot reach each other's memory, or not by atomics, are two link domains; the log says so in one
 * line a PE, and what one writes to the other arrives all the same. Method: two PEs on two GPUs of the fake driver
 * (src/testing/fake_driver), which says of its peers what the environment says; the log goes to a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <stdio.h>

#include "cuda/driver/driver.h"
#include "device/device.h"
#include "gpu/support/device_pes.h"
#include "weft.h"

/* Create both PEs on a GPU each; `log` gets what that writes to the log. */
static void with_log(weft_world *worlds[2], char *log, size_t bytes)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    const int before = dup(STDERR_FILENO);
    assert_true(before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    const weft_status status = gpu_pes_create(2, 2, worlds);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    rewind(file);
    log[fread(log, 1, bytes - 1, file)] = '\0';
    fclose(file);
    assert_int_equal(status, WEFT_OK);
}

static void expect_two_domains(const char *variable, const char *words)
{
    weft_world *worlds[2] = {NULL, NULL};
    weft_dev dev;
    void *blocks[2];
    char log[4096];
    uint64_t seen = 0;
    const uint64_t sent = UINT64_C(0x1122334455667788);
    assert_int_equal(setenv(variable, "1", 1), 0);
    with_log(worlds, log, sizeof log);
    assert_int_equal(unsetenv(variable), 0);
    assert_non_null(strstr(log, "GPU 0 of PE 0 does not reach that of PE 1"));
    assert_non_null(strstr(log, "GPU 1 of PE 1 does not reach that of PE 0"));
    assert_non_null(strstr(log, words));
    for (int i = 0; i < 2; i++) {
        weft_device_info info;
        assert_int_equal(weft_world_dev(worlds[i], &dev), WEFT_OK);
        assert_int_equal(dev.near_count, 1);
        assert_int_equal(dev.far_count, 1);
        assert_int_equal(weft_device_query(worlds[i], &info), WEFT_OK);
        blocks[i] = info.heap;
    }
    assert_int_equal(weft_putmem(worlds[0], blocks[0], &sent, sizeof sent, 1), WEFT_OK);
    assert_int_equal(weft_quiet(worlds[0]), WEFT_OK);
    assert_int_equal(weft_getmem(worlds[1], &seen, blocks[1], sizeof seen, 1), WEFT_OK);
    assert_int_equal(seen, sent);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weft_world_destroy(worlds[i]), WEFT_OK);
    }
}

static void test_no_access(void **state)
{
    (void)state;
    expect_two_domains("WEFT_FAKE_NO_PEERS", "cannot access its memory");
}

static void test_no_atomics(void **state)
{
    (void)state;
    expect_two_domains("WEFT_FAKE_NO_PEER_ATOMICS", "has no atomics there");
}

/* Which GPU it will be is known before: of a config that names one; else of the context that is current. */
static void test_pci(void **state)
{
    char text[32];
    weft_device_config config = WEFT_DEVICE_CONFIG_INIT;
    CUcontext context;
    (void)state;
    config.choice = WEFT_DEVICE_ORDINAL;
    config.ordinal = 1;
    assert_true(wefti_device_backend->find_pci(&config, text, sizeof text));
    assert_string_equal(text, "0000:02:00.0");
    config.choice = WEFT_DEVICE_CURRENT;
    assert_false(wefti_device_backend->find_pci(&config, text, sizeof text));
    assert_false(wefti_device_backend->find_pci(NULL, text, sizeof text));
    wefti_cuda_driver driver;
    assert_int_equal(wefti_cuda_driver_open(&driver), WEFT_OK);
    assert_int_equal(driver.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    assert_int_equal(driver.cuCtxPushCurrent(context), CUDA_SUCCESS);
    assert_true(wefti_device_backend->find_pci(NULL, text, sizeof text));
    assert_string_equal(text, "0000:01:00.0");
    assert_true(wefti_device_backend->find_pci(&config, text, sizeof text));
    assert_int_equal(driver.cuCtxPopCurrent(&context), CUDA_SUCCESS);
    wefti_cuda_driver_close(&driver);
}

int main(void)
{
    (void)setenv("WEFT_LOG", "warn", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_access), cmocka_unit_test(test_no_atomics),
                                       cmocka_unit_test(test_pci)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

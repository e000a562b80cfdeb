/* Goal: random bytes fill the whole buffer, no byte more, and a failing system call is a status.
 * Method: fill blocks of many sizes between guards; two fills differ; torture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "os/os.h"
#include "support/torture.h"

#define GUARD 0xa5

static void test_fill(void **state)
{
    (void)state;
    static unsigned char block[1002];
    static const unsigned char zeros[16];
    for (size_t count = 0; count <= 1000; count += 100) {
        memset(block, 0, sizeof block);
        block[0] = block[count + 1] = GUARD;
        assert_int_equal(wefti_os_random(block + 1, count), WEFT_OK);
        assert_int_equal(block[0], GUARD);
        assert_int_equal(block[count + 1], GUARD);
        if (count >= 16) {
            assert_memory_not_equal(block + 1, zeros, 16);
            assert_memory_not_equal(block + 1 + count - 16, zeros, 16);
            assert_memory_not_equal(block + 1, block + 1 + count - 16, 16);
        }
    }
}

static weft_status fill_once(void *context)
{
    return wefti_os_random(context, 16);
}

static void test_failing_calls(void **state)
{
    (void)state;
    unsigned char bytes[16];
    assert_int_equal(torture(fill_once, bytes), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fill), cmocka_unit_test(test_failing_calls)};
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}

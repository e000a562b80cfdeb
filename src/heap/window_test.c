/* Goal: other PEs of a process see a window when its memory is mapped, and not before.
 * Method: the memory of one is made; that of another cannot be mapped, since its descriptor is none. */
#include "heap/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

static const wefti_window_shape shape = {.head_bytes = 4096, .slots = 2, .stride = WEFTI_OS_MEMORY_ALIGNMENT};

static void test_shown_when_mapped(void **state)
{
    wefti_window window = {.ready = 0};
    (void)state;
    assert_int_equal(wefti_window_wait(&window, 0), WEFT_ERR_TIMEOUT);
    assert_int_equal(wefti_window_make(&window, &shape), WEFT_OK);
    assert_int_equal(wefti_window_wait(&window, 0), WEFT_OK);
    wefti_os_memory_fini(&window.memory);
}

static void test_not_shown_when_not_mapped(void **state)
{
    wefti_window window = {.ready = 0};
    (void)state;
    assert_int_not_equal(wefti_window_adopt(&window, -1, &shape), WEFT_OK);
    assert_int_equal(wefti_window_wait(&window, 0), WEFT_ERR_TIMEOUT); /* its PE is yet to say that it has failed */
    wefti_window_fail(&window);
    assert_int_equal(wefti_window_wait(&window, 0), WEFT_ERR_PEER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shown_when_mapped),
        cmocka_unit_test(test_not_shown_when_not_mapped),
    };
    (void)setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Goal: a text has its parts one behind the other, and what does not fit is cut off. Method: texts in a buffer of eight
 * bytes, behind which a ninth is not touched. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void parts(void **state)
{
    char bytes[9] = "........!";
    wefti_text to = {.bytes = bytes, .size = 8};
    (void)state;
    wefti_text_append(&to, "%s", "ab");
    assert_string_equal(bytes, "ab");
    wefti_text_append(&to, "%s", "");
    wefti_text_append(&to, ", %d", 1);
    assert_string_equal(bytes, "ab, 1");
    assert_int_equal(to.used, 5);
    assert_int_equal(bytes[8], '!');
}

static void cut_off(void **state)
{
    char bytes[9] = "........!";
    wefti_text to = {.bytes = bytes, .size = 8};
    (void)state;
    wefti_text_append(&to, "abcdef");
    wefti_text_append(&to, "%d", 12345);
    assert_string_equal(bytes, "abcdef1");
    wefti_text_append(&to, "more");
    assert_string_equal(bytes, "abcdef1");
    assert_int_equal(to.used, 7);
    assert_int_equal(bytes[8], '!');
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts), cmocka_unit_test(cut_off)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

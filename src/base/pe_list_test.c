/* Goal: sets of PEs are written in full up to 16 runs, and never beyond their room. Method: tables, and worst cases. */
#include "base/pe_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void assert_text(const char *marks, const char *wanted)
{
    char text[WEFTI_PE_LIST_BYTES];
    (void)wefti_pe_list_text((const unsigned char *)marks, (int)strlen(marks), 'x', text);
    assert_string_equal(text, wanted);
}

static void writes_runs(void **state)
{
    (void)state;
    assert_text("", "no PE");
    assert_text("....", "no PE");
    assert_text("...x", "PE 3");
    assert_text("x...", "PE 0");
    assert_text("xx..", "PEs 0, 1");
    assert_text("xxxx", "PEs 0-3");
    assert_text("...x.xxx....x", "PEs 3, 5-7, 12");
    assert_text("x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.", "PEs 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30");
    assert_text("x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.xxx",
                "PEs 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30 and 3 more");
}

static void stays_in_its_room(void **state)
{
    (void)state;
    int pes = 1 << 24;
    char text[WEFTI_PE_LIST_BYTES];
    unsigned char *marks = calloc((size_t)pes, 1);
    assert_non_null(marks);
    for (int pe = pes - 1; pe > pes - 64; pe -= 3) {
        marks[pe] = marks[pe - 1] = 1;
    }
    assert_int_equal(wefti_pe_list_text(marks, pes, 1, text), 42);
    assert_true(strlen(text) < sizeof text);
    assert_non_null(strstr(text, " and "));
    free(marks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(writes_runs), cmocka_unit_test(stays_in_its_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

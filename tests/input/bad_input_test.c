/* Goal: every public function refuses what cannot be with the documented status and changes nothing; and in a forked
 * process those that move or wait refuse their parent's handles.
 *
 * Method: a table of all functions (input/table.h says how to add one), run on two PEs that are threads, and then in a
 * child of one of them. Test bad_input_names compares the table with the headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "input/table.h"

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(table_run),
    };
    return table_names(argc, argv) ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}

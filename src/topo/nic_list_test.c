/* Goal: lists of NICs are read in NVSHMEM's grammar, and a mistake is pointed at. Method: tables. */
#include "topo/nic_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void reads_lists(void **state)
{
    wefti_topo_nic_list list;
    (void)state;
    assert_int_equal(wefti_topo_nic_list_parse(&list, "V", "^mlx5_0"), WEFT_OK);
    assert_int_equal(list.excludes, 1);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.entries[0].name, "mlx5_0");
    assert_int_equal(list.entries[0].port, 0);
    wefti_topo_nic_list_fini(&list);
    assert_int_equal(wefti_topo_nic_list_parse(&list, "V", "mlx5_1:1,mlx5_2:2"), WEFT_OK);
    assert_int_equal(list.excludes, 0);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.entries[1].port, 2);
    assert_int_equal(list.entries[1].column, 10);
    wefti_topo_nic_list_fini(&list);
    assert_int_equal(wefti_topo_nic_list_parse(&list, "V", ""), WEFT_OK);
    assert_int_equal(list.count, 0);
}

static void reads_mappings(void **state)
{
    wefti_topo_nic_list list;
    (void)state;
    assert_int_equal(wefti_topo_nic_mapping_parse(&list, "V", "mlx5_0:1:3,mlx5_0:2:5"), WEFT_OK);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.entries[0].count, 3);
    assert_int_equal(list.entries[1].port, 2);
    assert_int_equal(list.entries[1].count, 5);
    wefti_topo_nic_list_fini(&list);
}

static void points_at_characters(void **state)
{
    static const struct {
        int is_mapping;
        const char *text;
        const char *told;
    } cases[] = {
        {0, ",", "V: \",\", character 1: expected the name"},
        {0, "a,,b", "character 3: expected the name"},
        {0, "a,", "character 3: expected the name"},
        {0, "^", "character 2: expected the name"},
        {0, "^^a", "character 2: expected the name"},
        {0, "a,^b", "character 3: expected the name"},
        {0, "a:", "character 3: expected a port"},
        {0, "a:0", "character 3: expected a port"},
        {0, "a:256", "character 3: expected a port"},
        {0, "a:99999999999999999999", "character 3: expected a port"},
        {0, "a:1:2", "character 4: expected , or the end"},
        {0, "a b", "character 2: expected , or the end"},
        {0, " a", "character 1: expected the name"},
        {0, "0123456789012345678901234567890123456789012345678", "character 1: a name of more than 47 bytes"},
        {1, "a", "character 2: expected : and a port"},
        {1, "a:1", "character 4: expected : and a count"},
        {1, "a:1:0", "character 5: expected : and a count"},
        {1, "a:1:2,", "character 7: expected the name"},
        {1, "^a:1:2", "character 1: expected the name"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wefti_topo_nic_list list;
        assert_int_equal(
            (cases[i].is_mapping ? wefti_topo_nic_mapping_parse : wefti_topo_nic_list_parse)(&list, "V", cases[i].text),
            WEFT_ERR_ARGUMENT);
        if (strstr(weft_last_error(), cases[i].told) == NULL) {
            fail_msg("\"%s\": \"%s\" does not say \"%s\"", cases[i].text, weft_last_error(), cases[i].told);
        }
        assert_null(list.entries);
    }
}

static void bounds_entries(void **state)
{
    char text[4 * WEFTI_TOPO_NIC_ENTRIES_MAX];
    wefti_topo_nic_list list;
    (void)state;
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = i % 2 == 0 ? 'a' : ',';
    }
    text[sizeof text - 1] = '\0';
    assert_int_equal(wefti_topo_nic_list_parse(&list, "V", text), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(), "V: character 2049: more than 1024 entries"));
}

int main(void)
{
    (void)setenv("WEFT_LOG", "none", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_lists),
        cmocka_unit_test(reads_mappings),
        cmocka_unit_test(points_at_characters),
        cmocka_unit_test(bounds_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Goal: WEFT_TRANSPORT says which networks a PE may use, and what it cannot mean is refused by name; so it is with
 * WEFT_PROGRESS. Method: values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "world/world.h"

static const struct {
    const char *name;
    uint32_t number;
    const wefti_transport_ops *ops;
} rows[] = {
#define ROW(id, name, has) {#name, WEFTI_NETWORK_##id, has(&wefti_transport_##name)},
    WEFTI_NETWORK_TABLE(ROW)
#undef ROW
};
#define ROWS (sizeof rows / sizeof *rows)

/* This one, where this build has it. */
static uint32_t list_of(uint32_t list, uint32_t network)
{
    for (size_t i = 0; i < ROWS; i++) {
        list = rows[i].number == network && rows[i].ops != NULL ? wefti_networks_append(list, network) : list;
    }
    return list;
}

/* All of this build but two. */
static uint32_t all_but(uint32_t one, uint32_t other)
{
    uint32_t list = 0;
    for (size_t i = 0; i < ROWS; i++) {
        list = rows[i].number != one && rows[i].number != other ? list_of(list, rows[i].number) : list;
    }
    return list;
}

static uint32_t networks_of(const char *value)
{
    uint32_t networks = 77;
    assert_int_equal(setenv("WEFT_TRANSPORT", value, 1), 0);
    assert_int_equal(wefti_world_networks(&networks), WEFT_OK);
    return networks;
}

static void test_values(void **state)
{
    (void)state;
    const uint32_t ofi = WEFTI_NETWORK_OFI;
    const uint32_t ucx = WEFTI_NETWORK_UCX;
    assert_int_equal(networks_of(""), all_but(0, 0));
    assert_int_equal(networks_of("ofi"), list_of(0, ofi));
    assert_int_equal(networks_of("map,ofi"), list_of(0, ofi));
    assert_int_equal(networks_of("map,ucx,ofi"), list_of(list_of(0, ucx), ofi));
    assert_int_equal(networks_of("ofi,ucx,ofi"), list_of(list_of(0, ofi), ucx));
    assert_int_equal(networks_of("map"), 0);
    assert_int_equal(networks_of("^ofi"), all_but(ofi, 0));
    assert_int_equal(networks_of("^map,ucx"), all_but(ucx, 0));
    assert_int_equal(networks_of("^ucx,ofi"), all_but(ofi, ucx));
    assert_int_equal(networks_of("^map"), all_but(0, 0));
}

static void test_common(void **state)
{
    (void)state;
    const uint32_t both = wefti_networks_append(WEFTI_NETWORK_UCX, WEFTI_NETWORK_OFI);
    assert_int_equal(wefti_networks_common(both, wefti_networks_append(WEFTI_NETWORK_OFI, WEFTI_NETWORK_UCX)), both);
    assert_int_equal(wefti_networks_common(both, WEFTI_NETWORK_OFI), WEFTI_NETWORK_OFI);
    assert_int_equal(wefti_networks_common(WEFTI_NETWORK_SIM, both), 0);
    assert_int_equal(wefti_networks_common(0, both), 0);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const values[] = {"none", "ofi,", "ofi;map", "^", "OFI", "ofi,^map", ",", "of", "^/lib/x.so"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        uint32_t networks;
        assert_int_equal(setenv("WEFT_TRANSPORT", values[i], 1), 0);
        assert_int_equal(wefti_world_networks(&networks), WEFT_ERR_ARGUMENT);
        assert_non_null(strstr(weft_last_error(), "WEFT_TRANSPORT"));
        for (size_t row = 0; row < ROWS; row++) {
            assert_non_null(strstr(weft_last_error(), rows[row].name));
        }
    }
}

/* Of a library what is wrong with the path; what is wrong with the library: tests/tools/transport_plugin.sh. */
static void test_paths(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        const char *text;
    } values[] = {{"ofi,./mine.so", "\"./mine.so\"; give an absolute path"},
                  {"lib/mine.so", "\"lib/mine.so\"; give an absolute path"},
                  {"/nowhere/mine.so,ofi", "/nowhere/mine.so cannot be loaded"}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        uint32_t networks;
        assert_int_equal(setenv("WEFT_TRANSPORT", values[i].value, 1), 0);
        assert_int_equal(wefti_world_networks(&networks), WEFT_ERR_ARGUMENT);
        assert_non_null(strstr(weft_last_error(), "WEFT_TRANSPORT"));
        assert_non_null(strstr(weft_last_error(), values[i].text));
    }
    assert_null(wefti_network_ops(WEFTI_NETWORK_PLUGIN));
}

static void test_progress(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        int is_inline;
    } taken[] = {{"thread", 0}, {"inline", 1}, {"auto", 0}, {"", 0}};
    static const char *const refused[] = {"Thread", "inline,thread", "^inline", "1", "threads"};
    int is_inline = 77;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        assert_int_equal(setenv("WEFT_PROGRESS", taken[i].word, 1), 0);
        assert_int_equal(wefti_world_progress(&is_inline), WEFT_OK);
        assert_int_equal(is_inline, taken[i].is_inline);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(setenv("WEFT_PROGRESS", refused[i], 1), 0);
        assert_int_equal(wefti_world_progress(&is_inline), WEFT_ERR_ARGUMENT);
        assert_non_null(strstr(weft_last_error(), refused[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_common),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_paths),  cmocka_unit_test(test_progress),
    };
    setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests_name("networks", tests, NULL, NULL);
}

/* Goal: the addresses of this node are found, loopback first, and each can be found again as text.
 * Method: list them; look each up by its text; names and texts that are none. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "bootstrap/tcp/interfaces.h"

static void test_all_are_listed(void **state)
{
    (void)state;
    wefti_tcp_address all[WEFTI_TCP_ADDRESSES_MAX];
    int count = 0;
    int others = 0;
    assert_int_equal(wefti_interfaces_list(all, &count), WEFT_OK);
    assert_in_range(count, 1, WEFTI_TCP_ADDRESSES_MAX);
    for (int i = 0; i < count; i++) {
        char text[INET6_ADDRSTRLEN];
        wefti_tcp_address found;
        others += !wefti_tcp_address_is_loopback(&all[i]);
        assert_true(others == 0 || !wefti_tcp_address_is_loopback(&all[i])); /* loopback comes first */
        assert_non_null(inet_ntop(all[i].family == 4 ? AF_INET : AF_INET6, all[i].bytes, text, sizeof text));
        assert_int_equal(wefti_interfaces_find(text, &found), WEFT_OK);
        assert_int_equal(found.family, all[i].family);
        assert_memory_equal(found.bytes, all[i].bytes, all[i].family == 4 ? 4 : 16);
    }
}

static void test_what_is_no_interface(void **state)
{
    (void)state;
    static const char *const names[] = {"no-such-interface", "300.1.2.3", "", "127.0.0.1.", "fe80::1::"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        wefti_tcp_address found;
        assert_int_equal(wefti_interfaces_find(names[i], &found), WEFT_ERR_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_are_listed),
                                       cmocka_unit_test(test_what_is_no_interface)};
    return cmocka_run_group_tests_name("interfaces", tests, NULL, NULL);
}

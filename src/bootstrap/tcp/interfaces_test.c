/* Goal: the addresses of this node are found, loopback first, and each can be found again as text.
 * Method: list them; look each up by its text; names and texts that are none, of which the error says what there is,
 * also where nothing has an address of IPv4: in a network namespace of this process, if it can have one. */
#include <arpa/inet.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "bootstrap/tcp/interfaces.h"

static weft_status choose_one(const char *text, wefti_tcp_address *found)
{
    wefti_tcp_address all[WEFTI_TCP_ADDRESSES_MAX];
    int count = 0;
    weft_status status = wefti_interfaces_choose(text, all, &count);
    if (status == WEFT_OK) {
        *found = all[0];
    }
    return status;
}

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
        assert_int_equal(choose_one(text, &found), WEFT_OK);
        assert_int_equal(found.family, all[i].family);
        assert_memory_equal(found.bytes, all[i].bytes, all[i].family == 4 ? 4 : 16);
    }
}

static void test_what_is_no_interface(void **state)
{
    (void)state;
    static const char *const names[] = {
        "no-such-interface",         "300.1.2.3", "", "127.0.0.1.", "fe80::1::", "=l", ",", "ip6:=", "ip6:127.0.0.1",
        "^l,e,v,d,t,h,b,w,s,g,p,i,n"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        wefti_tcp_address found;
        assert_int_equal(choose_one(names[i], &found), WEFT_ERR_ARGUMENT);
    }
}

/* Loopback, which every machine has, by all that can name it. */
static void test_names_of_loopback(void **state)
{
    (void)state;
    static const char *const names[] = {"lo",      "=lo",    "l",          "none,lo",
                                        "lo,none", "ip4:lo", "ip4:none,l", "ip4:127.0.0.1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        wefti_tcp_address all[WEFTI_TCP_ADDRESSES_MAX];
        int count = 0;
        memset(all, 0, sizeof all);
        assert_int_equal(wefti_interfaces_choose(names[i], all, &count), WEFT_OK);
        assert_int_equal(all[0].family, 4);
        for (int j = count; j < WEFTI_TCP_ADDRESSES_MAX; j++) {
            static const wefti_tcp_address none;
            assert_memory_equal(&all[j], &none, sizeof none);
        }
        for (int j = 0; j < count; j++) {
            assert_true(wefti_tcp_address_is_loopback(&all[j]));
        }
    }
}

/* All but loopback: none of it is left, and nothing else is lost. */
static void test_all_but_loopback(void **state)
{
    (void)state;
    wefti_tcp_address all[WEFTI_TCP_ADDRESSES_MAX];
    wefti_tcp_address others[WEFTI_TCP_ADDRESSES_MAX];
    int count = 0;
    int left = 0;
    int wanted = 0;
    assert_int_equal(wefti_interfaces_list(all, &count), WEFT_OK);
    for (int i = 0; i < count; i++) {
        wanted += !wefti_tcp_address_is_loopback(&all[i]);
    }
    assert_int_equal(wefti_interfaces_choose("^lo", others, &left), wanted > 0 ? WEFT_OK : WEFT_ERR_ARGUMENT);
    for (int i = 0; i < left; i++) {
        assert_false(wefti_tcp_address_is_loopback(&others[i]));
    }
    assert_true(left >= wanted);
}

/* The last test: it leaves the network. */
static void test_names_without_ipv4(void **state)
{
    (void)state;
    wefti_tcp_address all[WEFTI_TCP_ADDRESSES_MAX];
    int count = 0;
    if (unshare(CLONE_NEWNET) != 0 || system("ip link set lo up 2>/dev/null") != 0 || /* NOLINT: a fixed command */
        system("ip addr del 127.0.0.1/8 dev lo 2>/dev/null") != 0 || /* NOLINT: a fixed command */
        wefti_interfaces_list(all, &count) != WEFT_OK) {
        print_message("no network namespace here, or no IPv6\n");
        skip();
    }
    assert_int_equal(count, 1);
    assert_int_equal(wefti_interfaces_choose("no-such-interface", all, &count), WEFT_ERR_ARGUMENT);
    const char *there = strstr(weft_last_error(), "there are: ");
    assert_non_null(there);
    assert_string_equal(there, "there are: lo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_listed), cmocka_unit_test(test_what_is_no_interface),
        cmocka_unit_test(test_names_of_loopback), cmocka_unit_test(test_all_but_loopback),
        cmocka_unit_test(test_names_without_ipv4)};
    return cmocka_run_group_tests_name("interfaces", tests, NULL, NULL);
}

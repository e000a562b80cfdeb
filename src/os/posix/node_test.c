/* Goal: a node's identity holds what sharing needs, a user is found through the map of its namespace, and threads in
 * different network namespaces are on different nodes.
 * Method: maps as text; this process and threads of it; torture stands in machine_test. The kernel's namespaces in all
 * combinations are in tests/process/namespaces_test.c. */
#include "os/posix/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/posix/user.h"

static void assert_outside(const char *map, uint64_t uid, uint64_t wanted)
{
    uint64_t user = 77;
    assert_true(wefti_os_uid_outside(map, uid, &user));
    assert_int_equal(user, wanted);
}

static void assert_nowhere(const char *map, uint64_t uid)
{
    uint64_t user = 77;
    assert_false(wefti_os_uid_outside(map, uid, &user));
    assert_int_equal(user, 77);
}

static void test_maps_of_users(void **state)
{
    (void)state;
    static const char all[] = "         0          0 4294967295\n";
    static const char two[] = "         0       1000          1\n         1     100000      65536\n";
    assert_outside(all, 0, 0);
    assert_outside(all, 65534, 65534);
    assert_outside(two, 0, 1000);
    assert_outside(two, 1, 100000);
    assert_outside(two, 65536, 165535);
    assert_nowhere(two, 65537);
    assert_nowhere("", 0);
    assert_nowhere("\n", 0);
    assert_nowhere("no numbers\n", 0);
    assert_nowhere("5 7", 5);
}

static void test_numbers_of_several_users(void **state)
{
    (void)state;
    static const char all[] = "         0          0 4294967295\n";
    static const char most[] = "         0     100000      65536\n";
    assert_false(wefti_os_uid_is_vague(all, 65534));
    assert_true(wefti_os_uid_is_vague(most, 65534));
    assert_false(wefti_os_uid_is_vague(most, 0));
    assert_false(wefti_os_uid_is_vague("0 0 2000000000\n2000000000 2000000000 2294967295\n", 65534));
    assert_true(wefti_os_uid_is_vague("", 65534));
    assert_true(wefti_os_uid_is_vague("no numbers\n", 65534));
}

static wefti_os_identity query(void)
{
    wefti_os_identity identity = {.is_named = 0};
    assert_int_equal(wefti_os_node_query(&identity), WEFT_OK);
    return identity;
}

static void test_this_process(void **state)
{
    (void)state;
    char link[64] = "";
    wefti_os_identity here = query();
    assert_false(here.is_named);
    assert_int_not_equal(here.network, 0);
    if (readlink("/proc/self/ns/net", link, sizeof link - 1) > 0) {
        assert_int_equal(here.network_file, strtoull(link + strlen("net:["), NULL, 10));
    }
}

static void query_elsewhere(void *context)
{
    wefti_os_identity *identity = context;
    if (unshare(CLONE_NEWNET) == 0) {
        *identity = query();
    }
}

static void test_a_thread_in_another_network(void **state)
{
    (void)state;
    wefti_os_identity here = query();
    wefti_os_identity there = {.host = 0};
    wefti_os_thread *thread;
    assert_int_equal(wefti_os_thread_start(&thread, query_elsewhere, &there), WEFT_OK);
    wefti_os_thread_join(thread);
    if (there.host == 0) {
        print_message("no network namespaces here\n");
        skip();
    }
    assert_int_equal(there.host, here.host);
    assert_int_equal(there.user, here.user);
    assert_int_not_equal(there.network, here.network);
    assert_int_not_equal(there.network_file, here.network_file);
    assert_memory_not_equal(there.node, here.node, sizeof here.node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps_of_users),
        cmocka_unit_test(test_numbers_of_several_users),
        cmocka_unit_test(test_this_process),
        cmocka_unit_test(test_a_thread_in_another_network),
    };
    unsetenv("WEFT_NODE_ID");
    return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}

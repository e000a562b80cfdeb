/* Goal: figures of the machine are sane; identities tell processes and nodes apart.
 * Method: compare with the affinity of this thread and with a forked child's identity; torture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "support/torture.h"

static void test_figures(void **state)
{
    (void)state;
    assert_true(wefti_os_cores_query().count >= 1);
    assert_true(wefti_os_page_bytes() >= 4096);
    assert_int_equal(wefti_os_page_bytes() & (wefti_os_page_bytes() - 1), 0);
    assert_true(wefti_os_memory_bytes() > UINT64_C(1) << 26);
    assert_int_equal(wefti_os_process_number(), getpid());
}

static void test_cores_follow_affinity(void **state)
{
    (void)state;
    cpu_set_t before;
    cpu_set_t one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    wefti_os_cores all = wefti_os_cores_query();
    assert_int_equal(all.count, CPU_COUNT(&before));
    assert_true(wefti_os_cores_query().mark == all.mark);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &before)) {
            CPU_SET(i, &one);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(wefti_os_cores_query().count, 1);
    assert_true((wefti_os_cores_query().mark == all.mark) == (all.count == 1));
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_true(wefti_os_cores_query().mark == all.mark);
}

static wefti_os_identity query(void)
{
    wefti_os_identity identity;
    assert_int_equal(wefti_os_identity_query(&identity), WEFT_OK);
    return identity;
}

static wefti_os_identity query_in_child(void)
{
    wefti_os_identity identity;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int good = wefti_os_identity_query(&identity) == WEFT_OK &&
                   write(ends[1], &identity, sizeof identity) == (ssize_t)sizeof identity;
        _exit(!good);
    }
    assert_int_equal(read(ends[0], &identity, sizeof identity), sizeof identity);
    close(ends[0]);
    close(ends[1]);
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    return identity;
}

static void test_identities(void **state)
{
    (void)state;
    unsetenv("WEFT_NODE_ID");
    wefti_os_identity here = query();
    wefti_os_identity again = query();
    wefti_os_identity child = query_in_child();
    assert_memory_equal(&here, &again, sizeof here);
    assert_memory_equal(here.node, child.node, sizeof here.node);
    assert_memory_not_equal(here.process, child.process, sizeof here.process);
}

static void test_node_id_replaces_the_node(void **state)
{
    (void)state;
    unsetenv("WEFT_NODE_ID");
    wefti_os_identity booted = query();
    setenv("WEFT_NODE_ID", "a", 1);
    wefti_os_identity a = query();
    wefti_os_identity a_again = query();
    setenv("WEFT_NODE_ID", "b", 1);
    wefti_os_identity b = query();
    unsetenv("WEFT_NODE_ID");
    assert_memory_equal(&a, &a_again, sizeof a);
    assert_memory_equal(a.process, booted.process, sizeof a.process);
    assert_memory_not_equal(a.node, booted.node, sizeof a.node);
    assert_memory_not_equal(a.node, b.node, sizeof a.node);
}

static weft_status query_once(void *context)
{
    wefti_os_identity identity;
    (void)context;
    return wefti_os_identity_query(&identity);
}

static weft_status read_figures(void *context)
{
    (void)context;
    return wefti_os_cores_query().count >= 1 ? WEFT_OK : WEFT_ERR_SYSTEM;
}

static void test_failing_calls(void **state)
{
    (void)state;
    assert_int_equal(torture(query_once, NULL), 6);
    (void)torture(read_figures, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),       cmocka_unit_test(test_cores_follow_affinity),
        cmocka_unit_test(test_identities),    cmocka_unit_test(test_node_id_replaces_the_node),
        cmocka_unit_test(test_failing_calls),
    };
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}

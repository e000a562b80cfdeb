/* Goal: a mark is seen while it is open and not after, however many look at it, and another user's is told apart.
 * Method: look at marks of this process, of a child that is another user, and of names that nobody has; torture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "support/torture.h"

#define LOOKS 10000 /* more than wait at a listener */

/* Names of this run: tests of several builds may run at once. */
static const unsigned char *fresh_name(void)
{
    static unsigned char name[16];
    assert_int_equal(wefti_os_random(name, sizeof name), WEFT_OK);
    return name;
}

static void assert_sight(const unsigned char name[16], wefti_os_mark_sight wanted)
{
    wefti_os_mark_sight sight = WEFTI_OS_MARK_FOREIGN + 1;
    assert_int_equal(wefti_os_mark_look(name, &sight), WEFT_OK);
    assert_int_equal(sight, wanted);
}

static void test_seen_while_open(void **state)
{
    (void)state;
    wefti_os_mark mark = {-1};
    const unsigned char *name = fresh_name();
    assert_sight(name, WEFTI_OS_MARK_UNSEEN);
    assert_int_equal(wefti_os_mark_open(&mark, name), WEFT_OK);
    for (int i = 0; i < LOOKS; i++) {
        assert_sight(name, WEFTI_OS_MARK_SEEN);
    }
    wefti_os_mark_close(&mark);
    assert_sight(name, WEFTI_OS_MARK_UNSEEN);
    wefti_os_mark_close(&mark);
}

static void test_two_of_one_name(void **state)
{
    (void)state;
    wefti_os_mark first = {-1};
    wefti_os_mark second = {-1};
    const unsigned char *name = fresh_name();
    setenv("WEFT_LOG", "none", 1);
    assert_int_equal(wefti_os_mark_open(&first, name), WEFT_OK);
    assert_int_equal(wefti_os_mark_open(&second, name), WEFT_ERR_SYSTEM);
    assert_int_equal(second.listener, -1);
    wefti_os_mark_close(&first);
}

static void test_another_user(void **state)
{
    (void)state;
    int result;
    wefti_os_mark mark = {-1};
    const unsigned char *name = fresh_name();
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(wefti_os_mark_open(&mark, name), WEFT_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        wefti_os_mark_sight sight;
        _exit(setresuid(65534, 65534, 65534) != 0 || wefti_os_mark_look(name, &sight) != WEFT_OK ||
              sight != WEFTI_OS_MARK_FOREIGN);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    wefti_os_mark_close(&mark);
}

static weft_status open_and_look(void *context)
{
    wefti_os_mark mark = {-1};
    wefti_os_mark_sight sight;
    weft_status status = wefti_os_mark_open(&mark, context);
    if (status == WEFT_OK) {
        status = wefti_os_mark_look(context, &sight);
    }
    wefti_os_mark_close(&mark);
    return status;
}

static void test_failing_calls(void **state)
{
    (void)state;
    unsigned char name[16];
    memcpy(name, fresh_name(), sizeof name);
    assert_int_equal(torture(open_and_look, name), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seen_while_open),
        cmocka_unit_test(test_two_of_one_name),
        cmocka_unit_test(test_another_user),
        cmocka_unit_test(test_failing_calls),
    };
    return cmocka_run_group_tests_name("mark", tests, NULL, NULL);
}

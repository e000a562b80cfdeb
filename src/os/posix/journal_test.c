/* Goal: a file that several add to is whole at any time, nothing of another's is touched, and a failing write leaves
 * what was there. Method: insert from four threads at once and count the parts; give it files that are none of its own;
 * fork in the middle of an insertion, by a pwritev of this program's own; torture. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/os.h"
#include "support/torture.h"

#define THREADS 4
#define PARTS 50
#define BYTES 20000

static char path[] = "/tmp/weft-journal-test-XXXXXX";
static const wefti_os_journal journal = {.path = path, .head = "<", .separator = ", ", .tail = ">"};

static const char *contents(void)
{
    static char text[BYTES];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    return text;
}

static void set_contents(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void test_parts_follow_each_other(void **state)
{
    (void)state;
    set_contents("");
    assert_int_equal(wefti_os_journal_insert(&journal, "one", 3), WEFT_OK);
    assert_string_equal(contents(), "<one>");
    assert_int_equal(wefti_os_journal_insert(&journal, "two", 3), WEFT_OK);
    assert_string_equal(contents(), "<one, two>");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(wefti_os_journal_insert(&journal, "new", 3), WEFT_OK);
    assert_string_equal(contents(), "<new>");
}

static void insert_many(void *argument)
{
    for (int i = 0; i < PARTS; i++) {
        assert_int_equal(wefti_os_journal_insert(&journal, argument, 4), WEFT_OK);
    }
}

static void test_several_at_once(void **state)
{
    (void)state;
    static char parts[THREADS][5] = {"aaaa", "bbbb", "cccc", "dddd"};
    wefti_os_thread *threads[THREADS];
    int counts[THREADS] = {0};
    set_contents("");
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(wefti_os_thread_start(&threads[i], insert_many, parts[i]), WEFT_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        wefti_os_thread_join(threads[i]);
    }
    char *text = strdup(contents());
    char *rest = NULL;
    assert_non_null(text);
    assert_int_equal(text[strlen(text) - 1], '>');
    text[strlen(text) - 1] = '\0';
    for (char *part = strtok_r(text + 1, ", ", &rest); part != NULL; part = strtok_r(NULL, ", ", &rest)) {
        assert_in_range(part[0], 'a', 'd');
        assert_string_equal(part, parts[part[0] - 'a']);
        counts[part[0] - 'a']++;
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(counts[i], PARTS);
    }
    free(text);
}

static void test_files_of_others_are_left_alone(void **state)
{
    (void)state;
    static const char *const others[] = {"a letter", "<", "<cut", "no head>", ">"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        set_contents(others[i]);
        assert_int_equal(wefti_os_journal_insert(&journal, "mine", 4), WEFT_ERR_SYSTEM);
        assert_non_null(strstr(weft_last_error(), "another's"));
        assert_string_equal(contents(), others[i]);
    }
    set_contents("a letter");
    wefti_os_journal_discard(&journal);
    assert_string_equal(contents(), "a letter");
    set_contents("<old>");
    wefti_os_journal_discard(&journal);
    assert_int_equal(access(path, F_OK), -1);
    wefti_os_journal_discard(&journal); /* which is not there */
    const wefti_os_journal nowhere = {.path = "/nonexistent/file", .head = "<", .separator = ",", .tail = ">"};
    assert_int_equal(wefti_os_journal_insert(&nowhere, "x", 1), WEFT_ERR_SYSTEM);
    set_contents("");
}

static void test_a_stopped_holder_stops_nobody(void **state)
{
    (void)state;
    set_contents("<old>");
    FILE *holder = fopen(path, "r");
    assert_non_null(holder);
    assert_int_equal(flock(fileno(holder), LOCK_EX), 0);
    uint64_t start_ns = wefti_os_now_ns();
    assert_int_equal(wefti_os_journal_insert(&journal, "new", 3), WEFT_ERR_SYSTEM);
    assert_true(wefti_os_now_ns() - start_ns < UINT64_C(20000000000));
    assert_string_equal(contents(), "<old>");
    (void)fclose(holder);
}

static int forks_in_write;
static pid_t forked;

/* Takes the place of the C library's. */
ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t at)
{
    if (forks_in_write) {
        forks_in_write = 0;
        forked = fork();
        while (forked == 0) {
            (void)pause();
        }
    }
    return syscall(SYS_pwritev, descriptor, parts, count, at, 0);
}

/* A child has all descriptors, and what they have locked. */
static void test_a_forked_child_stops_nobody(void **state)
{
    (void)state;
    set_contents("");
    forks_in_write = 1;
    weft_status first = wefti_os_journal_insert(&journal, "one", 3);
    weft_status second = wefti_os_journal_insert(&journal, "two", 3);
    assert_true(forked > 0);
    (void)kill(forked, SIGKILL);
    (void)waitpid(forked, NULL, 0);
    assert_int_equal(first, WEFT_OK);
    assert_int_equal(second, WEFT_OK);
    assert_string_equal(contents(), "<one, two>");
}

static weft_status insert_once(void *context)
{
    (void)context;
    weft_status status = wefti_os_journal_insert(&journal, "x", 1);
    const char *text = contents();
    size_t length = strlen(text);
    assert_true(length == 0 || (text[0] == '<' && text[length - 1] == '>'));
    return status;
}

static void test_failing_calls(void **state)
{
    (void)state;
    set_contents("");
    assert_true(torture(insert_once, NULL) >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_follow_each_other),        cmocka_unit_test(test_several_at_once),
        cmocka_unit_test(test_files_of_others_are_left_alone), cmocka_unit_test(test_a_stopped_holder_stops_nobody),
        cmocka_unit_test(test_a_forked_child_stops_nobody),    cmocka_unit_test(test_failing_calls),
    };
    int descriptor = mkstemp(path);
    if (descriptor < 0) {
        return 1;
    }
    (void)close(descriptor);
    int failed = cmocka_run_group_tests_name("journal", tests, NULL, NULL);
    (void)unlink(path);
    return failed;
}

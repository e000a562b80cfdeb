/* Goal: a log line is one write of the promised form, and WEFT_LOG, when it is read, decides which are shown.
 * Method: standard error is a packet pipe, in which each write stays apart, while the lines are logged. */
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

typedef struct stderr_capture {
    int reader;
    int standard_error;
} stderr_capture;

static stderr_capture capture_begin(void)
{
    int ends[2];
    stderr_capture capture = {.standard_error = dup(STDERR_FILENO)};
    assert_int_equal(pipe2(ends, O_DIRECT | O_NONBLOCK), 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    capture.reader = ends[0];
    return capture;
}

static void capture_end(const stderr_capture *capture)
{
    dup2(capture->standard_error, STDERR_FILENO);
    close(capture->standard_error);
    close(capture->reader);
}

/* The next write, or "" when there was none. */
static void capture_next(const stderr_capture *capture, char *text, size_t bytes)
{
    ssize_t got = read(capture->reader, text, bytes - 1);
    text[got < 0 ? 0 : got] = '\0';
}

static void test_a_line_is_one_write(void **state)
{
    (void)state;
    char seen[2048];
    char wanted[64];
    stderr_capture capture = capture_begin();
    unsetenv("WEFT_LOG");
    wefti_log_read();
    errno = EBUSY;
    wefti_log(WEFTI_LOG_WARN, "%d of %d", 3, 4);
    int error = errno;
    capture_next(&capture, seen, sizeof seen);
    capture_end(&capture);
    snprintf(wanted, sizeof wanted, "weft[%d] warn: 3 of 4\n", (int)getpid());
    assert_string_equal(seen, wanted);
    assert_int_equal(error, EBUSY);
}

static void test_a_long_line_is_cut_and_ends(void **state)
{
    (void)state;
    char text[4096];
    char seen[8192];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    stderr_capture capture = capture_begin();
    wefti_log(WEFTI_LOG_ERROR, "%s", text);
    capture_next(&capture, seen, sizeof seen);
    capture_end(&capture);
    assert_true(strlen(seen) > 512);
    assert_int_equal(seen[strlen(seen) - 1], '\n');
    assert_ptr_equal(strchr(seen, '\n'), seen + strlen(seen) - 1);
}

/* The number of levels, of error, warn, info and debug, that are shown with this WEFT_LOG. */
static int count_shown(const char *word)
{
    char seen[256];
    int shown = 0;
    stderr_capture capture = capture_begin();
    setenv("WEFT_LOG", word, 1);
    wefti_log_read();
    for (int level = WEFTI_LOG_ERROR; level <= WEFTI_LOG_DEBUG; level++) {
        wefti_log((wefti_log_level)level, "level");
        capture_next(&capture, seen, sizeof seen);
        shown += seen[0] != '\0';
    }
    unsetenv("WEFT_LOG");
    wefti_log_read();
    capture_end(&capture);
    return shown;
}

static void test_levels(void **state)
{
    (void)state;
    assert_int_equal(count_shown("none"), 0);
    assert_int_equal(count_shown("error"), 1);
    assert_int_equal(count_shown("warn"), 2);
    assert_int_equal(count_shown("info"), 3);
    assert_int_equal(count_shown("debug"), 4);
    assert_int_equal(count_shown(""), 2);
    assert_int_equal(count_shown("loud"), 2);
    setenv("WEFT_LOG_ERRORS", "0", 1);
    assert_int_equal(count_shown("none"), 0);
    assert_int_equal(count_shown("warn"), 1);
    assert_int_equal(count_shown("debug"), 3);
    setenv("WEFT_LOG_ERRORS", "1", 1);
    assert_int_equal(count_shown("warn"), 2);
    unsetenv("WEFT_LOG_ERRORS");
}

static void test_an_error_is_logged_once(void **state)
{
    (void)state;
    char seen[256];
    stderr_capture capture = capture_begin();
    (void)wefti_error(WEFT_ERR_RANGE, "decided here");
    capture_next(&capture, seen, sizeof seen);
    char more[256];
    (void)wefti_error_context(WEFT_ERR_RANGE, "above");
    (void)wefti_error_relay(WEFT_ERR_RANGE, "from afar");
    capture_next(&capture, more, sizeof more);
    capture_end(&capture);
    assert_non_null(strstr(seen, "error: decided here (WEFT_ERR_RANGE)\n"));
    assert_string_equal(more, "");
}

/* A thread's first line reads the variable; later ones do not, until it is read again. */
static void *count_lines(void *shown)
{
    char seen[256];
    stderr_capture capture = capture_begin();
    for (int line = 0; line < 2; line++) {
        wefti_log(WEFTI_LOG_INFO, "line");
        capture_next(&capture, seen, sizeof seen);
        ((int *)shown)[line] = seen[0] != '\0';
        setenv("WEFT_LOG", line == 0 ? "none" : "info", 1);
    }
    capture_end(&capture);
    return NULL;
}

static void test_a_line_reads_no_variable(void **state)
{
    (void)state;
    pthread_t thread;
    int shown[2] = {7, 7};
    setenv("WEFT_LOG", "info", 1);
    assert_int_equal(pthread_create(&thread, NULL, count_lines, shown), 0);
    pthread_join(thread, NULL);
    unsetenv("WEFT_LOG");
    assert_int_equal(shown[0], 1);
    assert_int_equal(shown[1], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_is_one_write),
        cmocka_unit_test(test_a_long_line_is_cut_and_ends),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_an_error_is_logged_once),
        cmocka_unit_test(test_a_line_reads_no_variable),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}

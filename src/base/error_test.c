/* Goal: a failing call leaves one text, of the thread that failed, cut and not torn when it is long.
 * Method: decide, relay and extend errors, with texts that are longer than the room and that contain the old text. */
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static int be_quiet(void **state)
{
    (void)state;
    return setenv("WEFT_LOG", "none", 1);
}

static void test_error_keeps_text_and_returns_status(void **state)
{
    (void)state;
    errno = EINTR;
    assert_int_equal(wefti_error(WEFT_ERR_RANGE, "PE %d of %d", 9, 8), WEFT_ERR_RANGE);
    assert_string_equal(weft_last_error(), "PE 9 of 8");
    assert_int_equal(errno, EINTR);
}

static void test_error_may_quote_the_last_one(void **state)
{
    (void)state;
    (void)wefti_error(WEFT_ERR_SYSTEM, "inner");
    (void)wefti_error(WEFT_ERR_SYSTEM, "outer of %s", weft_last_error());
    assert_string_equal(weft_last_error(), "outer of inner");
}

static void test_context_goes_before(void **state)
{
    (void)state;
    (void)wefti_error(WEFT_ERR_MEMORY, "no memory");
    assert_int_equal(wefti_error_context(WEFT_ERR_MEMORY, "world \"%s\"", "a"), WEFT_ERR_MEMORY);
    assert_string_equal(weft_last_error(), "world \"a\": no memory");
}

static void test_relay_takes_over(void **state)
{
    (void)state;
    assert_int_equal(wefti_error_relay(WEFT_ERR_PEER, "PE 3: 100%s"), WEFT_ERR_PEER);
    assert_string_equal(weft_last_error(), "PE 3: 100%s");
    assert_int_equal(wefti_error_relay(WEFT_ERR_PEER, weft_last_error() + 3), WEFT_ERR_PEER);
    assert_string_equal(weft_last_error(), "3: 100%s");
}

/* What a thread writes to standard error while it decides an error. */
static void read_log(char text[WEFTI_ERROR_BYTES])
{
    int ends[2];
    const int standard = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    (void)wefti_error(WEFT_ERR_SYSTEM, "of a try");
    (void)wefti_error_context(WEFT_ERR_SYSTEM, "again");
    assert_true(dup2(standard, STDERR_FILENO) >= 0);
    (void)close(standard);
    (void)close(ends[1]);
    const ssize_t bytes = read(ends[0], text, WEFTI_ERROR_BYTES - 1);
    (void)close(ends[0]);
    text[bytes > 0 ? bytes : 0] = '\0';
}

static void test_expected_errors_are_not_shown(void **state)
{
    (void)state;
    char text[WEFTI_ERROR_BYTES];
    setenv("WEFT_LOG", "warn", 1);
    wefti_log_read();
    wefti_error_expect(1);
    read_log(text);
    assert_string_equal(text, "");
    assert_string_equal(weft_last_error(), "again: of a try");
    wefti_error_expect(0);
    read_log(text);
    assert_non_null(strstr(text, "error: of a try"));
    setenv("WEFT_LOG", "none", 1);
    wefti_log_read();
}

static void test_long_texts_are_cut(void **state)
{
    (void)state;
    char text[2 * WEFTI_ERROR_BYTES];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)wefti_error(WEFT_ERR_SYSTEM, "%s", text);
    assert_int_equal(strlen(weft_last_error()), WEFTI_ERROR_BYTES - 1);
    (void)wefti_error_relay(WEFT_ERR_SYSTEM, text);
    assert_int_equal(strlen(weft_last_error()), WEFTI_ERROR_BYTES - 1);
    (void)wefti_error_context(WEFT_ERR_SYSTEM, "before");
    assert_int_equal(strlen(weft_last_error()), WEFTI_ERROR_BYTES - 1);
    assert_memory_equal(weft_last_error(), "before: xxx", 11);
    (void)wefti_error_context(WEFT_ERR_SYSTEM, "%s", text);
    assert_int_equal(strlen(weft_last_error()), WEFTI_ERROR_BYTES - 1);
}

static void *fail_elsewhere(void *argument)
{
    assert_string_equal(weft_last_error(), "");
    (void)wefti_error(WEFT_ERR_SYSTEM, "of the other thread");
    return argument;
}

static void test_text_belongs_to_the_thread(void **state)
{
    (void)state;
    pthread_t thread;
    (void)wefti_error(WEFT_ERR_SYSTEM, "of this thread");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_equal(weft_last_error(), "of this thread");
}

static void test_every_status_has_a_name_and_a_text(void **state)
{
    (void)state;
#define CHECK_STATUS(name, value, text)                                                                                \
    assert_int_equal(name, value);                                                                                     \
    assert_string_equal(weft_status_name(name), #name);                                                                \
    assert_string_equal(weft_status_text(name), text);
    WEFT_STATUS_TABLE(CHECK_STATUS)
#undef CHECK_STATUS
    assert_string_equal(weft_status_name((weft_status)-1000), "WEFT_ERR_(unknown)");
    assert_string_not_equal(weft_status_text((weft_status)7), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_keeps_text_and_returns_status),
        cmocka_unit_test(test_error_may_quote_the_last_one),
        cmocka_unit_test(test_context_goes_before),
        cmocka_unit_test(test_relay_takes_over),
        cmocka_unit_test(test_expected_errors_are_not_shown),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_text_belongs_to_the_thread),
        cmocka_unit_test(test_every_status_has_a_name_and_a_text),
    };
    return cmocka_run_group_tests_name("error", tests, be_quiet, NULL);
}

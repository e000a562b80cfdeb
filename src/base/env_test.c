/* Goal: each kind of environment variable takes exactly the forms it names, and refuses others with name, value and
 * form. Method: tables of texts and values, the limits of 64 bits among them. */
#include "base/env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define UNCHANGED UINT64_C(77)

typedef weft_status (*parser)(wefti_env_id id, uint64_t *value);

typedef struct sample {
    const char *text;
    uint64_t value;
} sample;

static int be_quiet(void **state)
{
    (void)state;
    return setenv("WEFT_LOG", "none", 1);
}

static void assert_accepts(parser parse, wefti_env_id id, const sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = UNCHANGED;
        setenv(wefti_env_entry_of(id)->name, samples[i].text, 1);
        assert_int_equal(parse(id, &value), WEFT_OK);
        assert_true(value == samples[i].value);
    }
    unsetenv(wefti_env_entry_of(id)->name);
}

static void assert_refuses(parser parse, wefti_env_id id, const char *const *texts, size_t count)
{
    const char *name = wefti_env_entry_of(id)->name;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = UNCHANGED;
        setenv(name, texts[i], 1);
        assert_int_equal(parse(id, &value), WEFT_ERR_ARGUMENT);
        assert_true(value == UNCHANGED);
        assert_non_null(strstr(weft_last_error(), name));
        assert_non_null(strstr(weft_last_error(), texts[i]));
        assert_non_null(strstr(weft_last_error(), "give "));
    }
    unsetenv(name);
}

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static void test_sizes(void **state)
{
    (void)state;
    static const sample good[] = {{"0", 0},
                                  {"1", 1},
                                  {"4096", 4096},
                                  {"3K", 3072},
                                  {"64M", UINT64_C(64) << 20},
                                  {"2g", UINT64_C(2) << 30},
                                  {"1T", UINT64_C(1) << 40},
                                  {"16777215T", UINT64_C(16777215) << 40},
                                  {"18446744073709551615", UINT64_MAX}};
    static const char *const bad[] = {
        "K", "-1", "+1", " 1", "1 ", "1.5G", "1KB", "1X", "0x10", "16777216T", "18446744073709551616"};
    assert_accepts(wefti_env_size, WEFTI_ENV_HEAP, good, COUNT_OF(good));
    assert_refuses(wefti_env_size, WEFTI_ENV_HEAP, bad, COUNT_OF(bad));
}

static void test_seconds(void **state)
{
    (void)state;
    static const sample good[] = {
        {"0", 0},           {"60", UINT64_C(60000000000)}, {"2.5", UINT64_C(2500000000)},        {"inf", UINT64_MAX},
        {"0.000000001", 1}, {"0.0000000019", 1},           {"18446744073.709551615", UINT64_MAX}};
    static const char *const bad[] = {
        ".5", "-1", "1s", "1,5", "1e3", "1.5.5", "infinity", "18446744073.709551616", "18446744074"};
    assert_accepts(wefti_env_seconds_ns, WEFTI_ENV_DEADLINE, good, COUNT_OF(good));
    assert_refuses(wefti_env_seconds_ns, WEFTI_ENV_DEADLINE, bad, COUNT_OF(bad));
}

static void test_counts(void **state)
{
    (void)state;
    static const sample good[] = {{"0", 0}, {"16", 16}, {"18446744073709551615", UINT64_MAX}};
    static const char *const bad[] = {"-3", "1K", "1.0", "many", "99999999999999999999"};
    assert_accepts(wefti_env_count, WEFTI_ENV_SPIN, good, COUNT_OF(good));
    assert_refuses(wefti_env_count, WEFTI_ENV_SPIN, bad, COUNT_OF(bad));
}

static void test_defaults(void **state)
{
    (void)state;
    uint64_t value = UNCHANGED;
    unsetenv("WEFT_DEADLINE");
    assert_int_equal(wefti_env_seconds_ns(WEFTI_ENV_DEADLINE, &value), WEFT_OK);
    assert_true(value == UINT64_C(60000000000));
    setenv("WEFT_DEADLINE", "", 1); /* empty counts as not set */
    assert_false(wefti_env_is_set(WEFTI_ENV_DEADLINE));
    assert_string_equal(wefti_env_word(WEFTI_ENV_DEADLINE), "60");
    unsetenv("WEFT_LOCAL_PE"); /* has no default */
    assert_int_equal(wefti_env_count(WEFTI_ENV_LOCAL_PE, &value), WEFT_ERR_ARGUMENT);
}

static void test_table(void **state)
{
    (void)state;
    for (int id = 0; id < WEFTI_ENV_COUNT; id++) {
        const wefti_env_entry *entry = wefti_env_entry_of((wefti_env_id)id);
        uint64_t value;
        int is_foreign = strncmp(entry->text, "set by ", 7) == 0 && strncmp(entry->text, "set by weftrun", 14) != 0;
        assert_int_equal(strncmp(entry->name, "WEFT_", 5) != 0, is_foreign);
        assert_string_not_equal(entry->text, "");
        unsetenv(strcmp(entry->name, "WEFT_LOG") == 0 ? "" : entry->name);
        if (strcmp(entry->kind, "SIZE") == 0) {
            assert_int_equal(wefti_env_size((wefti_env_id)id, &value), WEFT_OK);
        } else if (strcmp(entry->kind, "SECONDS") == 0) {
            assert_int_equal(wefti_env_seconds_ns((wefti_env_id)id, &value), WEFT_OK);
        } else if (strcmp(entry->kind, "COUNT") == 0) {
            assert_int_equal(wefti_env_count((wefti_env_id)id, &value),
                             entry->standard[0] == '\0' ? WEFT_ERR_ARGUMENT : WEFT_OK);
        } else {
            assert_string_equal(entry->kind, "WORD");
        }
    }
}

static void test_unknown(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"WEFT_DEADLNE", "WEFT_DEADLINE"},
        {"WEFT_HAEP", "WEFT_HEAP"},
        {"WEFT_HEAPMAX", "WEFT_HEAP_MAX"},
        {"WEFT_PROT", "WEFT_PORT"},
        {"WEFT_ROOT", NULL},
        {"WEFT_HOME", NULL},
        {"WEFT_", NULL},
        {"WEFT_TEST_SEED", NULL},
        {"WEFT_FAKE_GPUS", NULL},
    };
    const char *nearest = "untouched";
    for (int id = 0; id < WEFTI_ENV_COUNT; id++) {
        assert_false(wefti_env_is_unknown(wefti_env_entry_of((wefti_env_id)id)->name, &nearest));
    }
    assert_false(wefti_env_is_unknown("WEFTDEADLINE", &nearest));
    assert_false(wefti_env_is_unknown("PATH", &nearest));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(wefti_env_is_unknown(cases[i][0], &nearest));
        if (cases[i][1] == NULL) {
            assert_null(nearest);
        } else {
            assert_string_equal(nearest, cases[i][1]);
        }
    }
}

static void test_unknown_here(void **state)
{
    (void)state;
    char name[WEFTI_ENV_NAME_BYTES];
    const char *nearest;
    size_t at = 0;
    int found = 0;
    setenv("WEFT_DEADLNE", "WEFT_HAEP=1", 1);
    setenv("WEFT_a_name_of_sixty_four_bytes_or_more_is_passed_over_as_it_is_no_typing_error", "1", 1);
    while (wefti_env_next_unknown(&at, name, &nearest)) {
        found += strcmp(name, "WEFT_DEADLNE") == 0;
        assert_string_not_equal(name, "WEFT_HAEP");
        assert_true(strlen(name) < sizeof name - 1);
    }
    assert_int_equal(found, 1);
    unsetenv("WEFT_DEADLNE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),        cmocka_unit_test(test_seconds), cmocka_unit_test(test_counts),
        cmocka_unit_test(test_defaults),     cmocka_unit_test(test_table),   cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_unknown_here),
    };
    return cmocka_run_group_tests_name("env", tests, be_quiet, NULL);
}

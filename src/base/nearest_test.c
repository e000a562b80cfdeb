/* Goal: a mistyped word is told from another word. Method: tables of words, of each kind of change and of none. */
#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static const char *const names[] = {"DEADLINE", "PORT", "HEAP", "HEAP_MAX", "LOG"};
#define NAMES ((int)(sizeof names / sizeof *names))

static void assert_nearest(const char *word, const char *wanted)
{
    int nearest = wefti_nearest(word, names, NAMES, 1);
    if (wanted == NULL) {
        assert_int_equal(nearest, -1);
    } else {
        assert_true(nearest >= 0);
        assert_string_equal(names[nearest], wanted);
    }
}

static void mistyped(void **state)
{
    (void)state;
    assert_nearest("DEADLINE", "DEADLINE");
    assert_nearest("DEADLNE", "DEADLINE"); /* dropped */
    assert_nearest("DEAD_LINE", "DEADLINE"); /* added */
    assert_nearest("DEADLIME", "DEADLINE"); /* replaced */
    assert_nearest("DAEDLINE", "DEADLINE"); /* swapped */
    assert_nearest("PROT", "PORT");
    assert_nearest("HAEP", "HEAP");
    assert_nearest("HEAPMAX", "HEAP_MAX");
    assert_nearest("HEAPS", "HEAP");
    assert_nearest("LGO", "LOG");
    assert_nearest("LO", "LOG");
}

static void other_words(void **state)
{
    (void)state;
    static const char *const others[] = {"ROOT", "HOME", "DIR", "SEED", "DATE", "MACHINE", "LIBRARY", "QWERTYUIOP", ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_nearest(others[i], NULL);
    }
    char long_word[200];
    memset(long_word, 'A', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    assert_nearest(long_word, NULL);
    long_word[63] = '\0'; /* the longest that is compared */
    assert_nearest(long_word, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mistyped), cmocka_unit_test(other_words)};
    return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}

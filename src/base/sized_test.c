/* Goal: structs of older and newer headers are read as their owners meant them, and nothing else is.
 * Method: every size of a struct of three fields, with each byte set in turn; what lies beyond a struct's size is never
 * read (AddressSanitizer sees it). */
#include "base/sized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct known {
    size_t size;
    int least;
    int middle;
    uint64_t last;
} known;

static const wefti_sized form = WEFTI_SIZED_FORM(known, least, "KNOWN_INIT");

#define SIZES 64

static int be_quiet(void **state)
{
    (void)state;
    return setenv("WEFT_LOG", "none", 1);
}

/* A struct of `size` bytes, all fields 0xff, what is beyond `known` zero. */
static unsigned char *make(size_t size)
{
    unsigned char *bytes = calloc(1, size < sizeof size ? sizeof size : size);
    assert_non_null(bytes);
    memset(bytes, 0xff, size < sizeof(known) ? size : sizeof(known));
    memcpy(bytes, &size, sizeof size);
    return bytes;
}

static void sizes_of_all_versions(void **state)
{
    (void)state;
    for (size_t size = 0; size < SIZES; size++) {
        unsigned char *given = make(size);
        known copy;
        const known *read = wefti_sized_read(&form, "call", "thing", given, &copy);
        if (size < offsetof(known, middle)) {
            assert_null(read);
            assert_non_null(strstr(weft_last_error(), "the thing has a wrong size"));
            assert_non_null(strstr(weft_last_error(), "KNOWN_INIT"));
        } else {
            assert_non_null(read);
            assert_int_equal(read->least, -1);
            assert_int_equal(read->middle, size >= offsetof(known, last) ? -1 : read->middle);
            assert_true(read->last == (size >= sizeof(known) ? UINT64_MAX : read->last));
            assert_ptr_equal(read, size < sizeof(known) ? (const void *)&copy : given);
        }
        if (size == offsetof(known, middle) || size == offsetof(known, last)) {
            assert_true(read->last == 0 && read->size == sizeof copy);
        }
        free(given);
    }
}

static void fields_of_newer_headers(void **state)
{
    (void)state;
    for (size_t set = sizeof(known); set < SIZES; set++) {
        unsigned char *given = make(SIZES);
        known copy;
        char byte[32];
        given[set] = 1;
        assert_null(wefti_sized_read(&form, "call", "thing", given, &copy));
        (void)snprintf(byte, sizeof byte, "at byte %zu of its %d", set, SIZES);
        assert_non_null(strstr(weft_last_error(), byte));
        free(given);
    }
}

static void no_size_at_all(void **state)
{
    (void)state;
    const size_t sizes[] = {WEFTI_SIZED_BYTES_MAX + 1, SIZE_MAX, SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        known copy;
        assert_null(wefti_sized_read(&form, "call", "thing", &sizes[i], &copy));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_all_versions),
        cmocka_unit_test(fields_of_newer_headers),
        cmocka_unit_test(no_size_at_all),
    };
    return cmocka_run_group_tests_name("sized", tests, be_quiet, NULL);
}

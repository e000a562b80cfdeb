/* base/sized.c: structs of other versions of the headers. */
#include "base/sized.h"

#include <string.h>

#include "base/error.h"

/* The first byte beyond `bytes` that is not zero; `size` if there is none. */
static size_t find_set(const unsigned char *bytes, size_t at, size_t size)
{
    while (at < size && bytes[at] == 0) {
        at++;
    }
    return at;
}

static const void *refuse(const wefti_sized *form, const char *call, const char *what, size_t size, size_t set)
{
    if (set == 0) {
        (void)wefti_error(WEFT_ERR_ARGUMENT,
                          "%s: the %s has a wrong size: %s.size is %zu, this library's is %zu; start from %s", call,
                          what, what, size, form->bytes, form->start);
    } else {
        (void)wefti_error(
            WEFT_ERR_ARGUMENT,
            "%s: the %s has something at byte %zu of its %zu, where this library, of version %s, knows no "
            "field: its %s has %zu bytes; leave it zero, or install the library of the program's headers",
            call, what, set, size, weft_version_text(), what, form->bytes);
    }
    return NULL;
}

const void *wefti_sized_read(const wefti_sized *form, const char *call, const char *what, const void *given, void *copy)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size == form->bytes) {
        return given;
    }
    if (size < form->least_bytes || size > WEFTI_SIZED_BYTES_MAX) {
        return refuse(form, call, what, size, 0);
    }
    if (size > form->bytes) {
        size_t set = find_set(given, form->bytes, size);
        return set == size ? given : refuse(form, call, what, size, set);
    }
    memset(copy, 0, form->bytes);
    memcpy(copy, given, size);
    memcpy(copy, &form->bytes, sizeof form->bytes);
    return copy;
}

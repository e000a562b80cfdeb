/* base/sized.h: structs that callers hand in and that begin with their size, as the caller's headers know it. Fields
 * are only ever appended, and zero is the default of each. So a smaller struct, of older headers, stands for one whose
 * last fields are zero; and a larger one is understood if all that is beyond this library's fields is zero. */
#ifndef WEFTI_BASE_SIZED_H
#define WEFTI_BASE_SIZED_H

#include <stddef.h>

#include "weft/status.h"

/* What is known of one kind of such structs. */
typedef struct wefti_sized {
    size_t bytes; /* of this library's */
    size_t least_bytes; /* to the end of the last field without which nothing can be done */
    const char *start; /* what an initialised one is copied from, for messages */
} wefti_sized;

#define WEFTI_SIZED_FORM(TYPE, LAST, START)                                                                            \
    {                                                                                                                  \
        sizeof(TYPE), offsetof(TYPE, LAST) + sizeof(((TYPE *)NULL)->LAST), START                                       \
    }

#define WEFTI_SIZED_BYTES_MAX 4096 /* no version has more: what claims to be larger is no such struct */

/* `given` begins with its size and is not NULL. Returns a struct in which all of this library's fields can be read: the
 * caller's, or `copy`, of `form->bytes` bytes. Or NULL, with the error WEFT_ERR_ARGUMENT; `what` names the struct. */
const void *wefti_sized_read(const wefti_sized *form, const char *call, const char *what, const void *given,
                             void *copy);

/* The same of the variable `given`, or return from the calling function with the error. */
#define WEFTI_SIZED_TRY(form, call, what, given, copy)                                                                 \
    do {                                                                                                               \
        (given) = wefti_sized_read(form, call, what, given, copy);                                                     \
        if ((given) == NULL) {                                                                                         \
            return WEFT_ERR_ARGUMENT;                                                                                  \
        }                                                                                                              \
    } while (0)

#endif

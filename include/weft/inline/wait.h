/* inline/wait.h: the bodies of weft/wait.h. Read that one for the contracts. */
#ifndef WEFTI_INLINE_WAIT_H
#define WEFTI_INLINE_WAIT_H

#include "weft/wait.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The variables of one call. */
typedef struct wefti_words {
    const void *variables;
    size_t count;
    const int *status;
    const void *values; /* one, or one a variable */
    wefti_word_kind kind;
    weft_cmp cmp;
    int vector; /* values has one a variable */
} wefti_words;

typedef enum wefti_patience { WEFTI_LOOK_ONCE = 0, WEFTI_WAIT = 1 } wefti_patience;

WEFT_API weft_status wefti_words_all(weft_world *world, const wefti_words *words, wefti_patience patience, int *result);
WEFT_API weft_status wefti_words_any(weft_world *world, const wefti_words *words, wefti_patience patience,
                                     size_t *index);
WEFT_API weft_status wefti_words_some(weft_world *world, const wefti_words *words, wefti_patience patience,
                                      size_t *indices, size_t *found);

#define WEFTI_DEFINE_WAITS(NAME, TYPE, VECTOR, VALUE, VALUES, IS_VECTOR)                                               \
    static inline wefti_words wefti_##NAME##_words##VECTOR(const TYPE *variables, size_t count, const int *status,     \
                                                           weft_cmp cmp, const TYPE *values)                           \
    {                                                                                                                  \
        wefti_words words = {variables, count, status, values, WEFTI_WORD_KIND(TYPE), cmp, IS_VECTOR};                 \
        return words;                                                                                                  \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_wait_until_all##VECTOR(weft_world *world, const TYPE *variables,             \
                                                                 size_t count, const int *status, weft_cmp cmp, VALUE) \
    {                                                                                                                  \
        int result;                                                                                                    \
        wefti_words words = wefti_##NAME##_words##VECTOR(variables, count, status, cmp, VALUES);                       \
        return wefti_words_all(world, &words, WEFTI_WAIT, &result);                                                    \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_wait_until_any##VECTOR(                                                      \
        weft_world *world, const TYPE *variables, size_t count, const int *status, weft_cmp cmp, VALUE, size_t *index) \
    {                                                                                                                  \
        wefti_words words = wefti_##NAME##_words##VECTOR(variables, count, status, cmp, VALUES);                       \
        return wefti_words_any(world, &words, WEFTI_WAIT, index);                                                      \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_wait_until_some##VECTOR(weft_world *world, const TYPE *variables,            \
                                                                  size_t count, const int *status, weft_cmp cmp,       \
                                                                  VALUE, size_t *indices, size_t *found)               \
    {                                                                                                                  \
        wefti_words words = wefti_##NAME##_words##VECTOR(variables, count, status, cmp, VALUES);                       \
        return wefti_words_some(world, &words, WEFTI_WAIT, indices, found);                                            \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_test_all##VECTOR(weft_world *world, const TYPE *variables, size_t count,     \
                                                           const int *status, weft_cmp cmp, VALUE, int *result)        \
    {                                                                                                                  \
        wefti_words words = wefti_##NAME##_words##VECTOR(variables, count, status, cmp, VALUES);                       \
        return wefti_words_all(world, &words, WEFTI_LOOK_ONCE, result);                                                \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_test_any##VECTOR(weft_world *world, const TYPE *variables, size_t count,     \
                                                           const int *status, weft_cmp cmp, VALUE, size_t *index)      \
    {                                                                                                                  \
        wefti_words words = wefti_##NAME##_words##VECTOR(variables, count, status, cmp, VALUES);                       \
        return wefti_words_any(world, &words, WEFTI_LOOK_ONCE, index);                                                 \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_test_some##VECTOR(weft_world *world, const TYPE *variables, size_t count,    \
                                                            const int *status, weft_cmp cmp, VALUE, size_t *indices,   \
                                                            size_t *found)                                             \
    {                                                                                                                  \
        wefti_words words = wefti_##NAME##_words##VECTOR(variables, count, status, cmp, VALUES);                       \
        return wefti_words_some(world, &words, WEFTI_LOOK_ONCE, indices, found);                                       \
    }
#define WEFTI_DEFINE_WAITS_OF(NAME, TYPE)                                                                              \
    WEFTI_DEFINE_WAITS(NAME, TYPE, , TYPE value, &value, 0)                                                            \
    WEFTI_DEFINE_WAITS(NAME, TYPE, _vector, const TYPE *values, values, 1)
WEFT_INTEGER_TYPES(WEFTI_DEFINE_WAITS_OF)
#undef WEFTI_DEFINE_WAITS_OF
#undef WEFTI_DEFINE_WAITS

#ifdef __cplusplus
}
#endif
#endif

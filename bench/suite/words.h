/* suite/words.h: access to single words of PE 1 by PE 0, while PE 1 waits in a barrier. The target walks over four
 * cache lines, so that neither one word's store buffer entry nor a cache miss is what is measured. */
#ifndef SUITE_WORDS_H
#define SUITE_WORDS_H

#include "suite/face.h"

/* The loop of one operation; CALL sees f, i, at (the place of the turn's word), s and old. */
#define SUITE_WORD_BODY(NAME, CALL)                                                                                    \
    static int NAME(void *context, uint64_t count)                                                                     \
    {                                                                                                                  \
        suite *s = context;                                                                                            \
        const face f = s->face;                                                                                        \
        const int pe = s->peer;                                                                                        \
        const size_t word_bytes = tool_opaque(sizeof(long));                                                           \
        long *const words = s->words;                                                                                  \
        long *const local = s->local;                                                                                  \
        int failed = 0;                                                                                                \
        long old = 0;                                                                                                  \
        for (uint64_t i = 0; i < count; i++) {                                                                         \
            const uint64_t at = i % SUITE_WORDS;                                                                       \
            (void)at;                                                                                                  \
            failed |= CALL;                                                                                            \
            tool_compiler_barrier();                                                                                   \
            (void)tool_opaque((uint64_t)old);                                                                          \
        }                                                                                                              \
        (void)local;                                                                                                   \
        (void)word_bytes;                                                                                              \
        return failed;                                                                                                 \
    }

SUITE_WORD_BODY(suite_put, face_put(&f, &words[at], &local[at], word_bytes, pe))
SUITE_WORD_BODY(suite_put_constant, face_put(&f, &words[at], &local[at], sizeof(long), pe))
SUITE_WORD_BODY(suite_put_quiet, face_put(&f, &words[at], &local[at], word_bytes, pe) | face_quiet(&f))
SUITE_WORD_BODY(suite_p, face_p(&f, &words[at], (long)i, pe))
SUITE_WORD_BODY(suite_get, face_get(&f, &local[at], &words[at], word_bytes, pe))
SUITE_WORD_BODY(suite_g, face_g(&f, &words[at], pe, &old))
SUITE_WORD_BODY(suite_fetch_add, face_fetch_add(&f, &words[at], 1, pe, &old))
SUITE_WORD_BODY(suite_compare_swap, face_compare_swap(&f, &words[at], old, (long)i, pe, &old))
SUITE_WORD_BODY(suite_fetch, face_fetch(&f, &words[at], pe, &old))
#undef SUITE_WORD_BODY

static const struct {
    const char *name;
    tool_body body;
} suite_words[] = {
    {"put_issue", suite_put},
    {"put_constant", suite_put_constant},
    {"put_quiet", suite_put_quiet},
    {"p_issue", suite_p},
    {"get", suite_get},
    {"g", suite_g},
    {"fetch_add", suite_fetch_add},
    {"compare_swap", suite_compare_swap},
    {"fetch", suite_fetch},
};

/* Collective. */
static int suite_run_words(suite *s)
{
    int failed = 0;
    for (size_t i = 0; s->pe == 0 && i < sizeof suite_words / sizeof *suite_words; i++) {
        tool_samples samples = {0};
        failed |= tool_blocks(suite_words[i].body, s, s->options.blocks, &samples);
        suite_write(s, suite_words[i].name, NULL, sizeof(long), "ns", &samples);
    }
    return failed | face_barrier(&s->face);
}

#endif

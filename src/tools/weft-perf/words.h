/* tools/weft-perf/words.h: operations on one word, for every type that has them. */
#ifndef WEFT_PERF_WORDS_H
#define WEFT_PERF_WORDS_H

/* Define words_NAME for each type by DEFINE(NAME, TYPE, INTEGER or EXTENDED), and `words`, which takes that of the
 * case. */
#define PERF_WORDS_OF_TYPES(DEFINE, INTEGER, EXTENDED)                                                                 \
    DEFINE(int32, int32_t, INTEGER)                                                                                    \
    DEFINE(uint32, uint32_t, INTEGER)                                                                                  \
    DEFINE(int64, int64_t, INTEGER)                                                                                    \
    DEFINE(uint64, uint64_t, INTEGER)                                                                                  \
    DEFINE(float, float, EXTENDED)                                                                                     \
    DEFINE(double, double, EXTENDED)                                                                                   \
    static weft_status words(perf_pe *p, const perf_case *c, int calls)                                                \
    {                                                                                                                  \
        switch (c->dtype) {                                                                                            \
        case PERF_INT32_TYPE:                                                                                          \
            return words_int32(p, c, calls);                                                                           \
        case PERF_UINT32_TYPE:                                                                                         \
            return words_uint32(p, c, calls);                                                                          \
        case PERF_INT64_TYPE:                                                                                          \
            return words_int64(p, c, calls);                                                                           \
        case PERF_UINT64_TYPE:                                                                                         \
            return words_uint64(p, c, calls);                                                                          \
        case PERF_FLOAT_TYPE:                                                                                          \
            return words_float(p, c, calls);                                                                           \
        case PERF_DOUBLE_TYPE:                                                                                         \
            return words_double(p, c, calls);                                                                          \
        default:                                                                                                       \
            return WEFT_ERR_UNSUPPORTED;                                                                               \
        }                                                                                                              \
    }

#endif

/* faces/nvshmem/streams.c: routines on streams that are written by hand. */
#include "faces/nvshmem/binding.h"

/* A value comes back: what is on the stream is awaited, and then the host gets it. */
#define G_ON_STREAM(NAME, TYPE)                                                                                        \
    TYPE nvshmemx_##NAME##_g_on_stream(const TYPE *source, int pe, cudaStream_t cstrm)                                 \
    {                                                                                                                  \
        CHECK(wefti_nv_stream_wait(cstrm), 1);                                                                         \
        return nvshmem_##NAME##_g(source, pe);                                                                         \
    }
WEFTI_NV_RMA_TYPES(G_ON_STREAM)

/* One wait after the other holds the stream until all have come. The arrays are read now, from where the host or
 * the driver finds them, and may be used again when the call returns. */
#define WAIT_ALL_ON_STREAM(NAME, TYPE)                                                                                 \
    static weft_status NAME##_wait_all(TYPE *ivars, size_t nelems, const int *status, int cmp, const TYPE *values,     \
                                       int is_vector, cudaStream_t cstrm)                                              \
    {                                                                                                                  \
        for (size_t i = 0; i < nelems; i++) {                                                                          \
            int is_out = 0;                                                                                            \
            TYPE value = is_vector ? 0 : values[0];                                                                    \
            if (status != NULL) {                                                                                      \
                WEFT_TRY(wefti_nv_device_read(&is_out, &status[i], sizeof is_out));                                    \
            }                                                                                                          \
            if (is_vector) {                                                                                           \
                WEFT_TRY(wefti_nv_device_read(&value, &values[i], sizeof value));                                      \
            }                                                                                                          \
            if (!is_out) {                                                                                             \
                WEFT_TRY(                                                                                              \
                    wefti_wait_on_stream(WORLD, &ivars[i], WEFTI_WORD_KIND(TYPE), CMP(cmp), (uint64_t)value, cstrm));  \
            }                                                                                                          \
        }                                                                                                              \
        return WEFT_OK;                                                                                                \
    }                                                                                                                  \
    void nvshmemx_##NAME##_wait_until_all_on_stream(TYPE *ivars, size_t nelems, const int *status, int cmp,            \
                                                    TYPE cmp_value, cudaStream_t cstrm)                                \
    {                                                                                                                  \
        CHECK(NAME##_wait_all(ivars, nelems, status, cmp, &cmp_value, 0, cstrm), nelems);                              \
    }                                                                                                                  \
    void nvshmemx_##NAME##_wait_until_all_vector_on_stream(TYPE *ivars, size_t nelems, const int *status, int cmp,     \
                                                           TYPE *cmp_values, cudaStream_t cstrm)                       \
    {                                                                                                                  \
        CHECK(NAME##_wait_all(ivars, nelems, status, cmp, cmp_values, 1, cstrm), nelems);                              \
    }
WEFTI_NV_WAITS_TYPES(WAIT_ALL_ON_STREAM)

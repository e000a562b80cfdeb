/* faces/nvshmem/binding.h: what the generated functions are made of. */
#ifndef WEFTI_NVSHMEM_BINDING_H
#define WEFTI_NVSHMEM_BINDING_H

#include <string.h>
#include <weft_nvshmem_types.h>

#include "faces/nvshmem/face.h"
#include "weft/rma.h"
#include "weft/strided.h"

/* A call of weft that must succeed, unless there was nothing to do: then a NULL is no mistake. */
#define CHECK(CALL, COUNT)                                                                                             \
    do {                                                                                                               \
        weft_status check_status = (CALL);                                                                             \
        if (!LIKELY(check_status == WEFT_OK) && (COUNT) != 0) {                                                        \
            wefti_nv_latch(__func__, check_status);                                                                    \
        }                                                                                                              \
    } while (0)

/* A collective of the host: on the device heap it is one on a stream, and its end is awaited. `members` is the team. */
#define COLLECTIVE(ON_HOST, OF_DEVICE)                                                                                 \
    weft_team *const members = wefti_nv_members(team);                                                                 \
    weft_status status;                                                                                                \
    if (wefti_nvshmem.place == WEFTI_NV_DEVICE) {                                                                      \
        status = (OF_DEVICE);                                                                                          \
        status = status == WEFT_OK ? wefti_nv_stream_wait(STREAM) : status;                                            \
    } else {                                                                                                           \
        status = (ON_HOST);                                                                                            \
    }                                                                                                                  \
    return wefti_nv_result(__func__, status);

#define ON_STREAM(CALL)                                                                                                \
    weft_team *const members = wefti_nv_members(team);                                                                 \
    return wefti_nv_result(__func__, (CALL));

#define WORLD wefti_nvshmem.world
#define STREAM wefti_nvshmem.stream

/* NVSHMEM's constants as weft's, which have other values; what is none stays none. */
static inline weft_cmp wefti_nv_cmp(int cmp)
{
    return (weft_cmp)(cmp == NVSHMEM_CMP_LE ? WEFT_CMP_LE : cmp == NVSHMEM_CMP_GE ? WEFT_CMP_GE : cmp);
}
#define CMP(cmp) wefti_nv_cmp(cmp)
#define SIGNAL_OP(sig_op) ((weft_signal_op)((sig_op)-NVSHMEM_SIGNAL_SET))
_Static_assert((int)WEFT_SIGNAL_SET == 0 && (int)WEFT_SIGNAL_ADD == NVSHMEM_SIGNAL_ADD - NVSHMEM_SIGNAL_SET &&
                   (int)NVSHMEM_CMP_LT == WEFT_CMP_LT && (int)NVSHMEM_CMP_GT == WEFT_CMP_GT &&
                   (int)NVSHMEM_CMP_NE == WEFT_CMP_NE && (int)NVSHMEM_CMP_EQ == WEFT_CMP_EQ,
               "the constants that are alike");

/* The bits of a half or bfloat16, which C has no type for. */
static inline uint16_t wefti_nv_bits(const void *value)
{
    uint16_t bits;
    memcpy(&bits, value, sizeof bits);
    return bits;
}
#define SMALL(TYPE) _Generic((TYPE){0}, half : WEFT_DTYPE_FP16, __nv_bfloat16 : WEFT_DTYPE_BF16)

/* A place for a result, which is written whole or not at all. */
#define wefti_nv_here(PLACE) ((void *)(PLACE))

#endif

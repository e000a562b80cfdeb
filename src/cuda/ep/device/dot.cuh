/* cuda/ep/device/dot.cuh: dot products of rows. */
#ifndef WEFTI_CUDA_EP_DEVICE_DOT_CUH
#define WEFTI_CUDA_EP_DEVICE_DOT_CUH

#include "cuda/ep/device/arithmetic.cuh"
#include "cuda/ep/device/warp_roles.cuh"
#include "weft/protocol/dot.h"

/* <x, y>, in the order of protocol/dot.h. A warp; to all lanes. */
template <int DTYPE> EP_DEVICE float ep_dot(const unsigned char *x, const unsigned char *y, int vectors)
{
    enum { ELEMENTS = ep_type<DTYPE>::ELEMENTS, EACH = 8 / ELEMENTS };
    float sum[8] = {};
    for (int at = ep_lane() * EACH; at < vectors; at += 32 * EACH) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            float a[ELEMENTS] = {};
            float b[ELEMENTS] = {};
            if (at + i < vectors) {
                ep_type<DTYPE>::widen(((const uint4 *)x)[at + i], a);
                ep_type<DTYPE>::widen(((const uint4 *)y)[at + i], b);
#pragma unroll
                for (int j = 0; j < ELEMENTS; j++) {
                    sum[i * ELEMENTS + j] = __fmaf_rn(a[j], b[j], sum[i * ELEMENTS + j]);
                }
            }
        }
    }
    float total = wefti_dot_eight(sum);
    for (int half = 16; half > 0; half /= 2) {
        total = __fadd_rn(total, __shfl_xor_sync(~0u, total, half));
    }
    return total;
}

#endif

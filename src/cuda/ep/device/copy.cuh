/* cuda/ep/device/copy.cuh: bytes inside this GPU's memory, or from it to a peer's, by the lanes of a warp. */
#ifndef WEFTI_CUDA_EP_DEVICE_COPY_CUH
#define WEFTI_CUDA_EP_DEVICE_COPY_CUH

#include "cuda/ep/device/base.cuh"

/* Copy `bytes` bytes, a multiple of 16, inside this GPU's memory. A warp. */
EP_DEVICE void ep_copy_row(unsigned char *to, const unsigned char *from, wefti_u32 bytes)
{
    uint4 *target = (uint4 *)to;
    const uint4 *source = (const uint4 *)from;
    int count = (int)(bytes / 16);
    int i = ep_lane();
    for (; i + 96 < count; i += 128) {
        uint4 a = source[i];
        uint4 b = source[i + 32];
        uint4 c = source[i + 64];
        uint4 d = source[i + 96];
        target[i] = a;
        target[i + 32] = b;
        target[i + 64] = c;
        target[i + 96] = d;
    }
    for (; i < count; i += 32) {
        target[i] = source[i];
    }
}

/* The vectors first .. end - 1 at `from` to the addresses that `lanes` have, AT_ONCE a lane at a time. A warp. */
template <int AT_ONCE>
EP_DEVICE void ep_copy_to(wefti_u32 lanes, wefti_u64 to, const unsigned char *from, int first, int end)
{
    const uint4 *source = (const uint4 *)from;
    for (int at = first + ep_lane(); at - ep_lane() < end; at += 32 * AT_ONCE) {
        uint4 vectors[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) { /* without a condition, as in ep_include */
            vectors[i] = source[at + 32 * i < end ? at + 32 * i : end - 1];
        }
        for (wefti_u32 left = lanes; left != 0; left &= left - 1) {
            uint4 *target = (uint4 *)__shfl_sync(~0u, to, __ffs((int)left) - 1);
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                if (at + 32 * i < end) {
                    target[at + 32 * i] = vectors[i];
                }
            }
        }
    }
}

#endif

/* cuda/ep/device/layout.cuh: the two kinds of layouts as kernels know them: what differs, under its name. */
#ifndef WEFTI_CUDA_EP_DEVICE_LAYOUT_CUH
#define WEFTI_CUDA_EP_DEVICE_LAYOUT_CUH

#include "cuda/ep/device/base.cuh"

/* A row stands for all of its token's choices at a rank. */
struct ep_by_source {
    static constexpr bool ROWS_OF_CHOICES = false;
    static constexpr bool KEEPS_WEIGHTS = true;
    static constexpr bool SUMS_AT_OWNER = false;

    static __device__ __forceinline__ int record_words(int topk)
    {
        return wefti_cuda_ep_record_words(topk, 0);
    }

    /* Its own rows a rank finds where they are. */
    static __device__ __forceinline__ bool returns(int from, int to)
    {
        return from != to;
    }
    static __device__ __forceinline__ int receivers(const ep_group &group)
    {
        return group.ranks - 1;
    }
    static __device__ __forceinline__ int push_parts(int, int, wefti_u32)
    {
        return 1;
    }
};

/* A row stands for one choice. */
struct ep_by_expert {
    /* Of a dispatch: each choice has a row of its own behind those of its expert, so that all ranks' counts say which,
     * and records do. */
    static constexpr bool ROWS_OF_CHOICES = true;
    /* A route has the sum of a token's weights at each rank, by which a combine scales at the source. */
    static constexpr bool KEEPS_WEIGHTS = false;
    /* Of a combine: a token's rows at a rank are added up there, and the sum goes back. */
    static constexpr bool SUMS_AT_OWNER = true;

    /* Words of what goes with a row. */
    static __device__ __forceinline__ int record_words(int topk)
    {
        return wefti_cuda_ep_record_words(topk, 1);
    }

    /* Of a combine: whether a rank's results go to another or to itself, to how many ranks those of one go, and into
     * how many parts, each with a word of its own, those of a unit are divided. */
    static __device__ __forceinline__ bool returns(int, int)
    {
        return true;
    }
    static __device__ __forceinline__ int receivers(const ep_group &group)
    {
        return group.ranks;
    }
    static __device__ __forceinline__ int push_parts(int rows, int ranks, wefti_u32 row_bytes)
    {
        return wefti_cuda_ep_push_parts(rows, ranks, row_bytes);
    }
};

#endif

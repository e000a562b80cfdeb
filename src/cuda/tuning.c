#include "cuda/tuning.h"

#include "cuda/kernels.h"

#define THREADS 512 /* of a block */

/* The most bytes of a block (a vector, for reductions) that a way carries before the next one is faster: measured on four
 * H200s, see bench/gpu/README.md. Packed data takes twice the bytes over the link and no fence; it is handed on where one
 * PE would send all of it several times. */
static const struct {
    size_t packed;
    size_t forward; /* 0: there is no such way */
} limits[] = {
    [WEFTI_DEVICE_BROADCAST] = {.packed = 65536, .forward = 1048576},
    [WEFTI_DEVICE_FCOLLECT] = {.packed = 262144},
    [WEFTI_DEVICE_COLLECT] = {.packed = 0},
    [WEFTI_DEVICE_ALLTOALL] = {.packed = 262144},
    [WEFTI_DEVICE_ALLTOALLV] = {.packed = 0},
    [WEFTI_DEVICE_REDUCE] = {.packed = 131072, .forward = 524288},
    [WEFTI_DEVICE_REDUCE_SCATTER] = {.packed = 131072},
};

/* Plain data: enough blocks to fill the links, each with something to do. */
#define PLAIN_BYTES_A_BLOCK 16384

static size_t at_most(size_t value, size_t most)
{
    return value < most ? value : most;
}

wefti_cuda_choice wefti_cuda_choose(const weft_dev_team *team, const wefti_device_coll *coll)
{
    const size_t most = at_most(team->channel_count, (size_t)coll->blocks_max);
    const size_t others = team->pes > 1 ? (size_t)team->pes - 1 : 1;
    const size_t units = coll->bytes / WEFTI_DEV_UNIT + 1;
    wefti_cuda_choice choice = {.way = WEFTI_CUDA_PLAIN};
    size_t blocks = coll->bytes / PLAIN_BYTES_A_BLOCK + 1;
    if (coll->kind == WEFTI_DEVICE_COLLECT || coll->kind == WEFTI_DEVICE_ALLTOALLV) {
        blocks = most; /* bytes differ between members */
    } else if (coll->bytes <= limits[coll->kind].packed) {
        choice.way = WEFTI_CUDA_PACKED;
        blocks = (units * others + THREADS - 1) / THREADS;
    } else if (coll->bytes <= limits[coll->kind].forward && team->pes > 2) {
        choice.way = WEFTI_CUDA_FORWARD;
        blocks = (units + THREADS - 1) / THREADS;
    }
    choice.blocks = (int)at_most(blocks, most);
    return choice;
}

/* One proxy carries what all blocks send: few are enough to keep it busy. */
#define WIDE_BYTES_A_BLOCK 65536
#define WIDE_BLOCKS_MAX 4

wefti_cuda_choice wefti_cuda_choose_wide(const weft_dev_team *team, const wefti_device_coll *coll)
{
    const size_t most = at_most(at_most(team->channel_count, (size_t)coll->blocks_max), WIDE_BLOCKS_MAX);
    const int bytes_differ = coll->kind == WEFTI_DEVICE_COLLECT || coll->kind == WEFTI_DEVICE_ALLTOALLV;
    const int is_move = coll->kind <= WEFTI_DEVICE_ALLTOALLV; /* the kinds are in the order of wefti_wide_kind */
    return (wefti_cuda_choice){
        .way = is_move ? (int)coll->kind : WEFTI_CUDA_WIDE_REDUCE,
        .blocks = (int)(bytes_differ ? most : at_most(coll->bytes / WIDE_BYTES_A_BLOCK + 1, most)),
    };
}

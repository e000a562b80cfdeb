#include "cuda/stream/tuning.h"

#include "cuda/kernels.h"

#define THREADS 512 /* of a block */

/* Every cutoff of collectives on streams but that of the copy engines (WEFT_CUDA_COPY), and how many blocks fill the
 * links with plain data: measured on four H200s, see bench/gpu/README.md. A call of `bytes`, as wefti_device_coll
 * counts them, goes the first of these ways whose limit holds it:
 *
 *   packed   bytes <= packed_to_all / (members - 1): twice the bytes over the link, and no fence
 *   forward  bytes <= forward: packed too, and handed on, where one member would send all of it several times
 *   plain    any
 *
 * So packed broadcasts end at `forward`; `packed_to_all` says from where on they are handed on. */
static const struct {
    size_t packed_to_all; /* the most bytes that a member sends packed, to all others together; 0: never */
    size_t forward; /* the most bytes that are handed on; 0: never */
    size_t blocks;
} limits[] = {
    [WEFTI_DEVICE_BROADCAST] = {.packed_to_all = 196608, .forward = 524288, .blocks = WEFTI_DEVICE_BLOCKS_MAX},
    [WEFTI_DEVICE_FCOLLECT] = {.packed_to_all = 393216, .blocks = 16},
    [WEFTI_DEVICE_COLLECT] = {.blocks = WEFTI_DEVICE_BLOCKS_MAX},
    [WEFTI_DEVICE_ALLTOALL] = {.packed_to_all = 393216, .blocks = 16},
    [WEFTI_DEVICE_ALLTOALLV] = {.blocks = WEFTI_DEVICE_BLOCKS_MAX},
    [WEFTI_DEVICE_REDUCE] = {.packed_to_all = 393216, .forward = WEFTI_DEVICE_FORWARD_BYTES, .blocks = 16},
    [WEFTI_DEVICE_REDUCE_SCATTER] = {.packed_to_all = 393216, .blocks = 16},
};

/* Plain data: each block with something to do. */
#define PLAIN_BYTES_A_BLOCK 16384

static size_t at_most(size_t value, size_t most)
{
    return value < most ? value : most;
}

/* Two kernels of a team may be on the GPU, one of which waits for the other. */
static size_t blocks_most(const weft_dev_team *team, const wefti_device_coll *coll)
{
    return at_most(team->channel_count, coll->blocks_max > 1 ? (size_t)coll->blocks_max / 2 : 1);
}

/* Between members, so that it does not tell how many blocks there should be. */
static int bytes_differ(const wefti_device_coll *coll)
{
    return coll->kind == WEFTI_DEVICE_COLLECT || coll->kind == WEFTI_DEVICE_ALLTOALLV;
}

/* Few blocks have too little in flight where reductions load from few members, and where data is moved in small
 * words. */
static size_t plain_blocks(const weft_dev_team *team, const wefti_device_coll *coll)
{
    const int is_reduction = coll->kind == WEFTI_DEVICE_REDUCE || coll->kind == WEFTI_DEVICE_REDUCE_SCATTER;
    const int is_slow = (is_reduction && team->pes < 4) || coll->bytes % WEFTI_DEV_UNIT != 0;
    const size_t most = is_slow ? WEFTI_DEVICE_BLOCKS_MAX : limits[coll->kind].blocks;
    return at_most(coll->bytes / PLAIN_BYTES_A_BLOCK + 1, most);
}

wefti_cuda_choice wefti_cuda_choose(const weft_dev_team *team, const wefti_device_coll *coll)
{
    const size_t others = team->pes > 1 ? (size_t)team->pes - 1 : 1;
    const size_t units = coll->bytes / WEFTI_DEV_UNIT + 1;
    wefti_cuda_choice choice = {.way = WEFTI_WAY_PLAIN};
    size_t blocks = plain_blocks(team, coll);
    if (bytes_differ(coll)) {
        blocks = limits[coll->kind].blocks;
    } else if (coll->bytes <= limits[coll->kind].packed_to_all / others) {
        choice.way = WEFTI_WAY_PACKED;
        blocks = (units * others + THREADS - 1) / THREADS;
    } else if (coll->bytes <= limits[coll->kind].forward && team->pes > 1) {
        choice.way = WEFTI_WAY_FORWARD;
        blocks = (units + THREADS - 1) / THREADS;
    }
    choice.blocks = (int)at_most(blocks, blocks_most(team, coll));
    return choice;
}

/* One proxy carries what all blocks send: few are enough to keep it busy. */
#define WIDE_BYTES_A_BLOCK 65536
#define WIDE_BLOCKS_MAX 4

wefti_cuda_choice wefti_cuda_choose_wide(const weft_dev_team *team, const wefti_device_coll *coll)
{
    const size_t most = at_most(blocks_most(team, coll), WIDE_BLOCKS_MAX);
    const int is_move = coll->kind <= WEFTI_DEVICE_ALLTOALLV; /* the kinds are in the order of wefti_wide_kind */
    return (wefti_cuda_choice){
        .way = is_move ? (int)coll->kind : WEFTI_CUDA_WIDE_REDUCE,
        .blocks = (int)(bytes_differ(coll) ? most : at_most(coll->bytes / WIDE_BYTES_A_BLOCK + 1, most)),
    };
}

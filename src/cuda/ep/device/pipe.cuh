/* cuda/ep/device/pipe.cuh: rows through shared memory by a warp: the copy engine loads a piece of a row once and stores
 * it to any number of ranks, the store to rank r being lane r's.
 *
 * Of STAGES stages, STAGES - 2 are loading or loaded and 2 may still be read by stores. Every lane ends a group of
 * stores at every step, if only an empty one, so that counts of groups are counts of steps. */
#ifndef WEFTI_CUDA_EP_DEVICE_PIPE_CUH
#define WEFTI_CUDA_EP_DEVICE_PIPE_CUH

#include "cuda/ep/device/base.cuh"

#define EP_STAGES WEFTI_CUDA_EP_STAGES

typedef struct ep_pipe {
    unsigned char *stages;
    wefti_u64 *full; /* [EP_STAGES] a stage has been loaded */
    wefti_u32 stage_bytes;
    wefti_u32 loads; /* begun */
    wefti_u32 stores; /* steps stored */
} ep_pipe;

/* Shared memory of a pipe, stages first. */
EP_DEVICE wefti_u32 ep_pipe_bytes(wefti_u32 stage_bytes)
{
    return EP_STAGES * stage_bytes + WEFTI_CUDA_EP_PIPE_HEAD;
}

EP_DEVICE ep_pipe ep_pipe_open(unsigned char *shared, wefti_u32 stage_bytes)
{
    ep_pipe pipe;
    pipe.stages = shared;
    pipe.full = (wefti_u64 *)(shared + EP_STAGES * stage_bytes);
    pipe.stage_bytes = stage_bytes;
    pipe.loads = 0;
    pipe.stores = 0;
    if (ep_lane() == 0) {
        for (int i = 0; i < EP_STAGES; i++) {
            wefti_load_barrier_init(&pipe.full[i]);
        }
        wefti_load_barrier_publish();
    }
    wefti_fence_before_bulk();
    __syncwarp();
    return pipe;
}

/* Whether a load may begin before the next store. */
EP_DEVICE bool ep_pipe_has_room(const ep_pipe &pipe)
{
    return pipe.loads < pipe.stores + EP_STAGES - 2;
}

/* Begin to load a piece into a stage that nothing reads. All lanes. */
EP_DEVICE void ep_pipe_begin(ep_pipe *pipe, const unsigned char *from, wefti_u32 bytes)
{
    wefti_u32 stage = pipe->loads % EP_STAGES;
    if (ep_lane() == 0) {
        wefti_bulk_load(pipe->stages + stage * pipe->stage_bytes, from, bytes, &pipe->full[stage]);
    }
    pipe->loads++;
}

/* Begin to load a piece. All lanes, when there is room. */
EP_DEVICE void ep_pipe_load(ep_pipe *pipe, const unsigned char *from, wefti_u32 bytes)
{
    if (pipe->loads >= EP_STAGES) {
        wefti_bulk_stores_read<2>();
        __syncwarp();
    }
    ep_pipe_begin(pipe, from, bytes);
}

/* Wait for the next piece; its address in shared memory. All lanes. */
EP_DEVICE unsigned char *ep_pipe_next(ep_pipe *pipe)
{
    wefti_u32 stage = pipe->stores % EP_STAGES;
    while (!wefti_load_barrier_passed(&pipe->full[stage], pipe->stores / EP_STAGES & 1)) {
    }
    return pipe->stages + stage * pipe->stage_bytes;
}

/* The stores of the next piece have been added. All lanes. */
EP_DEVICE void ep_pipe_stored(ep_pipe *pipe)
{
    wefti_bulk_stores_commit();
    pipe->stores++;
}

/* The next piece has been read, by all lanes: of a pipe from which nothing is stored. */
EP_DEVICE void ep_pipe_read(ep_pipe *pipe)
{
    __syncwarp();
    pipe->stores++;
}

/* Whether a load may begin in such a pipe, all of whose stages but the one that is read may be loading. */
EP_DEVICE bool ep_pipe_has_stage(const ep_pipe &pipe)
{
    return pipe.loads < pipe.stores + EP_STAGES;
}

/* Wait for what has been begun, before shared memory is given up without it. */
EP_DEVICE void ep_pipe_drain(ep_pipe *pipe)
{
    while (pipe->stores < pipe->loads) {
        (void)ep_pipe_next(pipe);
        ep_pipe_stored(pipe);
    }
}

/* How a row is cut. */
typedef struct ep_cut {
    wefti_u32 row_bytes;
    wefti_u32 piece_bytes;
} ep_cut;

EP_DEVICE ep_cut ep_cut_of(wefti_u32 row_bytes, wefti_u32 stage_bytes)
{
    wefti_u32 pieces = (row_bytes + stage_bytes - 1) / stage_bytes;
    ep_cut cut = {row_bytes, ((row_bytes + pieces - 1) / pieces + 15) / 16 * 16};
    return cut;
}

/* A place in what a warp moves: every `step`-th unit, row by row, piece by piece. */
typedef struct ep_cursor {
    int unit;
    int row; /* in the unit */
    wefti_u32 at; /* bytes into the row */
} ep_cursor;

/* To the next piece; 1 when the unit, of `rows` rows, has ended. */
EP_DEVICE int ep_cursor_advance(ep_cursor *cursor, const ep_cut &cut, int rows, int step)
{
    cursor->at += cut.piece_bytes;
    if (cursor->at < cut.row_bytes) {
        return 0;
    }
    cursor->at = 0;
    if (++cursor->row < rows) {
        return 0;
    }
    cursor->row = 0;
    cursor->unit += step;
    return 1;
}

EP_DEVICE wefti_u32 ep_cursor_bytes(const ep_cursor &cursor, const ep_cut &cut)
{
    return cut.row_bytes - cursor.at < cut.piece_bytes ? cut.row_bytes - cursor.at : cut.piece_bytes;
}

#endif

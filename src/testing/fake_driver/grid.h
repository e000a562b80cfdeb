/* testing/fake_driver/grid.h: a launched grid on the CPU: each of its threads is a coroutine of the thread that
 * launches, so that warps vote and shuffle, blocks meet, and blocks wait for each other and for those of other PEs. */
#ifndef WEFTI_CUDA_FAKE_GRID_H
#define WEFTI_CUDA_FAKE_GRID_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FAKE_WARP 32

typedef struct fake_index {
    unsigned x;
    unsigned y; /* grids have one dimension */
    unsigned z;
} fake_index;

/* What the thread that runs knows of itself. */
typedef struct fake_place {
    fake_index thread;
    fake_index block;
    fake_index threads; /* of a block */
    fake_index blocks;
    unsigned char *fixed_shared; /* of the block: for what is declared __shared__ */
    unsigned char *dynamic_shared;
} fake_place;

#define FAKE_FIXED_SHARED 49152

/* Run body(args) as all threads of a grid. Returns when all have returned. */
void fake_grid_run(void (*body)(const void *args), const void *args, unsigned blocks, unsigned threads,
                   size_t shared_bytes);

/* How many kernels of this process have not returned; and `more` of them: by a program that calls its own itself. */
unsigned fake_kernels_running(void);
__attribute__((visibility("default"))) void fake_kernels_count(int more);

/* ---- by a thread of a grid ---- */

const fake_place *fake_here(void);

/* Let others run. */
void fake_pause(void);

/* Until all threads of the block have called. */
void fake_sync_block(void);

/* Until all lanes of the warp have called with the same `kind`: their values, by lane, until the next call. */
const uint64_t *fake_exchange(int kind, uint64_t value);

/* Bulk stores of a thread happen when it waits for them, and not before, as they may. */
void fake_store_add(void *to, const void *from, unsigned bytes);
void fake_stores_commit(void);
void fake_stores_wait(unsigned groups_left);

#ifdef __cplusplus
}
#endif
#endif

/* lib/kernels.h: the kernels with which tools measure what happens inside kernels; see kernels.cu. Compiled by gcc and
 * nvcc. */
#ifndef TOOL_KERNELS_H
#define TOOL_KERNELS_H

#include "weft/device/dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The compiled kernels.cu; NULL where the build had no nvcc. */
extern const unsigned char *const tool_kernels;

/* The most threads of a block in collectives that move data; elsewhere 1024. */
#define TOOL_COLLECTIVE_THREADS 512
/* Of the block that watches for counts. */
#define TOOL_WATCHING_THREADS 256

/* The arguments of each such kernel: `rounds` times `trips` calls; its time goes to ns[round]. A kernel that moves
 * data in chunks takes each from a counter and does so until none is left: chunk c goes to, or comes from, PE
 * pe + 1 + c % spread. */
typedef struct tool_kernel_args {
    weft_dev_team team; /* calls on a PE use team.world */
    wefti_u64 dest; /* symmetric */
    wefti_u64 source;
    wefti_u64 bytes; /* of a call: of a block where each member gets one */
    wefti_u64 flag; /* symmetric: 64-bit words */
    wefti_u64 first; /* the first value of the flag */
    wefti_u64 ns; /* host memory */
    wefti_u64 taken; /* local: a 32-bit counter, zero */
    wefti_u64 chunk_bytes;
    wefti_u64 table; /* alltoallv: receive offsets, send offsets, send bytes, an entry a member each */
    wefti_u32 chunks;
    wefti_u32 shared_bytes;
    wefti_i32 rounds;
    wefti_i32 trips;
    wefti_i32 spread;
    wefti_i32 peer;
    wefti_i32 root;
    wefti_i32 scope; /* reductions: a wefti_scope_kind */
} tool_kernel_args;

#ifdef __cplusplus
}
#endif
#endif

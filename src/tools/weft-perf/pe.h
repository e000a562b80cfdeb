/* weft-perf/pe.h: what one PE measures with: its world, a team of those that take part, buffers. */
#ifndef WEFT_PERF_PE_H
#define WEFT_PERF_PE_H

#include "tools/lib/gpu.h"
#include "tools/weft-perf/case.h"
#include "tools/weft-perf/options.h"
#include "weft.h"

#define PERF_FLAG_BYTES 8192

typedef struct perf_pe {
    weft_world *world;
    const perf_options *options;
    int pe;
    int pes;
    tool_gpu *gpu; /* NULL: data lie in host memory */
    weft_team *team; /* the first team_pes PEs; NULL on the others */
    int team_pes;
    size_t bytes; /* of each of */
    unsigned char *dest; /* symmetric, and */
    unsigned char *source; /* filled with what `filled` says */
    int filled; /* the type of the elements, PERF_DTYPE_COUNT for bytes; -1: nothing yet */
    uint64_t *flags; /* symmetric: PERF_FLAG_BYTES */
    uint64_t *table; /* alltoallv: receive offsets, send offsets, send bytes, an entry a member each */
    unsigned char *scratch; /* local, in reach of the GPU: a counter; at 64 a word that atomics give back */
    uint64_t *ns; /* host memory in reach of kernels: an entry a round */
    double *times; /* symmetric, on the host: an entry a round, and one more */
} perf_pe;

/* Buffers for cases of at most `bytes`. Collective. Returns 0, or 1 after saying what failed. */
int perf_pe_open(perf_pe *pe, weft_world *world, const perf_options *options, size_t bytes);
void perf_pe_close(perf_pe *pe); /* also half open; the world frees what is symmetric */

/* Make the team of the first `pes` PEs the one in use. Collective over the world. */
int perf_pe_team(perf_pe *pe, int pes);

/* Set bytes of this PE's data or flags; complete on return. */
weft_status perf_pe_fill(perf_pe *pe, void *at, unsigned char value, size_t bytes);
weft_status perf_pe_copy(perf_pe *pe, void *to, const void *from, size_t bytes);

/* Whether this PE makes calls in the case; others only stand by. */
int perf_participates(const perf_pe *pe, const perf_case *c);
int perf_peer(const perf_pe *pe);

/* Let `rounds` rounds of `calls` calls run, after a barrier each; us[round] is this PE's time of one call.
 * Collective over the world. WEFT_ERR_UNSUPPORTED, equal on all PEs: there is no such call; nothing was measured. */
weft_status perf_run(perf_pe *pe, const perf_case *c, int calls, int rounds, double *us);
weft_status perf_host_run(perf_pe *pe, const perf_case *c, int calls, int rounds, double *us);
weft_status perf_stream_run(perf_pe *pe, const perf_case *c, int calls, int rounds, double *us);
weft_status perf_kernel_run(perf_pe *pe, const perf_case *c, int calls, int rounds, double *us);

/* Of a rate: the bytes of a chunk, and how many there are. Chunk i of PE p goes to, or comes from, perf_chunk_pe. */
size_t perf_chunk_bytes(const perf_case *c);
size_t perf_chunk_count(const perf_case *c);
int perf_chunk_pe(const perf_pe *pe, const perf_case *c, int from, size_t chunk);

/* Before a case: its data in the source, poison in the destination, zero in the flags. */
weft_status perf_data_set(perf_pe *pe, const perf_case *c);
/* After `calls` calls: how many of this PE's elements or bytes are not what they must be; -1: nothing to compare. */
long perf_data_wrong(perf_pe *pe, const perf_case *c, int calls);

#endif

/* weft-ep-bench/gate.h: which experts tokens choose: a pure function of the seed, the point of the sweep and the rank,
 * so that every PE knows what all ranks send. */
#ifndef WEFT_EP_BENCH_GATE_H
#define WEFT_EP_BENCH_GATE_H

#include <stdint.h>

#include "tools/weft-ep-bench/sweep_point.h"

/* The choices of one rank's tokens: ids [tokens][topk], distinct within a token. */
void bench_gate_choose(const bench_point *point, int ranks, uint64_t seed, int rank, int32_t *ids);

/* The first expert of a rank: experts / ranks each, the first ones one more. */
int bench_gate_first_expert(const bench_point *point, int ranks, int rank);

/* Whether a token of these choices goes to a rank: once, however many of its experts are there. */
int bench_gate_goes(const bench_point *point, int ranks, const int32_t *ids, int token, int rank);

/* The rows that each rank receives, padding and all slots included: [ranks]. Returns -1 when there is no memory. */
int bench_gate_rows(const bench_point *point, int ranks, int alignment, uint64_t seed, int64_t *rows);

/* The rows that a rank's tokens are sent as: once to each rank, its own included. Negative when there is no memory. */
int64_t bench_gate_sent(const bench_point *point, int ranks, uint64_t seed, int rank);

/* The most tokens that any rank sends, counting one once for each other rank that it goes to. Negative when there is no
 * memory. */
int64_t bench_gate_most_sent(const bench_point *point, int ranks, uint64_t seed);

#endif

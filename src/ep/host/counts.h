/* ep/host/counts.h: the counts of a routing: what the sources tell, and what follows for an owner. */
#ifndef WEFTI_EP_HOST_COUNTS_H
#define WEFTI_EP_HOST_COUNTS_H

#include "ep/host/column.h"
#include "ep/host/routing.h"

/* The counts for an owner, which wefti_ep_sends_build has made; where they are direct those for all. */
const uint32_t *wefti_ep_counts_for(const weft_ep *ep, int owner, size_t *words);

/* Where counts are direct they tell the rows that this rank takes, too. */
void wefti_ep_counts_tell_limit(const weft_ep *ep, int64_t limit);

/* Put this rank's counts to `rank`; its call header, posted next, announces them. */
weft_status wefti_ep_counts_put(const weft_ep *ep, int rank);

/* Once all call headers of a call have come: the sources' counts into scratch.counts_in. */
void wefti_ep_counts_read(const weft_ep *ep, uint64_t epoch);

/* Where counts are direct: the limit that a rank has told. */
int64_t wefti_ep_counts_limit(const weft_ep *ep, int rank);

/* The column of an owner in scratch.counts_in: this rank's own or, where counts are direct, any. */
wefti_ep_column wefti_ep_counts_column(const wefti_ep_routing *route, int owner);

/* Decide on an owner's column: its verdict, but for `kept`. Of this rank's own the route's counts are set too. A column
 * that is not cut, nor overflows, is answered: its messages have become bases. */
wefti_ep_verdict wefti_ep_counts_judge(wefti_ep_routing *route, int owner, int64_t limit);

/* This rank's own column was cut, and `recount` is what the source at the cut sends: set the route's counts and
 * answer. */
void wefti_ep_counts_judge_again(wefti_ep_routing *route, int cut, const uint32_t *recount);

#endif

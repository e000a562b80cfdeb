/* ep/host/answers.h: how ranks come to know the owners' verdicts and answers. Through the owners: each judges its own
 * column and answers all sources, O(R + E) words a rank. Direct: all ranks have all counts and judge all columns alike,
 * R (R + E) words, a hop less. */
#ifndef WEFTI_EP_HOST_ANSWERS_H
#define WEFTI_EP_HOST_ANSWERS_H

#include "ep/host/call.h"
#include "ep/host/counts.h"

/* Once scratch.counts_in has the counts: the verdicts of all owners into scratch.verdicts and, of those whose columns
 * are not cut, `kept` and scratch.bases. Of one whose column is cut at this rank, scratch.bases gets what comes before
 * it. */
weft_status wefti_ep_answers_exchange(wefti_ep_routing *route, const wefti_ep_call *call, int64_t limit);

/* Then, if any column is cut: the sources at the cuts count again, and the owners answer again. All know whose, so that
 * only these wait. */
weft_status wefti_ep_answers_cut(wefti_ep_routing *route, const wefti_ep_call *call);

#endif

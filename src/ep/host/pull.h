/* ep/host/pull.h: rows back to their sources, added up: what combine and the backward of dispatch share.
 *
 * Each rank makes ready one row a received token (by expert: the sum over the token's choices here; by source: the row
 * as it is) and tells the token's source where, in its call header; each source adds up its tokens' rows, by domain and
 * in ascending rank, and tells the owners that it has read. Rows are read where they lie when the caller's are
 * symmetric.
 *
 * Where the sources have choices of their own for the call and an owner adds up by them, they come before the call
 * header; the owner then makes a source's rows ready when its header has come, and says so by its mark. */
#ifndef WEFTI_EP_HOST_PULL_H
#define WEFTI_EP_HOST_PULL_H

#include "ep/combining.h"
#include "ep/host/arithmetic.h"
#include "ep/host/call.h"
#include "ep/host/span.h"

typedef struct wefti_ep_pull {
    weft_ep *ep;
    const wefti_ep_routing *route;
    wefti_ep_call call;
    const wefti_ep_arithmetic *arithmetic;
    const wefti_ep_arithmetic *narrows; /* that of out's type, or NULL: it is in's */
    size_t hidden;
    int weighted;
    int each_once; /* a row that several choices share is added once, not once a choice */
    wefti_ep_combining combining; /* all zero: a call without weights or choices of its own, and without biases */
    uint64_t *wait_ns; /* NULL, or where waits are added up */
    int sends_choices; /* the call's own choices go to the owners, who make rows ready once they have them */
    wefti_ep_span bias[2];
    wefti_ep_span in;
    wefti_ep_span out;
    wefti_ep_span ready; /* what the sources read: in, or the group's buffer by place */
    int staged; /* ready is the group's buffer */
    int crosses; /* rows come from other domains through forwarders, which add them up */
} wefti_ep_pull;

/* Before the call begins: WEFT_ERR_UNSUPPORTED where rows would go through memory that the group has not
 * (WEFT_EP_NO_STAGING). `name`: of `in`. */
weft_status wefti_ep_pull_check(const wefti_ep_routing *route, const weft_ep_rows *in, const char *call,
                                const char *name);

/* The call has begun, and its header gets where rows are. each_once is 0, and there is no combining. */
void wefti_ep_pull_init(wefti_ep_pull *pull, const wefti_ep_routing *route, const wefti_ep_call *call,
                        const weft_ep_rows *in, const weft_ep_rows *out, int weighted);

/* Take over what else a combine does. */
void wefti_ep_pull_combining(wefti_ep_pull *pull, const wefti_ep_combining *combining);

/* Make rows ready and post the call headers. */
weft_status wefti_ep_pull_post(const wefti_ep_pull *pull);

/* Wait for all call headers. */
weft_status wefti_ep_pull_wait_headers(wefti_ep_pull *pull);

/* Then, if all calls match: all sums, once the rows are ready. */
weft_status wefti_ep_pull_sums(const wefti_ep_pull *pull);

/* When all has been read, before others are told so: *again is 1 if it is to be read once more, without ranks that have
 * given this one up, which are masked by now. In a group that does not go on by itself they end the call. */
weft_status wefti_ep_pull_verify(const wefti_ep_pull *pull, int *again);

/* The sums of the values that the owners have kept (gradients.h), to combining.values_out. */
weft_status wefti_ep_pull_values(const wefti_ep_pull *pull);

/* ---- for cross_pull.c, which is those sums where they cross between domains, and makes those of the sources that this
 * rank forwards for ---- */

weft_status wefti_ep_cross_pull(const wefti_ep_pull *pull);

/* A token's pairs in the order in which they are added, to scratch.pair_order: by domain, there by rank or by choice.
 * Returns how many they are. */
int wefti_ep_pull_order(const wefti_ep_pull *pull, int token);

/* Whether a choice of the token on the pair's rank takes part; then *weight is the sum of their weights there. */
int wefti_ep_pull_participates(const wefti_ep_pull *pull, int token, int pair, float *weight);

/* The row on `rank`, or its place, of the index-th token that this rank sent there. */
size_t wefti_ep_pull_row(const wefti_ep_pull *pull, int rank, int index);

/* Make row `at` on `rank` readable; `copy` is a private row for when it must be fetched. */
weft_status wefti_ep_pull_fetch(const wefti_ep_pull *pull, int rank, size_t at, void *copy, const void **row);

/* Let the row of a pair be row `at` of scratch, if it takes part; *added says whether. */
weft_status wefti_ep_pull_take(const wefti_ep_pull *pull, int token, int pair, size_t at, int *added);

/* Add the first `count` rows of scratch into `sum`, rounded to the rows' type. */
void wefti_ep_pull_add_domain(const wefti_ep_pull *pull, size_t count, void *sum);

/* Of the first `domains` of scratch.domain_at, and the biases, the sum: to `out`. */
void wefti_ep_pull_add_domains(const wefti_ep_pull *pull, int token, size_t domains);

/* Tell the owners that this rank has read, and wait until all have read here. */
weft_status wefti_ep_pull_end(const wefti_ep_pull *pull);

#endif

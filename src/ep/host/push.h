/* ep/host/push.h: rows from their sources to their owners: what dispatch and the backward of combine share.
 *
 * Each rank's call header says where rows go; each rank copies a token once to every rank that receives it, and says so
 * by a flag; the receiver delivers what does not lie in place yet, source by source as the flags come. In place: by
 * source where the caller's buffer is symmetric; by expert then the row of the token's first choice there. Else rows
 * are written by place in the group's buffer.
 *
 * A rank writes several times the bytes that it reads, more than caches hold when there are many tokens: it then goes
 * through its rows once for all ranks, and stores them past the caches, but for rows that are read again there. */
#ifndef WEFTI_EP_HOST_PUSH_H
#define WEFTI_EP_HOST_PUSH_H

#include "ep/host/arithmetic.h"
#include "ep/host/growth.h"
#include "ep/host/span.h"

/* One row on its way: its bytes, and its scales `step` bytes apart. */
typedef struct wefti_ep_wire {
    const unsigned char *row;
    const unsigned char *scales;
    size_t step;
} wefti_ep_wire;

typedef struct wefti_ep_push wefti_ep_push;
struct wefti_ep_push {
    weft_ep *ep;
    wefti_ep_routing *route;
    wefti_ep_call call;
    wefti_ep_word flag; /* that says that rows are there: MARK or DONE */
    wefti_ep_span in; /* the tokens of this rank */
    wefti_ep_span out; /* the rows received */
    wefti_ep_span target; /* where the other ranks write: out, or the group's buffer by place */
    int staged; /* target is the group's buffer */
    int streams; /* what this rank writes to out goes past the caches */
    /* Rows are quantised on their way, or NULL. */
    const wefti_ep_arithmetic *quantises;
    size_t hidden;
    weft_ep_scale_type scale_type;
    /* Bring a token from `source` to its rows here; `row` may be one of them. */
    void (*deliver)(const wefti_ep_push *push, int source, int place, const wefti_ep_wire *row);
    /* Before that, once for each source whose rows are there; NULL: nothing. And before rows go to a rank. */
    void (*arrived)(wefti_ep_push *push, int source);
    weft_status (*leaving)(const wefti_ep_push *push, int rank);
    /* After all its rows have been delivered; NULL: nothing. */
    weft_status (*settled)(wefti_ep_push *push, int source);
    /* Of a dispatch: the caller's arrays; and of a fresh one its choices and the rows that this rank takes. */
    weft_ep_received received;
    uint64_t *wait_ns; /* NULL, or where waits are added up */
    int is_fresh;
    int brings_weights; /* new ones, choices.weights, for the routing that there is */
    weft_ep_choices choices;
    weft_ep_rows given; /* what it was given to send */
    wefti_ep_need need; /* what it needs of the limits of the group */
    int64_t limit;
    int crosses; /* rows go to other domains through forwarders, once all call headers are there */
    /* Ranks are sent to in batches. */
    wefti_ep_arrivals arrivals;
    int batch; /* the number of the batch under way */
    int open; /* ranks in that batch */
    uint64_t last_ns; /* when the last rank of that batch came */
};

/* Before the call begins, with what the next function gets: WEFT_ERR_UNSUPPORTED where rows would go through memory
 * that the group has not (WEFT_EP_NO_STAGING). `name`: of the rows of `out`. */
weft_status wefti_ep_push_check(const weft_ep *ep, const wefti_ep_span *out, int64_t rows, int stages, const char *call,
                                const char *name);

/* Set up all but the call's own: deliver, arrived, leaving, settled, quantisation and what is of a dispatch. `rows`:
 * how many out may hold. `stages`: rows are written by place in any case. The call has begun, and its header gets where
 * rows go. */
void wefti_ep_push_init(wefti_ep_push *push, wefti_ep_routing *route, const wefti_ep_call *call,
                        const wefti_ep_span *in, const wefti_ep_span *out, int64_t rows, int stages);

/* Set the rows of padding to zero, if the plan says so. */
void wefti_ep_push_zero_padding(const wefti_ep_push *push);

weft_status wefti_ep_push_post(const wefti_ep_push *push);
/* Begin to wait for the call headers of the others; send to those that are there, without waiting; to all. In this
 * order. */
void wefti_ep_push_listen(wefti_ep_push *push);
weft_status wefti_ep_push_send_some(wefti_ep_push *push);
weft_status wefti_ep_push_send_all(wefti_ep_push *push);
/* Instead of these three when all call headers have been compared. */
weft_status wefti_ep_push_send_once(wefti_ep_push *push);

/* A token as it goes out: as it is, or quantised into the group's scratch. */
wefti_ep_wire wefti_ep_push_wire(const wefti_ep_push *push, int token);

/* The row on `rank`, whose call header is there, of the index-th token that this rank sends there: a place or a row. */
size_t wefti_ep_push_target(const wefti_ep_push *push, int rank, int index);

/* Copy row `row` to its place on `rank`. */
weft_status wefti_ep_push_place(const wefti_ep_push *push, int rank, size_t row, const wefti_ep_wire *from);

/* cross_push.c: begin to send rows to other domains, without waiting; then send the rest, and bring those that other
 * domains send through this rank to their places, until there are no more. */
weft_status wefti_ep_cross_push_begin(wefti_ep_push *push);
weft_status wefti_ep_cross_push_end(wefti_ep_push *push);

/* Deliver what comes, until all has come. */
weft_status wefti_ep_push_receive(wefti_ep_push *push);

#endif

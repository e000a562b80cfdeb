/* cuda/proxy/far.h: device memory beyond the link domain. A PE that has far PEs has a proxy: a thread that takes the
 * requests which kernels (weft/device/far.cuh) and host calls leave in two rings, and carries them out:
 *
 *   memory that the far PE's transport reaches (host memory)   by the transport itself             direct.c
 *   memory that it does not reach (device memory)              by mail to the far PE's proxy       mail.c
 *
 * whose own copies and kernels then do what is asked (apply.c). Mail is symmetric host memory: for each PE a few places
 * for its messages, and as many for its answers to this PE's. A message's number is stored last, with release; its
 * answer frees its place. Requests to one PE take effect in the order of the ring. Nothing here waits for another PE
 * but the host call that wants its answer. */
#ifndef WEFTI_CUDA_FAR_FAR_H
#define WEFTI_CUDA_FAR_FAR_H

#include "cuda/device.h"

#define WEFTI_FAR_LETTERS 4 /* messages to one PE that are under way */

typedef struct wefti_far_message {
    wefti_dev_request request;
    uint64_t number; /* counted from 1 */
    uint64_t unused[7];
} wefti_far_message;

typedef struct wefti_far_answer {
    int32_t status;
    int32_t unused;
    uint64_t old;
    uint64_t unused_old[6];
    unsigned char data[WEFTI_DEV_REQUEST_BYTES];
    uint64_t number; /* of the message */
    uint64_t unused_number[7];
} wefti_far_answer;

/* What one other PE writes here; there is one for each PE of the world. */
typedef struct wefti_far_mail {
    wefti_far_message messages[WEFTI_FAR_LETTERS];
    wefti_far_answer answers[WEFTI_FAR_LETTERS];
} wefti_far_mail;

/* The proxy's view of a ring. */
typedef struct wefti_far_ring {
    wefti_dev_ring *shared; /* pinned host memory */
    uint64_t next; /* the ticket to take next */
    uint64_t done; /* all before it have taken effect */
    uint64_t free; /* the entries of all before it can be filled again */
    unsigned char is_done[WEFTI_DEV_RING_ENTRIES];
    unsigned char is_answered[WEFTI_DEV_RING_ENTRIES]; /* the caller takes an answer, and frees the entry then */
} wefti_far_ring;

typedef struct wefti_far_asked {
    wefti_far_ring *ring;
    uint64_t ticket;
} wefti_far_asked;

/* What the proxy keeps of one far PE. */
typedef struct wefti_far_lane {
    int pe;
    int has_mail; /* 0: its device memory is mapped here, and only its host heap is far */
    wefti_transport *transport;
    uint64_t sent; /* messages to it */
    uint64_t answered;
    wefti_far_asked asked[WEFTI_FAR_LETTERS]; /* whose request each message under way carries */
    uint64_t asked_ns; /* when it was last looked for the answer to the oldest message that has none */
    uint64_t taken; /* messages from it that have been answered */
    int is_gone; /* it has ended or left the world */
} wefti_far_lane;

/* A request that the transport has and that may not have taken effect. */
typedef struct wefti_far_sent {
    wefti_far_ring *ring;
    uint64_t ticket;
    const wefti_far_lane *lane;
} wefti_far_sent;

enum { WEFTI_FAR_RING_KERNELS, WEFTI_FAR_RING_HOST, WEFTI_FAR_RINGS };

typedef struct wefti_cuda_far {
    wefti_cuda *cuda;
    wefti_far_mail *mail; /* symmetric: an entry a PE of the world; NULL: all device memory is mapped */
    wefti_far_ring rings[WEFTI_FAR_RINGS];
    wefti_far_sent sent[WEFTI_FAR_RINGS * WEFTI_DEV_RING_ENTRIES];
    size_t sent_count;
    wefti_far_lane *lanes;
    uint32_t lane_count;
    uint32_t *lane_of; /* by PE */

    wefti_os_monitor *host_lock; /* guards host_tail */
    uint64_t host_tail;

    CUstream stream; /* WEFTI_CUDA_STREAM_PROXY */
    wefti_far_answer *answer; /* pinned */
    uint64_t *old; /* pinned: where an atomic's kernel stores the value before */
    int has_sm;
    wefti_os_thread *thread; /* NULL: not started */
    int is_ending; /* atomic */
} wefti_cuda_far;

/* ---- far.c ---- */

/* Make the proxy of a device that has far PEs, and start it. Collective over the world; the same status on all. */
weft_status wefti_far_open(wefti_cuda *cuda, weft_team *team, const char *call);
/* End it, once what has been asked for is done or cannot be: local. Safe on NULL and on a half-made one. */
void wefti_far_close(wefti_cuda_far *far);

/* ---- proxy.c: the thread ---- */

void wefti_far_run(void *far);
/* Tell the PE's kernels and the host that a request which nobody waits for has failed. */
void wefti_far_latch(wefti_cuda_far *far, weft_status status, int culprit);

/* ---- ring.c: the two ends of a ring that the host has ---- */

/* The entry to take next, or NULL. */
wefti_dev_entry *wefti_far_ring_peek(const wefti_far_ring *ring);
/* It has been taken; `is_answered`: wefti_far_ring_finish will answer it. Returns its ticket. */
uint64_t wefti_far_ring_take(wefti_far_ring *ring, int is_answered);
/* What was asked has been done. `answer` NULL: nobody waits for one. */
void wefti_far_ring_finish(wefti_far_ring *ring, uint64_t ticket, const wefti_far_answer *answer, size_t bytes);
/* Tell the callers how far all is. Returns whether anything has changed. */
int wefti_far_ring_advance(wefti_far_ring *ring);

/* A call of the host: fill an entry of its ring, wait for the answer. `address` is symmetric; the request's data, which
 * is `local` of any memory of this process, is put or got. Complete on return. */
weft_status wefti_far_call(wefti_device *device, const wefti_device_request *request);
/* Wait until all that kernels have asked for so far has taken effect: what is in their ring now. */
weft_status wefti_far_settle(wefti_device *device);

/* ---- mail.c ---- */

/* Send the request to the lane's PE. 0: no place is free. */
int wefti_far_send(wefti_cuda_far *far, wefti_far_lane *lane, wefti_far_ring *ring, const wefti_dev_entry *entry);
/* Look for answers; carry out and answer messages. Each returns whether it did anything. */
int wefti_far_collect(wefti_cuda_far *far, wefti_far_lane *lane);
int wefti_far_serve(wefti_cuda_far *far, wefti_far_lane *lane);

/* ---- direct.c ---- */

/* Whether the transport reaches the request's memory by itself. */
int wefti_far_is_direct(const wefti_dev_request *request);
/* Carry it out. 0: messages of this lane are under way before it. Moves and additions to signals are only sent, so that
 * several are under way; all else waits for them. */
int wefti_far_do_direct(wefti_cuda_far *far, wefti_far_lane *lane, wefti_far_ring *ring, const wefti_dev_entry *entry);
/* Wait until those that have been sent have taken effect. Returns whether there were any. */
int wefti_far_flush(wefti_cuda_far *far);

/* ---- apply.c ---- */

/* Do on this PE's memory what is asked; the answer's old and data get what comes back. The context is current. */
weft_status wefti_far_apply(wefti_cuda_far *far, const wefti_dev_request *request, wefti_far_answer *answer);

#endif

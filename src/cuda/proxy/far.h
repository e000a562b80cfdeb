/* cuda/proxy/far.h: device memory beyond the link domain. A PE that has far PEs has a proxy: a thread that takes the
 * requests which kernels (weft/device/far.cuh) and host calls leave in two rings, and carries them out:
 *
 *   memory that the far PE's transport reaches (host memory)   by the transport itself             direct.c
 *   memory that it does not reach (device memory)              by mail to the far PE's proxy       mail.c
 *
 * whose own copies and kernels then do what is asked (serve.c, apply.c). Mail is symmetric host memory: for each PE a
 * few places for its messages, and as many for its answers to this PE's. A message's number is stored last, with
 * release; its answer frees its place. Requests to one PE take effect in the order in which they were taken from the
 * rings. Nothing here waits for another PE but the host call that wants its answer.
 *
 * A long request names the memory of its data. It is cut into messages each of which carries a chunk: the place of a
 * message has a chunk of staging memory, as has that of an answer. A put's data goes from the device into the chunk at
 * the other PE by a copy of this GPU, and from there into its device by one of that GPU; a get's the other way. Where
 * the other PE's staging memory is not mapped here the copy goes into this PE's own, and the transport takes it on. So
 * no processor copies on one host, and chunks follow one another: one is read while the one before is written.
 *
 * Copies are put on two streams, one for what this PE asks and one for what others ask of it, so that a GPU copies both
 * ways at once. Nothing waits for a copy, but for few bytes: behind it a mark is set (marks.c), at which the thread
 * looks again. */
#ifndef WEFTI_CUDA_FAR_FAR_H
#define WEFTI_CUDA_FAR_FAR_H

#include "cuda/device.h"

#define WEFTI_FAR_LETTERS 8 /* messages to one PE that are under way */
#define WEFTI_FAR_SERVED 16 /* messages of others that are being carried out */
#define WEFTI_FAR_MARKS 32 /* of a stream */

/* A chunk, and a PE's staging memory, which all PEs of the world share: with too many of them there is none, and no
 * request is long. */
#define WEFTI_FAR_CHUNK_MAX ((uint64_t)256 << 10)
#define WEFTI_FAR_CHUNK_MIN ((uint64_t)16 << 10)
#define WEFTI_FAR_STAGING_MAX ((uint64_t)32 << 20)

typedef struct wefti_far_message {
    wefti_dev_request request; /* a long one's data is in the place's chunk */
    uint64_t number; /* counted from 1 */
    uint64_t unused[7];
} wefti_far_message;

/* Of a long request of the host, its `op`: what it names is memory that the driver does not know, which a processor
 * copies. A copy of the driver's from there may wait for kernels, which may wait for this proxy. */
#define WEFTI_FAR_PLAIN_MEMORY 1

/* A message that asks for nothing, in the place of one whose data could not be read. */
#define WEFTI_FAR_REQUEST_NOTHING 0

typedef struct wefti_far_answer {
    int32_t status;
    int32_t unused;
    uint64_t old;
    uint64_t unused_old[6];
    unsigned char data[WEFTI_DEV_REQUEST_BYTES];
    uint64_t number; /* of the message */
    uint64_t unused_number[7];
} wefti_far_answer;

/* What one other PE writes here; there is one for each PE of the world. Behind all of these is the staging memory:
 * likewise for each PE the chunks of its messages, then those of its answers. Those of this PE itself, to which it
 * sends nothing, are where chunks wait for a transport. */
typedef struct wefti_far_mail {
    wefti_far_message messages[WEFTI_FAR_LETTERS];
    wefti_far_answer answers[WEFTI_FAR_LETTERS];
} wefti_far_mail;

enum { WEFTI_FAR_OF_MESSAGE, WEFTI_FAR_OF_ANSWER, WEFTI_FAR_CHUNK_KINDS };

/* A stream, and marks behind what has been put on it, which are passed in order. */
typedef struct wefti_far_stream {
    CUstream stream;
    CUevent events[WEFTI_FAR_MARKS];
    uint64_t set; /* marks, ever */
    uint64_t passed;
    weft_status status; /* of what is put there: a failure stays */
} wefti_far_stream;

/* A request that has been taken from a ring and that has not taken effect. */
typedef struct wefti_far_task {
    struct wefti_far_task *next; /* of its lane */
    struct wefti_far_ring *ring;
    uint64_t ticket;
    uint64_t cut; /* bytes that messages have been made of */
    int pieces; /* messages of it that are under way */
    int unread; /* of these, long puts of which the source has not been read */
    int is_whole; /* no more messages will be made of it */
    int has_answer; /* the caller has it, or none is wanted */
    int is_left; /* the caller had no time to wait for it */
    uint64_t mark; /* the last of its copies */
    weft_status status; /* the first failure */
} wefti_far_task;

/* The proxy's view of a ring. */
typedef struct wefti_far_ring {
    wefti_dev_ring *shared; /* pinned host memory */
    uint64_t next; /* the ticket to take next */
    uint64_t done; /* all before it have taken effect */
    uint64_t free; /* the entries of all before it can be filled again */
    unsigned char is_done[WEFTI_DEV_RING_ENTRIES];
    unsigned char is_answered[WEFTI_DEV_RING_ENTRIES]; /* the caller takes an answer, and frees the entry then */
    wefti_far_task tasks[WEFTI_DEV_RING_ENTRIES];
} wefti_far_ring;

/* A message to a far PE that is under way, by its place. */
typedef struct wefti_far_asked {
    wefti_far_task *task;
    uint64_t at; /* of a long one, the bytes of the request before those of this chunk, and these */
    uint64_t bytes; /* 0: it is not long */
    uint64_t mark; /* of the stream `asking`: its copy from or to this PE's memory; 0: none */
    int is_put;
    int is_unread;
    int loan; /* the chunk of this PE's own by which it goes; -1: none */
    weft_status status;
} wefti_far_asked;

/* What the proxy keeps of one far PE. */
typedef struct wefti_far_lane {
    int pe;
    int has_mail; /* 0: its device memory is mapped here, and only its host heap is far */
    int is_mapped; /* copies of this GPU reach its staging memory */
    wefti_transport *transport;
    wefti_far_task *first; /* the requests that have been taken and that messages have not been made of, in order */
    wefti_far_task *last;
    uint64_t made; /* messages to it that have a place */
    uint64_t sent; /* of these, those that have gone: a chunk goes once it has been read */
    uint64_t received; /* of these, those whose answer is here */
    uint64_t over; /* of these, those whose places are free again */
    wefti_far_asked asked[WEFTI_FAR_LETTERS];
    uint64_t asked_ns; /* when it was last looked for the answer to the oldest message that has none */
    uint64_t taken; /* messages from it that have been carried out, or are being */
    weft_status gone; /* not WEFT_OK: it has ended or left the world, or the transport fails: nothing more is sent */
} wefti_far_lane;

/* A message of another PE that is being carried out. */
typedef struct wefti_far_served {
    wefti_far_lane *lane;
    uint64_t number;
    uint64_t mark; /* of the stream `asked` */
    uint64_t bytes; /* of the answer's data: in the answer, or, of a long one, in a chunk */
    int is_long;
    int loan; /* as above */
} wefti_far_served;

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
    unsigned char *staging; /* behind it */
    uint64_t chunk_bytes; /* 0: no request is long; equal on all PEs */
    unsigned loans[WEFTI_FAR_CHUNK_KINDS]; /* a bit each of this PE's own chunks: lent */
    wefti_far_ring rings[WEFTI_FAR_RINGS];
    wefti_far_sent sent[WEFTI_FAR_RINGS * WEFTI_DEV_RING_ENTRIES];
    size_t sent_count;
    wefti_far_lane *lanes;
    uint32_t lane_count;
    uint32_t *lane_of; /* by PE */

    wefti_os_monitor *host_lock; /* guards host_tail */
    uint64_t host_tail;

    wefti_far_stream asking; /* WEFTI_CUDA_STREAM_ASKING: what this PE asks of others */
    wefti_far_stream asked; /* WEFTI_CUDA_STREAM_PROXY: what others ask of it */
    wefti_far_served served[WEFTI_FAR_SERVED]; /* in the order of that stream */
    wefti_far_answer *answers; /* pinned: of each of these */
    uint64_t served_first;
    uint64_t served_end;
    uint64_t served_marked; /* those before it have their mark */
    uint64_t served_bytes; /* of the others */
    wefti_far_answer *answer; /* pinned: of a request that the transport carries out */
    int has_sm;
    wefti_os_thread *thread; /* NULL: not started */
    int is_ending; /* atomic */
} wefti_cuda_far;

/* Whether the data is not in the request, but in memory that it names. */
static inline int wefti_far_is_long(const wefti_dev_request *request)
{
    return request->kind == WEFTI_DEV_REQUEST_LONG_PUT || request->kind == WEFTI_DEV_REQUEST_LONG_GET;
}

/* ---- far.c ---- */

/* Make the proxy of a device that has far PEs, and start it. Collective over the world; the same status on all. */
weft_status wefti_far_open(wefti_cuda *cuda, weft_team *team, const char *call);
/* End its thread, once what has been asked for is done or cannot be, and give its memory back: local. Safe on NULL and
 * on a half-made one. */
void wefti_far_close(wefti_cuda_far *far);
/* How long a proxy waits for an answer before it looks whether the other PE is gone. */
#define WEFTI_FAR_LOOK_NS UINT64_C(200000000)
/* End the thread and say that this PE leaves the world. Then give the proxies of PEs of this process that wait for it
 * time to see that, unless they leave too: once this PE gives memory back, the driver may do nothing for them before
 * all kernels of the process have ended, and theirs wait for this PE. Local; far NULL: only say it. */
void wefti_far_leave(weft_world *world, wefti_cuda_far *far);

/* ---- proxy.c: the thread ---- */

void wefti_far_run(void *far);

/* ---- latch.c ---- */

/* Tell the PE's kernels and the host that a request which nobody waits for has failed. */
void wefti_far_latch(wefti_cuda_far *far, weft_status status, int culprit);

/* ---- marks.c ---- */

weft_status wefti_far_stream_open(wefti_cuda_far *far, wefti_cuda_stream_use use, wefti_far_stream *stream);
/* Also waits for what is on it. Safe on zeroed memory. */
void wefti_far_stream_close(wefti_cuda_far *far, wefti_cuda_stream_use use, wefti_far_stream *stream);
/* Whether another mark can be set. */
int wefti_far_can_mark(const wefti_far_stream *stream);
/* Set a mark behind what is on the stream. Its number, from 1 on. */
uint64_t wefti_far_mark(wefti_cuda_far *far, wefti_far_stream *stream);
/* The same, of little that is there alone: wait for it. */
uint64_t wefti_far_mark_now(wefti_cuda_far *far, wefti_far_stream *stream);
/* Whether what was before the mark is complete, or has failed (`status` of the stream). Mark 0 always is. */
int wefti_far_has_passed(wefti_cuda_far *far, wefti_far_stream *stream, uint64_t mark);

/* ---- ring.c: the two ends of a ring that the host has ---- */

/* The entry to take next, or NULL. */
wefti_dev_entry *wefti_far_ring_peek(const wefti_far_ring *ring);
/* It has been taken; if it wants an answer, that will be given. */
wefti_far_task *wefti_far_ring_take(wefti_far_ring *ring);
wefti_dev_entry *wefti_far_ring_entry(const wefti_far_ring *ring, uint64_t ticket);
/* Give the caller the answer. */
void wefti_far_ring_answer(wefti_far_ring *ring, uint64_t ticket, const wefti_far_answer *answer, size_t bytes);
/* The caller has gone before it had its answer. */
int wefti_far_ring_is_left(const wefti_far_ring *ring, uint64_t ticket);
/* What was asked has been done. */
void wefti_far_ring_finish(wefti_far_ring *ring, uint64_t ticket);
/* Tell the callers how far all is. Returns whether anything has changed. */
int wefti_far_ring_advance(wefti_far_ring *ring);

/* A call of the host: fill an entry of its ring, wait for the answer. `address` is symmetric; the request's data, which
 * is `local` of any memory of this process, is put or got. Complete on return. */
weft_status wefti_far_call(wefti_device *device, const wefti_device_request *request);
/* Wait until all that kernels have asked for so far has taken effect: what is in their ring now. */
weft_status wefti_far_settle(wefti_device *device);

/* ---- mail.c ---- */

/* Where PE `writer` has a chunk, on any PE. */
unsigned char *wefti_far_chunk(const wefti_cuda_far *far, uint32_t writer, int kind, uint64_t place);
/* Of this PE's own chunks one that is not lent; -1: all are. */
int wefti_far_borrow(wefti_cuda_far *far, int kind);
void wefti_far_give_back(wefti_cuda_far *far, int kind, int loan); /* -1: none */
/* Where a copy of this GPU puts the chunk of this place that is for the lane's PE. */
unsigned char *wefti_far_way_out(const wefti_cuda_far *far, const wefti_far_lane *lane, int kind, uint64_t place,
                                 int loan);
/* Once that copy is complete: have the transport take it on, if need be, and then store `body` of a message or an
 * answer at `offset` of this PE's mail there, and the number behind it. */
typedef struct wefti_far_post {
    size_t offset;
    const void *body;
    size_t bytes;
    size_t number_offset;
    uint64_t number;
    int kind; /* of the chunk */
    uint64_t chunk_bytes;
    int loan;
} wefti_far_post;
weft_status wefti_far_post_to(wefti_cuda_far *far, const wefti_far_lane *lane, const wefti_far_post *post);

/* Make the messages of a request to the lane's PE. 0: there are not places for all of them yet. */
int wefti_far_make(wefti_cuda_far *far, wefti_far_lane *lane, wefti_far_task *task);
/* Send those whose data is there; look for answers. Each returns whether it did anything. */
int wefti_far_send(wefti_cuda_far *far, wefti_far_lane *lane);
int wefti_far_collect(wefti_cuda_far *far, wefti_far_lane *lane);

/* ---- serve.c ---- */

/* Take messages of the lane's PE and put what they ask for on the stream; answer those that have been carried out. Each
 * returns whether it did anything. */
int wefti_far_serve(wefti_cuda_far *far, wefti_far_lane *lane);
int wefti_far_reply(wefti_cuda_far *far);

/* ---- direct.c ---- */

/* Whether the transport reaches the request's memory by itself. */
int wefti_far_is_direct(const wefti_dev_request *request);
/* Carry it out. 0: messages of this lane are under way before it. Moves and additions to signals are only sent, so that
 * several are under way; all else waits for them. */
int wefti_far_do_direct(wefti_cuda_far *far, wefti_far_lane *lane, const wefti_far_task *task);
/* Wait until those that have been sent have taken effect. Returns whether there were any. */
int wefti_far_flush(wefti_cuda_far *far);

/* ---- apply.c ---- */

/* Put on the stream what is asked of this PE's memory; of what a get asks `data` is where it goes to, and of a put
 * where it is; answer->old gets what comes back. The context is current. */
weft_status wefti_far_apply(wefti_cuda_far *far, const wefti_dev_request *request, void *data,
                            wefti_far_answer *answer);

#endif

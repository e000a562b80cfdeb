/* transport/am/am.h: a PE's end of a network: active messages, which the target's processor applies, over a wire
 * (wire.h). All of it is behind one lock, under which the wire is called.
 *
 *   open.c       opening, closing
 *   issue.c      what this PE asks of others: the operations
 *   send.c       who may send how much, how long a call waits, which puts go in one message
 *   gets.c       gets that return before their data is here
 *   gets_state.c which of those are open
 *   rma.c        large puts and gets, which the target's processor has no part in
 *   rma_state.c  which of those are under way, and what of this PE's memory others access
 *   serve.c      what others ask of this PE
 *   progress.c   completions, and the thread that sees to them while nobody waits
 *   watch.c      which PEs are gone, by connections of its own (watch_link.c)
 *
 * Each buffer for messages belongs to one channel and is, at any time, posted to receive, being sent, or free. A
 * request is answered in the buffer in which it came, so that answering needs no memory: a PE that cannot answer takes
 * no more.
 *
 * A PE that takes nothing any more must not stop what goes to others: a peer may hold as many buffers, and as many
 * requests that wait, as are left, so that one holds half of them, two a third each, and some are left. */
#ifndef WEFTI_TRANSPORT_AM_AM_H
#define WEFTI_TRANSPORT_AM_AM_H

#include "os/os.h"
#include "transport/am/message.h"
#include "transport/am/watch.h"
#include "transport/am/wire.h"
#include "transport/transport.h"

/* Messages that can be under way at once. */
#define WEFTI_AM_REQUESTS_IN 64
#define WEFTI_AM_REQUESTS_OUT 64
#define WEFTI_AM_REPLIES_IN 32
#define WEFTI_AM_BUFFERS (WEFTI_AM_REQUESTS_IN + WEFTI_AM_REQUESTS_OUT + WEFTI_AM_REPLIES_IN)
/* Writes and reads by the network's own means that can be under way at once, and what one moves at most: little in the
 * simulator, where so a call has more of them than may be under way. */
#define WEFTI_AM_RMA_MAX 32
#ifdef WEFT_SIM
#define WEFTI_AM_RMA_BYTES ((size_t)3 << 10)
#else
#define WEFTI_AM_RMA_BYTES ((size_t)64 << 10)
#endif
/* Where the part of a slot begins that others may write; before it lie words of the PE alone. */
#define WEFTI_AM_SHARED_FROM ((uint64_t)4096)
/* At most so many registrations of this PE's memory: each covers all that there was when it was made. */
#define WEFTI_AM_RANGES_MAX 128
/* Requests that wait for replies, and how many of them may be gets for which no call waits. */
#define WEFTI_AM_WAITING_MAX 64
#define WEFTI_AM_GETS_MAX (WEFTI_AM_WAITING_MAX / 2)

typedef enum wefti_am_role {
    WEFTI_AM_REQUEST_IN, /* posted, or being served */
    WEFTI_AM_REQUEST_OUT,
    WEFTI_AM_REPLY_IN,
    WEFTI_AM_REPLY_OUT, /* a REQUEST_IN that is being sent back */
    WEFTI_AM_RMA, /* a write or a read */
} wefti_am_role;

struct wefti_am_buffer {
    void *context[WEFTI_WIRE_CONTEXT]; /* the wire's while it has the buffer; first */
    wefti_am_role role;
    uint32_t pe; /* to whom it goes */
    size_t bytes; /* of the message that is sent, or came early */
    uint64_t since_ns; /* of a buffer in which small puts are gathered: when the first came */
    wefti_am_buffer *next; /* in a list of free ones, or of those that are still to be sent */
    wefti_am_header *header; /* and the data behind it; of a write or a read: memory for its data */
    unsigned char *dest; /* of a read that is part of a get for which no call waits */
    uint64_t get; /* that get's number; 0: none, or it is over */
    uint8_t is_write; /* of a write or a read, as what follows */
    uint8_t is_left; /* its call has ended, so nobody waits for it */
    uint8_t is_done;
    uint8_t has_failed;
};

/* Memory of a PE from `first` on, counted in its slot. */
typedef struct wefti_am_range {
    uint64_t first;
    uint64_t bytes;
    wefti_wire_range at;
} wefti_am_range;

/* A request whose reply is awaited. */
typedef struct wefti_am_request {
    uint32_t number; /* 0: the place is free */
    uint32_t pe;
    uint64_t get; /* number of the get that it is part of, once it is sent, if no call waits for that; else 0 */
    int is_left; /* no call waits for it once it is sent */
    int is_done;
    weft_status status; /* once it is done */
    void *dest; /* of a get */
    uint64_t bytes;
    uint64_t value; /* an atomic's word before */
} wefti_am_request;

typedef struct wefti_am_peer {
    wefti_am_buffer *gathered; /* small puts that are still to be sent, before anything else; NULL: none */
    uint64_t put_ns; /* when a small put last went to it */
    uint64_t puts; /* puts to it that have been sent: each has its number, from 1 on */
    uint64_t puts_flushed; /* the last put that is known, by a quiet, to be in its memory, with all before it */
    uint64_t message_put; /* the last put that went as a message */
    uint64_t fenced_put; /* message_put as it was at the last fence */
    uint64_t flags; /* flags sent to it (the operation `flag`); no quiet waits for them, so they are no puts */
    uint64_t key_asked_ns; /* when it was last asked for the key of its memory; 0: never */
    struct {
        uint64_t first; /* counted in its slot */
        uint64_t bytes;
        wefti_wire_key keys[WEFTI_WIRE_RAILS_MAX];
    } range; /* of its memory; no bytes: none */
    uint32_t rma; /* writes and reads under way to it, or not yet taken by who waits for them */
    uint32_t writes; /* under way to it */
    int has_fenced_writes; /* some were at the last fence, and a write that completes has no order with them */
    uint64_t received_ns; /* when a message last came from it */
    uint32_t sending; /* buffers that go to it */
    uint32_t asked; /* requests that wait for its replies */
    uint32_t gets; /* those of them for which no call waits */
    uint32_t sent; /* requests to it */
    uint32_t taken; /* requests of it that have been served */
    uint32_t writes_sent; /* writes to it, where they are counted (WEFTI_WIRE_RMA_COUNTED) */
    uint32_t writes_taken; /* writes of it that are in this PE's memory, where they are counted */
    wefti_am_buffer *early; /* requests of it that wait for an earlier request or write of it */
    uint32_t credits; /* requests that this PE may still send it */
    uint32_t owed; /* requests of it that have been taken, which it has not been told: the credits it gets back */
    uint8_t is_known; /* its address is */
    uint8_t is_lost; /* it has left, or the wire cannot reach it any more */
    uint8_t has_left; /* it has said that it leaves: nothing that was sent to it matters any more; atomic */
    uint8_t is_silent; /* it did not answer a read_soon, and nothing came from it since */
    uint8_t is_met; /* messages have gone to it or come from it */
} wefti_am_peer;

/* Parts of gets that have failed while no call waited for them. */
typedef struct wefti_am_failures {
    uint64_t count;
    uint64_t told; /* so many had failed when a call last told of them */
    int pe; /* of the last one */
    weft_status status;
} wefti_am_failures;

/* Of the thread: for a while, or until the wire has something. */
enum wefti_am_sleep { WEFTI_AM_AWAKE, WEFTI_AM_RESTS, WEFTI_AM_SLEEPS };

struct wefti_am {
    wefti_transport_setup setup;
    wefti_os_monitor *lock;
    wefti_wire wire;
    unsigned char *memory; /* of all messages */
    wefti_am_buffer buffers[WEFTI_AM_BUFFERS];
    wefti_am_buffer *free_out; /* REQUEST_OUT */
    uint32_t free_out_count;
    wefti_am_buffer *gathering; /* all peers' small puts that are still to be sent */
    wefti_am_buffer rma[WEFTI_AM_RMA_MAX];
    wefti_am_buffer *free_rma;
    uint32_t free_rma_count;
    uint64_t rma_bytes_min; /* shorter puts and gets are messages; UINT64_MAX: all */
    wefti_am_range ranges[WEFTI_AM_RANGES_MAX];
    uint32_t range_count;
    wefti_am_buffer *unsent; /* replies that the wire did not take yet, oldest first */
    wefti_am_buffer *unposted; /* buffers that the wire did not take yet to receive into */
    wefti_am_request requests[WEFTI_AM_WAITING_MAX];
    uint32_t requests_free;
    uint32_t requests_made;
    uint32_t requests_left; /* for which no call waits */
    uint32_t reads_left; /* the same of reads */
    uint64_t gets_made; /* the number of the last get for which no call waits */
    wefti_am_failures failures;
    wefti_am_peer *peers; /* [pes] */
    wefti_watch *watch;
    wefti_os_thread *thread;
    int bell; /* a descriptor: to write to it ends the thread's sleep */
    int is_asleep; /* how the thread sleeps, a wefti_am_sleep; whoever writes to `bell` sets it to AWAKE */
    uint64_t polled_ns; /* when a call that waits last saw to completions */
    uint64_t came_ns; /* when there was last something to see to */
    uint32_t looks; /* how often calls that wait have looked for completions */
    uint32_t entering; /* callers that wait for the lock; atomic */
    int is_closing;
};

/* ---- progress.c; under the lock ---- */

/* See to what has happened. Returns 0 if there was nothing. */
int wefti_am_progress(wefti_am *am);
/* The same by a call that waits: the thread leaves completions to it meanwhile. */
int wefti_am_poll(wefti_am *am);
/* `pe` has said that it leaves. */
void wefti_am_note_left(wefti_am *am, uint32_t pe);
/* Leave the lock, let another thread run or, if sleep_ns is not 0, sleep so long or until something may have happened,
 * and enter again. Soon after something has come, more is expected: there is no sleep, and a PE that has its core for
 * itself does not let another thread run. */
void wefti_am_idle(wefti_am *am, uint64_t sleep_ns);
/* Another caller waits for the lock. */
int wefti_am_is_wanted(const wefti_am *am);
/* Let a buffer receive its next message. */
void wefti_am_post(wefti_am *am, wefti_am_buffer *buffer);
/* A request to send, or a reply. */
wefti_wire_answer wefti_am_send(wefti_am *am, wefti_am_buffer *buffer);
/* The thread has something to see to. */
void wefti_am_wake(wefti_am *am);
weft_status wefti_am_progress_start(wefti_am *am);
void wefti_am_progress_stop(wefti_am *am); /* without the lock */

/* ---- rma_state.c, and the settings of rma.c; under the lock ----
 *
 * The network writes to and reads from the heap of a PE that has told its key. What is read goes through memory of
 * this PE's own: a read that ends after its call has given up writes nothing into the caller's. */

/* WEFT_RMA_BYTES and WEFT_RMA_ORDER. */
weft_status wefti_am_rma_settings(wefti_am *am, wefti_wire_rma *wanted);
void wefti_am_rma_init(wefti_am *am, unsigned char *memory); /* of RMA_MAX * RMA_BYTES */
void wefti_am_rma_fini(wefti_am *am);
/* The widest range of this PE's heap that others can access; NULL: none. */
const wefti_am_range *wefti_am_rma_share(wefti_am *am);
/* A write or read is over; nobody needs it any more. */
void wefti_am_rma_take(wefti_am *am, wefti_am_buffer *op, int has_failed);
void wefti_am_rma_free(wefti_am *am, wefti_am_buffer *op);

/* ---- serve.c; under the lock ---- */

/* A request of `bytes` bytes has come; networks may tell of them in any order, and they are served in that in which
 * they were sent, behind the writes that are counted. Then the buffer is posted again or on its way back. */
void wefti_am_serve(wefti_am *am, wefti_am_buffer *buffer, size_t bytes);
/* A reply has come. */
void wefti_am_take_reply(wefti_am *am, const wefti_am_header *reply, size_t bytes);
/* Send the replies that had to wait, as far as the wire takes them. */
void wefti_am_send_unsent(wefti_am *am);

/* ---- send.c ---- */

/* A call that waits. */
typedef struct wefti_am_wait {
    wefti_am *am;
    uint64_t until_ns;
    int pe; /* whom it waits for */
    uint64_t idle_ns; /* since when nothing has come; 0: something just has */
    int is_silent; /* a failure is expected, and the caller's to explain */
    int has_looked; /* it looked once more after its time was over */
    /* If step_ns is not 0: time beyond step_ns that a look takes puts until_ns off, at most until last_ns, since other
     * programs had the processors here, and perhaps where the answer comes from. */
    uint64_t step_ns;
    uint64_t last_ns;
    uint64_t looked_ns; /* when it last looked; 0: not yet */
    uint64_t check_ns; /* when it asks whether the world has failed (transport.h); 0: never */
} wefti_am_wait;

#define WEFTI_AM_CHECK_NS UINT64_C(50000000) /* between two such questions */

/* A call enters and leaves the lock; leave returns `status`. */
void wefti_am_enter(wefti_am *am);
weft_status wefti_am_leave(wefti_am *am, weft_status status);

/* The rest is under the lock. */

/* The errors of a wait, with their texts if it is not silent. */
weft_status wefti_am_lost(const wefti_am_wait *now);
weft_status wefti_am_timed_out(const wefti_am_wait *now);
/* The error of a wait for room to send, which messages to other PEs may have taken. */
weft_status wefti_am_no_room(const wefti_am_wait *now);
/* One look at what has happened: WEFT_OK, or WEFT_ERR_TIMEOUT. */
weft_status wefti_am_wait_step(wefti_am_wait *now);
/* The same, for room among what PEs share. */
weft_status wefti_am_wait_for_room(wefti_am_wait *now);

/* A buffer for a message to now->pe, its header filled in but for what the call asks; submit takes it. Waits until
 * the PE may be sent more. */
weft_status wefti_am_begin(wefti_am_wait *now, wefti_am_kind kind, wefti_am_buffer **out);
/* The same with a request, whose reply close_request awaits; a get's goes to `dest`. A caller that has requests of its
 * own open asks may_ask before: requests that callers hold while they wait for more would never end. */
weft_status wefti_am_begin_request(wefti_am_wait *now, wefti_am_kind kind, void *dest, size_t bytes,
                                   wefti_am_buffer **out, wefti_am_request **request);
/* Whether a request to the PE would not wait for another caller's. */
int wefti_am_may_ask(const wefti_am *am, int pe);
/* A get for which no call waits, once it is submitted: wefti_am_leave_request is to follow then. */
weft_status wefti_am_begin_left(wefti_am_wait *now, void *dest, size_t bytes, wefti_am_buffer **out,
                                wefti_am_request **request);
/* Its place is free, and what comes for it is dropped. */
static inline void wefti_am_forget_request(wefti_am *am, wefti_am_request *request)
{
    wefti_am_peer *peer = &am->peers[request->pe];
    request->number = 0;
    peer->asked--;
    peer->gets -= request->is_left != 0;
    am->requests_left -= request->is_left != 0;
    am->requests_free++;
}
/* Hand it to the wire; if that fails, its request is closed. */
weft_status wefti_am_submit(wefti_am_wait *now, wefti_am_buffer *buffer);
/* Afterwards no reply is taken any more, however this ends. *value, unless NULL: an atomic's word before. */
weft_status wefti_am_close_request(wefti_am_wait *now, wefti_am_request *request, uint64_t *value);
/* Of a call that may block: until the deadline. */
wefti_am_wait wefti_am_wait_start(wefti_am *am, int pe);
/* A REQUEST_OUT that the wire has done with is free. */
void wefti_am_free_out(wefti_am *am, wefti_am_buffer *buffer);

/* ---- rma.c: the calls; under the lock ---- */

/* Whether these bytes of now->pe go so; asks it for the key if need be. *is_so is 0 on failure. */
weft_status wefti_am_rma_is_used(wefti_am_wait *now, uint64_t offset, size_t bytes, int *is_so);
/* The source can be reused on return; a message behind it comes behind it. */
weft_status wefti_am_rma_put(wefti_am_wait *now, uint64_t offset, const unsigned char *source, size_t bytes);
weft_status wefti_am_rma_get(wefti_am_wait *now, uint64_t offset, unsigned char *dest, size_t bytes);
/* The reads are those of get number `get`, for which no call waits. */
weft_status wefti_am_rma_begin_get(wefti_am_wait *now, uint64_t offset, unsigned char *dest, size_t bytes,
                                   uint64_t get);

/* ---- send.c: small puts that are gathered; under the lock ----
 *
 * A put of a few bytes costs a message as much as one of many. One that follows another to the same PE at once, with no
 * call that waits in between, is kept, and goes with those that follow it: before anything else goes to the PE, or when
 * somebody waits or the message is full, but at the latest after WEFTI_AM_GATHER_NS, for which the thread is woken. So
 * one that answers what the PE has waited for is not kept: the other PE waits for it, and a switch to the thread costs
 * as much as the message. */
#define WEFTI_AM_GATHER_NS UINT64_C(10000)

/* Take a put of at most WEFTI_AM_SMALL_MAX bytes, if others are being gathered or it follows one at once. *is_taken: 0
 * if it is to be sent by itself. */
weft_status wefti_am_gather(wefti_am_wait *now, uint64_t offset, const void *source, size_t bytes, int *is_taken);
/* Send what is gathered for now->pe; afterwards nothing is. A PE that is lost gets nothing. */
weft_status wefti_am_send_gathered(wefti_am_wait *now);
/* Send what was gathered before `before_ns`, as far as the wire takes it; does not wait. */
void wefti_am_try_gathered(wefti_am *am, uint64_t before_ns);

/* ---- gets_state.c: which gets, for which no call waits, are open; under the lock ----
 *
 * What comes is written to the caller's memory by whoever sees to it, and the place is free at once. What fails, or is
 * given up, gives its place back, too, and is written no more: a reply to a number that is forgotten is dropped, and a
 * read goes on into memory of this PE's own. */

/* Submitted: no call waits for it from now on. */
void wefti_am_leave_request(wefti_am_request *request, uint64_t get);
void wefti_am_leave_read(wefti_am *am, wefti_am_buffer *op, uint64_t get, unsigned char *dest, size_t bytes);
/* A read of those is over. */
void wefti_am_take_left_read(wefti_am *am, wefti_am_buffer *op, int has_failed);
/* `pe` is lost, and with it what is open there. */
void wefti_am_lose_gets(wefti_am *am, uint32_t pe);
/* What is open of the gets number `first` to `last` is given up; `status`: failures with that, unless WEFT_OK. */
void wefti_am_give_up_gets(wefti_am *am, uint64_t first, uint64_t last, weft_status status);

/* ---- gets.c: who waits for them, and who is told of failures; under the lock ---- */

/* The thread begins one, so it is told of those that fail from now on. */
void wefti_am_note_getter(const wefti_am *am);
/* Wait for all that are open, and give up those that do not end. */
weft_status wefti_am_close_gets(wefti_am_wait *now);

/* ---- open.c: the operations (transport.h) that begin and end, and those that tell ---- */

weft_status wefti_am_open(wefti_transport *transport, const wefti_transport_setup *setup, const wefti_wire_ops *wire);
void wefti_am_close(wefti_transport *transport);
int wefti_am_reaches(const wefti_transport *transport, int pe);
void wefti_am_describe(const wefti_transport *transport, char *text, size_t bytes);
wefti_transport_fate wefti_am_fate(const wefti_transport *transport, int pe);
void wefti_am_pause(wefti_transport *transport, uint64_t sleep_ns);

/* ---- issue.c: the operations (transport.h) ---- */

weft_status wefti_am_put(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes);
weft_status wefti_am_get(wefti_transport *transport, int pe, uint64_t offset, void *dest, size_t bytes);
weft_status wefti_am_get_nbi(wefti_transport *transport, int pe, uint64_t offset, void *dest, size_t bytes);
weft_status wefti_am_end_gets(wefti_transport *transport, weft_status of_quiet); /* gets.c */
weft_status wefti_am_put_signal(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes,
                                uint64_t signal_offset, uint64_t value, weft_signal_op op);
weft_status wefti_am_flag(wefti_transport *transport, int pe, uint64_t offset, uint64_t value);
weft_status wefti_am_amo(wefti_transport *transport, int pe, uint64_t offset, wefti_amo_op op, int bits, uint64_t value,
                         uint64_t cond, uint64_t *old);
weft_status wefti_am_read_soon(wefti_transport *transport, int pe, uint64_t offset, uint64_t *value);
void wefti_am_find_silent(wefti_transport *transport, const int *pes, int count);
weft_status wefti_am_fence(wefti_transport *transport);
weft_status wefti_am_quiet(wefti_transport *transport);
/* On return the puts to now->pe that went as messages, up to the one of number `put`, are in its memory. */
weft_status wefti_am_flush_messages(wefti_am_wait *now, uint64_t put);
/* WEFT_OK if `pe` answers within patience_ns, else WEFT_ERR_UNREACHABLE. Time in which other programs had this
 * machine's processors is not counted; last_ns is the end in any case. */
weft_status wefti_am_probe(wefti_am *am, int pe, uint64_t patience_ns, uint64_t last_ns);
/* Deliver what this PE has sent and tell those that it has met that it leaves; gives up at `until_ns`. */
void wefti_am_send_leave(wefti_am *am, uint64_t until_ns);

/* The operations of a transport of that name; its open calls wefti_am_open. */
#define WEFTI_AM_OPS(name_of_it, open_of_it)                                                                           \
    {                                                                                                                  \
        .name = (name_of_it), .open = (open_of_it), .close = wefti_am_close, .reaches = wefti_am_reaches,              \
        .describe = wefti_am_describe, .put = wefti_am_put, .get = wefti_am_get, .get_nbi = wefti_am_get_nbi,          \
        .end_gets = wefti_am_end_gets, .put_signal = wefti_am_put_signal, .flag = wefti_am_flag, .amo = wefti_am_amo,  \
        .pause = wefti_am_pause, .read_soon = wefti_am_read_soon, .find_silent = wefti_am_find_silent,                 \
        .fate = wefti_am_fate, .fence = wefti_am_fence, .quiet = wefti_am_quiet,                                       \
    }

#endif

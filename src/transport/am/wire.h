/* transport/am/wire.h: the seam between the protocol of messages (am.h) and what carries them between nodes. One
 * implementation a folder: `ofi`, `ucx`.
 *
 * Every call is made under the lock of the protocol, and hands over or takes back a buffer that is the wire's in
 * between: `context` of the buffer is the wire's meanwhile. What has happened the wire tells within `poll` only, by
 * wefti_am_completed, wefti_am_failed and wefti_am_lose; those may call post and send, but not poll. */
#ifndef WEFTI_TRANSPORT_AM_WIRE_H
#define WEFTI_TRANSPORT_AM_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "topo/nic_of_pe.h"
#include "weft/status.h"

typedef struct wefti_am wefti_am;
typedef struct wefti_am_buffer wefti_am_buffer;
typedef struct wefti_wire wefti_wire;

/* Messages of a channel come in the order in which they were sent, and wait for no message of the other one. */
enum { WEFTI_WIRE_REQUESTS, WEFTI_WIRE_REPLIES, WEFTI_WIRE_CHANNELS };

/* Words of a buffer that are the wire's while it has the buffer. */
#define WEFTI_WIRE_CONTEXT 8
/* Descriptors of a wire to sleep on. */
#define WEFTI_WIRE_WAKES 16
/* What a PE may have to tell the others, at most. */
#define WEFTI_WIRE_ADDRESS_BYTES_MAX 2048

/* Whether a PE may read and write another's memory by itself. */
typedef enum wefti_wire_rma {
    WEFTI_WIRE_NO_RMA,
    WEFTI_WIRE_RMA_COMPLETES, /* a write is complete when it is in the other's memory, and has no order */
    WEFTI_WIRE_RMA_COUNTED, /* the other is told of each write that is in its memory; they have no order */
    WEFTI_WIRE_RMA_ORDERED, /* what goes to a PE keeps its order, be it a request, a write or a read */
} wefti_wire_rma;

typedef enum wefti_wire_answer {
    WEFTI_WIRE_TAKEN, /* it will be completed, or fail */
    WEFTI_WIRE_AGAIN, /* not now */
    WEFTI_WIRE_LOST, /* never: the PE cannot be reached */
} wefti_wire_answer;

/* Ways by which one PE may be written to and read from at the same time. */
#define WEFTI_WIRE_RAILS_MAX 4

/* What others need for memory of a PE, one of each of its rails. */
typedef struct wefti_wire_key {
    uint64_t base; /* its first byte's address for the others */
    uint64_t key;
} wefti_wire_key;

/* The same as a PE tells others. A key that is too long for `at` each of them makes one of its own of. */
#define WEFTI_WIRE_LONG_KEY_MAX 96
typedef struct wefti_wire_told {
    wefti_wire_key at;
    uint64_t long_base;
    uint64_t long_bytes; /* 0: `at` is all */
    unsigned char long_key[WEFTI_WIRE_LONG_KEY_MAX];
} wefti_wire_told;

/* Memory that others may read and write. */
typedef struct wefti_wire_range {
    void *registration;
    wefti_wire_told told[WEFTI_WIRE_RAILS_MAX];
} wefti_wire_range;

/* What one write or read moves, and where. */
typedef struct wefti_wire_piece {
    void *local;
    void *registration; /* of the range that `local` is in; NULL: it is in the wire's own memory, or needs none */
    size_t bytes;
    const wefti_wire_key *keys; /* of a range of the other PE */
    uint64_t offset; /* in that */
} wefti_wire_piece;

typedef struct wefti_wire_wish {
    wefti_topo_pe pe; /* near which the interface is to be */
    int can_wake; /* if not, there is nothing to sleep on, which might have to be seen to at each completion */
    wefti_wire_rma rma; /* at best */
    uint64_t world; /* its key, as in messages */
    int number; /* of this PE */
    int pes;
    void *memory; /* of all buffers, and of pieces that the protocol moves */
    size_t bytes;
} wefti_wire_wish;

typedef struct wefti_wire_ops {
    size_t address_bytes; /* of what each PE tells the others, at most WEFTI_WIRE_ADDRESS_BYTES_MAX */
    /* Load the library, choose an interface and open it; `address`, zeroed, is what others need to know. May block. On
     * failure nothing is left behind: WEFT_ERR_UNREACHABLE says what was tried. */
    weft_status (*open)(wefti_wire *wire, const wefti_wire_wish *wish, void *address);
    /* Nothing more is carried, and no buffer is the wire's any more. Once, or never. */
    void (*stop)(wefti_wire *wire);
    /* Once, after stop, when what was shared has been unshared. */
    void (*close)(wefti_wire *wire);
    /* Where another PE is, before anything is sent to it; WEFT_ERR_MISMATCH if it has another network. */
    weft_status (*connect)(wefti_wire *wire, int pe, const void *mine, const void *address);
    /* The host's address on this network, which is in `address`; NULL: not known. */
    const struct sockaddr *(*host)(const void *address, struct sockaddr_storage *room);
    /* "on INTERFACE (NETWORK): why", for the transport map; and "NETWORK on INTERFACE", for errors. */
    void (*describe)(const wefti_wire *wire, char *text, size_t bytes);
    void (*name)(const wefti_wire *wire, char *text, size_t bytes);
    /* Let a buffer receive a message of the channel. Returns 0 if it is not taken now. */
    int (*post)(wefti_wire *wire, int channel, wefti_am_buffer *buffer);
    /* Send buffer->bytes bytes from buffer->header on to buffer->pe. */
    wefti_wire_answer (*send)(wefti_wire *wire, int channel, wefti_am_buffer *buffer);
    /* Write to (op->is_write) or read from memory of op->pe, by whichever rail; op is completed. NULL, as share and
     * unshare: it has no such means, and `rma` stays WEFTI_WIRE_NO_RMA. */
    wefti_wire_answer (*move)(wefti_wire *wire, wefti_am_buffer *op, const wefti_wire_piece *piece);
    /* See to what has happened on a channel, and perhaps on the other; returns 0 if there was nothing. */
    int (*poll)(wefti_wire *wire, int channel);
    /* Whether one of the wake descriptors becomes readable when there is something to see to. */
    int (*can_sleep)(wefti_wire *wire);
    /* Whether there is something to see to of which no wake descriptor tells any more, since a `poll` has taken it from
     * the network and no further. NULL: there never is. */
    int (*has_more)(const wefti_wire *wire);
    /* Let others read and write memory; whether it is taken. */
    int (*share)(wefti_wire *wire, void *memory, size_t bytes, wefti_wire_range *range);
    void (*unshare)(wefti_wire *wire, wefti_wire_range *range);
    /* Keys of memory of `pe` as that told them, for move; whether they can be had. They last until `close`. NULL: they
     * are what was told. */
    int (*learn)(wefti_wire *wire, int pe, const wefti_wire_told *told, wefti_wire_key *keys);
    /* How one names another interface, for errors. */
    const char *remedy;
    /* Of several rails, behind the words of an error, which of them has not done yet what it was to do for a PE; else
     * an empty text. NULL: it has no rails of its own. */
    void (*tell_rails)(const wefti_wire *wire, int pe, char *text, size_t bytes);
} wefti_wire_ops;

struct wefti_wire {
    const wefti_wire_ops *ops;
    wefti_am *am; /* to which it tells what has happened */
    void *state;
    wefti_wire_rma rma; /* what there is of what was wished; set by open, as what follows */
    int needs_registration; /* of the memory that is sent from */
    int wake[WEFTI_WIRE_WAKES]; /* descriptors to sleep on, once can_sleep says so */
    int wakes; /* so many */
    int sleep_ms; /* the longest sleep, where not all that comes makes them readable; -1: any */
};

/* ---- told by the wire, within poll (progress.c) ---- */

/* A message has been sent, or one of `bytes` bytes received; a write or a read is over. */
void wefti_am_completed(wefti_am *am, wefti_am_buffer *buffer, size_t bytes);
/* Whether a request of `bytes` bytes would have to wait for an earlier one of its PE; aligned as a buffer is. */
int wefti_am_is_early(const wefti_am *am, const void *request, size_t bytes);
/* What should have been sent, received, written or read has failed, and its PE is lost. A buffer that would have
 * received is posted again. */
void wefti_am_failed(wefti_am *am, wefti_am_buffer *buffer);
/* A write of `pe` is in this PE's memory (WEFTI_WIRE_RMA_COUNTED). */
void wefti_am_written(wefti_am *am, uint32_t pe);
/* `pe` cannot be reached any more: what waits for it fails. */
void wefti_am_lose(wefti_am *am, uint32_t pe);

#endif

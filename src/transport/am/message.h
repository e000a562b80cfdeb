/* transport/am/message.h: what PEs send each other. Requests go from endpoint to endpoint of requests, and replies
 * between endpoints of replies, or where they need no buffer of who takes them (transport/ofi/ring.h): a reply never
 * waits for room for requests, and who takes one sends nothing, so that floods in both directions end. Both sides are
 * the same build of the library (world/hello.h). */
#ifndef WEFTI_TRANSPORT_AM_MESSAGE_H
#define WEFTI_TRANSPORT_AM_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "transport/am/wire.h"

typedef enum wefti_am_kind {
    WEFTI_AM_PUT = 1, /* the data follows; no reply */
    WEFTI_AM_PUT_SIGNAL, /* the same, and then the signal */
    WEFTI_AM_GET, /* DATA */
    WEFTI_AM_PUTS, /* several small ones, each a wefti_am_small with its data; no reply */
    WEFTI_AM_AMO, /* DONE with the value before; no reply to request 0 */
    WEFTI_AM_FLUSH, /* DONE once everything that came before is in memory */
    WEFTI_AM_KEY, /* DATA: a wefti_am_key, for reading and writing by the network's own means */
    WEFTI_AM_LEAVE, /* no reply: the sender takes and answers nothing any more */
    WEFTI_AM_DATA,
    WEFTI_AM_DONE,
    WEFTI_AM_CREDITS, /* a reply to no request: puts have been taken */
} wefti_am_kind;

typedef struct wefti_am_header {
    uint64_t world; /* its key: messages without it are dropped */
    uint32_t from;
    uint8_t kind;
    uint8_t credits; /* in a reply: so many requests have been taken since the last one */
    uint8_t op; /* weft_signal_op or wefti_amo_op */
    uint8_t bits; /* of an atomic's word */
    uint32_t request; /* the sender's; a reply has the same */
    uint32_t number; /* of a request: so many went to this PE before */
    uint64_t offset; /* in the slot, of the data or of an atomic's word */
    uint32_t bytes; /* that follow, or that a GET asks for */
    uint32_t writes; /* of a request: so many went to this PE by the network's own means, and come before it */
    uint64_t signal_offset;
    uint64_t value;
    uint64_t cond;
} wefti_am_header;
_Static_assert(sizeof(wefti_am_header) == 64, "no padding is sent");

/* Of memory from `first` on, counted in the slot; no bytes: there is none. */
typedef struct wefti_am_key {
    uint64_t first;
    uint64_t bytes;
    wefti_wire_told told[WEFTI_WIRE_RAILS_MAX];
} wefti_am_key;

/* Of several puts in one message: where `bytes` bytes go, which follow, padded to whole words. */
typedef struct wefti_am_small {
    uint64_t offset;
    uint64_t bytes;
} wefti_am_small;
#define WEFTI_AM_SMALL_MAX 256 /* bytes of data of one of them */

static inline size_t wefti_am_small_bytes(size_t bytes)
{
    return sizeof(wefti_am_small) + ((bytes + 7) & ~(size_t)7);
}

/* With the providers' own headers a message has room in the 16 KiB up to which they copy and do not ask first. */
#define WEFTI_AM_DATA_MAX ((size_t)15 << 10)
#define WEFTI_AM_MESSAGE_MAX (sizeof(wefti_am_header) + WEFTI_AM_DATA_MAX)

/* Requests that a PE may have sent another that the other has not taken yet, LEAVE aside: it bounds what a provider
 * keeps for a PE that takes nothing, on both sides. Puts have no reply, so a message of its own says when so many
 * requests have been taken. Every reply gives at least one credit back, so that no more replies are under way, either:
 * transport/ofi/ring.h has room for so many. */
#define WEFTI_AM_CREDITS_MAX 64
#define WEFTI_AM_CREDITS_SOON (WEFTI_AM_CREDITS_MAX / 2)

#endif

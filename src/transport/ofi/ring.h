/* transport/ofi/ring.h: rings in a PE's memory into which others write short messages by the network's own means. A
 * write is not told to whom it reaches, so that nothing has to be seen to but the word that the PE looks at: a message
 * that is sent costs calls of the system at both ends beside it.
 *
 * Each other PE has a ring for each channel. A message lies at the end of its slot, before the last word, which says
 * its number and its bytes and is written last: a message is there once its number is. So a slot is written at once,
 * by one write. What is read of a slot is another's: it is bounded here, and checked as a message is.
 *
 * Nobody looks whether a slot is free, for there are more than there can be messages in a ring:
 *   - Requests: each takes a credit of its sender, which gets it back once the request has been served, and so copied
 *     out of its slot. LEAVE takes none and is the last.
 *   - Replies: each gives at least one credit back to whom it goes, those to no request too (message.h, CREDITS), and
 *     it does so when it is taken out of its slot; whoever asked has no more credits than that to be owed. */
#ifndef WEFTI_TRANSPORT_OFI_RING_H
#define WEFTI_TRANSPORT_OFI_RING_H

#include <stddef.h>
#include <stdint.h>

#include "transport/am/message.h"

#define WEFTI_RING_SLOTS (WEFTI_AM_CREDITS_MAX + 1)
#define WEFTI_RING_MESSAGE_MAX ((size_t)120)
/* The rings of this PE are looked at one by one, so there are none where it has more PEs on other nodes. */
#define WEFTI_RING_PES_MAX 32
#define WEFTI_RING_FAR_MAX 16

typedef struct wefti_ring_slot {
    _Alignas(uint64_t) unsigned char message[WEFTI_RING_MESSAGE_MAX]; /* its end is the message's */
    uint64_t last;
} wefti_ring_slot;
_Static_assert(sizeof(wefti_ring_slot) % 64 == 0, "slots share no line");
_Static_assert(WEFTI_RING_MESSAGE_MAX <= UINT8_MAX, "the last word has room for the bytes");

/* Of one PE, for one channel. */
typedef struct wefti_ring {
    wefti_ring_slot slots[WEFTI_RING_SLOTS];
} wefti_ring;

/* What is written at once. */
typedef struct wefti_ring_write {
    wefti_ring_slot slot;
    const unsigned char *from; /* in it */
    size_t bytes;
    uint64_t offset; /* in the ring, where it goes */
} wefti_ring_write;

/* The message of that number, the first 0, as it is to be written. */
void wefti_ring_pack(wefti_ring_write *write, uint64_t number, const void *message, size_t bytes);

/* The message of that number; NULL: it is not there yet. */
const void *wefti_ring_look(const wefti_ring *ring, uint64_t number, size_t *bytes);

#endif

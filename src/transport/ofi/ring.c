#include "transport/ofi/ring.h"

#include <string.h>

#include "weft/inline/rma.h"

#define WORD sizeof(uint64_t)
#define BITS_OF_BYTES 8

/* Never 0, as in memory that nobody has written to. */
static uint64_t last_word(uint64_t number, size_t bytes)
{
    return (number + 1) << BITS_OF_BYTES | bytes;
}

/* Whole words. */
static size_t room_of(size_t bytes)
{
    return (bytes + WORD - 1) / WORD * WORD;
}

void wefti_ring_pack(wefti_ring_write *write, uint64_t number, const void *message, size_t bytes)
{
    const size_t first = WEFTI_RING_MESSAGE_MAX - room_of(bytes);
    write->from = write->slot.message + first;
    write->bytes = sizeof write->slot - first;
    write->offset = number % WEFTI_RING_SLOTS * sizeof(wefti_ring_slot) + first;
    memset(write->slot.message + WEFTI_RING_MESSAGE_MAX - WORD, 0, WORD);
    memcpy(write->slot.message + first, message, bytes);
    write->slot.last = last_word(number, bytes);
}

const void *wefti_ring_look(const wefti_ring *ring, uint64_t number, size_t *bytes)
{
    const wefti_ring_slot *slot = &ring->slots[number % WEFTI_RING_SLOTS];
    const uint64_t last = wefti_ld64(&slot->last, WEFTI_ACQUIRE);
    *bytes = last & UINT8_MAX;
    if (last != last_word(number, *bytes) || *bytes > WEFTI_RING_MESSAGE_MAX) {
        return NULL;
    }
    return slot->message + WEFTI_RING_MESSAGE_MAX - room_of(*bytes);
}

/* transport/ofi/ring_reader.h: takes messages out of a PE's rings (ring.h), into buffers that are kept for that, and
 * hands them to the protocol. Under its lock. */
#ifndef WEFTI_TRANSPORT_OFI_RING_READER_H
#define WEFTI_TRANSPORT_OFI_RING_READER_H

#include "transport/am/am.h"
#include "transport/ofi/ring.h"

typedef struct wefti_ring_reader {
    wefti_ring *rings; /* [channels][pes]; NULL: none */
    int pes;
    int writers[WEFTI_RING_PES_MAX]; /* PEs that may write to them */
    int writer_count;
    uint64_t taken[WEFTI_WIRE_CHANNELS][WEFTI_RING_PES_MAX]; /* messages, of each PE */
    wefti_am_buffer *kept[WEFTI_WIRE_CHANNELS]; /* to receive into; the wire's context links them */
    int kept_count[WEFTI_WIRE_CHANNELS];
} wefti_ring_reader;

/* Memory for rings of at most WEFTI_RING_PES_MAX PEs; whether there is some. `reader` is zeroed. */
int wefti_ring_reader_init(wefti_ring_reader *reader, int pes);
/* Safe on zeroed memory. */
void wefti_ring_reader_fini(wefti_ring_reader *reader);

/* The ring of the first PE; those of the others follow. */
wefti_ring *wefti_ring_reader_rings(const wefti_ring_reader *reader, int channel);
/* `pe` may write to its rings from now on. */
void wefti_ring_reader_add(wefti_ring_reader *reader, int pe);

/* Keep a buffer, unless there are enough or nobody writes; whether it is kept. */
int wefti_ring_reader_keep(wefti_ring_reader *reader, int channel, wefti_am_buffer *buffer);

/* Hand on some of what has come on a channel (wefti_am_completed); whether there was something, and a buffer for it. A
 * request that is to wait for an earlier one, which comes as a message, waits where it is: the buffers in which such
 * requests wait could be those that the earlier one needs. */
int wefti_ring_reader_take(wefti_ring_reader *reader, wefti_am *am, int channel);
/* Whether there is a message that need not wait for another one. One that must can be taken when the other has come, of
 * which the provider tells. */
int wefti_ring_reader_has_more(const wefti_ring_reader *reader, const wefti_am *am);

#endif

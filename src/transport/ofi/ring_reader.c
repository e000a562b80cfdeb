#include "transport/ofi/ring_reader.h"

#include <string.h>

#include "base/alloc.h"

#define MESSAGES_AT_ONCE 16 /* of a PE */

/* A request may need its buffer until its answer has gone. */
static const int kept_max[WEFTI_WIRE_CHANNELS] = {[WEFTI_WIRE_REQUESTS] = 16, [WEFTI_WIRE_REPLIES] = 2};

int wefti_ring_reader_init(wefti_ring_reader *reader, int pes)
{
    reader->pes = pes;
    reader->rings =
        wefti_alloc_aligned(sizeof(wefti_ring_slot), WEFTI_WIRE_CHANNELS * (size_t)pes * sizeof *reader->rings);
    return reader->rings != NULL;
}

void wefti_ring_reader_fini(wefti_ring_reader *reader)
{
    wefti_free(reader->rings);
}

wefti_ring *wefti_ring_reader_rings(const wefti_ring_reader *reader, int channel)
{
    return reader->rings + channel * reader->pes;
}

void wefti_ring_reader_add(wefti_ring_reader *reader, int pe)
{
    reader->writers[reader->writer_count++] = pe;
}

int wefti_ring_reader_keep(wefti_ring_reader *reader, int channel, wefti_am_buffer *buffer)
{
    if (reader->writer_count == 0 || reader->kept_count[channel] == kept_max[channel]) {
        return 0;
    }
    buffer->context[0] = reader->kept[channel];
    reader->kept[channel] = buffer;
    reader->kept_count[channel]++;
    return 1;
}

/* Copy the next message of a PE, if there is one that need not wait for another. */
static int copy_next(const wefti_ring_reader *reader, const wefti_am *am, int channel, int pe, void *to, size_t *bytes)
{
    const wefti_ring *ring = wefti_ring_reader_rings(reader, channel) + pe;
    const void *message = wefti_ring_look(ring, reader->taken[channel][pe], bytes);
    if (message == NULL) {
        return 0;
    }
    memcpy(to, message, *bytes);
    return channel != WEFTI_WIRE_REQUESTS || !wefti_am_is_early(am, to, *bytes);
}

static int take_one(wefti_ring_reader *reader, wefti_am *am, int channel, int pe)
{
    wefti_am_buffer *buffer = reader->kept[channel];
    size_t bytes;
    if (buffer == NULL || !copy_next(reader, am, channel, pe, buffer->header, &bytes)) {
        return 0;
    }
    reader->kept[channel] = buffer->context[0];
    reader->kept_count[channel]--;
    reader->taken[channel][pe]++;
    wefti_am_completed(am, buffer, bytes);
    return 1;
}

int wefti_ring_reader_take(wefti_ring_reader *reader, wefti_am *am, int channel)
{
    int happened = 0;
    for (int i = 0; i < reader->writer_count; i++) {
        const int pe = reader->writers[i];
        for (int taken = 0; taken < MESSAGES_AT_ONCE && take_one(reader, am, channel, pe); taken++) {
            happened = 1;
        }
    }
    return happened;
}

int wefti_ring_reader_has_more(const wefti_ring_reader *reader, const wefti_am *am)
{
    wefti_ring_slot room;
    size_t bytes;
    for (int i = 0; i < reader->writer_count; i++) {
        const int pe = reader->writers[i];
        if (copy_next(reader, am, WEFTI_WIRE_REQUESTS, pe, &room, &bytes) ||
            copy_next(reader, am, WEFTI_WIRE_REPLIES, pe, &room, &bytes)) {
            return 1;
        }
    }
    return 0;
}

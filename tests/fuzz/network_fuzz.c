/* Goal: what comes from PEs of other nodes by the network does no harm, whatever is in it: nothing outside of the
 * slot's memory is touched, nor the word that says how much that is; an answer is not longer than a message can be, and
 * no more is counted than there are credits; a get for which no call waits is over once.
 * Method: the input is a row of messages, each with a byte that says whether it is a request or a reply and two that
 * say how long it is. All but every eighth have this world's key, as those of a PE that has gone wrong would have. Half
 * of the requests have the number whose turn it is. The slot is memory of its own, of which a part has been reserved.
 * The wire is the five functions below. */
#include <stdlib.h>
#include <string.h>

#include "transport/am/am.h"
#include "weft/protocol/layout.h"

#define WORLD UINT64_C(0x1234567890abcdef)
#define PES 3
#define RESERVED ((size_t)1 << 14)
#define GOT_BYTES 24

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

static wefti_am am;
static wefti_am_peer peers[PES];
static unsigned char got[GOT_BYTES];
static unsigned char got_later[GOT_BYTES]; /* by a get for which no call waits */

/* ---- the wire, which takes nothing, and has a key ---- */

void wefti_am_post(wefti_am *at, wefti_am_buffer *buffer)
{
    (void)at;
    buffer->role = WEFTI_AM_REQUEST_IN;
}

wefti_wire_answer wefti_am_send(wefti_am *at, wefti_am_buffer *buffer)
{
    (void)at;
    (void)buffer;
    return WEFTI_WIRE_LOST;
}

void wefti_am_lose(wefti_am *at, uint32_t pe)
{
    at->peers[pe].is_lost = 1;
}

void wefti_am_note_left(wefti_am *at, uint32_t pe)
{
    at->peers[pe].has_left = 1;
    wefti_am_lose(at, pe);
}

const wefti_am_range *wefti_am_rma_share(wefti_am *at)
{
    static const wefti_am_range all = {.first = 64, .bytes = RESERVED - 64, .at = {.told = {{.at = {.key = 5}}}}};
    return at->setup.pe == 0 ? &all : NULL;
}

/* ---- a world ---- */

static void set_up(unsigned char *slot)
{
    memset(&am, 0, sizeof am);
    memset(peers, 0, sizeof peers);
    memset(slot, 0, RESERVED);
    ((wefti_control *)(void *)slot)->reserved = RESERVED;
    am.setup.world = WORLD;
    am.setup.pe = 0;
    am.setup.pes = PES;
    am.setup.slot = slot;
    am.peers = peers;
    peers[1].is_known = 1;
    peers[2].is_known = 1;
    am.requests[1] = (wefti_am_request){.number = 1, .pe = 1, .dest = got, .bytes = sizeof got};
    am.requests[2] = (wefti_am_request){.number = 2, .pe = 2};
    am.requests[3] =
        (wefti_am_request){.number = 3, .pe = 1, .get = 1, .is_left = 1, .dest = got_later, .bytes = sizeof got_later};
    am.requests_free = WEFTI_AM_WAITING_MAX - 3;
    am.requests_left = 1;
    peers[1].asked = 2;
    peers[1].gets = 1;
    peers[2].asked = 1;
}

static void check(const wefti_am_buffer *buffer)
{
    if (buffer->bytes > WEFTI_AM_MESSAGE_MAX) {
        abort();
    }
    const uint32_t open = am.requests[3].number != 0;
    if (am.requests_left != open || peers[1].gets != open || am.requests_free + open + 2 != WEFTI_AM_WAITING_MAX) {
        abort();
    }
    for (int pe = 0; pe < PES; pe++) {
        if (peers[pe].owed > WEFTI_AM_CREDITS_MAX || peers[pe].credits > WEFTI_AM_CREDITS_MAX) {
            abort();
        }
    }
}

/* A request that came early is kept, so all are until the end. */
typedef struct message {
    wefti_am_buffer buffer;
    struct message *before;
} message;
static message *messages;

static void forget_all(void)
{
    while (messages != NULL) {
        message *last = messages;
        messages = last->before;
        free(last->buffer.header);
        free(last);
    }
}

/* A reply may need all of a message's memory, however short the request was. */
static wefti_am_buffer *make(const uint8_t *input, size_t bytes)
{
    message *made = calloc(1, sizeof *made);
    wefti_am_header *header = calloc(1, WEFTI_AM_MESSAGE_MAX);
    if (made == NULL || header == NULL) {
        abort();
    }
    memcpy(header, input, bytes);
    made->buffer = (wefti_am_buffer){.role = WEFTI_AM_REQUEST_IN, .header = header};
    made->before = messages;
    messages = made;
    return &made->buffer;
}

static void take(const uint8_t *input, size_t bytes, uint8_t how)
{
    wefti_am_buffer *buffer = make(input, bytes);
    wefti_am_header *header = buffer->header;
    header->world = (how & 0x0e) != 0 ? WORLD : header->world;
    if ((how & 0x10) == 0 && header->from < PES) {
        header->number = peers[header->from].taken;
        header->writes = 0;
    }
    if ((how & 1) != 0) {
        wefti_am_take_reply(&am, header, bytes);
    } else {
        wefti_am_serve(&am, buffer, bytes);
        check(buffer);
        wefti_am_send_unsent(&am);
    }
    check(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes)
{
    unsigned char *slot = aligned_alloc(64, RESERVED); /* its end shows */
    if (slot == NULL) {
        return 0;
    }
    set_up(slot);
    for (size_t at = 0; bytes - at > 3;) {
        const size_t wanted = (size_t)input[at + 1] | (size_t)(input[at + 2] & 0x3f) << 8;
        const size_t left = bytes - at - 3;
        const size_t has = wanted < left ? wanted : left;
        take(input + at + 3, has < WEFTI_AM_MESSAGE_MAX ? has : WEFTI_AM_MESSAGE_MAX, input[at]);
        at += 3 + has;
    }
    if (((wefti_control *)(void *)slot)->reserved != RESERVED) {
        abort();
    }
    forget_all();
    free(slot);
    return 0;
}

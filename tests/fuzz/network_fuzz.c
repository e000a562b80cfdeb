/* Goal: what comes from PEs of other nodes by the network does no harm, whatever is in it: nothing outside of the
 * slot's memory is touched, nor the word that says how much that is; an answer is not longer than a message can be, and
 * no more is counted than there are credits.
 * Method: the input is a row of messages, each with a byte that says whether it is a request or a reply and two that
 * say how long it is. All but every eighth have this world's key, as those of a PE that has gone wrong would have. The
 * slot is memory of its own, of which a part has been reserved. The provider is the four functions below. */
#include <stdlib.h>
#include <string.h>

#include "transport/ofi/ofi.h"
#include "weft/protocol/layout.h"

#define WORLD UINT64_C(0x1234567890abcdef)
#define PES 3
#define RESERVED ((size_t)1 << 14)
#define GOT_BYTES 24

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

static wefti_ofi ofi;
static wefti_ofi_peer peers[PES];
static unsigned char got[GOT_BYTES];

/* ---- the provider, which takes nothing, and has a key ---- */

void wefti_ofi_post(wefti_ofi *at, wefti_ofi_buffer *buffer)
{
    (void)at;
    buffer->role = WEFTI_OFI_REQUEST_IN;
}

int wefti_ofi_send(wefti_ofi *at, wefti_ofi_buffer *buffer, int *error)
{
    (void)at;
    (void)buffer;
    *error = -1; /* not "try again" */
    return 0;
}

void wefti_ofi_lose(wefti_ofi *at, uint32_t pe)
{
    at->peers[pe].is_lost = 1;
}

const wefti_ofi_range *wefti_ofi_rma_share(wefti_ofi *at)
{
    static const wefti_ofi_range all = {.first = 64, .bytes = RESERVED - 64, .at = {.key = 5}};
    return at->setup.pe == 0 ? &all : NULL;
}

/* ---- a world ---- */

static void set_up(unsigned char *slot)
{
    memset(&ofi, 0, sizeof ofi);
    memset(peers, 0, sizeof peers);
    memset(slot, 0, RESERVED);
    ((wefti_control *)(void *)slot)->reserved = RESERVED;
    ofi.setup.world = WORLD;
    ofi.setup.pe = 0;
    ofi.setup.pes = PES;
    ofi.setup.slot = slot;
    ofi.peers = peers;
    peers[1].is_known = 1;
    peers[2].is_known = 1;
    ofi.requests[1] = (wefti_ofi_request){.number = 1, .pe = 1, .dest = got, .bytes = sizeof got};
    ofi.requests[2] = (wefti_ofi_request){.number = 2, .pe = 2};
}

static void check(const wefti_ofi_buffer *buffer)
{
    if (buffer->bytes > WEFTI_OFI_MESSAGE_MAX) {
        abort();
    }
    for (int pe = 0; pe < PES; pe++) {
        if (peers[pe].owed > WEFTI_OFI_CREDITS_MAX || peers[pe].credits > WEFTI_OFI_CREDITS_MAX) {
            abort();
        }
    }
}

/* A reply may need all of a message's memory, however short the request was. */
static void take(const uint8_t *message, size_t bytes, int is_reply, int has_key)
{
    wefti_ofi_header *header = calloc(1, WEFTI_OFI_MESSAGE_MAX);
    wefti_ofi_buffer buffer = {.role = WEFTI_OFI_REQUEST_IN, .header = header};
    if (header == NULL) {
        return;
    }
    memcpy(header, message, bytes);
    header->world = has_key ? WORLD : header->world;
    if (is_reply) {
        wefti_ofi_take_reply(&ofi, header, bytes);
    } else {
        wefti_ofi_serve(&ofi, &buffer, bytes);
        check(&buffer);
        wefti_ofi_send_unsent(&ofi);
    }
    check(&buffer);
    free(header);
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
        take(input + at + 3, has < WEFTI_OFI_MESSAGE_MAX ? has : WEFTI_OFI_MESSAGE_MAX, input[at] & 1,
             (input[at] & 0x0e) != 0);
        at += 3 + has;
    }
    if (((wefti_control *)(void *)slot)->reserved != RESERVED) {
        abort();
    }
    free(slot);
    return 0;
}

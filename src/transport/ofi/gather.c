/* Small puts that go in one message. */
#include <string.h>

#include "transport/ofi/ofi.h"

/* A put that comes so soon after another is one of many. */
#define AT_ONCE_NS WEFTI_OFI_GATHER_NS

static void forget(wefti_ofi *ofi, wefti_ofi_buffer *buffer)
{
    wefti_ofi_buffer **link = &ofi->gathering;
    while (*link != buffer) {
        link = &(*link)->next;
    }
    *link = buffer->next;
    ofi->peers[buffer->pe].gathered = NULL;
}

/* Hand it to the provider, or drop it if its PE is lost; returns 0 if it is still to be sent. */
static int try_send(wefti_ofi *ofi, wefti_ofi_buffer *buffer)
{
    wefti_ofi_peer *peer = &ofi->peers[buffer->pe];
    int error = 0;
    if (!peer->is_lost && wefti_ofi_send(ofi, buffer, &error)) {
        forget(ofi, buffer);
        peer->is_met = 1;
        return 1;
    }
    if (!peer->is_lost && error == -FI_EAGAIN) {
        return 0;
    }
    wefti_ofi_lose(ofi, buffer->pe);
    forget(ofi, buffer);
    wefti_ofi_give_up(ofi, buffer);
    return 1;
}

weft_status wefti_ofi_send_gathered(wefti_ofi_wait *now)
{
    wefti_ofi *ofi = now->ofi;
    const wefti_ofi_peer *peer = &ofi->peers[now->pe];
    while (peer->gathered != NULL && !try_send(ofi, peer->gathered)) {
        WEFT_TRY(wefti_ofi_wait_step(now));
    }
    return WEFT_OK;
}

void wefti_ofi_try_gathered(wefti_ofi *ofi, uint64_t before_ns)
{
    wefti_ofi_buffer *buffer = ofi->gathering;
    while (buffer != NULL) {
        wefti_ofi_buffer *next = buffer->next;
        if (buffer->since_ns < before_ns) {
            (void)try_send(ofi, buffer);
        }
        buffer = next;
    }
}

static void append(wefti_ofi_buffer *buffer, uint64_t offset, const void *source, size_t bytes)
{
    wefti_ofi_small *small = (wefti_ofi_small *)(void *)((unsigned char *)buffer->header + buffer->bytes);
    *small = (wefti_ofi_small){.offset = offset, .bytes = bytes};
    memcpy(small + 1, source, bytes);
    buffer->bytes += wefti_ofi_small_bytes(bytes);
    buffer->header->bytes += wefti_ofi_small_bytes(bytes);
}

static weft_status start(wefti_ofi_wait *now, uint64_t now_ns)
{
    wefti_ofi *ofi = now->ofi;
    wefti_ofi_buffer *buffer;
    WEFT_TRY(wefti_ofi_begin(now, WEFTI_OFI_PUTS, &buffer));
    buffer->since_ns = now_ns;
    buffer->next = ofi->gathering;
    ofi->gathering = buffer;
    ofi->peers[now->pe].gathered = buffer;
    wefti_ofi_wake(ofi);
    return WEFT_OK;
}

weft_status wefti_ofi_gather(wefti_ofi_wait *now, uint64_t offset, const void *source, size_t bytes, int *is_taken)
{
    wefti_ofi_peer *peer = &now->ofi->peers[now->pe];
    const uint64_t now_ns = wefti_os_now_ns();
    const int follows = now_ns - peer->put_ns < AT_ONCE_NS;
    peer->put_ns = now_ns;
    *is_taken = 0;
    if (peer->gathered != NULL && peer->gathered->bytes + wefti_ofi_small_bytes(bytes) > WEFTI_OFI_MESSAGE_MAX) {
        WEFT_TRY(wefti_ofi_send_gathered(now));
    }
    if (peer->gathered == NULL) {
        if (!follows) {
            return WEFT_OK;
        }
        WEFT_TRY(start(now, now_ns));
    }
    append(peer->gathered, offset, source, bytes);
    *is_taken = 1;
    return WEFT_OK;
}

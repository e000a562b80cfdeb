/* `map`: the link domain, by load and store. */
#include "transport/map/map.h"

weft_status wefti_map_open(wefti_transport *transport, const wefti_transport_setup *setup)
{
    transport->setup = *setup;
    return WEFT_OK;
}

void wefti_map_close(wefti_transport *transport)
{
    (void)transport;
}

static int map_reaches(const wefti_transport *transport, int pe)
{
    return wefti_pe_is_near(transport->setup.view, pe);
}

static unsigned char *at(const wefti_transport *transport, int pe, uint64_t offset)
{
    const weft_world *world = (const weft_world *)(const void *)transport->setup.view;
    return wefti_peer_address(world, transport->setup.slot + offset, pe);
}

weft_status wefti_map_put(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes)
{
    wefti_copy(at(transport, pe, offset), source, bytes);
    return WEFT_OK;
}

weft_status wefti_map_get(wefti_transport *transport, int pe, uint64_t offset, void *dest, size_t bytes)
{
    wefti_copy(dest, at(transport, pe, offset), bytes);
    return WEFT_OK;
}

weft_status wefti_map_put_signal(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes,
                                 uint64_t signal_offset, uint64_t value, weft_signal_op op)
{
    unsigned char *word = at(transport, pe, signal_offset);
    if (bytes > 0) {
        wefti_copy(at(transport, pe, offset), source, bytes);
    }
    if (op == WEFT_SIGNAL_SET) {
        wefti_st64(word, value, WEFTI_RELEASE);
    } else {
        (void)wefti_add64(word, value);
    }
    return WEFT_OK;
}

weft_status wefti_map_amo(wefti_transport *transport, int pe, uint64_t offset, wefti_amo_op op, int bits,
                          uint64_t value, uint64_t cond, uint64_t *old)
{
    const uint64_t before = wefti_amo_at(op, bits, at(transport, pe, offset), value, cond);
    if (old != NULL) {
        *old = before;
    }
    return WEFT_OK;
}

weft_status wefti_map_fence(wefti_transport *transport)
{
    (void)transport;
    wefti_fence_release();
    return WEFT_OK;
}

weft_status wefti_map_quiet(wefti_transport *transport)
{
    (void)transport;
    wefti_fence_full();
    return WEFT_OK;
}

const wefti_transport_ops wefti_transport_map = {
    .name = "map",
    .open = wefti_map_open,
    .close = wefti_map_close,
    .reaches = map_reaches,
    .put = wefti_map_put,
    .get = wefti_map_get,
    .put_signal = wefti_map_put_signal,
    .amo = wefti_map_amo,
    .fence = wefti_map_fence,
    .quiet = wefti_map_quiet,
};

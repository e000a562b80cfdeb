/* `self`: this PE's own heap, without any link domain: the own PE's bytes are where they are. */
#include "transport/map/map.h"

static int self_reaches(const wefti_transport *transport, int pe)
{
    return pe == transport->setup.pe;
}

const wefti_transport_ops wefti_transport_self = {
    .name = "self",
    .open = wefti_map_open,
    .close = wefti_map_close,
    .reaches = self_reaches,
    .put = wefti_map_put,
    .get = wefti_map_get,
    .put_signal = wefti_map_put_signal,
    .amo = wefti_map_amo,
    .fence = wefti_map_fence,
    .quiet = wefti_map_quiet,
};

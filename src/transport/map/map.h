/* transport/map/map.h: operations at addresses that can be loaded and stored, shared by `map` and `self`. */
#ifndef WEFTI_TRANSPORT_MAP_MAP_H
#define WEFTI_TRANSPORT_MAP_MAP_H

#include "transport/transport.h"

weft_status wefti_map_open(wefti_transport *transport, const wefti_transport_setup *setup);
void wefti_map_close(wefti_transport *transport);
weft_status wefti_map_put(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes);
weft_status wefti_map_get(wefti_transport *transport, int pe, uint64_t offset, void *dest, size_t bytes);
weft_status wefti_map_put_signal(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes,
                                 uint64_t signal_offset, uint64_t value, weft_signal_op op);
weft_status wefti_map_amo(wefti_transport *transport, int pe, uint64_t offset, wefti_amo_op op, int bits,
                          uint64_t value, uint64_t cond, uint64_t *old);
weft_status wefti_map_fence(wefti_transport *transport);
weft_status wefti_map_quiet(wefti_transport *transport);

#endif

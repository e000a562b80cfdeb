/* The library's own words on other PEs: by load and store in the link domain, by the PE's transport beyond it. */
#include "world/world.h"

size_t wefti_world_slot(const weft_world *world, int pe)
{
    const unsigned char *slot = wefti_peer_address(world, world->control, pe);
    return ((size_t)(slot - world->window->memory.base) - world->window->first_slot) / world->window->stride;
}

/* Where a near PE has the word that this PE has at `word`. */
static uint64_t *near_word(const weft_world *world, const uint64_t *word, int pe)
{
    const size_t offset = (uintptr_t)word - (uintptr_t)wefti_world_presence(world, world->slot);
    return offset < sizeof(wefti_presence)
               ? (uint64_t *)(void *)((unsigned char *)wefti_world_presence(world, wefti_world_slot(world, pe)) +
                                      offset)
               : wefti_peer_address(world, word, pe);
}

weft_status wefti_world_put_flag(weft_world *world, void *dest, const void *source, size_t bytes, uint64_t *flag,
                                 uint64_t value, int pe)
{
    if (WEFTI_LIKELY(wefti_pe_is_near(&world->view, pe))) {
        if (bytes > 0) {
            wefti_copy(wefti_peer_address(world, dest, pe), source, bytes);
        }
        wefti_st64(wefti_peer_address(world, flag, pe), value, WEFTI_RELEASE);
        return WEFT_OK;
    }
    wefti_transport *transport = wefti_world_transport(world, pe);
    return transport->ops->put_signal(transport, pe, bytes > 0 ? wefti_slot_offset(world, dest) : 0, source, bytes,
                                      wefti_slot_offset(world, flag), value, WEFT_SIGNAL_SET);
}

weft_status wefti_world_flag(weft_world *world, uint64_t *flag, uint64_t value, int pe)
{
    wefti_transport *transport = wefti_world_transport(world, pe);
    return wefti_pe_is_near(&world->view, pe) || transport->ops->flag == NULL
               ? wefti_world_put_flag(world, NULL, NULL, 0, flag, value, pe)
               : transport->ops->flag(transport, pe, wefti_slot_offset(world, flag), value);
}

weft_status wefti_world_read(weft_world *world, const uint64_t *word, int pe, uint64_t *value)
{
    if (WEFTI_LIKELY(wefti_pe_is_near(&world->view, pe))) {
        *value = wefti_ld64(near_word(world, word, pe), WEFTI_ACQUIRE);
        return WEFT_OK;
    }
    wefti_transport *transport = wefti_world_transport(world, pe);
    return transport->ops->amo(transport, pe, wefti_slot_offset(world, word), WEFTI_AMO_FETCH, 64, 0, 0, value);
}

weft_status wefti_world_read_soon(weft_world *world, const uint64_t *word, int pe, uint64_t *value)
{
    wefti_transport *transport = wefti_world_transport(world, pe);
    return wefti_pe_is_near(&world->view, pe) || transport->ops->read_soon == NULL
               ? wefti_world_read(world, word, pe, value)
               : transport->ops->read_soon(transport, pe, wefti_slot_offset(world, word), value);
}

void wefti_world_find_silent(weft_world *world, const int *pes, int count)
{
    wefti_transport *last = &world->transports[world->transport_count - 1];
    if (last->ops->find_silent != NULL && count > 0) {
        last->ops->find_silent(last, pes, count);
    }
}

weft_status wefti_world_set_once(weft_world *world, uint64_t *word, uint64_t value, int pe)
{
    if (WEFTI_LIKELY(wefti_pe_is_near(&world->view, pe))) {
        (void)wefti_cas64(wefti_peer_address(world, word, pe), 0, value);
        return WEFT_OK;
    }
    wefti_transport *transport = wefti_world_transport(world, pe);
    return transport->ops->amo(transport, pe, wefti_slot_offset(world, word), WEFTI_AMO_COMPARE_SWAP, 64, value, 0,
                               NULL);
}

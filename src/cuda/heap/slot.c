/* cuda/heap/slot.c: what a PE has in its slot of the device window, and how the PEs that share one agree. */
#include <stdio.h>
#include <string.h>

#include "cuda/device.h"
#include "weft/coll.h"

const wefti_cuda_record *wefti_cuda_record_of(const wefti_cuda *cuda, uint32_t index)
{
    return wefti_cuda_is_abroad(cuda, index)
               ? &cuda->records_fetched[index]
               : wefti_peer_address(cuda->world, cuda->record, (int)(cuda->near_first + index));
}

weft_status wefti_cuda_fetch_records(wefti_cuda *cuda, weft_team *team)
{
    if (cuda->records_shared == NULL) {
        return WEFT_OK;
    }
    WEFT_TRY(weft_fcollectmem(team, cuda->records_shared, cuda->record, sizeof *cuda->record));
    for (int member = 0; cuda->records_fetched != NULL && member < team->pes; member++) {
        const int pe = wefti_member(team, member);
        if (wefti_cuda_is_near(cuda, pe)) {
            cuda->records_fetched[(uint32_t)pe - cuda->near_first] = cuda->records_shared[member];
        }
    }
    return WEFT_OK;
}

/* Why a PE failed, as it has written before the last vote. */
static int read_text(const wefti_cuda *cuda, int pe, char *text)
{
    weft_world *world = cuda->world;
    if (wefti_pe_is_near(&world->view, pe)) {
        const wefti_cuda_record *record = wefti_peer_address(world, cuda->record, pe);
        memcpy(text, record->text, sizeof record->text);
        return 1;
    }
    wefti_transport *transport = wefti_world_transport(world, pe);
    return transport->ops->get(transport, pe, wefti_slot_offset(world, cuda->record->text), text,
                               sizeof cuda->record->text) == WEFT_OK;
}

weft_status wefti_cuda_agree(wefti_cuda *cuda, weft_team *team, const char *name, wefti_vote *vote)
{
    if (vote->status != WEFT_OK) {
        (void)snprintf(cuda->record->text, sizeof cuda->record->text, "%s", weft_last_error());
    }
    weft_status status = wefti_team_agree(team, vote, name);
    const int culprit = wefti_member(team, (int)vote->status_pe);
    if (status == WEFT_OK || status != (weft_status)vote->status || team->dead != WEFT_OK ||
        culprit == (int)cuda->world->view.pe) {
        return status;
    }
    char theirs[sizeof cuda->record->text];
    char text[sizeof theirs + 32];
    if (!read_text(cuda, culprit, theirs)) {
        return status;
    }
    (void)snprintf(text, sizeof text, "PE %d: %.*s", culprit, (int)sizeof theirs - 1, theirs);
    return wefti_error_relay(status, text);
}

weft_status wefti_cuda_verdict(wefti_cuda *cuda, weft_team *team, const char *name, uint64_t step, weft_status mine)
{
    wefti_vote vote = wefti_vote_init(team, name, step, 1);
    vote.status = mine;
    return wefti_cuda_agree(cuda, team, name, &vote);
}

/* How many bytes of the heap lie in the first `extent` bytes of a slot. */
static uint64_t heap_part(const wefti_cuda *cuda, uint64_t extent)
{
    const uint64_t head = wefti_cuda_head_bytes(cuda->world->view.pes);
    const uint64_t bytes = extent < head ? 0 : extent - head;
    return bytes < cuda->base.heap_max_bytes ? bytes : cuda->base.heap_max_bytes;
}

uint64_t wefti_cuda_heap_bytes_of(const wefti_cuda *cuda, uint32_t index)
{
    return cuda->sharing == WEFTI_CUDA_IPC
               ? cuda->base.heap_max_bytes
               : heap_part(cuda, wefti_cuda_window_sure(cuda->window, wefti_cuda_slot_of(cuda, index)));
}

uint64_t wefti_cuda_heap_reach(const wefti_cuda *cuda, uint32_t index)
{
    const uint32_t own = wefti_cuda_own_index(cuda);
    return cuda->sharing == WEFTI_CUDA_IPC || cuda->group[index] == cuda->group[own]
               ? wefti_cuda_heap_bytes_of(cuda, own)
               : heap_part(cuda, __atomic_load_n(&cuda->reach[index], __ATOMIC_ACQUIRE));
}

void wefti_cuda_place_heap(wefti_cuda *cuda)
{
    cuda->base.heap = cuda->slot + wefti_cuda_head_bytes(cuda->world->view.pes);
    __atomic_store_n(&cuda->base.heap_bytes, wefti_cuda_heap_bytes_of(cuda, wefti_cuda_own_index(cuda)),
                     __ATOMIC_RELEASE); /* other threads read it, the proxy for far PEs */
}

weft_status wefti_cuda_reach_host_of(wefti_cuda *cuda, int pe)
{
    weft_world *world = cuda->world;
    const wefti_control *control = wefti_peer_address(world, world->control, pe);
    const uint64_t bytes = wefti_ld64(&control->reserved, WEFTI_RELAXED);
    return wefti_cuda_window_register(cuda->window, world->window, (size_t)world->team_node.pes,
                                      wefti_world_slot(world, pe), bytes);
}

weft_status wefti_cuda_reach_host(wefti_cuda *cuda)
{
    weft_world *world = cuda->world;
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        if (cuda->group[i] >= 0 && !wefti_cuda_is_abroad(cuda, i)) {
            WEFT_TRY(wefti_cuda_reach_host_of(cuda, (int)(cuda->near_first + i)));
        }
    }
    return wefti_cuda_window_register_head(cuda->window, world->window, (size_t)world->team_node.pes);
}

/* cuda/heap/grow.c: memory for the heap, over any team: each member whose slot is too short allocates a piece on its
 * device, and one member of every other process takes it and maps it at the same offset of its owner's slot.
 *
 * What a slot has is its owner's to say, and what of it a process has mapped is that process's: who was in fewer teams
 * has less of some slots, but always from the start on. So the members go in rounds: they vote the lowest place at
 * which a process lacks a piece of any of them, and those that have a piece there hand it round. A PE is in one growth
 * at a time (team/retry.c). */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cuda/device.h"

typedef struct growth {
    wefti_cuda *cuda;
    weft_team *team;
    const char *call;
    uint64_t needed; /* bytes that every member's slot must have */
    uint64_t at; /* where the pieces of this round begin in their slots */
    int takes; /* this PE takes and maps pieces for its process */
    int takers; /* other processes that take what this PE offers */
} growth;

/* ---- who takes from whom ---- */

/* The near index of a member, or -1. */
static int near_index(const growth *g, int member)
{
    const int pe = wefti_member(g->team, member);
    return wefti_cuda_is_near(g->cuda, pe) ? pe - (int)g->cuda->near_first : -1;
}

/* The first member of each process takes for all of it. */
static void find_takers(growth *g)
{
    const uint32_t own = wefti_cuda_own_index(g->cuda);
    const int *group = g->cuda->group;
    g->takers = -1; /* without this PE's process */
    for (int member = 0; member < g->team->pes; member++) {
        const int index = near_index(g, member);
        int is_first = index >= 0;
        for (int before = 0; before < member && is_first; before++) {
            const int other = near_index(g, before);
            is_first = other < 0 || group[other] != group[index];
        }
        g->takers += is_first;
        g->takes |= is_first && (uint32_t)index == own;
    }
}

/* Whether this PE takes the pieces of that member. */
static int takes_from(const growth *g, int member)
{
    const int index = near_index(g, member);
    const int *group = g->cuda->group;
    return index >= 0 && g->takes && group[index] != group[wefti_cuda_own_index(g->cuda)];
}

/* ---- pieces ---- */

/* Map a piece of a PE's slot for the PEs of this process. */
static weft_status map_piece(wefti_cuda *cuda, uint32_t index, const wefti_cuda_piece *part)
{
    wefti_cuda_piece piece = *part;
    CUdevice devices[WEFTI_CUDA_DEVICES_MAX];
    const int count = wefti_cuda_near_devices(cuda, devices);
    piece.slot = wefti_cuda_slot_of(cuda, index);
    return wefti_cuda_window_map(cuda->window, &piece, devices, count);
}

/* Allocate and map a piece of this PE's own up to `wanted`, if its slot lacks what is needed. */
static weft_status make_piece(const growth *g, uint64_t wanted)
{
    wefti_cuda *cuda = g->cuda;
    wefti_cuda_piece piece = {.offset = wefti_cuda_window_extent(cuda->window, wefti_cuda_own_slot(cuda))};
    if (piece.offset >= g->needed) {
        return WEFT_OK;
    }
    const CUmemAllocationProp prop = wefti_cuda_properties(cuda, cuda->sharing);
    piece.bytes = (wanted - piece.offset + cuda->granularity - 1) / cuda->granularity * cuda->granularity;
    CUresult result = wefti_fault("cuMemCreate", 0) ? CUDA_ERROR_OUT_OF_MEMORY
                                                    : cuda->driver.cuMemCreate(&piece.handle, piece.bytes, &prop, 0);
    WEFT_TRY(wefti_cuda_check(&cuda->driver, result, "cuMemCreate (of the device heap)"));
    return map_piece(cuda, wefti_cuda_own_index(cuda), &piece);
}

/* ---- rounds ---- */

/* Where the lowest piece begins that any process lacks of a member's slot; `needed` or more when none lacks any. */
static weft_status find_round(growth *g, weft_status mine)
{
    wefti_cuda *cuda = g->cuda;
    wefti_vote vote = wefti_vote_init(g->team, g->call, g->needed, 1);
    vote.status = mine;
    vote.offset_low = UINT64_MAX;
    for (int member = 0; member < g->team->pes; member++) {
        if (takes_from(g, member)) {
            const uint64_t extent =
                wefti_cuda_window_extent(cuda->window, wefti_cuda_slot_of(cuda, (uint32_t)near_index(g, member)));
            vote.offset_low = extent < vote.offset_low ? extent : vote.offset_low;
        }
    }
    weft_status status = wefti_cuda_agree(cuda, g->team, g->call, &vote);
    g->at = vote.offset_low;
    return status;
}

/* What this PE has that begins there, if anything does. */
static weft_status offer_piece(growth *g, wefti_cuda_offer *offer)
{
    wefti_cuda *cuda = g->cuda;
    const wefti_cuda_piece piece = wefti_cuda_window_find(cuda->window, wefti_cuda_own_slot(cuda), g->at);
    cuda->record->memory_bytes = piece.bytes;
    return piece.bytes == 0 ? WEFT_OK : wefti_cuda_offer_open(cuda, piece.handle, offer);
}

/* A process that has the piece takes it all the same, since its owner does not know which of them lack it. */
static int wants_piece(wefti_cuda *cuda, uint32_t index, void *context)
{
    const growth *g = context;
    int is_wanted = 0;
    for (int member = 0; member < g->team->pes && !is_wanted; member++) {
        is_wanted = near_index(g, member) == (int)index && takes_from(g, member);
    }
    return is_wanted && wefti_cuda_record_of(cuda, index)->memory_bytes != 0;
}

static weft_status take_piece(wefti_cuda *cuda, uint32_t index, CUmemGenericAllocationHandle handle, void *context)
{
    const growth *g = context;
    const wefti_cuda_piece theirs = {
        .offset = g->at, .bytes = wefti_cuda_record_of(cuda, index)->memory_bytes, .handle = handle};
    return map_piece(cuda, index, &theirs);
}

/* Hand round the pieces that begin at `at`, and find the next place. */
static weft_status run_round(growth *g)
{
    wefti_cuda *cuda = g->cuda;
    wefti_cuda_offer offer = wefti_cuda_offer_init(g->team, g->takers);
    const wefti_cuda_taking taking = {.offer = &offer, .wants = wants_piece, .take = take_piece, .context = g};
    weft_status status = wefti_cuda_verdict(cuda, g->team, g->call, g->at, offer_piece(g, &offer));
    if (status == WEFT_OK) {
        status = wefti_cuda_fetch_records(cuda, g->team);
    }
    if (status == WEFT_OK) {
        status = find_round(g, wefti_cuda_exchange(cuda, &taking));
    }
    wefti_cuda_offer_close(&offer);
    return status;
}

/* ---- the whole ---- */

static void settle_taken(const growth *g, int stays)
{
    for (int member = 0; member < g->team->pes; member++) {
        if (takes_from(g, member)) {
            wefti_cuda_window_settle(g->cuda->window, wefti_cuda_slot_of(g->cuda, (uint32_t)near_index(g, member)),
                                     stays);
        }
    }
}

static void settle_own(const growth *g, int stays)
{
    wefti_cuda_window_settle(g->cuda->window, wefti_cuda_own_slot(g->cuda), stays);
    wefti_cuda_place_heap(g->cuda);
}

/* All members: none goes on before what the others have is theirs to use. On failure those who took let go before the
 * owners do, so that nobody maps what its owner has replaced. Of a team that is dead nobody knows who has taken what:
 * the pieces stay, for allocations to come. */
static weft_status settle(const growth *g, int stays)
{
    weft_status status = WEFT_OK;
    if (stays) {
        settle_own(g, 1);
    }
    if (g->team->dead == WEFT_OK) {
        settle_taken(g, stays);
        status = wefti_cuda_verdict(g->cuda, g->team, g->call, g->needed, WEFT_OK);
    }
    if (!stays) {
        settle_own(g, g->team->dead != WEFT_OK);
    }
    return status;
}

/* Where the piece of this PE's slot ends that has the last byte needed: so far all that take from it have come. */
static uint64_t common_end(const growth *g)
{
    wefti_cuda_piece piece = {.bytes = 1};
    uint64_t end = 0;
    while (end < g->needed && piece.bytes != 0) {
        piece = wefti_cuda_window_find(g->cuda->window, wefti_cuda_own_slot(g->cuda), end);
        end += piece.bytes;
    }
    return end;
}

/* The processes of all members have this PE's slot up to there. */
static void raise_reach(const growth *g)
{
    wefti_cuda *cuda = g->cuda;
    const uint64_t end = common_end(g);
    for (int member = 0; member < g->team->pes; member++) {
        const int index = near_index(g, member);
        for (uint32_t i = 0; i < cuda->near_count && index >= 0; i++) {
            if (cuda->group[i] == cuda->group[index] && cuda->reach[i] < end) {
                __atomic_store_n(&cuda->reach[i], end, __ATOMIC_RELEASE);
            }
        }
    }
}

weft_status wefti_cuda_grow_slot(wefti_cuda *cuda, weft_team *team, const char *call, uint64_t needed, uint64_t wanted)
{
    growth g = {.cuda = cuda, .team = team, .call = call, .needed = needed};
    char text[WEFTI_ERROR_BYTES];
    find_takers(&g);
    weft_status status = find_round(&g, make_piece(&g, wanted));
    while (status == WEFT_OK && g.at < needed) {
        status = run_round(&g);
    }
    if (status == WEFT_OK) {
        WEFT_TRY(settle(&g, 1));
        raise_reach(&g);
        return WEFT_OK;
    }
    (void)snprintf(text, sizeof text, "%s", weft_last_error());
    (void)settle(&g, 0);
    return wefti_error_relay(status, text);
}

/* ---- without VMM ---- */

/* Memory of another PE, by a handle or, in this process, as it is. */
static weft_status open_peer(wefti_cuda *cuda, uint32_t index)
{
    const wefti_cuda_record *record = wefti_cuda_record_of(cuda, index);
    CUdeviceptr at = (CUdeviceptr)record->address;
    if (cuda->group[index] == cuda->group[wefti_cuda_own_index(cuda)]) {
        if (record->ordinal != cuda->ordinal) {
            CUresult result = cuda->driver.cuCtxEnablePeerAccess((CUcontext)(uintptr_t)record->context, 0);
            if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
                WEFT_TRY(wefti_cuda_check(&cuda->driver, result, "cuCtxEnablePeerAccess"));
            }
        }
    } else {
        WEFT_TRY(wefti_cuda_check(&cuda->driver,
                                  cuda->driver.cuIpcOpenMemHandle(&at, record->ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                                  "cuIpcOpenMemHandle"));
        cuda->ipc_opened[index] = at;
    }
    cuda->delta[index] = (int64_t)(at - cuda->ipc_own);
    return WEFT_OK;
}

static weft_status open_peers(wefti_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        if (cuda->group[i] >= 0 && i != wefti_cuda_own_index(cuda)) {
            WEFT_TRY(open_peer(cuda, i));
        }
    }
    return WEFT_OK;
}

static weft_status make_ipc(wefti_cuda *cuda, uint64_t bytes)
{
    WEFT_TRY(wefti_cuda_check(&cuda->driver, cuda->driver.cuMemAlloc(&cuda->ipc_own, bytes),
                              "cuMemAlloc (of the device heap)"));
    WEFT_TRY(wefti_cuda_window_keep(cuda->window, cuda->ipc_own));
    cuda->record->address = cuda->ipc_own;
    return wefti_cuda_check(&cuda->driver, cuda->driver.cuIpcGetMemHandle(&cuda->record->ipc, cuda->ipc_own),
                            "cuIpcGetMemHandle");
}

weft_status wefti_cuda_share_by_ipc(wefti_cuda *cuda, weft_team *team, const char *call, uint64_t slot_bytes)
{
    WEFT_TRY(wefti_cuda_verdict(cuda, team, call, slot_bytes, make_ipc(cuda, slot_bytes)));
    return wefti_cuda_verdict(cuda, team, call, slot_bytes, open_peers(cuda));
}

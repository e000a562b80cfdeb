/* cuda/ep/host/domains_direct.c: groups of several domains: what calls that go directly have (cuda/ep/direct.h), and
 * which ones do. */
#include <string.h>

#include "base/alloc.h"
#include "cuda/ep/host/domains.h"
#include "ep/check.h"

/* ---- which calls ---- */

/* A domain's ranks, where most are. */
static int ranks_of_largest(const weft_ep *ep)
{
    int most = 0;
    for (int domain = 0; domain < ep->domains.count; domain++) {
        const int size = wefti_ep_domains_size(&ep->domains, domain);
        most = size > most ? size : most;
    }
    return most;
}

/* A token's row crosses once to each rank with one of its experts, where by forwarders it crosses once to each domain:
 * up to so many times more, as the largest domain has ranks. */
static int are_few(const weft_ep *ep, int tokens)
{
    return (uint64_t)tokens * (uint64_t)ranks_of_largest(ep) <= ep->settings.direct;
}

int wefti_ep_direct_takes(const weft_ep *ep, const weft_ep_plan *plan)
{
    return (ep->config.flags & WEFT_EP_NO_LOW_LATENCY) == 0 && wefti_ep_plan_is_slots(plan) &&
           plan->order == WEFT_EP_ORDER_RANK && are_few(ep, plan->slot_tokens);
}

/* ---- rings ---- */

/* The most ranks that a rank has a ring from, in each kind of block. */
static uint64_t lines_of(const weft_ep *ep, int block)
{
    int least = ep->ranks;
    for (int domain = 0; domain < ep->domains.count; domain++) {
        const int size = wefti_ep_domains_size(&ep->domains, domain);
        least = size < least ? size : least;
    }
    return (uint64_t)(block == WEFTI_CUDA_EP_DIRECT_INSIDE ? ranks_of_largest(ep) : ep->ranks - least);
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

static uint64_t at_least(uint64_t value, uint64_t least)
{
    return value > least ? value : least;
}

void wefti_ep_direct_shape(weft_ep *ep, uint64_t row_bytes)
{
    wefti_ep_between *between = ep->between;
    wefti_cuda_ep_direct *direct = &between->direct;
    const uint64_t share = WEFTI_CUDA_EP_DIRECT_RING_BYTES / at_least(lines_of(ep, WEFTI_CUDA_EP_DIRECT_OUTSIDE), 1);
    const int is_fast = (ep->config.flags & WEFT_EP_NO_LOW_LATENCY) == 0 && are_few(ep, 1);
    const uint64_t tokens = at_least(is_fast ? (uint64_t)ep->config.slot_tokens_max : 0, 1); /* of a call, if few */
    const uint64_t asked = ep->settings.chunk_rows > 0 ? ep->settings.chunk_rows : WEFTI_CUDA_EP_DIRECT_ROWS;
    memset(direct, 0, sizeof *direct);
    const uint64_t most = at_most(at_most(asked, WEFTI_CUDA_EP_DIRECT_ROWS), tokens);
    const uint64_t rows = at_least(at_most(share / 2 / row_bytes, most), 1);
    direct->chunk_bytes = (WEFTI_CUDA_EP_DOMAINS_CHUNK + rows * row_bytes + 63) / 64 * 64;
    const uint64_t slots = at_most(share / direct->chunk_bytes, (tokens + rows - 1) / rows);
    direct->slots = (uint32_t)at_least(at_most(slots, WEFTI_CUDA_EP_DIRECT_SLOTS), 2);
    for (int block = 0; block < WEFTI_CUDA_EP_DIRECT_BLOCKS; block++) {
        direct->at[block] =
            wefti_cuda_ep_direct_rings_of(lines_of(ep, block), direct->slots, direct->chunk_bytes, block);
    }
}

size_t wefti_ep_direct_bytes(const weft_ep *ep, int block)
{
    return (size_t)ep->between->direct.at[block].bytes;
}

/* ---- tables ---- */

void wefti_ep_direct_lay_out(weft_ep *ep, uint64_t memory, wefti_u64 *end)
{
    wefti_cuda_ep_direct *direct = &ep->between->direct;
    const uint64_t ranks = (uint64_t)ep->ranks;
#define LAY(field, count)                                                                                              \
    direct->field = (void *)(uintptr_t)(memory + wefti_cuda_ep_take(end, (count) * sizeof *direct->field))
    LAY(control, 1);
    LAY(ends, ranks);
    LAY(order, ranks);
#undef LAY
}

/* Where the ring from `sender` is among those of `receiver`. */
static uint32_t line_of(const weft_ep *ep, int receiver, int sender)
{
    const wefti_ep_domains *domains = &ep->domains;
    const int domain = domains->of[receiver];
    int line = 0;
    if (domains->of[sender] == domain) {
        return (uint32_t)domains->slot[sender];
    }
    for (int rank = 0; rank < sender; rank++) {
        line += domains->of[rank] != domain;
    }
    return (uint32_t)line;
}

/* Ranks of this rank's domain store to its device memory, others of its host to its host heap, if rings go so at
 * all. */
static weft_status find_end(const weft_ep *ep, int rank, void *const *blocks, wefti_cuda_ep_direct_end *end)
{
    const wefti_ep_between *between = ep->between;
    weft_world *world = ep->world;
    const int is_inside = ep->domains.of[rank] == ep->domains.of[ep->rank];
    end->pe = weft_team_translate(ep->team, rank, weft_team_world(world));
    end->block = is_inside ? WEFTI_CUDA_EP_DIRECT_INSIDE : WEFTI_CUDA_EP_DIRECT_OUTSIDE;
    end->here = (uintptr_t)blocks[end->block];
    if (rank == ep->rank) {
        return WEFT_OK;
    }
    end->line_here = line_of(ep, ep->rank, rank);
    end->line_there = line_of(ep, rank, ep->rank);
    if (is_inside) {
        uint64_t left;
        end->there = wefti_cuda_locate(&between->cuda->base, blocks[end->block], end->pe, &left);
        end->is_mapped = 1;
    } else if (ep->settings.maps != 0 && wefti_pe_is_near(&world->view, end->pe)) {
        WEFT_TRY(wefti_cuda_enter(between->cuda));
        weft_status status = wefti_cuda_reach_host_of(between->cuda, end->pe);
        wefti_cuda_leave(between->cuda);
        end->there = (uintptr_t)wefti_peer_address(world, blocks[end->block], end->pe);
        end->is_mapped = status == WEFT_OK;
        return status;
    }
    return WEFT_OK;
}

static weft_status find_ends(const weft_ep *ep, void *const *blocks, wefti_cuda_ep_direct_end *ends)
{
    for (int rank = 0; rank < ep->ranks; rank++) {
        WEFT_TRY(find_end(ep, rank, blocks, &ends[rank]));
    }
    return WEFT_OK;
}

static weft_status write_tables(const weft_ep *ep, void *const *blocks)
{
    const wefti_cuda_ep_direct *direct = &ep->between->direct;
    wefti_device *device = &ep->between->cuda->base;
    const size_t ranks = (size_t)ep->ranks;
    wefti_cuda_ep_direct_end *ends = wefti_alloc_zeroed(ranks, sizeof *ends);
    weft_status status = ends != NULL
                             ? find_ends(ep, blocks, ends)
                             : wefti_error(WEFT_ERR_MEMORY, "weft_ep_create: no memory for the tables of a group");
    const struct {
        const void *to;
        const void *from;
        size_t bytes;
    } tables[] = {{direct->ends, ends, ranks * sizeof *ends},
                  {direct->order, ep->domains.members, ranks * sizeof *direct->order}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables && status == WEFT_OK; i++) {
        status = wefti_cuda_copy(device, (void *)(uintptr_t)tables[i].to, tables[i].from, tables[i].bytes);
    }
    wefti_free(ends);
    return status;
}

weft_status wefti_ep_direct_open(weft_ep *ep, void *inside, void *outside)
{
    const wefti_cuda_ep_direct *direct = &ep->between->direct;
    wefti_device *device = &ep->between->cuda->base;
    void *const blocks[] = {[WEFTI_CUDA_EP_DIRECT_INSIDE] = inside, [WEFTI_CUDA_EP_DIRECT_OUTSIDE] = outside};
    memset(outside, 0, direct->at[WEFTI_CUDA_EP_DIRECT_OUTSIDE].cleared_bytes);
    WEFT_TRY(wefti_cuda_clear(device, inside, direct->at[WEFTI_CUDA_EP_DIRECT_INSIDE].cleared_bytes));
    WEFT_TRY(wefti_cuda_clear(device, direct->control, sizeof *direct->control));
    return write_tables(ep, blocks);
}

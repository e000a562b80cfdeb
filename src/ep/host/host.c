/* The host backend: its table, and a group's memory. */
#include <string.h>

#include "ep/host/host.h"

#include "base/alloc.h"
#include "base/error.h"
#include "ep/host/calls.h"
#include "ep/host/crossing.h"
#include "ep/host/growth.h"
#include "ep/host/notices.h"
#include "ep/host/pull.h"
#include "ep/host/push.h"
#include "weft.h"
#include "weft/protocol/mem.h"

static void set_limits(weft_ep *ep)
{
    wefti_ep_limits *limits = &ep->host->limits;
    size_t received = (size_t)ep->ranks * (size_t)ep->config.tokens_max;
    size_t slots = (size_t)ep->ranks * (size_t)ep->config.slot_tokens_max;
    received = received < (size_t)ep->rows_limit ? received : (size_t)ep->rows_limit;
    limits->ranks = (size_t)ep->ranks;
    limits->experts = (size_t)ep->config.experts;
    limits->local_experts_max = (size_t)ep->owners.local_max;
    const size_t own = (size_t)ep->ranks * wefti_ep_own_places(ep);
    limits->received_max = received > slots ? received : slots;
    limits->received_max = limits->received_max > own ? limits->received_max : own;
    limits->topk_max = (size_t)ep->config.topk_max;
    limits->direct = ep->settings.counts_direct;
    limits->unstaged = !wefti_ep_stages(ep);
    limits->row_bytes_max = ep->config.row_bytes_max;
    limits->scale_bytes_max = (size_t)ep->config.scale_bytes_max;
    limits->ring = wefti_ep_crossing_shape(ep);
    limits->notice_words = limits->ring.domains > 0 ? wefti_ep_notice_words(ep) : 0;
    ep->host->layout = wefti_ep_layout_of(limits);
}

static weft_status group_bytes(weft_ep *ep, weft_ep_memory *memory)
{
    wefti_ep_host host;
    wefti_ep_host *before = ep->host;
    memset(&host, 0, sizeof host);
    ep->host = &host;
    set_limits(ep);
    size_t banks = (size_t)wefti_ep_banks(ep);
    memory->symmetric_bytes = banks * host.layout.bytes;
    memory->staging_bytes = banks * (host.layout.bytes - host.layout.rows);
    memory->low_latency_bytes = 0;
    memory->private_bytes = banks * (wefti_ep_scratch_bytes(ep) + wefti_ep_crossing_bytes(ep));
    ep->host = before;
    return WEFT_OK;
}

static weft_status init_peers(weft_ep *ep)
{
    ep->host->peers = wefti_alloc_zeroed((size_t)ep->ranks, sizeof *ep->host->peers);
    if (ep->host->peers == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_create: no memory for %d ranks", ep->ranks);
    }
    for (int rank = 0; rank < ep->ranks; rank++) {
        ep->host->peers[rank].pe = weft_team_translate(ep->team, rank, weft_team_world(ep->world));
    }
    return WEFT_OK;
}

static weft_status bank_init(weft_ep *ep, int bank)
{
    ep->host = wefti_alloc_zeroed(1, sizeof *ep->host);
    if (ep->host == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_create: no memory for the group");
    }
    ep->host_of[bank] = ep->host;
    set_limits(ep);
    ep->host->push = wefti_alloc_zeroed(1, sizeof *ep->host->push);
    ep->host->pull = wefti_alloc_zeroed(1, sizeof *ep->host->pull);
    if (ep->host->push == NULL || ep->host->pull == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_create: no memory for the group");
    }
    WEFT_TRY(init_peers(ep));
    WEFT_TRY(wefti_ep_crossing_init(ep));
    return wefti_ep_scratch_init(ep);
}

static weft_status group_init(weft_ep *ep)
{
    for (int bank = wefti_ep_banks(ep) - 1; bank >= 0; bank--) {
        WEFT_TRY(bank_init(ep, bank));
    }
    return WEFT_OK;
}

static void bank_open(const weft_ep *ep, wefti_ep_host *host, unsigned char *base)
{
    host->base = base;
    wefti_zero(host->base, host->layout.words_bytes);
    for (int rank = 0; rank < ep->ranks; rank++) {
        host->peers[rank].near = weft_ptr(ep->world, host->base, host->peers[rank].pe);
    }
}

/* Flags are zero on all ranks before any rank may write one. */
static weft_status group_open(weft_ep *ep)
{
    size_t bytes = ep->host->layout.bytes; /* of a bank, a multiple of cache lines */
    void *block;
    WEFT_TRY(weft_team_malloc(ep->team, (size_t)wefti_ep_banks(ep) * bytes, &block));
    for (int bank = 0; bank < wefti_ep_banks(ep); bank++) {
        bank_open(ep, ep->host_of[bank], (unsigned char *)block + (size_t)bank * bytes);
    }
    return weft_team_barrier(ep->team);
}

static weft_status group_close(weft_ep *ep)
{
    return weft_team_free(ep->team, ep->host_of[0]->base);
}

static void group_fini(weft_ep *ep)
{
    for (int bank = 0; bank < WEFTI_EP_BANKS_MAX; bank++) {
        wefti_ep_host *host = ep->host_of[bank];
        if (host != NULL) {
            wefti_ep_scratch_fini(&host->scratch);
            wefti_free(host->peers);
            wefti_free(host->push);
            wefti_free(host->pull);
            wefti_ep_crossing_fini(host->crossing);
            wefti_free(host);
        }
    }
}

/* Nothing to prepare: calls look at ep->masked. */
static weft_status mask(weft_ep *ep, int rank, int alive)
{
    (void)ep;
    (void)rank;
    (void)alive;
    return WEFT_OK;
}

static weft_status calls(const weft_ep *ep, uint64_t *calls)
{
    *calls = *ep->started;
    return WEFT_OK;
}

/* The last call of each bank, if there was one, has ended. */
static weft_status rejoin(weft_ep *ep, uint64_t calls)
{
    if (calls < *ep->started) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_ep_rejoin: %llu calls are fewer than the %llu that this rank has made",
                           (unsigned long long)calls, (unsigned long long)*ep->started);
    }
    *ep->started = calls;
    for (uint64_t i = 0; i < (uint64_t)wefti_ep_banks(ep) && i < calls; i++) {
        wefti_ep_host *host = ep->host_of[(calls - i) % (uint64_t)wefti_ep_banks(ep)];
        wefti_st64(host->base + host->layout.epoch, calls - i, WEFTI_RELAXED);
    }
    return WEFT_OK;
}

const wefti_ep_backend wefti_ep_host_backend = {
    .name = "host",
    .has_streams = 0,
    .link_domain = wefti_world_link_domain,
    .group_bytes = group_bytes,
    .group_init = group_init,
    .group_open = group_open,
    .group_close = group_close,
    .grow = wefti_ep_host_grow,
    .meet = wefti_ep_host_meet,
    .group_fini = group_fini,
    .mask = mask,
    .calls = calls,
    .rejoin = rejoin,
    .route_bytes = wefti_ep_routing_bytes,
    .route_open = wefti_ep_routing_open,
    .route_close = wefti_ep_routing_close,
    .route_fit = wefti_ep_routing_fit,
    .route_move = wefti_ep_routing_move,
    .drop_rows = wefti_ep_host_drop_rows,
    .update = wefti_ep_host_update,
    .counts = wefti_ep_routing_counts,
    .counts_told = wefti_ep_routing_counts_told,
    .query = wefti_ep_routing_query,
    .dispatch = wefti_ep_host_dispatch,
    .combine = wefti_ep_host_combine,
    .dispatch_send = wefti_ep_host_dispatch_send,
    .dispatch_recv = wefti_ep_host_dispatch_recv,
    .combine_send = wefti_ep_host_combine_send,
    .combine_recv = wefti_ep_host_combine_recv,
    .dispatch_bwd = wefti_ep_host_dispatch_bwd,
    .combine_bwd = wefti_ep_host_combine_bwd,
    .pad = wefti_ep_host_pad,
};

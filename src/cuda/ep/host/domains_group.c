/* cuda/ep/host/domains_group.c: groups of several domains: the group inside each, rings, device memory. */
#include <string.h>

#include "base/alloc.h"
#include "cuda/ep/host/domains.h"
#include "ep/agreement.h"
#include "weft.h"

#define CALL "weft_ep_create"

/* ---- limits ---- */

static weft_status refuse(const char *what, const char *remedy)
{
    return wefti_error(WEFT_ERR_UNSUPPORTED, CALL ": %s; a group of several domains on GPUs does not have that: %s",
                       what, remedy);
}

static const struct {
    unsigned flag;
    const char *text;
} not_there[] = {
    {WEFT_EP_MASK_ON_TIMEOUT, "flags has WEFT_EP_MASK_ON_TIMEOUT"},
    {WEFT_EP_NO_STAGING, "flags has WEFT_EP_NO_STAGING"},
    {WEFT_EP_ROWS_WITH_SEND, "flags has WEFT_EP_ROWS_WITH_SEND"},
};

static weft_status check_limits(const weft_ep *ep)
{
    if (ep->ranks > WEFTI_CUDA_EP_MANY_MAX) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           CALL ": the team has %d members; on GPUs a group has at most %d ranks. "
                                "Split the team (weft_team_split_strided), or route on the host (config.on_device 0)",
                           ep->ranks, WEFTI_CUDA_EP_MANY_MAX);
    }
    if (ep->config.rows_max != 0) {
        return refuse("rows_max is not 0", "give 0, or route on the host (config.on_device 0)");
    }
    for (size_t i = 0; i < sizeof not_there / sizeof *not_there; i++) {
        if ((ep->config.flags & not_there[i].flag) != 0) {
            return refuse(not_there[i].text, "leave it out, or route on the host (config.on_device 0)");
        }
    }
    if (ep->config.claim_with != NULL) {
        return refuse("claim_with is given", "give NULL");
    }
    return WEFT_OK;
}

/* The widest row, with its scales, if it has some, and its tail. */
static uint64_t wide_max(const weft_ep *ep)
{
    const uint64_t row_bytes = ep->config.row_bytes_max;
    return wefti_cuda_ep_domains_row_bytes(row_bytes + wefti_cuda_ep_domains_scale_bytes(wefti_ep_scale_words_max(ep)),
                                           ep->config.topk_max);
}

/* Sources that `forwarder` forwards for, to `ends`, if it is not NULL; *most becomes the most of a domain, if more. */
static int list_sources(const wefti_ep_domains *domains, int forwarder, int *ends, int *most)
{
    int count = 0;
    for (int other = 0; other < domains->count; other++) {
        const int before = count;
        for (int i = domains->first[other]; i < domains->first[other + 1] && other != domains->of[forwarder]; i++) {
            const int source = domains->members[i];
            if (wefti_ep_domains_forwarder(domains, source, domains->of[forwarder]) == forwarder) {
                if (ends != NULL) {
                    ends[count] = source;
                }
                count++;
            }
        }
        *most = count - before > *most ? count - before : *most;
    }
    return count;
}

static int ascending(const int *sources, int count, int source)
{
    int before = 0;
    for (int i = 0; i < count; i++) {
        before += sources[i] < source;
    }
    return before;
}

/* What sizes the group's memory. Channels and rows of a chunk: at most so many. */
static void set_shape(weft_ep *ep)
{
    const uint64_t rows = ep->settings.chunk_rows;
    wefti_ep_between *between = ep->between;
    int most = 1;
    int lines = 0;
    for (int rank = 0; rank < ep->ranks; rank++) {
        const int count = list_sources(&ep->domains, rank, NULL, &most);
        lines = count > lines ? count : lines;
    }
    between->lines_max = lines;
    between->ring = wefti_ep_ring_shape_of((size_t)ep->domains.count, (size_t)lines, (size_t)most, wide_max(ep),
                                           (size_t)ep->config.topk_max, (size_t)ep->config.tokens_max);
    between->channels = wefti_cuda_ep_domains_channels(&between->ring, ep->settings.channels);
    if (between->channels > 1 && between->ring.slots > WEFTI_CUDA_EP_DOMAINS_SLOTS) {
        between->ring.slots = WEFTI_CUDA_EP_DOMAINS_SLOTS;
    }
    between->ring.tokens = rows > 0 && rows < between->ring.tokens ? rows : between->ring.tokens;
    between->group.at = wefti_cuda_ep_domains_rings_of(&between->ring, between->channels);
    wefti_ep_direct_shape(ep, wide_max(ep));
}

/* ---- private device memory ---- */

/* Of a row that goes back: of results, or of values. */
static uint64_t sum_bytes_max(const weft_ep *ep)
{
    const uint64_t values = wefti_ep_between_places(ep->config.topk_max) * sizeof(float);
    return values > ep->config.row_bytes_max ? values : ep->config.row_bytes_max;
}

static size_t lay_out(weft_ep *ep, wefti_cuda_ep_domains_group *group, uint64_t memory)
{
    wefti_u64 end = 0;
    const uint64_t tokens = (uint64_t)ep->config.tokens_max;
    const uint64_t domains = (uint64_t)ep->domains.count;
    const uint64_t received = wefti_ep_between_received_max(ep);
    const uint64_t local = (uint64_t)(ep->owners.local_max > 1 ? ep->owners.local_max : 1);
    const uint64_t tiles = (received + WEFTI_CUDA_EP_DOMAINS_TILE - 1) / WEFTI_CUDA_EP_DOMAINS_TILE;
    const uint64_t wide = wide_max(ep);
    const uint64_t row_bytes = sum_bytes_max(ep);
#define LAY(field, bytes) group->field = (void *)(uintptr_t)(memory + wefti_cuda_ep_take(&end, bytes))
    LAY(control, sizeof *group->control);
    LAY(forwarders, domains * sizeof *group->forwarders);
    LAY(sources, (uint64_t)ep->ranks * sizeof *group->sources);
    LAY(domain_of, (uint64_t)ep->config.experts * sizeof *group->domain_of);
    LAY(rank_of, (uint64_t)ep->config.experts * sizeof *group->rank_of);
    LAY(inner_expert, (uint64_t)ep->config.experts * sizeof *group->inner_expert);
    LAY(domain_of_rank, (uint64_t)ep->ranks * sizeof *group->domain_of_rank);
    LAY(inner_rank, (uint64_t)ep->ranks * sizeof *group->inner_rank);
    LAY(row_of, received * sizeof *group->row_of);
    LAY(tile_counts, tiles * local * sizeof *group->tile_counts);
    LAY(stats, wefti_ep_between_stats_words(ep) * sizeof *group->stats);
    LAY(rows, wefti_ep_between_tokens_max(ep) * wide);
    LAY(results, received * row_bytes);
    LAY(sums, wefti_ep_between_tokens_max(ep) * row_bytes);
    LAY(domain_sums, domains * tokens * row_bytes);
#undef LAY
    wefti_ep_direct_lay_out(ep, memory, &end);
    return end;
}

/* Before the direct rings. */
static size_t rows_received_bytes(const weft_ep *ep)
{
    return ((size_t)(wefti_ep_between_received_max(ep) * wide_max(ep)) + 16 + 255) / 256 * 256;
}

static size_t received_bytes(const weft_ep *ep)
{
    return rows_received_bytes(ep) + wefti_ep_direct_bytes(ep, WEFTI_CUDA_EP_DIRECT_INSIDE);
}

/* Chunks stand behind them. */
static size_t words_bytes(const weft_ep *ep)
{
    return ((size_t)ep->between->group.at.bytes + WEFTI_CUDA_EP_HOST_STATUS_ALL_WORDS * sizeof(uint64_t) + 255) / 256 *
           256;
}

static size_t rings_bytes(const weft_ep *ep)
{
    return words_bytes(ep) + wefti_ep_direct_bytes(ep, WEFTI_CUDA_EP_DIRECT_OUTSIDE);
}

/* ---- the group inside ---- */

static const int32_t *members_of(const weft_ep *ep, int *count)
{
    const wefti_ep_domains *domains = &ep->domains;
    const int own = domains->of[ep->rank];
    *count = wefti_ep_domains_size(domains, own);
    return domains->members + domains->first[own];
}

/* Its limits; `counts`: experts of its ranks. */
static weft_ep_config inner_config(const weft_ep *ep, int *counts)
{
    int size;
    const int32_t *members = members_of(ep, &size);
    weft_ep_config config = {.size = sizeof config,
                             .tokens_max = (int)wefti_ep_between_tokens_max(ep),
                             .topk_max = ep->config.topk_max,
                             .row_bytes_max = wide_max(ep),
                             .rows_max = (size_t)wefti_ep_between_received_max(ep),
                             .experts_of_rank = counts,
                             .on_device = 1,
                             .domain_ranks = size};
    for (int i = 0; i < size; i++) {
        counts[i] = wefti_ep_owners_count(&ep->owners, members[i]);
        config.experts += counts[i];
    }
    if (config.experts == 0) { /* nobody chooses it */
        counts[0] = 1;
        config.experts = 1;
    }
    return config;
}

static weft_status make_inner(weft_ep *ep)
{
    wefti_ep_between *between = ep->between;
    int size;
    const int32_t *members = members_of(ep, &size);
    int *counts = wefti_alloc((size_t)size * sizeof *counts);
    weft_status status = counts == NULL ? wefti_error(WEFT_ERR_MEMORY, CALL ": no memory for a domain") : WEFT_OK;
    weft_status made = weft_team_create(ep->team, members, size, &between->team);
    status = made != WEFT_OK ? made : status;
    if (status == WEFT_OK) {
        const weft_ep_config config = inner_config(ep, counts);
        status = ep->calls->create(between->team, &config, &between->inner);
    }
    wefti_free(counts);
    return status;
}

/* ---- tables ---- */

static int pe_of(const weft_ep *ep, int rank)
{
    return weft_team_translate(ep->team, rank, weft_team_world(ep->world));
}

/* Kernels store to the rings of PEs of this host, whose host heaps are mapped here. */
static weft_status map_end(const weft_ep *ep, wefti_cuda_ep_domains_end *end)
{
    weft_world *world = ep->world;
    if (ep->settings.maps == 0 || end->rank == ep->rank || !wefti_pe_is_near(&world->view, end->pe)) {
        return WEFT_OK;
    }
    WEFT_TRY(wefti_cuda_enter(ep->between->cuda));
    weft_status status = wefti_cuda_reach_host_of(ep->between->cuda, end->pe);
    wefti_cuda_leave(ep->between->cuda);
    end->is_mapped = status == WEFT_OK;
    end->delta = (int64_t)((uintptr_t)wefti_peer_address(world, world->heap, end->pe) - (uintptr_t)world->heap);
    return status;
}

/* Between domains there is the proxy, inside load and store. */
static weft_status check_reach(const weft_ep *ep)
{
    const wefti_cuda *cuda = ep->between->cuda;
    for (int rank = 0; rank < ep->ranks; rank++) {
        const int pe = pe_of(ep, rank);
        const int is_near = wefti_cuda_is_near(cuda, pe);
        const int is_far = !is_near || wefti_cuda_is_abroad(cuda, (uint32_t)pe - cuda->near_first);
        if (ep->domains.of[rank] == ep->domains.of[ep->rank] ? !is_near : !is_far) {
            return wefti_error(WEFT_ERR_UNSUPPORTED,
                               CALL
                               ": ranks %d and %d are in %s; on GPUs domains are whole link domains of one host. "
                               "Give domain_of NULL and domain_ranks 0, or WEFT_CUDA_DOMAIN=n to limit link domains",
                               ep->rank, rank,
                               is_far ? "one domain of the group, and their GPUs do not reach each other"
                                      : "different domains of the group, and their GPUs reach each other");
        }
    }
    return WEFT_OK;
}

/* The ends of this rank's rings. */
static void find_ends(const weft_ep *ep, wefti_cuda_ep_domains_end *forwarders, wefti_cuda_ep_domains_end *sources)
{
    const wefti_ep_domains *domains = &ep->domains;
    int *of = (int *)(void *)(sources + ep->ranks);
    int *theirs = of + ep->ranks;
    int most = 0;
    const int count = list_sources(domains, ep->rank, of, &most);
    for (int domain = 0; domain < domains->count; domain++) {
        const int is_own = domain == domains->of[ep->rank];
        const int rank = is_own ? ep->rank : wefti_ep_domains_forwarder(domains, ep->rank, domain);
        const int theirs_count = is_own ? 0 : list_sources(domains, rank, theirs, &most);
        forwarders[domain] = (wefti_cuda_ep_domains_end){.pe = pe_of(ep, rank),
                                                         .rank = rank,
                                                         .domain = domain,
                                                         .line = (uint32_t)ascending(theirs, theirs_count, ep->rank)};
    }
    for (int i = 0; i < count; i++) {
        sources[ascending(of, count, of[i])] = (wefti_cuda_ep_domains_end){.pe = pe_of(ep, of[i]),
                                                                           .rank = of[i],
                                                                           .domain = domains->of[of[i]],
                                                                           .line = (uint32_t)domains->of[ep->rank]};
    }
    ep->between->group.lines = count;
}

static void find_experts(const weft_ep *ep, int32_t *domain_of, int32_t *rank_of, int32_t *inner_expert)
{
    const wefti_ep_domains *domains = &ep->domains;
    for (int domain = 0; domain < domains->count; domain++) {
        int32_t number = 0;
        for (int i = domains->first[domain]; i < domains->first[domain + 1]; i++) {
            const int rank = domains->members[i];
            for (int expert = ep->owners.first[rank]; expert < ep->owners.first[rank + 1]; expert++) {
                domain_of[expert] = domain;
                rank_of[expert] = rank;
                inner_expert[expert] = number++;
            }
        }
    }
}

static weft_status write_tables(weft_ep *ep)
{
    wefti_ep_between *between = ep->between;
    const size_t ranks = (size_t)ep->ranks;
    const size_t domains = (size_t)ep->domains.count;
    const size_t experts = (size_t)ep->config.experts;
    wefti_cuda_ep_domains_group *group = &between->group;
    wefti_device *device = &between->cuda->base;
    const size_t ends = (domains + ranks) * sizeof(wefti_cuda_ep_domains_end);
    wefti_cuda_ep_domains_end *forwarders = wefti_alloc_zeroed(1, ends + 2 * ranks * sizeof(int));
    int32_t *numbers = wefti_alloc_zeroed(3 * experts, sizeof *numbers);
    if (forwarders == NULL || numbers == NULL) {
        wefti_free(forwarders);
        wefti_free(numbers);
        return wefti_error(WEFT_ERR_MEMORY, CALL ": no memory for the tables of a group");
    }
    find_ends(ep, forwarders, forwarders + domains);
    find_experts(ep, numbers, numbers + experts, numbers + 2 * experts);
    weft_status status = wefti_cuda_clear(device, group->control, sizeof *group->control);
    for (size_t i = 0; i < domains + (size_t)group->lines && status == WEFT_OK; i++) {
        status = map_end(ep, &forwarders[i]);
    }
    const struct {
        const void *to;
        const void *from;
        size_t bytes;
    } tables[] = {{group->forwarders, forwarders, domains * sizeof *forwarders},
                  {group->sources, forwarders + domains, ranks * sizeof *forwarders},
                  {group->domain_of, numbers, experts * sizeof *numbers},
                  {group->rank_of, numbers + experts, experts * sizeof *numbers},
                  {group->inner_expert, numbers + 2 * experts, experts * sizeof *numbers},
                  {group->domain_of_rank, ep->domains.of, ranks * sizeof *numbers},
                  {group->inner_rank, ep->domains.slot, ranks * sizeof *numbers}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables && status == WEFT_OK; i++) {
        status = wefti_cuda_copy(device, (void *)(uintptr_t)tables[i].to, tables[i].from, tables[i].bytes);
    }
    wefti_free(forwarders);
    wefti_free(numbers);
    return status;
}

static weft_status find_kernels(wefti_ep_between *between)
{
    static const struct {
        const char *name;
        wefti_cuda_ep_module module;
    } kernels[] = {
#define KERNEL(NAME, name, module) {"_ZN4weft" name "C1Ev", WEFTI_CUDA_EP_MODULE_##module},
        WEFTI_CUDA_EP_DOMAINS_KERNELS(KERNEL)
#undef KERNEL
    };
    wefti_cuda *cuda = between->cuda;
    const wefti_cuda_driver *driver = &cuda->driver;
    WEFT_TRY(wefti_cuda_ep_load_modules(cuda, 1u << WEFTI_CUDA_EP_FOR_DOMAINS));
    for (int i = 0; i < WEFTI_EP_BETWEEN_KERNELS; i++) {
        CUfunction *function = &between->kernel[i];
        WEFT_TRY(wefti_cuda_check(
            driver, driver->cuModuleGetFunction(function, cuda->ep_modules[kernels[i].module], kernels[i].name),
            "cuModuleGetFunction"));
        WEFT_TRY(wefti_cuda_check(driver, driver->cuFuncLoad(*function), "cuFuncLoad"));
    }
    return WEFT_OK;
}

static void set_group(weft_ep *ep)
{
    wefti_ep_between *between = ep->between;
    wefti_cuda_ep_domains_group *group = &between->group;
    const wefti_cuda_ep_group *inner = &between->inner->device->group[0];
    group->memory = (uintptr_t)between->rings;
    group->heap = (uintptr_t)ep->world->heap;
    group->host_status = (wefti_u64 *)(void *)((unsigned char *)between->rings + group->at.bytes);
    group->inner_control = (void *)(uintptr_t)(wefti_cuda_ep_own_area(between->inner, 0) + inner->at.control);
    group->received = between->received;
    group->rank = ep->rank;
    group->ranks = ep->ranks;
    group->domain = ep->domains.of[ep->rank];
    group->domains = ep->domains.count;
    group->tokens_max = ep->config.tokens_max;
    group->experts = ep->config.experts;
    group->first_expert = ep->owners.first[ep->rank];
    group->local_experts = wefti_ep_local_experts(ep);
    group->channels = between->channels;
    group->slots = (uint32_t)between->ring.slots;
    group->chunk_rows = (uint32_t)between->ring.tokens;
    group->chunk_bytes = between->ring.chunk_bytes;
}

/* This rank's own work, once there is memory of all. */
static weft_status prepare(weft_ep *ep)
{
    wefti_ep_between *between = ep->between;
    WEFT_TRY(wefti_cuda_ep_allocate(between->cuda, lay_out(ep, &between->group, 0), &between->owned));
    (void)lay_out(ep, &between->group, (uintptr_t)between->owned);
    memset(between->rings, 0, between->group.at.cleared_bytes);
    memset((unsigned char *)between->rings + between->group.at.bytes, 0,
           WEFTI_CUDA_EP_HOST_STATUS_ALL_WORDS * sizeof(uint64_t));
    WEFT_TRY(weft_world_dev(ep->world, &between->group.dev));
    set_group(ep);
    WEFT_TRY(write_tables(ep));
    WEFT_TRY(wefti_ep_direct_open(ep, (unsigned char *)between->received + rows_received_bytes(ep),
                                  (unsigned char *)between->rings + words_bytes(ep)));
    WEFT_TRY(wefti_ep_between_stats_open(ep));
    WEFT_TRY(wefti_cuda_enter(between->cuda));
    weft_status status = find_kernels(between);
    wefti_cuda_leave(between->cuda);
    return status;
}

/* ---- the backend ---- */

static weft_status group_bytes(weft_ep *ep, weft_ep_memory *memory)
{
    wefti_ep_between between;
    weft_ep_memory inner = WEFT_EP_MEMORY_INIT;
    memset(&between, 0, sizeof between);
    WEFT_TRY(check_limits(ep));
    ep->between = &between;
    set_shape(ep);
    int *counts = wefti_alloc((size_t)ep->ranks * sizeof *counts);
    weft_status status = counts == NULL ? wefti_error(WEFT_ERR_MEMORY, "weft_ep_bytes: no memory") : WEFT_OK;
    if (status == WEFT_OK) {
        int size;
        (void)members_of(ep, &size);
        const weft_ep_config config = inner_config(ep, counts);
        status = ep->calls->bytes(&config, size, &inner);
    }
    wefti_free(counts);
    memory->symmetric_bytes = inner.symmetric_bytes + received_bytes(ep);
    memory->staging_bytes = inner.staging_bytes + rows_received_bytes(ep);
    memory->low_latency_bytes =
        (ep->config.flags & WEFT_EP_NO_LOW_LATENCY) != 0 ? 0 : wefti_ep_direct_bytes(ep, WEFTI_CUDA_EP_DIRECT_INSIDE);
    memory->private_bytes = rings_bytes(ep);
    ep->between = NULL;
    return status;
}

static weft_status group_init(weft_ep *ep)
{
    if (ep->world->device == NULL) {
        return wefti_error(WEFT_ERR_STATE,
                           CALL ": on_device is 1 and the world has no device; call weft_device_attach");
    }
    WEFT_TRY(check_limits(ep));
    ep->between = wefti_alloc_zeroed(1, sizeof *ep->between);
    if (ep->between == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, CALL ": no memory for the group");
    }
    ep->between->cuda = wefti_cuda_of(ep->world->device);
    WEFT_TRY(check_reach(ep));
    set_shape(ep);
    return WEFT_OK;
}

/* The group inside, which has the claim of multiprocessors, where it did not end with the memory of all: alone, too, so
 * that its memory stays taken. */
static void end_inner(const weft_ep *ep)
{
    weft_ep *inner = ep->between->inner;
    if (inner != NULL && wefti_ep_is_alive(inner)) {
        inner->dead = WEFT_ERR_STATE;
        (void)ep->calls->destroy(inner);
    }
}

static void group_fini(weft_ep *ep)
{
    if (ep->between != NULL) {
        end_inner(ep);
        wefti_cuda_ep_free(ep->between->cuda, ep->between->owned);
    }
    wefti_free(ep->between);
    ep->between = NULL;
}

/* What all have, of a group that nobody uses any more. */
static weft_status give_back(weft_ep *ep)
{
    wefti_ep_between *between = ep->between;
    weft_status status = WEFT_OK;
    if (between->received != NULL) {
        status = weft_device_team_free(between->team, between->received);
    }
    if (between->rings != NULL) {
        weft_status freed = weft_team_free(ep->team, between->rings);
        status = status != WEFT_OK ? status : freed;
    }
    weft_status ended = ep->calls->destroy(between->inner);
    between->inner = NULL;
    weft_status parted = weft_team_destroy(between->team);
    return status != WEFT_OK ? status : ended != WEFT_OK ? ended : parted;
}

static weft_status open_by(weft_ep *ep)
{
    wefti_ep_between *between = ep->between;
    WEFT_TRY(wefti_ep_agree(ep->team, &ep->config, ep, make_inner(ep), CALL));
    WEFT_TRY(weft_team_malloc(ep->team, rings_bytes(ep), &between->rings));
    WEFT_TRY(wefti_ep_agree(ep->team, &ep->config, ep,
                            weft_device_team_malloc(between->team, received_bytes(ep), &between->received), CALL));
    return wefti_ep_agree(ep->team, &ep->config, ep, prepare(ep), CALL);
}

static weft_status group_open(weft_ep *ep)
{
    weft_status status = open_by(ep);
    if (wefti_ep_is_alike(status)) {
        (void)give_back(ep); /* the error stays that of what failed */
    }
    return status;
}

static weft_status group_close(weft_ep *ep)
{
    if (wefti_ep_between_failed(ep) != 0) {
        return WEFT_OK; /* the memory stays taken: a rank that is late may still write there */
    }
    return give_back(ep);
}

static weft_status failure(const weft_ep *ep)
{
    return (weft_status) - (int)(uint32_t)wefti_ep_between_failed(ep);
}

static int link_domain(const weft_world *world, int pe)
{
    return world->device == NULL ? 0 : wefti_cuda_of(world->device)->domain_of[pe];
}

static weft_status route_attach(weft_ep_route *route, void *memory, size_t bytes, weft_ep_contents contents,
                                weft_stream *stream)
{
    (void)route;
    (void)memory;
    (void)bytes;
    (void)contents;
    (void)stream;
    return wefti_error(WEFT_ERR_UNSUPPORTED,
                       "weft_ep_route_attach: routes of a group of several domains stay where they were made");
}

static const wefti_ep_backend domains_backend = {
    .name = "device",
    .has_streams = 1,
    .link_domain = link_domain,
    .group_bytes = group_bytes,
    .group_init = group_init,
    .group_open = group_open,
    .group_close = group_close,
    .group_fini = group_fini,
    .mask = wefti_ep_between_mask,
    .failure = failure,
    .route_bytes = wefti_ep_between_route_bytes,
    .route_open = wefti_ep_between_route_open,
    .route_close = wefti_ep_between_route_close,
    .route_move = wefti_ep_between_route_move,
    .route_attach = route_attach,
    .update = wefti_ep_between_update,
    .counts = wefti_ep_between_counts,
    .counts_told = wefti_ep_between_counts_told,
    .query = wefti_ep_between_query,
    .stats_fetch = wefti_ep_between_stats_fetch,
    .stats_clear = wefti_ep_between_stats_clear,
    .dispatch = wefti_ep_between_dispatch,
    .combine = wefti_ep_between_combine,
    .dispatch_send = wefti_ep_between_dispatch_send,
    .dispatch_recv = wefti_ep_between_dispatch_recv,
    .combine_send = wefti_ep_between_combine_send,
    .combine_recv = wefti_ep_between_combine_recv,
    .dispatch_bwd = wefti_ep_between_dispatch_bwd,
    .combine_bwd = wefti_ep_between_combine_bwd,
    .pad = wefti_cuda_ep_pad,
};

const wefti_ep_backend *const wefti_ep_domains_backend = &domains_backend;

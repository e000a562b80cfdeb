#include "ep/group.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/sized.h"
#include "ep/agreement.h"
#include "ep/backend.h"
#include "ep/route.h"
#include "ep/tuning.h"
#include "weft.h"

static weft_status check_overflow(const weft_ep_config *config)
{
    if ((int)config->overflow < WEFT_EP_OVERFLOW_ERROR || config->overflow > WEFT_EP_OVERFLOW_DROP_ROWS) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_config: overflow is %d; give a weft_ep_overflow",
                           (int)config->overflow);
    }
    if (config->overflow == WEFT_EP_OVERFLOW_DROP_ROWS && (config->pairs_max == 2 || config->bytes_max != 0)) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "weft_ep_config: overflow is WEFT_EP_OVERFLOW_DROP_ROWS, with %s; leave that out, or give "
                           "WEFT_EP_OVERFLOW_DROP",
                           config->bytes_max != 0 ? "bytes_max" : "pairs_max 2");
    }
    return WEFT_OK;
}

static weft_status check_limits(const weft_ep_config *config)
{
    if (config->experts < 1 || config->experts > WEFTI_EP_EXPERTS_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_config: experts is %d; give 1 .. %d", config->experts,
                           WEFTI_EP_EXPERTS_MAX);
    }
    if (config->tokens_max < 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_config: tokens_max is %d; give 0 or more", config->tokens_max);
    }
    if (config->topk_max < 1 || config->topk_max > WEFTI_EP_TOPK_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_config: topk_max is %d; give 1 .. %d", config->topk_max,
                           WEFTI_EP_TOPK_MAX);
    }
    if (config->row_bytes_max == 0 || config->row_bytes_max % 16 != 0 ||
        config->row_bytes_max > WEFTI_EP_ROW_BYTES_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_config: row_bytes_max is %zu; give a multiple of 16, 16 .. %u",
                           config->row_bytes_max, WEFTI_EP_ROW_BYTES_MAX);
    }
    if (config->slot_tokens_max < 0 || config->slot_tokens_max > config->tokens_max) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_config: slot_tokens_max is %d; give 0 .. %d, the tokens_max",
                           config->slot_tokens_max, config->tokens_max);
    }
    return check_overflow(config);
}

static weft_status check_rows_max(const weft_ep_config *config, int ranks)
{
    if (config->rows_max > INT32_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_config: rows_max is %zu; give at most %d", config->rows_max,
                           INT32_MAX);
    }
    if (config->tokens_max > INT32_MAX / config->topk_max) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_ep_config: tokens_max %d times topk_max %d is more than %d choices; lower one",
                           config->tokens_max, config->topk_max, INT32_MAX);
    }
    if (config->rows_max == 0 && (int64_t)ranks * config->tokens_max > INT32_MAX / config->topk_max) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_ep_config: the worst case of %d ranks, %d tokens and %d choices is more than %d rows; "
                           "give rows_max",
                           ranks, config->tokens_max, config->topk_max, INT32_MAX);
    }
    return WEFT_OK;
}

static weft_status check_on_device(const weft_ep_config *config)
{
    if (config->on_device != 0 && config->on_device != 1) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_config: on_device is %d; give 0 or 1", config->on_device);
    }
    if (config->on_device && wefti_ep_device_backend == NULL) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "weft_ep_config: this build has no expert parallelism on GPUs; give on_device 0");
    }
    return WEFT_OK;
}

/* *given becomes what can be read: see base/sized.h. */
static weft_status read_config(const char *call, const weft_ep_config **given, weft_ep_config *copy)
{
    static const wefti_sized form = WEFTI_SIZED_FORM(weft_ep_config, row_bytes_max, "WEFT_EP_CONFIG_INIT");
    if (*given == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'config' is NULL; start from WEFT_EP_CONFIG_INIT", call);
    }
    WEFTI_SIZED_TRY(&form, call, "config", *given, copy);
    if ((*given)->bytes_max != 0) { /* the least limits, where bytes_max lets them grow */
        *copy = **given;
        copy->topk_max += copy->topk_max == 0;
        copy->row_bytes_max += copy->row_bytes_max == 0 ? 16 : 0;
        *given = copy;
    }
    return WEFT_OK;
}

static weft_status check_group_flags(const weft_ep_config *config)
{
    const unsigned known = WEFT_EP_MASK_ON_TIMEOUT | WEFT_EP_STATISTICS | WEFT_EP_NO_LOW_LATENCY | WEFT_EP_NO_STAGING |
                           WEFT_EP_ROWS_WITH_SEND;
    if ((config->flags & ~known) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_ep_config: flags is 0x%x; give WEFT_EP_MASK_ON_TIMEOUT, WEFT_EP_STATISTICS, "
                           "WEFT_EP_NO_LOW_LATENCY, WEFT_EP_NO_STAGING and WEFT_EP_ROWS_WITH_SEND, or 0",
                           config->flags);
    }
    return WEFT_OK;
}

static weft_status check_pairs(const weft_ep_config *config)
{
    if (config->pairs_max < 0 || config->pairs_max > 2) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_config: pairs_max is %d; give 0 .. 2", config->pairs_max);
    }
    return WEFT_OK;
}

static weft_status check_scale_bytes(const weft_ep_config *config)
{
    if (config->scale_bytes_max < 0 || config->scale_bytes_max % 4 != 0 ||
        config->scale_bytes_max > WEFTI_EP_SCALE_BYTES_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_config: scale_bytes_max is %d; give a multiple of 4, 0 .. %d",
                           config->scale_bytes_max, WEFTI_EP_SCALE_BYTES_MAX);
    }
    return WEFT_OK;
}

static weft_status check_windows(const weft_ep_config *config)
{
    if (config->windows < 0 || (config->windows == 0) != (config->window_bytes == 0) ||
        (config->windows > 0 && config->window_bytes > (SIZE_MAX / 2) / (size_t)config->windows)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_ep_config: windows is %d and window_bytes %zu; give both, or 0 and 0, and no more "
                           "together than there can be memory",
                           config->windows, config->window_bytes);
    }
    return WEFT_OK;
}

/* Where limits grow. */
static weft_status check_growth(const weft_ep *ep)
{
    if (wefti_ep_grows(ep) && ep->backend->grow == NULL) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "weft_ep_config: bytes_max is %zu; on GPUs, in groups of several domains, limits do not "
                           "grow; give 0 and the limits",
                           ep->config.bytes_max);
    }
    return WEFT_OK;
}

/* Whether bytes_max holds what the limits that are known take already. */
static weft_status check_bytes(weft_ep *ep)
{
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    WEFT_TRY(wefti_ep_grows(ep) ? wefti_ep_memory_of(ep, &memory) : WEFT_OK);
    if (wefti_ep_grows(ep) && memory.symmetric_bytes > ep->config.bytes_max) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_ep_config: bytes_max is %zu, and the limits given take %zu bytes of symmetric memory; "
                           "raise it or lower them",
                           ep->config.bytes_max, memory.symmetric_bytes);
    }
    return WEFT_OK;
}

static weft_status check_config(const weft_ep_config *config, int ranks)
{
    WEFT_TRY(check_pairs(config));
    WEFT_TRY(check_group_flags(config));
    WEFT_TRY(check_limits(config));
    WEFT_TRY(check_rows_max(config, ranks));
    WEFT_TRY(check_scale_bytes(config));
    WEFT_TRY(check_windows(config));
    return check_on_device(config);
}

static void fini(weft_ep *ep)
{
    if (ep->backend != NULL) {
        ep->backend->group_fini(ep);
    }
    wefti_ep_owners_fini(&ep->owners);
    wefti_ep_domains_fini(&ep->domains);
    wefti_free(ep->late);
    wefti_free(ep->masked);
    wefti_free(ep->mask_words);
    wefti_free(ep->started);
    wefti_free(ep->stats);
    wefti_free(ep->made);
    memset(ep, 0, sizeof *ep);
}

/* Free it but for the record, which says from now on that it is destroyed. */
static void retire(weft_ep *ep)
{
    weft_world *world = ep->world;
    fini(ep);
    wefti_world_free_late(world, ep);
}

/* The labels of the ranks' domains where the config says nothing: the link domains of the world, if there is one. */
static weft_status set_domains(weft_ep *ep, const weft_ep_config *config)
{
    int by_link = config->domain_of == NULL && config->domain_ranks == 0 && ep->world != NULL;
    int *labels = by_link ? wefti_alloc((size_t)ep->ranks * sizeof *labels) : NULL;
    if (by_link && labels == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_config: no memory for %d ranks", ep->ranks);
    }
    for (int rank = 0; rank < ep->ranks && by_link; rank++) {
        int pe = weft_team_translate(ep->team, rank, weft_team_world(ep->world));
        labels[rank] =
            (config->on_device ? wefti_ep_domains_backend : &wefti_ep_host_backend)->link_domain(ep->world, pe);
    }
    weft_status status =
        wefti_ep_domains_init(&ep->domains, ep->ranks, by_link ? labels : config->domain_of, config->domain_ranks);
    wefti_free(labels);
    return status;
}

/* What follows from a valid config. */
static weft_status set_limits(weft_ep *ep, const weft_ep_config *config, const wefti_ep_settings *settings)
{
    ep->config = *config;
    ep->config.experts_of_rank = NULL;
    ep->config.domain_of = NULL;
    if (config->slot_tokens_max == 0 && config->rows_max == 0) {
        ep->config.slot_tokens_max = config->tokens_max;
    }
    ep->config.scale_bytes_max = wefti_ep_scale_bytes_max(config);
    ep->rows_limit = config->rows_max != 0 ? (int64_t)config->rows_max : INT32_MAX;
    ep->settings = *settings;
    if ((config->flags & WEFT_EP_MASK_ON_TIMEOUT) != 0) { /* under a mask who places rows must be one rank */
        ep->settings.counts_direct = 0;
    }
    WEFT_TRY(wefti_ep_owners_init(&ep->owners, ep->ranks, config->experts, config->experts_of_rank));
    return set_domains(ep, config);
}

static const wefti_ep_backend *backend_of(const weft_ep *ep, const weft_ep_config *config)
{
    return !config->on_device      ? &wefti_ep_host_backend
           : ep->domains.count > 1 ? wefti_ep_domains_backend
                                   : wefti_ep_device_backend;
}

/* Everything that is this rank's alone. A half-built group is good for fini. */
static weft_status init_private(weft_ep *ep, weft_team *team, const weft_ep_config *config)
{
    ep->team = team;
    ep->world = weft_team_owner(team);
    ep->rank = weft_team_pe(team);
    ep->ranks = weft_team_pes(team);
    WEFT_TRY(check_config(config, ep->ranks));
    wefti_ep_settings settings;
    WEFT_TRY(wefti_ep_settings_read(&settings, ep->ranks, config));
    WEFT_TRY(set_limits(ep, config, &settings));
    ep->late = wefti_alloc_zeroed((size_t)ep->ranks, sizeof *ep->late);
    ep->masked = wefti_alloc_zeroed((size_t)ep->ranks, sizeof *ep->masked);
    ep->mask_words = wefti_alloc_zeroed(((size_t)ep->ranks + 63) / 64, sizeof *ep->mask_words);
    ep->started = wefti_alloc_zeroed(1, sizeof *ep->started);
    if ((config->flags & WEFT_EP_STATISTICS) != 0) {
        ep->stats = wefti_alloc_zeroed(wefti_ep_stats_words(ep), sizeof *ep->stats);
    }
    if (ep->late == NULL || ep->masked == NULL || ep->mask_words == NULL || ep->started == NULL ||
        (ep->stats == NULL && (config->flags & WEFT_EP_STATISTICS) != 0)) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_create: no memory for %d ranks", ep->ranks);
    }
    ep->backend = backend_of(ep, config);
    WEFT_TRY(check_growth(ep));
    WEFT_TRY(check_bytes(ep));
    return ep->backend->group_init(ep);
}

/* With the group end the routes that the program has left: nobody can call with them any more. */
static void end_with_world(wefti_attachment *attachment)
{
    weft_ep *ep = (weft_ep *)(void *)attachment;
    while (ep->routes != NULL) {
        wefti_ep_route_end(ep->routes);
    }
    retire(ep);
}

weft_status wefti_ep_bytes(const weft_ep_config *config, int ranks, const wefti_ep_calls *calls, weft_ep_memory *memory)
{
    weft_ep_config copy;
    weft_ep ep;
    memset(&ep, 0, sizeof ep);
    ep.ranks = ranks;
    ep.calls = calls;
    WEFT_TRY(read_config("weft_ep_bytes", &config, &copy));
    weft_ep_memory all;
    const size_t first = offsetof(weft_ep_memory, window_bytes); /* what there was at first */
    if (ranks < 1 || memory == NULL || memory->size < first) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_bytes: %s",
                           ranks < 1        ? "argument 'ranks' is less than 1"
                           : memory == NULL ? "argument 'memory' is NULL"
                                            : "argument 'memory' is too small; start from WEFT_EP_MEMORY_INIT");
    }
    WEFT_TRY(check_config(config, ranks));
    wefti_ep_settings settings;
    WEFT_TRY(wefti_ep_settings_read(&settings, ranks, config));
    weft_status status = set_limits(&ep, config, &settings);
    if (status == WEFT_OK) {
        ep.backend = backend_of(&ep, config);
        status = check_growth(&ep);
    }
    if (status == WEFT_OK) {
        status = wefti_ep_memory_of(&ep, &all);
    }
    if (status == WEFT_OK) {
        all.size = memory->size;
        memcpy(memory, &all, memory->size < sizeof all ? memory->size : sizeof all);
    }
    wefti_ep_owners_fini(&ep.owners);
    wefti_ep_domains_fini(&ep.domains);
    return status;
}

weft_status weft_ep_domains(const weft_ep *ep, int *domain_of, int *count)
{
    if (!wefti_ep_is_alive(ep)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_domains: argument 'ep' is NULL or destroyed");
    }
    WEFT_TRY(wefti_world_check_handle(ep->world, "weft_ep_domains"));
    for (int rank = 0; rank < ep->ranks && domain_of != NULL; rank++) {
        domain_of[rank] = ep->domains.members[ep->domains.first[ep->domains.of[rank]]];
    }
    if (count != NULL) {
        *count = ep->domains.count;
    }
    return WEFT_OK;
}

weft_status weft_ep_limits(const weft_ep *ep, weft_ep_config *config)
{
    static const char call[] = "weft_ep_limits";
    const size_t first = offsetof(weft_ep_config, windows); /* what there was when this function came */
    if (!wefti_ep_is_alive(ep) || config == NULL || config->size < first) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call,
                           !wefti_ep_is_alive(ep) ? "argument 'ep' is NULL or destroyed"
                           : config == NULL       ? "argument 'config' is NULL"
                                                  : "config is too small; start from WEFT_EP_CONFIG_INIT");
    }
    WEFT_TRY(wefti_world_check_handle(ep->world, call));
    weft_ep_config limits = ep->config;
    limits.size = config->size;
    limits.claim_with = NULL;
    memcpy(config, &limits, config->size < sizeof limits ? config->size : sizeof limits);
    return WEFT_OK;
}

weft_status weft_ep_window(const weft_ep *ep, int index, void **memory)
{
    static const char call[] = "weft_ep_window";
    if (!wefti_ep_is_alive(ep) || memory == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument '%s' is NULL%s", call, memory == NULL ? "memory" : "ep",
                           memory == NULL ? "" : " or destroyed");
    }
    WEFT_TRY(wefti_world_check_handle(ep->world, call));
    if (index < 0 || index >= ep->config.windows) {
        return wefti_error(WEFT_ERR_RANGE, "%s: index is %d, and the group has %d windows (config.windows)", call,
                           index, ep->config.windows);
    }
    *memory = ep->windows + (size_t)index * wefti_ep_window_pitch(&ep->config);
    return WEFT_OK;
}

/* ---- what is symmetric ---- */

static weft_status open_windows(weft_ep *ep)
{
    const size_t bytes = (size_t)ep->config.windows * wefti_ep_window_pitch(&ep->config);
    void *memory = NULL;
    if (bytes == 0) {
        return WEFT_OK;
    }
    WEFT_TRY(ep->config.on_device ? weft_device_team_malloc(ep->team, bytes, &memory)
                                  : weft_team_malloc(ep->team, bytes, &memory));
    ep->windows = memory;
    return WEFT_OK;
}

static weft_status close_windows(const weft_ep *ep)
{
    return ep->windows == NULL    ? WEFT_OK
           : ep->config.on_device ? weft_device_team_free(ep->team, ep->windows)
                                  : weft_team_free(ep->team, ep->windows);
}

/* Windows first: a failure that is not alike leaves the team dead, so that nothing can be given back. */
static weft_status open_memory(weft_ep *ep)
{
    WEFT_TRY(open_windows(ep));
    weft_status status = ep->backend->group_open(ep);
    weft_status freed = wefti_ep_is_alike(status) ? close_windows(ep) : WEFT_OK;
    return status != WEFT_OK ? status : freed;
}

static weft_status close_memory(weft_ep *ep)
{
    WEFT_TRY(close_windows(ep));
    return ep->backend->group_close(ep);
}

weft_status wefti_ep_create(weft_team *team, const weft_ep_config *config, const wefti_ep_calls *calls, weft_ep **out)
{
    if (team == NULL || out == NULL) {
        return wefti_error_null("weft_ep_create", team == NULL ? "team" : "ep");
    }
    if (weft_team_pes(team) < 1) {
        return wefti_error(WEFT_ERR_STATE,
                           "weft_ep_create: the team has been destroyed, or is one of the process that this one was "
                           "forked from");
    }
    weft_ep *ep = wefti_alloc_zeroed(1, sizeof *ep);
    weft_ep_config copy;
    weft_status verdict = ep != NULL ? read_config("weft_ep_create", &config, &copy)
                                     : wefti_error(WEFT_ERR_MEMORY, "weft_ep_create: no memory for the group");
    if (verdict == WEFT_OK) {
        ep->calls = calls;
        verdict = init_private(ep, team, config);
    }
    weft_status status = wefti_ep_agree(team, config, ep, verdict, "weft_ep_create");
    if (status == WEFT_OK) {
        status = open_memory(ep);
    }
    if (status != WEFT_OK) {
        if (ep != NULL) {
            fini(ep);
            wefti_free(ep);
        }
        return status;
    }
    ep->attachment.end = end_with_world;
    wefti_world_attach(ep->world, &ep->attachment);
    *out = ep;
    return WEFT_OK;
}

weft_status weft_ep_destroy(weft_ep *ep)
{
    if (ep == NULL) {
        return WEFT_OK;
    }
    if (!wefti_ep_is_alive(ep)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_destroy: the group has been destroyed already");
    }
    if (wefti_world_is_forked(ep->world)) {
        return WEFT_OK;
    }
    if (ep->routes != NULL) {
        return wefti_error(WEFT_ERR_STATE, "weft_ep_destroy: routes of the group are alive; destroy them first");
    }
    /* The memory of a dead group stays taken: a rank that is late may still write there. */
    weft_status status = WEFT_OK;
    wefti_ep_take_masks(ep);
    int is_complete = memchr(ep->masked, 1, (size_t)ep->ranks) == NULL;
    if (ep->dead == WEFT_OK && is_complete && weft_world_fault(ep->world, NULL) == WEFT_OK) {
        status = close_memory(ep);
    }
    wefti_world_detach(ep->world, &ep->attachment);
    retire(ep);
    return status;
}

weft_status wefti_ep_check_alive(const weft_ep *ep, const char *call)
{
    WEFT_TRY(wefti_world_check_handle(ep->world, call));
    if (ep->dead != WEFT_OK) {
        return wefti_error(ep->dead,
                           "%s: the group is dead since a call failed with %s; %sdestroy it and make a new one", call,
                           weft_status_name(ep->dead),
                           wefti_ep_missed_ranks(ep) && ep->between == NULL ? "mask the rank that is gone, or " : "");
    }
    return WEFT_OK;
}

weft_status wefti_ep_check_stream(const weft_ep *ep, const weft_stream *stream, const char *call)
{
    if (stream != NULL && !ep->backend->has_streams) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, "%s: the host has no streams; give NULL", call);
    }
    return WEFT_OK;
}

weft_status wefti_ep_check_call(const weft_ep *ep, const weft_stream *stream, const char *call)
{
    WEFT_TRY(wefti_ep_check_alive(ep, call));
    wefti_ep_half half = ep->half[wefti_ep_next_bank(ep)];
    if (half != WEFTI_EP_HALF_NONE) {
        const char *name = half == WEFTI_EP_HALF_DISPATCH ? "dispatch" : "combine";
        return wefti_error(WEFT_ERR_STATE,
                           "%s: a weft_ep_%s_send of the group waits for its weft_ep_%s_recv; call that%s", call, name,
                           name, wefti_ep_banks(ep) == 2 ? " (a third pair cannot be outstanding)" : "");
    }
    return wefti_ep_check_stream(ep, stream, call);
}

weft_status wefti_ep_enter(weft_ep *ep, const char *call)
{
    return wefti_ep_enter_half(ep, wefti_ep_next_bank(ep), call);
}

weft_status wefti_ep_enter_half(weft_ep *ep, int bank, const char *call)
{
#ifndef NDEBUG
    if (__atomic_exchange_n(&ep->busy, 1, __ATOMIC_ACQUIRE) != 0) {
        return wefti_error(WEFT_ERR_STATE, "%s: another thread is inside a call on this group; use one at a time",
                           call);
    }
#endif
    ep->bank = bank;
    ep->host = ep->host_of[bank];
    wefti_ep_take_masks(ep);
    ep->call_span = wefti_span_begin(ep->world, call);
    ep->stage_span = wefti_span_begin(ep->world, "post");
    return WEFT_OK;
}

/* Whether a call that returned this has done the same on all ranks, or nothing on this one. */
static int leaves_together(weft_status status)
{
    return status == WEFT_OK || status == WEFT_ERR_MISMATCH || status == WEFT_ERR_OVERFLOW ||
           status == WEFT_ERR_ARGUMENT || status == WEFT_ERR_RANGE || status == WEFT_ERR_STATE ||
           status == WEFT_ERR_UNSUPPORTED;
}

weft_status wefti_ep_leave(weft_ep *ep, weft_status status)
{
    wefti_span_end(&ep->stage_span, (wefti_span_details){.bytes = SIZE_MAX});
    wefti_span_end(&ep->call_span, (wefti_span_details){.members = ep->ranks, .bytes = SIZE_MAX, .status = status});
    if (!leaves_together(status)) {
        ep->dead = status;
        wefti_ep_close_halves(ep);
    }
    __atomic_store_n(&ep->busy, 0, __ATOMIC_RELEASE);
    return status;
}

#include "ep/group.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ep/agreement.h"
#include "weft.h"

static weft_status check_limits(const weft_ep_config *config)
{
    if (config->experts < 1 || config->experts > WEFTI_EP_EXPERTS_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_create: experts is %d; give 1 .. %d", config->experts,
                           WEFTI_EP_EXPERTS_MAX);
    }
    if (config->tokens_max < 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_create: tokens_max is %d; give 0 or more", config->tokens_max);
    }
    if (config->topk_max < 1 || config->topk_max > WEFTI_EP_TOPK_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_create: topk_max is %d; give 1 .. %d", config->topk_max,
                           WEFTI_EP_TOPK_MAX);
    }
    if (config->row_bytes_max == 0 || config->row_bytes_max % 16 != 0 ||
        config->row_bytes_max > WEFTI_EP_ROW_BYTES_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_create: row_bytes_max is %zu; give a multiple of 16, 16 .. %u",
                           config->row_bytes_max, WEFTI_EP_ROW_BYTES_MAX);
    }
    if (config->overflow != WEFT_EP_OVERFLOW_ERROR) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_create: overflow is %d; give a weft_ep_overflow",
                           (int)config->overflow);
    }
    return WEFT_OK;
}

static weft_status check_rows_max(const weft_ep_config *config, int ranks)
{
    if (config->rows_max > INT32_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_create: rows_max is %zu; give at most %d", config->rows_max,
                           INT32_MAX);
    }
    if (config->tokens_max > INT32_MAX / config->topk_max) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_ep_create: tokens_max %d times topk_max %d is more than %d choices; lower one",
                           config->tokens_max, config->topk_max, INT32_MAX);
    }
    if (config->rows_max == 0 && (int64_t)ranks * config->tokens_max > INT32_MAX / config->topk_max) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_ep_create: the worst case of %d ranks, %d tokens and %d choices is more than %d rows; "
                           "give rows_max",
                           ranks, config->tokens_max, config->topk_max, INT32_MAX);
    }
    return WEFT_OK;
}

static weft_status check_config(const weft_ep_config *config, int ranks)
{
    if (config == NULL || config->size != sizeof *config) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_create: %s; start from WEFT_EP_CONFIG_INIT",
                           config == NULL ? "the config is NULL" : "the config has a wrong size");
    }
    WEFT_TRY(check_limits(config));
    return check_rows_max(config, ranks);
}

static void set_limits(weft_ep *ep)
{
    size_t received = (size_t)ep->ranks * (size_t)ep->config.tokens_max;
    ep->rows_limit = ep->config.rows_max != 0 ? (int64_t)ep->config.rows_max : INT32_MAX;
    ep->limits.ranks = (size_t)ep->ranks;
    ep->limits.experts = (size_t)ep->config.experts;
    ep->limits.local_experts_max = (size_t)ep->owners.local_max;
    ep->limits.received_max = received < (size_t)ep->rows_limit ? received : (size_t)ep->rows_limit;
    ep->limits.topk_max = (size_t)ep->config.topk_max;
    ep->limits.row_bytes_max = ep->config.row_bytes_max;
    ep->layout = wefti_ep_layout_of(&ep->limits);
}

static void fini_scratch(wefti_ep_scratch *scratch)
{
    wefti_free(scratch->pending);
    wefti_free(scratch->choices);
    wefti_free(scratch->counts);
    wefti_free(scratch->counts_in);
    wefti_free(scratch->bases);
    wefti_free(scratch->expert_next);
    wefti_free(scratch->records);
    wefti_free(scratch->lanes);
    wefti_free(scratch->rows);
    wefti_free(scratch->row_at);
    wefti_free(scratch->choice_rows);
    wefti_free(scratch->choice_at);
    wefti_free(scratch->choice_weight);
    memset(scratch, 0, sizeof *scratch);
}

/* A half-built one is good for fini. */
static weft_status init_scratch(weft_ep *ep)
{
    wefti_ep_scratch *scratch = &ep->scratch;
    size_t ranks = ep->limits.ranks;
    size_t tokens = (size_t)ep->config.tokens_max;
    size_t topk = ep->limits.topk_max;
    size_t messages = ranks + ep->limits.experts;
    size_t local = (size_t)wefti_ep_local_experts(ep);
    scratch->pending = wefti_alloc(ranks * sizeof *scratch->pending);
    scratch->choices = wefti_alloc((tokens * topk + 1) * sizeof *scratch->choices);
    scratch->counts = wefti_alloc(messages * sizeof *scratch->counts);
    scratch->counts_in = wefti_alloc(ranks * (1 + local) * sizeof *scratch->counts_in);
    scratch->bases = wefti_alloc(messages * sizeof *scratch->bases);
    scratch->expert_next = wefti_alloc(ep->limits.experts * sizeof *scratch->expert_next);
    scratch->records = wefti_alloc(tokens * wefti_ep_record_bytes(topk) + 1);
    scratch->lanes = wefti_alloc(ranks * sizeof *scratch->lanes);
    scratch->rows = wefti_alloc_aligned(WEFTI_EP_LINE_BYTES, (topk + 1) * ep->limits.row_bytes_max);
    scratch->row_at = wefti_alloc(topk * sizeof *scratch->row_at);
    scratch->choice_rows = wefti_alloc_aligned(WEFTI_EP_LINE_BYTES, topk * ep->limits.row_bytes_max);
    scratch->choice_at = wefti_alloc(topk * sizeof *scratch->choice_at);
    scratch->choice_weight = wefti_alloc(topk * sizeof *scratch->choice_weight);
    if (scratch->pending == NULL || scratch->choices == NULL || scratch->counts == NULL || scratch->counts_in == NULL ||
        scratch->bases == NULL || scratch->expert_next == NULL || scratch->records == NULL || scratch->lanes == NULL ||
        scratch->rows == NULL || scratch->row_at == NULL || scratch->choice_rows == NULL ||
        scratch->choice_at == NULL || scratch->choice_weight == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_create: no memory for %d tokens of %d choices on %d ranks",
                           ep->config.tokens_max, ep->config.topk_max, ep->ranks);
    }
    return WEFT_OK;
}

static weft_status init_peers(weft_ep *ep)
{
    ep->peers = wefti_alloc_zeroed((size_t)ep->ranks, sizeof *ep->peers);
    if (ep->peers == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_create: no memory for %d ranks", ep->ranks);
    }
    for (int rank = 0; rank < ep->ranks; rank++) {
        ep->peers[rank].pe = weft_team_translate(ep->team, rank, weft_team_world(ep->world));
    }
    return WEFT_OK;
}

static void fini(weft_ep *ep)
{
    fini_scratch(&ep->scratch);
    wefti_ep_owners_fini(&ep->owners);
    wefti_free(ep->peers);
    wefti_free(ep);
}

/* Everything that is this rank's alone. A half-built group is good for fini. */
static weft_status init_private(weft_ep *ep, weft_team *team, const weft_ep_config *config)
{
    ep->team = team;
    ep->world = weft_team_owner(team);
    ep->rank = weft_team_pe(team);
    ep->ranks = weft_team_pes(team);
    WEFT_TRY(check_config(config, ep->ranks));
    ep->config = *config;
    ep->config.experts_of_rank = NULL;
    WEFT_TRY(wefti_ep_owners_init(&ep->owners, ep->ranks, config->experts, config->experts_of_rank));
    set_limits(ep);
    WEFT_TRY(init_peers(ep));
    return init_scratch(ep);
}

/* The symmetric memory, its flags zero on all ranks before any rank may write one. Collective. */
static weft_status init_symmetric(weft_ep *ep)
{
    void *block;
    WEFT_TRY(weft_team_malloc(ep->team, ep->layout.bytes, &block));
    ep->base = block;
    wefti_zero(ep->base, ep->layout.words_bytes);
    for (int rank = 0; rank < ep->ranks; rank++) {
        ep->peers[rank].near = weft_ptr(ep->world, ep->base, ep->peers[rank].pe);
    }
    return weft_team_barrier(ep->team);
}

/* Also of routes that are left: nobody can call with them any more. */
static void end_with_world(wefti_attachment *attachment)
{
    weft_ep *ep = (weft_ep *)(void *)attachment;
    while (ep->routes != NULL) {
        wefti_ep_route_end(ep->routes);
    }
    fini(ep);
}

weft_status weft_ep_create(weft_team *team, const weft_ep_config *config, weft_ep **out)
{
    if (team == NULL || out == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_create: %s is NULL", team == NULL ? "the team" : "the result");
    }
    weft_ep *ep = wefti_alloc_zeroed(1, sizeof *ep);
    weft_status verdict = ep != NULL ? init_private(ep, team, config)
                                     : wefti_error(WEFT_ERR_MEMORY, "weft_ep_create: no memory for the group");
    weft_status status = wefti_ep_agree(team, config, ep != NULL ? &ep->owners : NULL, verdict);
    if (status == WEFT_OK) {
        status = init_symmetric(ep);
    }
    if (status != WEFT_OK) {
        if (ep != NULL) {
            fini(ep);
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
    if (ep->routes != NULL) {
        return wefti_error(WEFT_ERR_STATE, "weft_ep_destroy: routes of the group are alive; destroy them first");
    }
    /* The memory of a dead group stays taken: a rank that is late may still write there. */
    weft_status status = WEFT_OK;
    if (ep->dead == WEFT_OK && weft_world_fault(ep->world, NULL) == WEFT_OK) {
        status = weft_team_free(ep->team, ep->base);
    }
    wefti_world_detach(ep->world, &ep->attachment);
    fini(ep);
    return status;
}

weft_status wefti_ep_check_alive(const weft_ep *ep, const char *call)
{
    if (ep->dead != WEFT_OK) {
        return wefti_error(ep->dead, "%s: the group is dead since a call failed with %s; destroy it and make a new one",
                           call, weft_status_name(ep->dead));
    }
    return WEFT_OK;
}

weft_status wefti_ep_enter(weft_ep *ep, const char *call)
{
#ifndef NDEBUG
    if (__atomic_exchange_n(&ep->busy, 1, __ATOMIC_ACQUIRE) != 0) {
        return wefti_error(WEFT_ERR_STATE, "%s: another thread is inside a call on this group; use one at a time",
                           call);
    }
#else
    (void)ep;
    (void)call;
#endif
    return WEFT_OK;
}

weft_status wefti_ep_leave(weft_ep *ep, weft_status status)
{
    if (status != WEFT_OK && status != WEFT_ERR_MISMATCH && status != WEFT_ERR_OVERFLOW) {
        ep->dead = status;
    }
    __atomic_store_n(&ep->busy, 0, __ATOMIC_RELEASE);
    return status;
}

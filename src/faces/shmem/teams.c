/* faces/shmem/teams.c: teams, contexts, sessions. (OpenSHMEM 1.6, 9.4, 9.5.)
 *
 * A handle is a constant of the header, or the address of weft's object. */
#include <stdlib.h>
#include <weft_shmem_weak.h>

#include "faces/shmem/binding.h"

#include <shmemx.h>

static shmem_team_t handle_of(weft_team *team)
{
    for (uintptr_t i = 1; i < WEFTI_SHMEM_TEAMS; i++) {
        if (wefti_shmem.teams[i] == team) {
            return (shmem_team_t)i;
        }
    }
    return (shmem_team_t)(void *)team;
}

int pshmem_team_my_pe(shmem_team_t team)
{
    return weft_team_pe(TEAM(team));
}
WEAK_pshmem_team_my_pe

    int
    pshmem_team_n_pes(shmem_team_t team)
{
    return weft_team_pes(TEAM(team));
}
WEAK_pshmem_team_n_pes

    int
    pshmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t *config)
{
    weft_team_config told = WEFT_TEAM_CONFIG_INIT;
    if (team == SHMEM_TEAM_INVALID) {
        return -1;
    }
    CHECK(weft_team_query(TEAM(team), &told), 1);
    if (config_mask & SHMEM_TEAM_NUM_CONTEXTS) {
        if (config == NULL) {
            return -1;
        }
        config->num_contexts = told.contexts;
    }
    return 0;
}
WEAK_pshmem_team_get_config

    int
    pshmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team)
{
    return weft_team_translate(TEAM(src_team), src_pe, TEAM(dest_team));
}
WEAK_pshmem_team_translate_pe

    void *
    pshmem_team_ptr(shmem_team_t team, const void *dest, int pe)
{
    const int world_pe = weft_team_translate(TEAM(team), pe, wefti_shmem.teams[(uintptr_t)SHMEM_TEAM_WORLD]);
    return world_pe < 0 ? NULL : weft_ptr(wefti_shmem.world, SYMMETRIC(dest), world_pe);
}
WEAK_pshmem_team_ptr

    /* What the program says of a new team; NULL on PEs that are no members. */
    static void
    configure(const char *call, weft_team *team, const shmem_team_config_t *config, long mask)
{
    if (team != NULL && config != NULL && (mask & SHMEM_TEAM_NUM_CONTEXTS) != 0) {
        weft_team_config said = WEFT_TEAM_CONFIG_INIT;
        said.contexts = config->num_contexts;
        weft_status status = weft_team_configure(team, &said);
        if (status != WEFT_OK) {
            wefti_shmem_fail(call, status);
        }
    }
}

/* Whether a split that failed lets the program go on, which is told by its result: arguments that cannot be, or no
 * memory. */
static int can_go_on(weft_status status)
{
    return status == WEFT_ERR_RANGE || status == WEFT_ERR_ARGUMENT || status == WEFT_ERR_MEMORY;
}

/* Each PE joins the team that it names, if it is a member, as weft_team_create has it: one call may make several teams
 * that share no member. 1.6 wants one triplet from all; programs of the field give each PE its own. An impossible
 * triplet is given to weft as a list that it refuses, so that the call fails on all PEs. */
static weft_status split_strided(weft_team *parent, int start, int stride, int size, weft_team **team)
{
    const int pes = weft_team_pes(parent);
    const int64_t last = (int64_t)start + (int64_t)stride * ((int64_t)size - 1);
    if (size < 1 || size > pes || start < 0 || start >= pes || last < 0 || last >= pes || (stride == 0 && size > 1)) {
        return weft_team_create(parent, NULL, -1, team);
    }
    int *members = malloc((size_t)size * sizeof *members);
    int count = members == NULL ? -1 : 0;
    for (int i = 0; i < size && members != NULL; i++) {
        members[i] = start + i * stride;
        count = members[i] == weft_team_pe(parent) ? size : count;
    }
    weft_status status = weft_team_create(parent, members, count, team);
    free(members);
    return status;
}

int pshmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size,
                              const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team)
{
    weft_team *team = NULL;
    NEED(new_team);
    *new_team = SHMEM_TEAM_INVALID;
    if (parent_team == SHMEM_TEAM_INVALID) {
        return -1;
    }
    weft_status status = split_strided(TEAM(parent_team), start, stride, size, &team);
    if (status != WEFT_OK && !can_go_on(status)) {
        wefti_shmem_fail(__func__, status);
    }
    if (status != WEFT_OK) {
        return -1;
    }
    configure(__func__, team, config, config_mask);
    *new_team = handle_of(team);
    return 0;
}
WEAK_pshmem_team_split_strided

    int
    pshmem_team_split_2d(shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask,
                         shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, long yaxis_mask,
                         shmem_team_t *yaxis_team)
{
    weft_team *x = NULL;
    weft_team *y = NULL;
    NEED(xaxis_team);
    NEED(yaxis_team);
    *xaxis_team = SHMEM_TEAM_INVALID;
    *yaxis_team = SHMEM_TEAM_INVALID;
    if (parent_team == SHMEM_TEAM_INVALID) {
        return -1;
    }
    weft_status status = weft_team_split_2d(TEAM(parent_team), xrange, &x, &y);
    if (status != WEFT_OK && !can_go_on(status)) {
        wefti_shmem_fail(__func__, status);
    }
    if (status != WEFT_OK) {
        return -1;
    }
    configure(__func__, x, xaxis_config, xaxis_mask);
    configure(__func__, y, yaxis_config, yaxis_mask);
    *xaxis_team = handle_of(x);
    *yaxis_team = handle_of(y);
    return 0;
}
WEAK_pshmem_team_split_2d

    void
    pshmem_team_destroy(shmem_team_t team)
{
    if (team != SHMEM_TEAM_INVALID) {
        CHECK(weft_team_destroy(TEAM(team)), 1);
    }
}
WEAK_pshmem_team_destroy

    /* ---- contexts ---- */

    _Static_assert(SHMEM_CTX_SERIALIZED == WEFT_CTX_SERIALIZED && SHMEM_CTX_PRIVATE == WEFT_CTX_PRIVATE &&
                       SHMEM_CTX_NOSTORE == WEFT_CTX_NOSTORE,
                   "options go to weft as they are");

static int create_ctx(const char *call, weft_team *team, long options, shmem_ctx_t *ctx)
{
    weft_ctx *made = NULL;
    if (ctx == NULL) {
        wefti_shmem_refuse_null(call, "ctx");
    }
    *ctx = SHMEM_CTX_INVALID;
    weft_status status = weft_ctx_create(team, (unsigned)(options & ~SHMEMX_CTX_BOUNCE_BUFFER), &made);
    if (status != WEFT_OK && status != WEFT_ERR_MEMORY) {
        wefti_shmem_fail(call, status);
    }
    *ctx = (shmem_ctx_t)(void *)made;
    return status == WEFT_OK ? 0 : -1;
}

int pshmem_ctx_create(long options, shmem_ctx_t *ctx)
{
    return create_ctx(__func__, wefti_shmem.teams[(uintptr_t)SHMEM_TEAM_WORLD], options, ctx);
}
WEAK_pshmem_ctx_create

    int
    pshmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx)
{
    if (team == SHMEM_TEAM_INVALID) {
        NEED(ctx);
        *ctx = SHMEM_CTX_INVALID;
        return -1;
    }
    return create_ctx(__func__, TEAM(team), options, ctx);
}
WEAK_pshmem_team_create_ctx

    void
    pshmem_ctx_destroy(shmem_ctx_t ctx)
{
    if (ctx == SHMEM_CTX_DEFAULT) {
        wefti_shmem_refuse(__func__, "argument 'ctx' is SHMEM_CTX_DEFAULT, which shmem_finalize ends; destroy contexts "
                                     "of shmem_ctx_create only");
    }
    if (ctx != SHMEM_CTX_INVALID) {
        CHECK(weft_ctx_destroy(CTX(ctx)), 1);
    }
}
WEAK_pshmem_ctx_destroy

    int
    pshmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team)
{
    NEED(team);
    if (ctx == SHMEM_CTX_INVALID) {
        *team = SHMEM_TEAM_INVALID;
        return -1;
    }
    *team = ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : handle_of(weft_ctx_team(CTX(ctx)));
    return *team == SHMEM_TEAM_INVALID ? -1 : 0;
}
WEAK_pshmem_ctx_get_team

    /* ---- sessions: hints; the default context has none ---- */

    static int
    has_session(shmem_ctx_t ctx)
{
    return ctx != SHMEM_CTX_DEFAULT && ctx != SHMEM_CTX_INVALID;
}

void pshmem_ctx_session_start(shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config, long config_mask)
{
    const unsigned known = ((options & SHMEM_CTX_SESSION_BATCH) != 0 ? WEFT_SESSION_BATCH : 0) |
                           ((options & SHMEM_CTX_SESSION_SAME_AMO) != 0 ? WEFT_SESSION_SAME_AMO : 0);
    const int has_total = config != NULL && (config_mask & SHMEM_CTX_SESSION_TOTAL_OPS) != 0;
    if (has_session(ctx)) {
        CHECK(weft_ctx_session_start(CTX(ctx), known, has_total ? config->total_ops : 0), 1);
    }
}
WEAK_pshmem_ctx_session_start

    void
    pshmem_ctx_session_stop(shmem_ctx_t ctx)
{
    if (has_session(ctx)) {
        CHECK(weft_ctx_session_stop(CTX(ctx)), 1);
    }
}
WEAK_pshmem_ctx_session_stop

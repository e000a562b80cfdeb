/* Contexts: a team's numbering and a promise. On load and store nothing else tells one from another. */
#include "weft/ctx.h"
#include "base/alloc.h"
#include "base/error.h"
#include "common/attachment.h"
#include "world/world.h"

static const unsigned all_options = WEFT_CTX_SERIALIZED | WEFT_CTX_PRIVATE | WEFT_CTX_NOSTORE;

/* What a context is part of; then: the list of members, if there is one. */
typedef struct ctx_record {
    wefti_attachment attachment;
    wefti_team_user user;
    weft_ctx ctx;
} ctx_record;

static ctx_record *record_of(weft_ctx *ctx)
{
    return (ctx_record *)(void *)((unsigned char *)ctx - offsetof(ctx_record, ctx));
}

static void join_team(ctx_record *record, weft_team *team)
{
    wefti_team_user *user = &record->user;
    wefti_os_monitor_enter(team->world->heap_lock);
    *user = (wefti_team_user){.next = team->users, .link = &team->users, .team = &record->ctx.team};
    if (user->next != NULL) {
        user->next->link = &user->next;
    }
    team->users = user;
    wefti_os_monitor_leave(team->world->heap_lock);
}

static void leave_team(weft_world *world, ctx_record *record)
{
    wefti_team_user *user = &record->user;
    wefti_os_monitor_enter(world->heap_lock);
    if (user->link != NULL) {
        *user->link = user->next;
        if (user->next != NULL) {
            user->next->link = user->link;
        }
        user->link = NULL;
    }
    wefti_os_monitor_leave(world->heap_lock);
}

static void end_with_world(wefti_attachment *attachment)
{
    ctx_record *record = (ctx_record *)(void *)attachment;
    if (record->ctx.world != NULL) {
        leave_team(record->ctx.world, record);
    }
    wefti_free(record);
}

weft_status weft_ctx_create(weft_team *team, unsigned options, weft_ctx **out)
{
    static const char call[] = "weft_ctx_create";
    WEFT_TRY(wefti_team_expect(team, call));
    if (out == NULL || (options & ~all_options) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call,
                           out == NULL ? "argument 'ctx' is NULL"
                                       : "an option is none of WEFT_CTX_SERIALIZED, _PRIVATE, _NOSTORE");
    }
    const wefti_span span = wefti_team_span_begin(team, call);
    size_t list_bytes = team->list != NULL ? (size_t)team->pes * sizeof *team->list : 0;
    ctx_record *record = wefti_alloc(sizeof *record + list_bytes);
    if (record == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "%s: no memory for a context", call);
    }
    weft_ctx *ctx = &record->ctx;
    *ctx = (weft_ctx){.world = team->world,
                      .pes = team->pes,
                      .start = team->start,
                      .stride = team->stride,
                      .team = team,
                      .options = options};
    if (list_bytes > 0) {
        memcpy(record + 1, team->list, list_bytes);
        ctx->list = (const int32_t *)(const void *)(record + 1);
    }
    join_team(record, team);
    record->attachment = (wefti_attachment){.end = end_with_world};
    wefti_world_attach(team->world, &record->attachment);
    *out = ctx;
    return wefti_team_span_end(team, &span, SIZE_MAX, WEFT_OK);
}

/* Keep the record of a destroyed context, without a world, so that who still uses it is told. */
static void retire(weft_ctx *ctx)
{
    weft_world *world = ctx->world;
    leave_team(world, record_of(ctx));
    wefti_world_detach(world, &record_of(ctx)->attachment);
    ctx->world = NULL;
    ctx->pes = 0;
    ctx->team = NULL;
    wefti_world_free_late(world, record_of(ctx));
}

weft_status weft_ctx_destroy(weft_ctx *ctx)
{
    if (ctx == NULL) {
        return WEFT_OK;
    }
    if (ctx->world == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ctx_destroy: the context has been destroyed already");
    }
    if (wefti_world_is_forked(ctx->world)) {
        return WEFT_OK;
    }
    weft_status status = weft_ctx_quiet(ctx);
    retire(ctx);
    return status;
}

weft_team *weft_ctx_team(const weft_ctx *ctx)
{
    return ctx == NULL || ctx->world == NULL || wefti_world_is_forked(ctx->world) ? NULL : ctx->team;
}

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

/* ---- out of line: all contexts of a world share its order and its completion ---- */

weft_status wefti_ctx_put_slow(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe)
{
    return wefti_put_slow(wefti_ctx_world(ctx), dest, source, bytes, wefti_ctx_pe(ctx, pe));
}

weft_status wefti_ctx_put_nbi_slow(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe)
{
    return wefti_put_nbi_slow(wefti_ctx_world(ctx), dest, source, bytes, wefti_ctx_pe(ctx, pe));
}

weft_status wefti_ctx_get_slow(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe)
{
    return wefti_get_slow(wefti_ctx_world(ctx), dest, source, bytes, wefti_ctx_pe(ctx, pe));
}

weft_status wefti_ctx_get_nbi_slow(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe)
{
    return wefti_get_nbi_slow(wefti_ctx_world(ctx), dest, source, bytes, wefti_ctx_pe(ctx, pe));
}

weft_status wefti_ctx_put_signal_slow(weft_ctx *ctx, void *dest, const void *source, size_t bytes, uint64_t *signal,
                                      uint64_t value, weft_signal_op op, int pe)
{
    return wefti_put_signal_slow(wefti_ctx_world(ctx), dest, source, bytes, signal, value, op, wefti_ctx_pe(ctx, pe));
}

weft_status wefti_ctx_put_signal_nbi_slow(weft_ctx *ctx, void *dest, const void *source, size_t bytes, uint64_t *signal,
                                          uint64_t value, weft_signal_op op, int pe)
{
    return wefti_put_signal_nbi_slow(wefti_ctx_world(ctx), dest, source, bytes, signal, value, op,
                                     wefti_ctx_pe(ctx, pe));
}

weft_status wefti_ctx_amo_slow(weft_ctx *ctx, wefti_amo_op op, int bits, void *dest, uint64_t value, uint64_t cond,
                               int pe, uint64_t *old)
{
    return wefti_amo_slow(wefti_ctx_world(ctx), op, bits, dest, value, cond, wefti_ctx_pe(ctx, pe), old);
}

weft_status wefti_ctx_amo_nbi_slow(weft_ctx *ctx, wefti_amo_op op, int bits, void *dest, uint64_t value, uint64_t cond,
                                   int pe, void *old)
{
    return wefti_amo_nbi_slow(wefti_ctx_world(ctx), op, bits, dest, value, cond, wefti_ctx_pe(ctx, pe), old);
}

weft_status wefti_ctx_fence_slow(weft_ctx *ctx)
{
    return wefti_fence_slow(wefti_ctx_world(ctx));
}

weft_status wefti_ctx_quiet_slow(weft_ctx *ctx)
{
    return wefti_quiet_slow(wefti_ctx_world(ctx));
}

weft_status weft_ctx_iputmem(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,
                             ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe)
{
    return weft_iputmem(wefti_ctx_world(ctx), dest, source, dest_stride, source_stride, count, element_bytes,
                        wefti_ctx_pe(ctx, pe));
}

weft_status weft_ctx_igetmem(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,
                             ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe)
{
    return weft_igetmem(wefti_ctx_world(ctx), dest, source, dest_stride, source_stride, count, element_bytes,
                        wefti_ctx_pe(ctx, pe));
}

weft_status weft_ctx_ibputmem(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,
                              ptrdiff_t source_stride, size_t block, size_t blocks, size_t element_bytes, int pe)
{
    return weft_ibputmem(wefti_ctx_world(ctx), dest, source, dest_stride, source_stride, block, blocks, element_bytes,
                         wefti_ctx_pe(ctx, pe));
}

weft_status weft_ctx_ibgetmem(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,
                              ptrdiff_t source_stride, size_t block, size_t blocks, size_t element_bytes, int pe)
{
    return weft_ibgetmem(wefti_ctx_world(ctx), dest, source, dest_stride, source_stride, block, blocks, element_bytes,
                         wefti_ctx_pe(ctx, pe));
}

/* ---- sessions ---- */

weft_status weft_ctx_session_start(weft_ctx *ctx, unsigned options, size_t operations)
{
    static const char call[] = "weft_ctx_session_start";
    (void)operations;
    WEFT_TRY(wefti_world_expect(wefti_ctx_world(ctx), call));
    if ((options & ~(WEFT_SESSION_BATCH | WEFT_SESSION_SAME_AMO)) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: an option is none of WEFT_SESSION_BATCH, WEFT_SESSION_SAME_AMO; give those, or 0",
                           call);
    }
    return WEFT_OK;
}

weft_status weft_ctx_session_stop(weft_ctx *ctx)
{
    WEFT_TRY(wefti_world_expect(wefti_ctx_world(ctx), "weft_ctx_session_stop"));
    return weft_ctx_fence(ctx);
}

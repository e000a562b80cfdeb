/* Contexts: a team's numbering and a promise. On load and store nothing else tells one from another. */
#include "weft/ctx.h"
#include "base/alloc.h"
#include "base/error.h"
#include "world/world.h"

static const unsigned all_options = WEFT_CTX_SERIALIZED | WEFT_CTX_PRIVATE | WEFT_CTX_NOSTORE;

weft_status weft_ctx_create(weft_team *team, unsigned options, weft_ctx **out)
{
    static const char call[] = "weft_ctx_create";
    if (team == NULL || out == NULL || (options & ~all_options) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call,
                           team == NULL  ? "the team is NULL"
                           : out == NULL ? "the place for the context is NULL"
                                         : "an option is none of WEFT_CTX_SERIALIZED, _PRIVATE, _NOSTORE");
    }
    size_t list_bytes = team->list != NULL ? (size_t)team->pes * sizeof *team->list : 0;
    weft_ctx *ctx = wefti_alloc(sizeof *ctx + list_bytes);
    if (ctx == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "%s: no memory for a context", call);
    }
    *ctx = (weft_ctx){.world = team->world,
                      .pes = team->pes,
                      .start = team->start,
                      .stride = team->stride,
                      .team = team,
                      .options = options};
    if (list_bytes > 0) {
        memcpy(ctx + 1, team->list, list_bytes);
        ctx->list = (const int32_t *)(const void *)(ctx + 1);
    }
    *out = ctx;
    return WEFT_OK;
}

#ifdef NDEBUG

static void bury(weft_ctx *ctx)
{
    wefti_free(ctx);
}

#else /* a destroyed context stays, without a world, until its world ends, so that who still uses it is told */

static void end_with_world(wefti_attachment *attachment)
{
    wefti_free((unsigned char *)attachment - offsetof(weft_ctx, attachment));
}

static void bury(weft_ctx *ctx)
{
    weft_world *world = ctx->world;
    ctx->world = NULL;
    ctx->pes = 0;
    ctx->team = NULL;
    ctx->attachment.end = end_with_world;
    wefti_world_attach(world, &ctx->attachment);
}

#endif

weft_status weft_ctx_destroy(weft_ctx *ctx)
{
    if (ctx == NULL) {
        return WEFT_OK;
    }
    if (ctx->world == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ctx_destroy: the context has been destroyed already");
    }
    weft_status status = weft_ctx_quiet(ctx);
    bury(ctx);
    return status;
}

weft_team *weft_ctx_team(const weft_ctx *ctx)
{
    return ctx == NULL ? NULL : ctx->team;
}

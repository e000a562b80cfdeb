/* Waiting for several variables, and looking at them. */
#include "base/error.h"
#include "common/mix.h"
#include "rma/strided.h"
#include "weft/wait.h"
#include "world/world.h"

/* Whether variable i satisfies the comparison. */
static weft_status holds(weft_world *world, const wefti_words *words, size_t i, int *result)
{
    const size_t bytes = words->kind >= WEFTI_WORD_INT64 ? 8 : 4;
    const size_t of_value = words->vector ? i : 0;
    uint64_t seen;
    WEFT_TRY(wefti_world_look(world, (const char *)words->variables + i * bytes, words->kind, &seen));
    switch (words->kind) {
#define CASE(KIND, TYPE, NAME)                                                                                         \
    case KIND:                                                                                                         \
        *result = wefti_##NAME##_compare((TYPE)seen, words->cmp, ((const TYPE *)words->values)[of_value]);             \
        break;
        CASE(WEFTI_WORD_INT32, int32_t, int32)
        CASE(WEFTI_WORD_UINT32, uint32_t, uint32)
        CASE(WEFTI_WORD_INT64, int64_t, int64)
        CASE(WEFTI_WORD_UINT64, uint64_t, uint64)
#undef CASE
    case WEFTI_WORD_INT16:
    case WEFTI_WORD_UINT16:
        break; /* on streams only */
    }
    return WEFT_OK;
}

static int counts(const wefti_words *words, size_t i)
{
    return words->status == NULL || words->status[i] == 0;
}

/* The variables lie in this PE's heap or that of its device; a count whose bytes overflow is beyond both. */
static weft_status check_inside(weft_world *world, const wefti_words *words, const char *call, size_t bytes)
{
    const int me = (int)world->view.pe;
    size_t all = wefti_bytes_of(words->count, bytes);
    if (all == 0 || WEFTI_LIKELY(wefti_is_near(world, words->variables, all, me))) {
        return WEFT_OK;
    }
    return wefti_rma_check(world, call, words->variables, all, words->variables, me);
}

static weft_status check(weft_world *world, const wefti_words *words, const char *call, const char *name,
                         const void *result)
{
    const char *wrong = NULL;
    size_t bytes = words->kind >= WEFTI_WORD_INT64 ? 8 : 4;
    WEFT_TRY(wefti_world_expect(world, call));
    if (result == NULL) {
        return wefti_error_null(call, name);
    }
    if (words->count > 0 && (words->variables == NULL || words->values == NULL)) {
        return wefti_error_null(call, words->variables == NULL ? "variables" : "values");
    }
    if (((uintptr_t)words->variables & (bytes - 1)) != 0) {
        wrong = "the variables are not aligned";
    } else if ((unsigned)words->cmp > WEFT_CMP_LE) {
        wrong = "the comparison is no weft_cmp";
    }
    return wrong == NULL ? check_inside(world, words, call, bytes)
                         : wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call, wrong);
}

/* Several words are watched, so no address is named. */
static weft_status pause_for(wefti_waiter *waiter, const wefti_words *words)
{
    weft_world *world = waiter->world;
    weft_status status = wefti_waiter_pause(waiter, NULL);
    if (status == WEFT_ERR_TIMEOUT) {
        char gone[WEFTI_GONE_BYTES];
        char limit[WEFTI_LIMIT_BYTES];
        return wefti_error(wefti_world_late(world),
                           "%s: world \"%s\" PE %u: of %zu variables at %p too few are as awaited, %s; their writers "
                           "are late or gone%s",
                           waiter->what, world->name, world->view.pe, words->count, words->variables,
                           wefti_world_limit_text(world, limit), wefti_world_gone_text(world, gone));
    }
    return status;
}

weft_status wefti_words_all(weft_world *world, const wefti_words *words, wefti_patience patience, int *result)
{
    const char *call = patience == WEFTI_WAIT ? "wait_until_all" : "test_all";
    WEFT_TRY(check(world, words, call, "result", result));
    wefti_waiter waiter = wefti_waiter_start(world, call);
    for (size_t i = 0; i < words->count; i++) {
        int is_so = !counts(words, i);
        while (!is_so) {
            WEFT_TRY(holds(world, words, i, &is_so));
            if (!is_so && patience == WEFTI_LOOK_ONCE) {
                *result = 0;
                return WEFT_OK;
            }
            if (!is_so) {
                WEFT_TRY(pause_for(&waiter, words));
            }
        }
    }
    *result = 1;
    return WEFT_OK;
}

/* Where the next look begins that wants one of several: spread over all, so that in a series of calls each that
 * satisfies the comparison is returned some time. (OpenSHMEM 1.5, 9.10.) */
static size_t next_start(weft_world *world, size_t count)
{
    uint64_t first_look = __atomic_fetch_add(&world->any_first_look, 1, __ATOMIC_RELAXED);
    return count <= UINT32_MAX ? (size_t)((wefti_mix(first_look) >> 32) * count >> 32) : 0;
}

/* One look at those that count, from `start` on around, up to the first `most` that satisfy the comparison; *any:
 * whether one counts at all. */
static weft_status look(weft_world *world, const wefti_words *words, size_t start, size_t most, size_t *indices,
                        size_t *found, int *any)
{
    *found = 0;
    *any = 0;
    for (size_t step = 0; step < words->count && *found < most; step++) {
        size_t i = step < words->count - start ? start + step : step - (words->count - start);
        if (counts(words, i)) {
            int is_so = 0;
            *any = 1;
            WEFT_TRY(holds(world, words, i, &is_so));
            if (is_so) {
                indices[(*found)++] = i;
            }
        }
    }
    return WEFT_OK;
}

static weft_status find(weft_world *world, const wefti_words *words, wefti_patience patience, const char *call,
                        size_t most, size_t *indices, size_t *found)
{
    int any;
    size_t start = most < words->count ? next_start(world, words->count) : 0;
    wefti_waiter waiter = wefti_waiter_start(world, call);
    WEFT_TRY(look(world, words, start, most, indices, found, &any));
    while (*found == 0 && any && patience == WEFTI_WAIT) {
        WEFT_TRY(pause_for(&waiter, words));
        WEFT_TRY(look(world, words, start, most, indices, found, &any));
    }
    return WEFT_OK;
}

weft_status wefti_words_any(weft_world *world, const wefti_words *words, wefti_patience patience, size_t *index)
{
    const char *call = patience == WEFTI_WAIT ? "wait_until_any" : "test_any";
    size_t first;
    size_t found;
    WEFT_TRY(check(world, words, call, "index", index));
    WEFT_TRY(find(world, words, patience, call, 1, &first, &found));
    *index = found > 0 ? first : SIZE_MAX;
    return WEFT_OK;
}

weft_status wefti_words_some(weft_world *world, const wefti_words *words, wefti_patience patience, size_t *indices,
                             size_t *found)
{
    const char *call = patience == WEFTI_WAIT ? "wait_until_some" : "test_some";
    size_t now;
    WEFT_TRY(check(world, words, call, indices == NULL ? "indices" : "found", indices == NULL ? NULL : found));
    WEFT_TRY(find(world, words, patience, call, SIZE_MAX, indices, &now));
    *found = now;
    return WEFT_OK;
}

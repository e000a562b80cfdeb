/* Waiting for several variables, and looking at them. */
#include "base/error.h"
#include "weft/wait.h"
#include "world/world.h"

/* Whether variable i satisfies the comparison. */
static int holds(const wefti_words *words, size_t i)
{
    size_t of_value = words->vector ? i : 0;
    switch (words->kind) {
#define CASE(KIND, TYPE, NAME)                                                                                         \
    case KIND:                                                                                                         \
        return wefti_##NAME##_compare(wefti_##NAME##_acquire((const TYPE *)words->variables + i), words->cmp,          \
                                      ((const TYPE *)words->values)[of_value]);
        CASE(WEFTI_WORD_INT32, int32_t, int32)
        CASE(WEFTI_WORD_UINT32, uint32_t, uint32)
        CASE(WEFTI_WORD_INT64, int64_t, int64)
        CASE(WEFTI_WORD_UINT64, uint64_t, uint64)
#undef CASE
    }
    return 0;
}

static int counts(const wefti_words *words, size_t i)
{
    return words->status == NULL || words->status[i] == 0;
}

static weft_status check(weft_world *world, const wefti_words *words, const char *call, const void *result)
{
    const char *wrong = NULL;
    size_t bytes = words->kind >= WEFTI_WORD_INT64 ? 8 : 4;
    if (world == NULL || result == NULL) {
        wrong = world == NULL ? "the world is NULL" : "the place for the result is NULL";
    } else if (words->count > 0 && (words->variables == NULL || words->values == NULL)) {
        wrong = words->variables == NULL ? "the variables are NULL" : "the values are NULL";
    } else if (((uintptr_t)words->variables & (bytes - 1)) != 0) {
        wrong = "the variables are not aligned";
    } else if ((unsigned)words->cmp > WEFT_CMP_LE) {
        wrong = "the comparison is no weft_cmp";
    }
    return wrong == NULL ? WEFT_OK : wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call, wrong);
}

/* Several words are watched, so no address is named. */
static weft_status pause_for(wefti_waiter *waiter, const wefti_words *words)
{
    weft_world *world = waiter->world;
    weft_status status = wefti_waiter_pause(waiter, NULL);
    if (status == WEFT_ERR_TIMEOUT) {
        return wefti_error(status,
                           "%s: world \"%s\" PE %u: of %zu variables at %p too few are as awaited after %.1f s; their "
                           "writers are late or gone (WEFT_DEADLINE sets the limit)",
                           waiter->what, world->name, world->view.pe, words->count, words->variables,
                           (double)world->deadline_ns * 1e-9);
    }
    return status;
}

weft_status wefti_words_all(weft_world *world, const wefti_words *words, wefti_patience patience, int *result)
{
    const char *call = patience == WEFTI_WAIT ? "wait_until_all" : "test_all";
    WEFT_TRY(check(world, words, call, result));
    wefti_waiter waiter = wefti_waiter_start(world, call);
    for (size_t i = 0; i < words->count; i++) {
        while (counts(words, i) && !holds(words, i)) {
            if (patience == WEFTI_LOOK_ONCE) {
                *result = 0;
                return WEFT_OK;
            }
            WEFT_TRY(pause_for(&waiter, words));
        }
    }
    *result = 1;
    return WEFT_OK;
}

/* The first that satisfies the comparison, SIZE_MAX if there is none; *any: whether one counts at all. */
static size_t find_one(const wefti_words *words, int *any)
{
    *any = 0;
    for (size_t i = 0; i < words->count; i++) {
        if (counts(words, i)) {
            *any = 1;
            if (holds(words, i)) {
                return i;
            }
        }
    }
    return SIZE_MAX;
}

weft_status wefti_words_any(weft_world *world, const wefti_words *words, wefti_patience patience, size_t *index)
{
    const char *call = patience == WEFTI_WAIT ? "wait_until_any" : "test_any";
    int any;
    WEFT_TRY(check(world, words, call, index));
    wefti_waiter waiter = wefti_waiter_start(world, call);
    size_t found = find_one(words, &any);
    while (found == SIZE_MAX && any && patience == WEFTI_WAIT) {
        WEFT_TRY(pause_for(&waiter, words));
        found = find_one(words, &any);
    }
    *index = found;
    return WEFT_OK;
}

static size_t find_some(const wefti_words *words, size_t *indices, int *any)
{
    size_t found = 0;
    *any = 0;
    for (size_t i = 0; i < words->count; i++) {
        if (counts(words, i)) {
            *any = 1;
            if (holds(words, i)) {
                indices[found++] = i;
            }
        }
    }
    return found;
}

weft_status wefti_words_some(weft_world *world, const wefti_words *words, wefti_patience patience, size_t *indices,
                             size_t *found)
{
    const char *call = patience == WEFTI_WAIT ? "wait_until_some" : "test_some";
    int any;
    WEFT_TRY(check(world, words, call, indices == NULL ? NULL : found));
    wefti_waiter waiter = wefti_waiter_start(world, call);
    size_t now = find_some(words, indices, &any);
    while (now == 0 && any && patience == WEFTI_WAIT) {
        WEFT_TRY(pause_for(&waiter, words));
        now = find_some(words, indices, &any);
    }
    *found = now;
    return WEFT_OK;
}

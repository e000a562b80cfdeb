/* The slow half of waiting: give way, watch the abort word, ask for interrupts, warn, and give up at the deadline. */
#include "weft/protocol/wait.h"

#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "base/thread_state.h"
#include "weft/inline/rma.h"
#include "world/world.h"

#define LOOK_NS 100000000u /* between two looks at who is gone, and LOOK_PE_NS for each PE of the world, as all look */
#define LOOKED_LAST UINT64_MAX
#define LAST_TURNS 64 /* before a wait gives up, messages of other nodes are taken in so many times */
#define ASK_NS 50000000u /* between two questions whether the program interrupts */
#define LOOK_PE_NS 2000000u

/* Look, or have the caller look, whether what is awaited can still come. */
static void look_for_gone(wefti_waiter *waiter, uint64_t waited)
{
    const weft_world *world = waiter->world;
    if (waited - waiter->looked_ns >= LOOK_NS + (uint64_t)world->view.pes * LOOK_PE_NS) {
        waiter->looked_ns = waited;
        if (waiter->caller_knows) {
            waiter->must_look = 1;
        } else {
            waiter->is_hopeless = (uint32_t)wefti_world_has_lost(world);
        }
    }
}

/* Whether to look if PEs are gone. Without a deadline nothing else would end the wait. With a deadline only in a world
 * of several nodes, and only a wait whose caller knows whom it waits for: else another PE than the lost one may be
 * meant. */
static int looks_for_gone(const wefti_waiter *waiter)
{
    const weft_world *world = waiter->world;
    return world->deadline_ns == WEFT_FOREVER || (world->knows_fates && waiter->caller_knows);
}

void wefti_waiter_judge(wefti_waiter *waiter, wefti_completion completion)
{
    const uint32_t doubts = waiter->is_hopeless > 1 ? waiter->is_hopeless : 1;
    switch (completion) {
    case WEFTI_COMPLETION_POSSIBLE:
        waiter->is_hopeless = 0;
        break;
    case WEFTI_COMPLETION_DOUBTFUL:
        waiter->is_hopeless = doubts < WEFTI_DOUBTS_MAX ? doubts + 1 : 1;
        break;
    case WEFTI_COMPLETION_IMPOSSIBLE:
        waiter->is_hopeless = 1;
        break;
    }
}

weft_status wefti_world_ask(weft_world *world)
{
    const int code = world->interrupted == NULL ? 0 : world->interrupted(world->interrupted_context);
    return code == 0 ? WEFT_OK : weft_world_abort(world, code);
}

static weft_status ask(wefti_waiter *waiter, uint64_t waited)
{
    if (waiter->world->interrupted == NULL || waited - waiter->asked_ns < ASK_NS) {
        return WEFT_OK;
    }
    waiter->asked_ns = waited;
    return wefti_world_ask(waiter->world);
}

weft_status wefti_waiter_pause_slow(wefti_waiter *waiter, const void *address)
{
    weft_world *world = waiter->world;
    uint64_t now = wefti_os_now_ns();
    if (waiter->start_ns == 0) {
        waiter->start_ns = now;
        WEFTI_COUNT(world, waits_slow, 1);
    }
    uint64_t waited = now - waiter->start_ns;
    WEFT_TRY(ask(waiter, waited));
    WEFT_TRY(wefti_world_check(world, waiter->what));
    if (waited >= world->deadline_ns && waiter->looked_ns != LOOKED_LAST) {
        waiter->looked_ns = LOOKED_LAST; /* this process may have been stopped since it looked */
        for (int i = 0; i < LAST_TURNS && wefti_world_pause(world, 0, 0); i++) {
        }
        return WEFT_OK;
    }
    if (waited >= world->deadline_ns || waiter->is_hopeless == 1) {
        WEFTI_COUNT(world, waits_expired, 1);
        *wefti_thread_is_hopeless() = waited < world->deadline_ns;
        return WEFT_ERR_TIMEOUT;
    }
    if (waited >= world->warn_ns && !waiter->warned) {
        waiter->warned = 1;
        WEFTI_COUNT(world, waits_warned, 1);
        if (!waiter->caller_knows) {
            wefti_log(WEFTI_LOG_WARN, "world \"%s\" PE %u: waiting for %s since %.1f s", world->name, world->view.pe,
                      waiter->what, (double)waited * 1e-9);
        }
    }
    uint64_t left = world->deadline_ns - waited;
    if (looks_for_gone(waiter)) {
        look_for_gone(waiter, waited);
        left = left < LOOK_NS ? left : LOOK_NS;
    }
    if (!wefti_world_pause(world, waited, left)) {
        wefti_os_pause(address, waiter->what, waited, left, world->pes_per_core);
    }
    return WEFT_OK;
}

uint64_t wefti_world_deadline_ns(const weft_world *world)
{
    return world->deadline_ns;
}

weft_status wefti_world_late(const weft_world *world)
{
    return world->deadline_ns == WEFT_FOREVER || *wefti_thread_is_hopeless() ? WEFT_ERR_PEER : WEFT_ERR_TIMEOUT;
}

const char *wefti_world_limit_text(const weft_world *world, char text[WEFTI_LIMIT_BYTES])
{
    if (world->deadline_ns == WEFT_FOREVER) {
        (void)snprintf(text, WEFTI_LIMIT_BYTES, "and never will (there is no deadline)");
    } else if (*wefti_thread_is_hopeless()) {
        (void)snprintf(text, WEFTI_LIMIT_BYTES, "and never will");
    } else {
        (void)snprintf(text, WEFTI_LIMIT_BYTES, "within %.1f s (WEFT_DEADLINE sets the limit)",
                       (double)world->deadline_ns * 1e-9);
    }
    return text;
}

weft_status wefti_world_look(weft_world *world, const void *variable, wefti_word_kind kind, uint64_t *value)
{
    size_t bytes = kind >= WEFTI_WORD_INT64 ? 8 : 4;
    uint64_t left;
    if (!wefti_is_loadable(world, variable) &&
        world->device->ops->memory->locate(world->device, variable, (int)world->view.pe, &left) != 0) {
        uint32_t half = 0;
        WEFT_TRY(world->device->ops->memory->copy(world->device, bytes == 8 ? (void *)value : (void *)&half, variable,
                                                  bytes));
        *value = bytes == 8 ? *value : half;
        return WEFT_OK;
    }
    *value = bytes == 8 ? wefti_ld64(variable, WEFTI_ACQUIRE) : wefti_ld32(variable, WEFTI_ACQUIRE);
    return WEFT_OK;
}

static int compares(wefti_word_kind kind, uint64_t seen, weft_cmp cmp, uint64_t value)
{
    switch (kind) {
    case WEFTI_WORD_INT32:
        return wefti_int32_compare((int32_t)seen, cmp, (int32_t)value);
    case WEFTI_WORD_UINT32:
        return wefti_uint32_compare((uint32_t)seen, cmp, (uint32_t)value);
    case WEFTI_WORD_INT64:
        return wefti_int64_compare((int64_t)seen, cmp, (int64_t)value);
    case WEFTI_WORD_UINT64:
        return wefti_uint64_compare(seen, cmp, value);
    case WEFTI_WORD_INT16:
    case WEFTI_WORD_UINT16:
        break; /* on streams only */
    }
    return 0;
}

static weft_status check_variable(weft_world *world, const void *variable, size_t bytes, const char *call)
{
    WEFT_TRY(wefti_world_expect(world, call));
    if (variable == NULL || ((uintptr_t)variable & (bytes - 1)) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'variable' is %s; give one aligned to its size", call,
                           variable == NULL ? "NULL" : "not aligned");
    }
    return WEFT_OK;
}

static weft_status check_comparison(weft_world *world, const void *variable, wefti_word_kind kind, weft_cmp cmp,
                                    const char *call)
{
    WEFT_TRY(check_variable(world, variable, kind >= WEFTI_WORD_INT64 ? 8 : 4, call));
    if (cmp < WEFT_CMP_EQ || cmp > WEFT_CMP_LE) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %d is no weft_cmp", call, (int)cmp);
    }
    return WEFT_OK;
}

weft_status wefti_wait_slow(weft_world *world, const void *variable, wefti_word_kind kind, weft_cmp cmp, uint64_t value,
                            uint64_t *seen)
{
    WEFT_TRY(check_comparison(world, variable, kind, cmp, "wait_until"));
    wefti_waiter waiter = wefti_waiter_start(world, "wait_until");
    uint64_t now;
    WEFT_TRY(wefti_world_look(world, variable, kind, &now));
    while (!compares(kind, now, cmp, value)) {
        weft_status status = wefti_waiter_pause_slow(&waiter, variable);
        if (status == WEFT_ERR_TIMEOUT) {
            char gone[WEFTI_GONE_BYTES];
            char limit[WEFTI_LIMIT_BYTES];
            return wefti_error(wefti_world_late(world),
                               "wait_until: world \"%s\" PE %u: the variable at %p is %lld, not as awaited, %s; its "
                               "writer is late or gone%s",
                               world->name, world->view.pe, variable, (long long)now,
                               wefti_world_limit_text(world, limit), wefti_world_gone_text(world, gone));
        }
        WEFT_TRY(status);
        WEFT_TRY(wefti_world_look(world, variable, kind, &now));
    }
    if (seen != NULL) {
        *seen = now;
    }
    return WEFT_OK;
}

static weft_status check_result(const char *call, const char *name, const void *result)
{
    return result != NULL ? WEFT_OK : wefti_error_null(call, name);
}

weft_status wefti_test_slow(weft_world *world, const void *variable, wefti_word_kind kind, weft_cmp cmp, uint64_t value,
                            int *result)
{
    uint64_t seen;
    WEFT_TRY(check_comparison(world, variable, kind, cmp, "test"));
    WEFT_TRY(check_result("test", "result", result));
    WEFT_TRY(wefti_world_look(world, variable, kind, &seen));
    *result = compares(kind, seen, cmp, value);
    return WEFT_OK;
}

weft_status wefti_fetch_slow(weft_world *world, const uint64_t *signal, uint64_t *value)
{
    WEFT_TRY(check_variable(world, signal, sizeof *signal, "signal_fetch"));
    WEFT_TRY(check_result("signal_fetch", "value", value));
    return wefti_world_look(world, signal, WEFTI_WORD_UINT64, value);
}

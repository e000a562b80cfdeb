/* protocol/wait.h: words shared by the inline calls and the library's out-of-line half: kinds of words, of atomics,
 * and how long a waiter spins before it goes out of line. */
#ifndef WEFTI_PROTOCOL_WAIT_H
#define WEFTI_PROTOCOL_WAIT_H

#include <stdint.h>

#include "weft/inline/view.h"
#include "weft/protocol/mem.h"
#include "weft/world.h"

/* A word that is waited on: its width and whether it compares as signed. Those of 16 bits on streams only. */
typedef enum wefti_word_kind {
    WEFTI_WORD_INT32 = 0,
    WEFTI_WORD_UINT32 = 1,
    WEFTI_WORD_INT64 = 2,
    WEFTI_WORD_UINT64 = 3,
    WEFTI_WORD_INT16 = 4,
    WEFTI_WORD_UINT16 = 5
} wefti_word_kind;

#define WEFTI_WORD_KIND(TYPE)                                                                                          \
    ((wefti_word_kind)((sizeof(TYPE) == 8 ? 2 : sizeof(TYPE) == 2 ? 4 : 0) + ((TYPE)-1 > (TYPE)0 ? 1 : 0)))

typedef enum wefti_amo_op {
    WEFTI_AMO_FETCH = 0,
    WEFTI_AMO_SET,
    WEFTI_AMO_SWAP,
    WEFTI_AMO_COMPARE_SWAP,
    WEFTI_AMO_ADD,
    WEFTI_AMO_AND,
    WEFTI_AMO_OR,
    WEFTI_AMO_XOR
} wefti_amo_op;

/* A waiter looks at a word until it has the awaited value, and pauses between looks:
 *
 *     wefti_waiter waiter = wefti_waiter_start(world, "rows");
 *     while (wefti_ld64(flag, WEFTI_ACQUIRE) != epoch) {
 *         weft_status status = wefti_waiter_pause(&waiter, flag);
 *         if (status != WEFT_OK) { ... name who is behind ... }
 *     }
 *
 * It spins, then yields, then sleeps briefly (an inline store wakes nobody), and fails with WEFT_ERR_TIMEOUT at the
 * world's deadline, counted from its first slow pause and after one more look at the word, or with the world's latched
 * fault. Where there is no deadline it looks now and then whether a PE that it needs is gone, and fails so, too, after
 * one more look at the word. One waiter may serve several words one after another: they then share one deadline, unless
 * it is renewed between them. On WEFT_ERR_TIMEOUT no error text has been set: the caller knows who is missing and
 * decides the error. It needs no end. */
typedef struct wefti_waiter {
    weft_world *world;
    const char *what; /* what is awaited, for warnings and the simulator */
    uint64_t start_ns; /* 0: not slow yet */
    uint32_t looks;
    uint32_t spins;
    uint32_t warned; /* it has waited for longer than the world's warn_ns */
    uint32_t caller_knows; /* whom it waits for: it looks at `warned` and writes the warning, and at `must_look` */
    uint64_t looked_ns; /* how long it had waited when it last looked who is gone; UINT64_MAX: the deadline is over */
    uint32_t must_look; /* the caller looks whether somebody it needs is gone, and if so sets: */
    uint32_t is_hopeless; /* 1: what is awaited never comes; the next pause fails as at a deadline. More: perhaps, as
                             that less 1 looks in a row have found */
    uint64_t asked_ns; /* how long it had waited when it last asked whether it is interrupted */
} wefti_waiter;

#ifdef __cplusplus
extern "C" {
#endif

WEFT_API weft_status wefti_waiter_pause_slow(wefti_waiter *waiter, const void *address);

static inline wefti_waiter wefti_waiter_start(weft_world *world, const char *what)
{
    wefti_waiter waiter;
    memset(&waiter, 0, sizeof waiter);
    waiter.world = world;
    waiter.what = what;
    waiter.spins = wefti_spins(world);
    return waiter;
}

/* What was awaited has come: the next wait has a deadline of its own. */
static inline void wefti_waiter_renew(wefti_waiter *waiter)
{
    waiter->start_ns = 0;
    waiter->warned = 0;
    waiter->looked_ns = 0;
    waiter->asked_ns = 0;
    waiter->must_look = 0;
    waiter->is_hopeless = 0;
}

static inline weft_status wefti_waiter_pause(wefti_waiter *waiter, const void *address)
{
    if (WEFTI_LIKELY(waiter->looks < waiter->spins)) {
        waiter->looks++;
        wefti_cpu_relax();
        return WEFT_OK;
    }
    return wefti_waiter_pause_slow(waiter, address);
}

#ifdef __cplusplus
}
#endif
#endif

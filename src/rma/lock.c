/* A queue lock over symmetric words. (Mellor-Crummey, Scott: Algorithms for scalable synchronization, 1991.)
 *
 * A PE's copy of the lock is two 32-bit words. `tail` counts on one PE, chosen by the lock's offset: the PE that asked
 * last, plus 1; 0 when the lock is free. `node` is the PE's own place in the queue: its successor plus 1 in the low
 * bits, and
 *   IN      it asks or has asked, and has neither left nor cleared
 *   HAS     it has the lock: it found it free, or its predecessor gave it
 *   LEFT    it gave up waiting; its predecessor, when its turn comes, passes the lock on and clears the node
 *   PASSES  it had the lock and is passing it on to its successor; if that takes too long it is to try again
 *   TOLD    it has told its predecessor, or could not ask: it writes no more in another's node
 * The owner stores IN before it asks, and 0 once it is out of the queue, when no other PE writes the node; every change
 * between is an atomic one. Who waits too long reads the nodes, and finds the first of its queue by the successors:
 * that one holds the lock if it has HAS. A PE that only looks whether the lock is free has IN for a moment, but is in
 * no queue.
 */
#include "weft/lock.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "weft/inline/rma.h"
#include "world/world.h"

#define IN UINT32_C(0x80000000)
#define HAS UINT32_C(0x40000000)
#define LEFT UINT32_C(0x20000000)
#define PASSES UINT32_C(0x10000000)
#define TOLD UINT32_C(0x08000000)
#define NEXT UINT32_C(0x07ffffff)

typedef struct lock_words {
    uint32_t tail;
    uint32_t node;
} lock_words;

typedef struct lock_call {
    weft_world *world;
    lock_words *words; /* this PE's copy */
    const char *name;
    int me;
    int home; /* whose tail counts */
} lock_call;

static weft_status lock_init(lock_call *call, weft_world *world, long *lock, const char *name)
{
    WEFT_TRY(wefti_world_expect(world, name));
    if (lock == NULL || ((uintptr_t)lock & (sizeof(lock_words) - 1)) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'lock' is %s", name,
                           lock == NULL ? "NULL" : "not aligned to 8 bytes");
    }
    call->world = world;
    call->words = (lock_words *)(void *)lock;
    call->name = name;
    call->me = (int)world->view.pe;
    if (!wefti_is_near(world, lock, sizeof *lock, call->me)) {
        return wefti_error(WEFT_ERR_RANGE,
                           "%s: the lock at %p is not in the symmetric heap of world \"%s\"; allocate it with "
                           "weft_malloc of this world",
                           name, (void *)lock, world->name);
    }
    call->home = (int)(((uintptr_t)lock - world->view.heap) / sizeof(lock_words) % world->view.pes);
    return wefti_world_check(world, name);
}

/* An atomic on a word of `pe`; *old is the value before. */
static inline weft_status change(const lock_call *call, wefti_amo_op op, uint32_t *word, uint32_t value, uint32_t cond,
                                 int pe, uint32_t *old)
{
    uint64_t before = 0;
    weft_status status = wefti_amo(call->world, op, 32, word, value, cond, pe, &before);
    *old = (uint32_t)before;
    return status;
}

static inline uint32_t my_node(const lock_call *call)
{
    return wefti_ld32(&call->words->node, WEFTI_ACQUIRE);
}

/* Whether the PE of this node has the lock. One that has left may be given it, but does not keep it. */
static int is_holder(uint32_t node)
{
    return (node & (HAS | LEFT)) == HAS;
}

/* ---- whom a PE waits for ---- */

/* The node of `pe`; 0 when it cannot be read soon. */
static uint32_t node_of(const lock_call *call, int pe)
{
    uint64_t both = 0;
    lock_words words = {0};
    if (wefti_pe_is_near(&call->world->view, pe)) {
        return change(call, WEFTI_AMO_FETCH, &call->words->node, 0, 0, pe, &words.node) == WEFT_OK ? words.node : 0;
    }
    if (wefti_world_read_soon(call->world, (const uint64_t *)(const void *)call->words, pe, &both) != WEFT_OK) {
        return 0;
    }
    memcpy(&words, &both, sizeof words);
    return words.node;
}

/* Far PEs that do not answer are found out all at once, not one after another. */
static void find_silent(const lock_call *call)
{
    const int pes = (int)call->world->view.pes;
    int *far = (call->world->view.remote & WEFTI_REMOTE_PES) != 0 ? wefti_alloc((size_t)pes * sizeof *far) : NULL;
    int count = 0;
    for (int pe = 0; far != NULL && pe < pes; pe++) {
        if (!wefti_pe_is_near(&call->world->view, pe)) {
            far[count++] = pe;
        }
    }
    wefti_world_find_silent(call->world, far, count);
    wefti_free(far);
}

/* The PE whose successor is `pe`, or -1. */
static int predecessor_of(const uint32_t *nodes, int pes, int pe)
{
    for (int other = 0; other < pes; other++) {
        if ((nodes[other] & NEXT) == (uint32_t)pe + 1) {
            return other;
        }
    }
    return -1;
}

/* The PE that has the lock, or -1. */
static int holder_of(const uint32_t *nodes, int pes)
{
    for (int pe = 0; pe < pes; pe++) {
        if (is_holder(nodes[pe])) {
            return pe;
        }
    }
    return -1;
}

/* Who has the lock, also where the next one has not told it yet; else the first of the queue that this PE stands in. Or
 * -1. The queue comes first: who has made the lock free may still be about to say in its node that it does not have
 * it. */
static int first_of_queue(const uint32_t *nodes, int pes, int me)
{
    int first = -1;
    int pe = predecessor_of(nodes, pes, me);
    for (int steps = 0; pe >= 0 && pe != me && steps < pes; steps++) { /* PEs move while they are read */
        first = pe;
        if (is_holder(nodes[pe])) {
            return pe;
        }
        pe = predecessor_of(nodes, pes, pe);
    }
    pe = holder_of(nodes, pes);
    return pe >= 0 ? pe : first;
}

/* All PEs' nodes, as they are read one after another; the caller frees them. NULL when there is no memory. */
static uint32_t *read_nodes(const lock_call *call)
{
    const int pes = (int)call->world->view.pes;
    uint32_t *nodes = wefti_alloc((size_t)pes * sizeof *nodes);
    if (nodes != NULL) {
        find_silent(call);
    }
    for (int pe = 0; nodes != NULL && pe < pes; pe++) {
        nodes[pe] = node_of(call, pe);
    }
    return nodes;
}

#define QUEUE_BYTES 64
/* "is still held by PE 3", or what else is known of the lock. */
static const char *describe_queue(const lock_call *call, char text[QUEUE_BYTES])
{
    uint32_t *nodes = read_nodes(call);
    const int first = nodes == NULL ? -1 : first_of_queue(nodes, (int)call->world->view.pes, call->me);
    if (first < 0) {
        (void)snprintf(text, QUEUE_BYTES, "is changing hands");
    } else if (is_holder(nodes[first])) {
        (void)snprintf(text, QUEUE_BYTES, "is still held by PE %d", first);
    } else {
        (void)snprintf(text, QUEUE_BYTES, "is on its way: PE %d stands first in the queue", first);
    }
    wefti_free(nodes);
    return text;
}

static weft_status refuse_late(const lock_call *call)
{
    char queue[QUEUE_BYTES];
    char gone[WEFTI_GONE_BYTES];
    char limit[WEFTI_LIMIT_BYTES];
    const weft_status late = wefti_world_late(call->world);
    (void)wefti_world_limit_text(call->world, limit); /* of the wait that has failed: describe_queue waits, too */
    (void)describe_queue(call, queue);
    return wefti_error(late, "%s: world \"%s\" PE %d: the lock at %p %s; it did not become free %s%s", call->name,
                       call->world->name, call->me, (void *)call->words, queue, limit,
                       wefti_world_gone_text(call->world, gone));
}

/* ---- passing on ---- */

/* Whether some PE that is there has asked, and is about to tell its predecessor. */
static int is_asking(const lock_call *call, const uint32_t *nodes)
{
    for (int pe = 0; pe < (int)call->world->view.pes; pe++) {
        if (pe != call->me && (nodes[pe] & (IN | HAS | PASSES | TOLD)) == IN &&
            wefti_world_completion_without(call->world, pe) == WEFTI_COMPLETION_POSSIBLE) {
            return 1;
        }
    }
    return 0;
}

/* What becomes of a wait for what another PE does next, nobody knows which: it may have been one that is lost, or,
 * where the tail cannot be asked, there may be none. */
static wefti_completion completion_by_somebody(const lock_call *call, int has_tail)
{
    const int may_be_nobody =
        !has_tail || (call->world->deadline_ns == WEFT_FOREVER && wefti_world_has_lost(call->world));
    uint32_t *nodes = may_be_nobody ? read_nodes(call) : NULL;
    const int is_doubtful = nodes != NULL && !is_asking(call, nodes);
    wefti_free(nodes);
    return is_doubtful ? WEFTI_COMPLETION_DOUBTFUL : WEFTI_COMPLETION_POSSIBLE;
}

/* A waiter for what some PE does next, and its pause. */
static wefti_waiter waiter_for_somebody(const lock_call *call)
{
    wefti_waiter waiter = wefti_waiter_start(call->world, call->name);
    waiter.caller_knows = 1;
    return waiter;
}

static weft_status pause_for_somebody(const lock_call *call, wefti_waiter *waiter, const void *address, int has_tail)
{
    weft_status status = wefti_waiter_pause(waiter, address);
    if (WEFTI_UNLIKELY(waiter->warned == 1)) {
        waiter->warned = 2;
        wefti_log(WEFTI_LOG_WARN, "world \"%s\" PE %d: %s has waited for %.3g s for a PE that passes the lock at %p on",
                  call->world->name, call->me, call->name, (double)call->world->warn_ns * 1e-9, (void *)call->words);
    }
    if (WEFTI_UNLIKELY(waiter->must_look != 0)) {
        waiter->must_look = 0;
        wefti_waiter_judge(waiter, completion_by_somebody(call, has_tail));
    }
    return status;
}

/* Nobody has said that it comes next. */
static weft_status refuse_next(const lock_call *call, int has_tail)
{
    char gone[WEFTI_GONE_BYTES];
    const weft_status late = wefti_world_late(call->world);
    (void)wefti_world_gone_text(call->world, gone);
    return has_tail ? wefti_error(late, "%s: world \"%s\": a PE asked for the lock at %p and stopped half way%s",
                                  call->name, call->world->name, (void *)call->words, gone)
                    : wefti_error(late,
                                  "%s: world \"%s\": PE %d, which has the end of the queue of the lock at %p, is gone, "
                                  "and no PE has said that it comes next%s",
                                  call->name, call->world->name, call->home, (void *)call->words, gone);
}

/* The successor of the node of `pe`, plus 1, once it has said so; 0 when there is none and the lock has become free.
 * Where the PE that has the tail is gone, who has asked before is still waited for. */
static weft_status find_next(const lock_call *call, int pe, uint32_t *next)
{
    wefti_waiter waiter = waiter_for_somebody(call);
    int has_tail = 1;
    uint32_t node = 0;
    uint32_t tail;
    WEFT_TRY(change(call, WEFTI_AMO_FETCH, &call->words->node, 0, 0, pe, &node));
    if ((node & NEXT) == 0) {
        const weft_status status =
            change(call, WEFTI_AMO_COMPARE_SWAP, &call->words->tail, 0, (uint32_t)pe + 1, call->home, &tail);
        if (status == WEFT_OK && tail == (uint32_t)pe + 1) {
            *next = 0;
            return WEFT_OK;
        }
        has_tail = status != WEFT_ERR_PEER;
        WEFT_TRY(has_tail ? status : WEFT_OK);
    }
    while ((node & NEXT) == 0) { /* it has asked, and tells its predecessor next */
        weft_status status = pause_for_somebody(call, &waiter, NULL, has_tail);
        if (status != WEFT_OK) {
            return status == WEFT_ERR_TIMEOUT ? refuse_next(call, has_tail) : status;
        }
        WEFT_TRY(change(call, WEFTI_AMO_FETCH, &call->words->node, 0, 0, pe, &node));
    }
    *next = node & NEXT;
    return WEFT_OK;
}

/* Pass the lock on from this PE, which has it, over those that have left. Who comes next stands in this PE's node until
 * somebody has the lock, so that it is not lost when one that asked stops half way: this call, made again, goes on. */
static weft_status pass_on(const lock_call *call)
{
    uint32_t next = 0;
    WEFT_TRY(find_next(call, call->me, &next));
    while (next != 0) {
        const int to = (int)next - 1;
        uint32_t node = 0;
        uint32_t old;
        wefti_st32(&call->words->node, IN | PASSES | next, WEFTI_RELEASE); /* its successor has written there */
        WEFT_TRY(change(call, WEFTI_AMO_OR, &call->words->node, HAS, 0, to, &node));
        if ((node & LEFT) == 0) {
            break;
        }
        WEFT_TRY(find_next(call, to, &next));
        wefti_st32(&call->words->node, IN | PASSES | next, WEFTI_RELEASE);
        WEFT_TRY(change(call, WEFTI_AMO_SET, &call->words->node, 0, 0, to, &old));
    }
    wefti_st32(&call->words->node, 0, WEFTI_RELEASE);
    return WEFT_OK;
}

/* ---- asking ---- */

/* Give up the place in the queue, unless the lock comes at this moment. */
static weft_status leave_queue(const lock_call *call)
{
    uint32_t node = 0;
    WEFT_TRY(change(call, WEFTI_AMO_OR, &call->words->node, LEFT, 0, call->me, &node));
    if ((node & HAS) != 0) {
        return change(call, WEFTI_AMO_AND, &call->words->node, ~LEFT, 0, call->me, &node);
    }
    return refuse_late(call);
}

/* What becomes of this PE's place in the queue, now that some PE is gone: of the PEs before it the worst. `first` is
 * where the queue that can be read begins. If that one has told its predecessor and that does not show, a PE that is
 * gone stands before it: one of another host, whose node cannot be read, or one that it did not reach any more. If that
 * has not passed the lock on, which may be on its way, it never will. */
static wefti_completion completion_in(const lock_call *call, const uint32_t *nodes, const wefti_completion *without,
                                      int *first)
{
    const int pes = (int)call->world->view.pes;
    wefti_completion worst = WEFTI_COMPLETION_POSSIBLE;
    int pe = predecessor_of(nodes, pes, call->me);
    *first = call->me;
    for (int steps = 0; pe >= 0 && pe != call->me && steps < pes; steps++) { /* PEs move while they are read */
        worst = without[pe] > worst ? without[pe] : worst;
        *first = pe;
        pe = is_holder(nodes[pe]) ? -1 : predecessor_of(nodes, pes, pe);
    }
    const int holder = holder_of(nodes, pes);
    if (holder >= 0) {
        worst = without[holder] > worst ? without[holder] : worst;
    }
    const int is_cut = !is_holder(nodes[*first]) && (nodes[*first] & TOLD) != 0;
    return worst == WEFTI_COMPLETION_POSSIBLE && is_cut && call->world->deadline_ns == WEFT_FOREVER
               ? WEFTI_COMPLETION_DOUBTFUL
               : worst;
}

/* Who is in the queue is read only when some PE is gone, and after that: who is gone has changed all that it will.
 * Where the queue begins with another PE than at the last look it moves. */
static wefti_completion completion_of(const lock_call *call, int *first)
{
    const int pes = (int)call->world->view.pes;
    const int before = *first;
    int has_gone = 0;
    wefti_completion *without = wefti_alloc((size_t)pes * sizeof *without);
    for (int pe = 0; without != NULL && pe < pes; pe++) {
        without[pe] = wefti_world_completion_without(call->world, pe);
        has_gone |= without[pe] != WEFTI_COMPLETION_POSSIBLE;
    }
    uint32_t *nodes = has_gone ? read_nodes(call) : NULL;
    const wefti_completion seen =
        nodes == NULL ? WEFTI_COMPLETION_POSSIBLE : completion_in(call, nodes, without, first); /* or looks again */
    wefti_free(nodes);
    wefti_free(without);
    return seen == WEFTI_COMPLETION_DOUBTFUL && *first != before ? WEFTI_COMPLETION_POSSIBLE : seen;
}

/* wefti_waiter_pause, which warns once of who has the lock, and looks whether that can still pass it on. */
static weft_status pause_in_queue(const lock_call *call, wefti_waiter *waiter, int *first)
{
    char queue[QUEUE_BYTES];
    weft_status status = wefti_waiter_pause(waiter, &call->words->node);
    if (WEFTI_UNLIKELY(waiter->warned == 1)) {
        waiter->warned = 2;
        wefti_log(WEFTI_LOG_WARN, "world \"%s\" PE %d: %s has waited for %.3g s: the lock at %p %s", call->world->name,
                  call->me, call->name, (double)call->world->warn_ns * 1e-9, (void *)call->words,
                  describe_queue(call, queue));
    }
    if (WEFTI_UNLIKELY(waiter->must_look != 0)) {
        waiter->must_look = 0;
        wefti_waiter_judge(waiter, completion_of(call, first));
    }
    return status;
}

static weft_status await_turn(const lock_call *call)
{
    wefti_waiter waiter = wefti_waiter_start(call->world, call->name);
    int first = -1;
    waiter.caller_knows = 1;
    while ((my_node(call) & HAS) == 0) {
        weft_status status = pause_in_queue(call, &waiter, &first);
        if (WEFTI_UNLIKELY(status != WEFT_OK)) {
            return status == WEFT_ERR_TIMEOUT ? leave_queue(call) : status;
        }
    }
    return WEFT_OK;
}

/* A node that was left is still in the queue: take its place again, or wait until it has been passed over. */
static weft_status return_to_queue(const lock_call *call, int *queued)
{
    wefti_waiter waiter = waiter_for_somebody(call);
    uint32_t node = my_node(call);
    *queued = 0;
    while ((node & LEFT) != 0) {
        if ((node & HAS) == 0) {
            uint32_t old;
            WEFT_TRY(change(call, WEFTI_AMO_COMPARE_SWAP, &call->words->node, node & ~LEFT, node, call->me, &old));
            if (old == node) {
                *queued = 1;
                return WEFT_OK;
            }
        } else {
            weft_status status = pause_for_somebody(call, &waiter, &call->words->node, 1);
            if (status != WEFT_OK) {
                return status == WEFT_ERR_TIMEOUT ? refuse_late(call) : status;
            }
        }
        node = my_node(call);
    }
    return WEFT_OK;
}

static weft_status refuse_held(const lock_call *call)
{
    return wefti_error(WEFT_ERR_STATE,
                       "%s: PE %d holds or awaits the lock at %p; clear it first, and let it be 0 before its first use",
                       call->name, call->me, (void *)call->words);
}

weft_status weft_set_lock(weft_world *world, long *lock)
{
    lock_call call = {0};
    uint32_t before;
    uint32_t old;
    WEFT_TRY(lock_init(&call, world, lock, "weft_set_lock"));
    uint32_t node = my_node(&call);
    if (WEFTI_UNLIKELY(node != 0)) {
        int queued;
        if ((node & LEFT) == 0) {
            return refuse_held(&call);
        }
        WEFT_TRY(return_to_queue(&call, &queued));
        if (queued) {
            return await_turn(&call);
        }
    }
    wefti_st32(&call.words->node, IN, WEFTI_RELEASE);
    weft_status status = change(&call, WEFTI_AMO_SWAP, &call.words->tail, (uint32_t)call.me + 1, 0, call.home, &before);
    if (status == WEFT_OK && before == 0) {
        return change(&call, WEFTI_AMO_OR, &call.words->node, HAS, 0, call.me, &old);
    }
    if (status == WEFT_OK) {
        status = change(&call, WEFTI_AMO_OR, &call.words->node, (uint32_t)call.me + 1, 0, (int)before - 1, &old);
    }
    WEFT_TRY(change(&call, WEFTI_AMO_OR, &call.words->node, TOLD, 0, call.me, &old));
    return status == WEFT_OK ? await_turn(&call) : status;
}

weft_status weft_test_lock(weft_world *world, long *lock, int *taken)
{
    lock_call call = {0};
    uint32_t before;
    uint32_t old;
    WEFT_TRY(lock_init(&call, world, lock, "weft_test_lock"));
    if (taken == NULL) {
        return wefti_error_null("weft_test_lock", "taken");
    }
    uint32_t node = my_node(&call);
    if (node != 0) {
        if ((node & LEFT) == 0) {
            return refuse_held(&call);
        }
        *taken = 0; /* its place in the queue has not been passed over, so the lock is not free */
        return WEFT_OK;
    }
    wefti_st32(&call.words->node, IN, WEFTI_RELEASE);
    const weft_status status =
        change(&call, WEFTI_AMO_COMPARE_SWAP, &call.words->tail, (uint32_t)call.me + 1, 0, call.home, &before);
    if (status != WEFT_OK) { /* whether it has the lock, nobody knows */
        WEFT_TRY(change(&call, WEFTI_AMO_OR, &call.words->node, TOLD, 0, call.me, &old));
        return status;
    }
    if (before != 0) {
        wefti_st32(&call.words->node, 0, WEFTI_RELEASE);
    } else {
        WEFT_TRY(change(&call, WEFTI_AMO_OR, &call.words->node, HAS, 0, call.me, &old));
    }
    *taken = before == 0;
    return WEFT_OK;
}

/* Complete this PE's accesses. Some to a PE that is gone, which is the status, are no reason to keep the lock, once
 * all others are complete: each PE that is gone is told of once. */
static weft_status complete_accesses(weft_world *world)
{
    const weft_status first = weft_quiet(world);
    weft_status status = first;
    for (int pe = 0; status == WEFT_ERR_PEER && pe < (int)world->view.pes; pe++) {
        status = weft_quiet(world);
    }
    return status == WEFT_OK ? first : status;
}

weft_status weft_clear_lock(weft_world *world, long *lock)
{
    lock_call call = {0};
    WEFT_TRY(lock_init(&call, world, lock, "weft_clear_lock"));
    uint32_t node = my_node(&call);
    if (!is_holder(node) && (node & PASSES) == 0) {
        return wefti_error(WEFT_ERR_STATE, "%s: PE %d does not hold the lock at %p; who has set it clears it",
                           call.name, call.me, (void *)call.words);
    }
    const weft_status status = complete_accesses(world);
    WEFT_TRY(status == WEFT_ERR_PEER ? WEFT_OK : status);
    const weft_status passed = pass_on(&call);
    return passed == WEFT_OK ? status : passed;
}

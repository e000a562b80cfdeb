/* A queue lock over symmetric words. (Mellor-Crummey, Scott: Algorithms for scalable synchronization, 1991.)
 *
 * A PE's copy of the lock is two 32-bit words. `tail` counts on one PE, chosen by the lock's offset: the PE that asked
 * last, plus 1; 0 when the lock is free. `node` is the PE's own place in the queue: its successor plus 1 in the low
 * bits, and
 *   IN      it asks or has asked, and has neither left nor cleared
 *   HAS     it has the lock: it found it free, or its predecessor gave it
 *   LEFT    it gave up waiting; its predecessor, when its turn comes, passes the lock on and clears the node
 *   PASSES  it had the lock and is passing it on to its successor; if that takes too long it is to try again
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
#define NEXT UINT32_C(0x0fffffff)

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
    return wefti_error(wefti_world_late(call->world),
                       "%s: world \"%s\" PE %d: the lock at %p %s; it did not become free %s%s", call->name,
                       call->world->name, call->me, (void *)call->words, describe_queue(call, queue),
                       wefti_world_limit_text(call->world, limit), wefti_world_gone_text(call->world, gone));
}

/* ---- passing on ---- */

/* The successor of the node of `pe`, plus 1, once it has said so; 0 when there is none and the lock has become free. */
static weft_status find_next(const lock_call *call, int pe, uint32_t *next)
{
    wefti_waiter waiter = wefti_waiter_start(call->world, call->name);
    char gone[WEFTI_GONE_BYTES];
    uint32_t node = 0;
    uint32_t tail;
    WEFT_TRY(change(call, WEFTI_AMO_FETCH, &call->words->node, 0, 0, pe, &node));
    if ((node & NEXT) == 0) {
        WEFT_TRY(change(call, WEFTI_AMO_COMPARE_SWAP, &call->words->tail, 0, (uint32_t)pe + 1, call->home, &tail));
        if (tail == (uint32_t)pe + 1) {
            *next = 0;
            return WEFT_OK;
        }
    }
    while ((node & NEXT) == 0) { /* it has asked, and tells its predecessor next */
        weft_status status = wefti_waiter_pause(&waiter, NULL);
        if (status != WEFT_OK) {
            return status == WEFT_ERR_TIMEOUT
                       ? wefti_error(wefti_world_late(call->world),
                                     "%s: world \"%s\": a PE asked for the lock at %p and stopped half way%s",
                                     call->name, call->world->name, (void *)call->words,
                                     wefti_world_gone_text(call->world, gone))
                       : status;
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

/* What a PE that waits has seen of its queue: who is the first that can be read, and how many looks have found that one
 * there, with nobody who has the lock. */
typedef struct stall {
    int first;
    int looks;
} stall;
#define STALLED_LOOKS 10 /* a second: meanwhile PEs that are there tell their predecessors, and pass the lock on */

/* The node of a PE of another host cannot be read once that PE is gone, or has left. Where the queue that can be read
 * begins with somebody whom nobody gives the lock, and stays so, such a PE stood before. */
static int is_stalled(stall *seen, const lock_call *call, const uint32_t *nodes, int first)
{
    const int stands = first >= 0 ? first : call->me;
    if (first >= 0 && is_holder(nodes[first])) {
        seen->looks = 0;
    } else {
        seen->looks = stands == seen->first ? seen->looks + 1 : 1;
    }
    seen->first = stands;
    return seen->looks >= STALLED_LOOKS;
}

/* Whether a PE that stands before this one, or has the lock, is gone. Who is in the queue is read only when some PE
 * is. With a deadline that is the end where it is not known. */
static int is_hopeless(const lock_call *call, stall *seen)
{
    const int pes = (int)call->world->view.pes;
    int has_gone = 0;
    int hides_some = 0; /* who has left may have stood in the queue, too */
    int pe;
    for (pe = 0; pe < pes; pe++) {
        const int is_so = wefti_world_is_gone(call->world, pe);
        has_gone |= is_so;
        hides_some |= !wefti_pe_is_near(&call->world->view, pe) && (is_so || wefti_world_has_left(call->world, pe));
    }
    if (!has_gone) {
        return 0;
    }
    uint32_t *nodes = read_nodes(call);
    if (nodes == NULL) {
        return 0; /* it looks again */
    }
    int is_gone = 0;
    pe = predecessor_of(nodes, pes, call->me);
    for (int steps = 0; pe >= 0 && !is_gone && steps < pes; steps++) { /* PEs move while they are read */
        is_gone = wefti_world_is_gone(call->world, pe);
        pe = predecessor_of(nodes, pes, pe);
    }
    pe = first_of_queue(nodes, pes, call->me);
    is_gone |= pe >= 0 && wefti_world_is_gone(call->world, pe);
    is_gone |= hides_some && call->world->deadline_ns == WEFT_FOREVER && is_stalled(seen, call, nodes, pe);
    wefti_free(nodes);
    return is_gone;
}

/* wefti_waiter_pause, which warns once of who has the lock, and looks whether that can still pass it on. */
static weft_status pause_in_queue(const lock_call *call, wefti_waiter *waiter, stall *seen)
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
        waiter->is_hopeless = (uint32_t)is_hopeless(call, seen);
    }
    return status;
}

static weft_status await_turn(const lock_call *call)
{
    wefti_waiter waiter = wefti_waiter_start(call->world, call->name);
    stall seen = {.first = -1};
    waiter.caller_knows = 1;
    while ((my_node(call) & HAS) == 0) {
        weft_status status = pause_in_queue(call, &waiter, &seen);
        if (WEFTI_UNLIKELY(status != WEFT_OK)) {
            return status == WEFT_ERR_TIMEOUT ? leave_queue(call) : status;
        }
    }
    return WEFT_OK;
}

/* A node that was left is still in the queue: take its place again, or wait until it has been passed over. */
static weft_status return_to_queue(const lock_call *call, int *queued)
{
    wefti_waiter waiter = wefti_waiter_start(call->world, call->name);
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
            weft_status status = wefti_waiter_pause(&waiter, &call->words->node);
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
    WEFT_TRY(change(&call, WEFTI_AMO_SWAP, &call.words->tail, (uint32_t)call.me + 1, 0, call.home, &before));
    if (before == 0) {
        return change(&call, WEFTI_AMO_OR, &call.words->node, HAS, 0, call.me, &old);
    }
    WEFT_TRY(change(&call, WEFTI_AMO_OR, &call.words->node, (uint32_t)call.me + 1, 0, (int)before - 1, &old));
    return await_turn(&call);
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
    WEFT_TRY(change(&call, WEFTI_AMO_COMPARE_SWAP, &call.words->tail, (uint32_t)call.me + 1, 0, call.home, &before));
    if (before != 0) {
        wefti_st32(&call.words->node, 0, WEFTI_RELEASE);
    } else {
        WEFT_TRY(change(&call, WEFTI_AMO_OR, &call.words->node, HAS, 0, call.me, &old));
    }
    *taken = before == 0;
    return WEFT_OK;
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
    WEFT_TRY(weft_quiet(world));
    return pass_on(&call);
}

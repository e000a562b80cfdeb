/* bootstrap/tree/root.c: how PE 0 forms a tree. */
#include "base/error.h"
#include "bootstrap/tree/acceptor.h"
#include "bootstrap/tree/join_tracker.h"
#include "bootstrap/tree/positions.h"
#include "bootstrap/tree/tree.h"
#include "os/os.h"

/* When creation is bound to fail: how long after the last arrival, but not much behind the deadline, PE 0 stays to tell
 * those who are still to come. */
#define GRACE_NS UINT64_C(1000000000)
#define GRACE_LATE_NS UINT64_C(300000000)
/* While others come, PE 0 reads from those who are here once in this time, times their number. */
#define RECEIVE_EACH_NS UINT64_C(10000)

/* ---- the wait for all ---- */

/* When to wait no longer. */
static uint64_t limit_ns(const wefti_tree *tree, const wefti_join_tracker *tracker)
{
    const uint64_t parked_ns = tracker->parking.count > 0 ? wefti_tree_parked_ns(tree) : 0; /* these come back */
    const uint64_t grace_ns = tracker->last_ns + GRACE_NS;
    const uint64_t late_ns = tree->until_ns + GRACE_LATE_NS;
    if (tracker->offences == 0) {
        return tree->peer_timed_out ? 0 : tree->until_ns;
    }
    return (grace_ns < late_ns ? grace_ns : late_ns) + parked_ns;
}

/* Wait for connections; if `receives` also for frames of those who are here. */
static weft_status await_any(wefti_tree *tree, wefti_acceptor *acceptor, int receives, uint64_t until_ns)
{
    wefti_polls_clear(&tree->polls);
    uint64_t due_ns = wefti_acceptor_watch(acceptor, &tree->polls);
    due_ns = due_ns < until_ns ? due_ns : until_ns;
    for (size_t i = 0; receives && i < tree->star_count; i++) {
        wefti_link_watch(&tree->star[i], &tree->polls);
    }
    return wefti_polls_wait(&tree->polls, due_ns < tree->warn_ns ? due_ns : tree->warn_ns);
}

static void receive_all(wefti_tree *tree, wefti_join_tracker *tracker)
{
    wefti_join_tracker_receive(tracker, tree);
    tracker->receive_ns = wefti_os_now_ns() + RECEIVE_EACH_NS * tree->star_count;
}

/* PE 0 lacks memory or descriptors, with this thread's error. It tells the PEs that are here and closes their
 * connections, and with the descriptors that this frees it tells those who still come. If none is free even then, only
 * PE 0's caller gets the error. */
static weft_status give_up(wefti_tree *tree, wefti_join_tracker *tracker, const wefti_acceptor *acceptor,
                           weft_status status)
{
    if (tracker->arrived == 0 && acceptor->count == 0) {
        return status;
    }
    if (tracker->offences == 0) {
        (void)wefti_error_context(status, "world \"%s\": PE 0 failed", tree->hello.name);
        wefti_join_tracker_refuse(tracker, tree, status);
    }
    return WEFT_OK;
}

/* Take in who came, and read from who is here. */
static weft_status await_step(wefti_tree *tree, wefti_join_tracker *tracker, wefti_acceptor *acceptor,
                              uint64_t until_ns)
{
    wefti_link link;
    wefti_tree_hello said;
    int receives = !tracker->has_comers || tracker->offences > 0 || wefti_os_now_ns() >= tracker->receive_ns;
    uint64_t limit = receives || until_ns < tracker->receive_ns ? until_ns : tracker->receive_ns;
    WEFT_TRY(await_any(tree, acceptor, receives, limit));
    if (receives) {
        receive_all(tree, tracker);
    }
    weft_status status = wefti_acceptor_step(acceptor, &tree->polls);
    if (status != WEFT_OK) {
        WEFT_TRY(give_up(tree, tracker, acceptor, status));
    }
    tracker->has_comers = 0;
    while (wefti_acceptor_take(acceptor, &link, &said)) {
        tracker->has_comers = 1;
        WEFT_TRY(wefti_join_tracker_add(tracker, tree, &link, &said));
    }
    return WEFT_OK;
}

static weft_status await_arrivals(wefti_tree *tree, wefti_join_tracker *tracker, wefti_acceptor *acceptor)
{
    while (!wefti_join_tracker_is_complete(tracker, tree)) {
        uint64_t until_ns = limit_ns(tree, tracker);
        if (wefti_os_now_ns() >= until_ns && (tracker->offences > 0 || tracker->parking.count == 0)) {
            return WEFT_OK;
        }
        if (wefti_os_now_ns() >= until_ns) { /* those who wait elsewhere are told when they come back */
            wefti_join_tracker_refuse(tracker, tree, wefti_join_tracker_judge(tracker, tree));
            continue;
        }
        if (wefti_tree_should_warn(tree)) {
            wefti_join_tracker_warn(tracker, tree);
        }
        WEFT_TRY(await_step(tree, tracker, acceptor, until_ns));
    }
    return WEFT_OK;
}

/* ---- the answer ---- */

/* PEs that have children first: others wait for them. */
static weft_status welcome_all(wefti_tree *tree, wefti_join_tracker *tracker)
{
    for (int pe = WEFTI_TREE_RADIX; pe < tree->pes; pe += WEFTI_TREE_RADIX) {
        WEFT_TRY(wefti_join_tracker_welcome(tracker, tree, pe));
    }
    for (int pe = 1; pe < tree->pes; pe++) {
        if (pe % WEFTI_TREE_RADIX != 0) {
            WEFT_TRY(wefti_join_tracker_welcome(tracker, tree, pe));
        }
    }
    return WEFT_OK;
}

/* Those who wait elsewhere get their welcome when they come back. Who is here already may fail meanwhile, or ask
 * whether PE 0 is there. */
static weft_status welcome_parked(wefti_tree *tree, wefti_join_tracker *tracker, wefti_acceptor *acceptor)
{
    tracker->is_welcoming = 1;
    while (tracker->parking.count > 0) {
        uint64_t until_ns = tracker->offences > 0 ? limit_ns(tree, tracker) : tree->until_ns;
        if (wefti_os_now_ns() >= until_ns) {
            break;
        }
        WEFT_TRY(await_step(tree, tracker, acceptor, until_ns));
        if (tree->peer_timed_out) {
            tree->peer_timed_out = 0;
            wefti_join_tracker_answer_waiting(tracker, tree);
        }
    }
    if (tracker->offences > 0) {
        return wefti_join_tracker_judge(tracker, tree);
    }
    return tracker->parking.count > 0 ? wefti_join_tracker_name_parked(tracker, tree) : WEFT_OK;
}

/* All come, and learn of each other or of what is wrong. */
static weft_status meet_all(wefti_tree *tree, wefti_join_tracker *tracker)
{
    wefti_acceptor acceptor;
    wefti_acceptor_init(&acceptor, tree->site, &tree->listeners, 0);
    acceptor.world = tree->site->net->is_shared ? tree->hello.name : NULL;
    weft_status status = await_arrivals(tree, tracker, &acceptor);
    if (status == WEFT_OK) {
        status = wefti_join_tracker_judge(tracker, tree);
    }
    if (status == WEFT_OK) {
        wefti_tree_begin_forming(tree);
        status = welcome_all(tree, tracker);
    }
    if (status == WEFT_OK) {
        status = welcome_parked(tree, tracker, &acceptor);
    }
    wefti_acceptor_fini(&acceptor);
    wefti_tree_stop_listening(tree);
    return status;
}

/* The star's connections to children of PE 0 stay. */
static void adopt(wefti_tree *tree, const wefti_join_tracker *tracker)
{
    for (int i = 0; i < tree->child_count; i++) {
        int pe = tree->children[i].pe;
        wefti_link *link = &tree->star[tracker->places[pe] - 1];
        tree->children[i] = *link;
        wefti_link_init(link, -1, pe);
    }
}

weft_status wefti_tree_form_root(wefti_tree *tree, weft_status status)
{
    wefti_join_tracker tracker;
    WEFT_TRY(wefti_join_tracker_init(&tracker, tree->pes));
    if (status != WEFT_OK) {
        wefti_join_tracker_refuse(&tracker, tree, status);
    }
    status = wefti_tree_make_children(tree);
    if (status == WEFT_OK) {
        status = meet_all(tree, &tracker);
    }
    if (status == WEFT_OK) {
        adopt(tree, &tracker);
        status = wefti_tree_exchange(tree, NULL, NULL, 0);
    }
    if (status == WEFT_OK) {
        wefti_tree_drop_star(tree);
    }
    wefti_join_tracker_fini(&tracker);
    return status;
}

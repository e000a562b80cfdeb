/* bootstrap/tree/exchange.c: contributions travel up the tree to PE 0, and a result down again: all of them, or a
 * digest.
 *
 * A subtree is a run of PE numbers (positions.h), so contributions travel straight from and to their places among all.
 * The wait of a PE has three stages: for its children's contributions, for the result, and for the children to take it.
 * When a wait expires, here or at a PE that waits for this one, the PEs waited for are asked (EXPIRED) whom they wait
 * for in turn; those who do not know it of somebody else within a time that grows towards the root, and then from the
 * root down again, are named. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "bootstrap/tree/positions.h"
#include "bootstrap/tree/tree.h"
#include "os/os.h"

typedef enum stage { STAGE_GATHER, STAGE_RESULT, STAGE_FLUSH } stage;

typedef struct exchange {
    wefti_tree *tree;
    int first; /* the PE whose contribution `gathered` begins with */
    unsigned char *gathered; /* the contributions of this PE's subtree */
    size_t bytes; /* of one PE */
    void *result; /* the same on all PEs */
    size_t result_bytes;
    stage stage;
    int children_left; /* whose contributions have not come */
    int has_result;
    int has_asked; /* the PEs that it waits for in this stage have been asked whom they wait for */
    uint64_t looked_ns; /* when the last look at the links began */
    uint64_t name_ns; /* if they have been asked: when those that have not answered are named */
} exchange;

/* ---- time ---- */

/* Whether something is awaited from, or not yet taken by, the PE at the other end. */
static int is_awaited(const exchange *now, const wefti_link *link)
{
    int is_parent = link == &now->tree->parent;
    switch (now->stage) {
    case STAGE_GATHER:
        return !is_parent && link->sink.type != 0;
    case STAGE_RESULT:
        return is_parent;
    case STAGE_FLUSH:
        return !wefti_link_is_flushed(link);
    }
    return 0;
}

/* A child that does not take the result waits for nobody, and the PEs above may ask for the next exchange by now. */
static uint64_t patience_ns(const exchange *now)
{
    const wefti_tree *tree = now->tree;
    int levels = now->stage != STAGE_RESULT ? wefti_tree_height(tree->pe, tree->pes)
                                            : wefti_tree_levels(tree->pes) + 1 + wefti_tree_depth(tree->pe);
    return wefti_tree_level_ns(tree) * (unsigned)levels;
}

static void ask(exchange *now)
{
    wefti_tree *tree = now->tree;
    now->has_asked = 1;
    now->name_ns = wefti_os_now_ns() + patience_ns(now);
    for (int i = 0; i < tree->child_count; i++) {
        if (is_awaited(now, &tree->children[i])) {
            (void)wefti_link_send(&tree->children[i], WEFTI_FRAME_EXPIRED, tree->sequence, NULL, 0);
        }
    }
    if (is_awaited(now, &tree->parent)) {
        (void)wefti_link_send(&tree->parent, WEFTI_FRAME_EXPIRED, tree->sequence, NULL, 0);
    }
}

static weft_status name_silent(exchange *now)
{
    wefti_tree *tree = now->tree;
    const char *where = tree->sequence == WEFTI_TREE_SEQUENCE_FORMING ? "its place" : "an exchange during creation";
    unsigned char *silent = wefti_alloc_zeroed((size_t)tree->pes, 1);
    if (silent == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory to name the PEs that did not come");
    }
    for (int i = 0; i < tree->child_count; i++) {
        silent[tree->children[i].pe] = is_awaited(now, &tree->children[i]) != 0;
    }
    if (is_awaited(now, &tree->parent)) {
        silent[tree->parent.pe] = 1;
    }
    weft_status status = wefti_tree_missing(tree, silent, where);
    wefti_free(silent);
    return status;
}

/* When the wait under way is over or its next step due. */
static uint64_t limit_ns(const exchange *now)
{
    return now->has_asked ? now->name_ns : now->tree->peer_timed_out ? 0 : now->tree->until_ns;
}

/* Only a look that began when the time was over shows that somebody is silent: this PE may have been late itself. */
static weft_status check_time(exchange *now)
{
    if (now->looked_ns < limit_ns(now)) {
        return WEFT_OK;
    }
    if (now->has_asked) {
        return name_silent(now);
    }
    ask(now);
    return WEFT_OK;
}

/* ---- what comes ---- */

/* Read once. While forming, PEs that take their places ask PE 0 whether it is there. */
static weft_status receive(wefti_tree *tree, wefti_link *link, wefti_link_event *event)
{
    int had_timed_out = tree->peer_timed_out;
    tree->peer_timed_out = 0;
    WEFT_TRY(wefti_tree_receive(tree, link, event));
    if (tree->peer_timed_out && tree->pe == 0 && tree->sequence == WEFTI_TREE_SEQUENCE_FORMING) {
        (void)wefti_link_send(link, WEFTI_FRAME_ALIVE, 0, NULL, 0);
    }
    tree->peer_timed_out |= had_timed_out;
    return WEFT_OK;
}

static weft_status receive_child(exchange *now, wefti_link *link)
{
    wefti_link_event event;
    WEFT_TRY(receive(now->tree, link, &event));
    if (event == WEFTI_LINK_FRAME && link->in.type == WEFTI_FRAME_GATHER) {
        now->children_left--;
    }
    return WEFT_OK;
}

static weft_status receive_parent(exchange *now, wefti_link *link)
{
    wefti_link_event event;
    WEFT_TRY(receive(now->tree, link, &event));
    if (event == WEFTI_LINK_FRAME && link->in.type == WEFTI_FRAME_RESULT) {
        now->has_result = 1;
    }
    return WEFT_OK;
}

/* While forming. PE 0 closes the star when it is done, which may be seen before its last word down the tree. */
static weft_status receive_star(exchange *now, wefti_link *link)
{
    wefti_link_event event = WEFTI_LINK_IDLE;
    if (link->is_leaving) {
        if (wefti_link_is_flushed(link)) {
            wefti_link_fini(link);
        }
        return WEFT_OK;
    }
    if (now->tree->pe == 0) {
        return receive(now->tree, link, &event);
    }
    for (int frames = 0; frames < WEFTI_LINK_FRAMES_MAX; frames++) {
        event = wefti_link_receive(link);
        if (event != WEFTI_LINK_FRAME) {
            break;
        }
        if (link->in.type == WEFTI_FRAME_FAILURE) {
            return wefti_tree_take_over(now->tree, link);
        }
    }
    if (event != WEFTI_LINK_IDLE && event != WEFTI_LINK_FRAME) {
        wefti_link_fini(link);
    }
    return WEFT_OK;
}

static void watch(exchange *now)
{
    wefti_tree *tree = now->tree;
    wefti_polls_clear(&tree->polls);
    for (int i = 0; i < tree->child_count; i++) {
        wefti_link_watch(&tree->children[i], &tree->polls);
    }
    wefti_link_watch(&tree->parent, &tree->polls);
    for (size_t i = 0; i < tree->star_count; i++) {
        wefti_link_watch(&tree->star[i], &tree->polls);
    }
}

static weft_status receive_all(exchange *now)
{
    wefti_tree *tree = now->tree;
    for (int i = 0; i < tree->child_count; i++) {
        if (wefti_link_ready(&tree->children[i], &tree->polls)) {
            WEFT_TRY(receive_child(now, &tree->children[i]));
        }
    }
    if (wefti_link_ready(&tree->parent, &tree->polls)) {
        WEFT_TRY(receive_parent(now, &tree->parent));
    }
    for (size_t i = 0; i < tree->star_count; i++) {
        if (wefti_link_ready(&tree->star[i], &tree->polls)) {
            WEFT_TRY(receive_star(now, &tree->star[i]));
        }
    }
    return WEFT_OK;
}

static weft_status step(exchange *now)
{
    WEFT_TRY(check_time(now));
    watch(now);
    now->looked_ns = wefti_os_now_ns();
    WEFT_TRY(wefti_polls_wait(&now->tree->polls, limit_ns(now)));
    return receive_all(now);
}

/* ---- the three stages ---- */

static weft_status send(exchange *now, wefti_link *link, wefti_frame_type type, const void *body, size_t bytes)
{
    return wefti_link_send(link, type, now->tree->sequence, body, bytes) ? WEFT_OK
                                                                         : wefti_tree_lost_on_sending(now->tree, link);
}

static unsigned char *contribution(const exchange *now, int pe)
{
    return now->gathered + (size_t)(pe - now->first) * now->bytes;
}

static weft_status gather(exchange *now)
{
    wefti_tree *tree = now->tree;
    now->stage = STAGE_GATHER;
    now->children_left = tree->child_count;
    for (int i = 0; i < tree->child_count; i++) {
        wefti_link *link = &tree->children[i];
        size_t span_bytes = (size_t)wefti_tree_span(link->pe, tree->pes) * now->bytes;
        wefti_link_expect(link, WEFTI_FRAME_GATHER, tree->sequence, contribution(now, link->pe), span_bytes);
        WEFT_TRY(receive_child(now, link));
    }
    while (now->children_left > 0) {
        WEFT_TRY(step(now));
    }
    return WEFT_OK;
}

static weft_status await_result(exchange *now)
{
    wefti_tree *tree = now->tree;
    size_t span_bytes = (size_t)wefti_tree_span(tree->pe, tree->pes) * now->bytes;
    now->stage = STAGE_RESULT;
    now->has_asked = 0;
    wefti_link_expect(&tree->parent, WEFTI_FRAME_RESULT, tree->sequence, now->result, now->result_bytes);
    WEFT_TRY(send(now, &tree->parent, WEFTI_FRAME_GATHER, contribution(now, tree->pe), span_bytes));
    while (!now->has_result) {
        WEFT_TRY(step(now));
    }
    return WEFT_OK;
}

/* Watch the children that have not taken the result; returns how many there are. */
static int watch_takers(wefti_tree *tree)
{
    int count = 0;
    wefti_polls_clear(&tree->polls);
    for (int i = 0; i < tree->child_count; i++) {
        if (!wefti_link_is_flushed(&tree->children[i])) {
            wefti_link_watch(&tree->children[i], &tree->polls);
            count++;
        }
    }
    return count;
}

/* A child that has taken the result may say or do anything. One that has not may fail instead: its error must be read
 * before its connection ends. */
static weft_status serve_taker(wefti_tree *tree, wefti_link *link)
{
    wefti_link_event event;
    short seen = wefti_polls_seen(&tree->polls, link->place);
    if (seen & POLLOUT && !wefti_link_flush(link)) {
        return wefti_tree_lost_on_sending(tree, link);
    }
    return seen & ~POLLOUT && !wefti_link_is_flushed(link) ? receive(tree, link, &event) : WEFT_OK;
}

static weft_status flush_children(exchange *now)
{
    wefti_tree *tree = now->tree;
    while (watch_takers(tree) > 0) {
        now->looked_ns = wefti_os_now_ns();
        WEFT_TRY(wefti_polls_wait(&tree->polls, limit_ns(now)));
        for (int i = 0; i < tree->child_count; i++) {
            if (!wefti_link_is_flushed(&tree->children[i])) {
                WEFT_TRY(serve_taker(tree, &tree->children[i]));
            }
        }
        WEFT_TRY(check_time(now));
    }
    return WEFT_OK;
}

static weft_status spread(exchange *now)
{
    wefti_tree *tree = now->tree;
    now->stage = STAGE_FLUSH;
    now->has_asked = 0;
    for (int i = 0; i < tree->child_count; i++) {
        WEFT_TRY(send(now, &tree->children[i], WEFTI_FRAME_RESULT, now->result, now->result_bytes));
    }
    return flush_children(now);
}

/* PE 0 makes the result of all contributions by `make`, if there is one. */
static weft_status run(exchange *now, const void *mine, wefti_digest_make *make)
{
    wefti_tree *tree = now->tree;
    if (now->bytes > 0) {
        memmove(contribution(now, tree->pe), mine, now->bytes);
    }
    WEFT_TRY(gather(now));
    if (tree->pe != 0) {
        WEFT_TRY(await_result(now));
    } else if (make != NULL) {
        WEFT_TRY(make(now->gathered, tree->pes, now->result));
    }
    WEFT_TRY(spread(now));
    tree->sequence++;
    tree->peer_timed_out = 0;
    return WEFT_OK;
}

weft_status wefti_tree_exchange(wefti_tree *tree, const void *mine, void *all, size_t bytes)
{
    unsigned char none;
    all = bytes == 0 ? &none : all;
    exchange now = {
        .tree = tree, .gathered = all, .bytes = bytes, .result = all, .result_bytes = (size_t)tree->pes * bytes};
    return run(&now, mine, NULL);
}

weft_status wefti_tree_exchange_digest(wefti_tree *tree, const wefti_digest_call *call)
{
    exchange now = {.tree = tree,
                    .first = tree->pe,
                    .bytes = call->bytes,
                    .result = call->digest,
                    .result_bytes = call->digest_bytes};
    now.gathered = wefti_alloc((size_t)wefti_tree_span(tree->pe, tree->pes) * call->bytes);
    if (now.gathered == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for what %d PEs contribute",
                           wefti_tree_span(tree->pe, tree->pes));
    }
    weft_status status = run(&now, call->mine, call->make);
    wefti_free(now.gathered);
    return status;
}

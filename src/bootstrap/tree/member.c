/* bootstrap/tree/member.c: how a PE other than 0 takes its place in a tree. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/tree/acceptor.h"
#include "bootstrap/tree/caller.h"
#include "bootstrap/tree/positions.h"
#include "bootstrap/tree/tree.h"
#include "os/os.h"

/* When this PE's deadline has passed, how long it waits for PE 0 to name those who are missing. */
#define WORD_NS UINT64_C(500000000)
/* How long a second PE 0 waits for the first to say a word: it may have been killed and left its socket to its
 * children. */
#define SECOND_ROOT_NS UINT64_C(2000000000)

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* ---- to PE 0 ---- */

static int nobody_listens(const wefti_caller *caller)
{
    return caller->refused == (1u << caller->address_count) - 1;
}

/* PE 0 came, and had this PE come back, but is not heard any more. */
static weft_status miss_word(wefti_tree *tree)
{
    tree->names_culprit = 1;
    return wefti_error(
        WEFT_ERR_TIMEOUT,
        "world \"%s\": PE 0, which had come, did not say who had not when the deadline of %.3g s passed; "
        "see its own output, or raise WEFT_DEADLINE",
        tree->hello.name, (double)tree->deadline_ns * 1e-9);
}

/* Call until PE 0 answers. `give_up_ns`: WEFT_OK, with the caller not done, when nobody listens there or nothing
 * has come until then; UINT64_MAX: never. */
static weft_status call_root(wefti_tree *tree, wefti_caller *caller, uint64_t give_up_ns)
{
    while (!wefti_caller_is_done(caller)) {
        wefti_polls_clear(&tree->polls);
        uint64_t due_ns = sooner(wefti_caller_watch(caller, &tree->polls), tree->warn_ns);
        WEFT_TRY(wefti_polls_wait(&tree->polls, sooner(sooner(due_ns, give_up_ns), tree->until_ns)));
        if (wefti_tree_should_warn(tree)) {
            wefti_log(WEFTI_LOG_WARN, "world \"%s\": PE %d still waits for PE 0 to come", tree->hello.name, tree->pe);
        }
        weft_status status = wefti_caller_step(caller, &tree->polls);
        if (status != WEFT_OK) {
            tree->names_culprit = status == WEFT_ERR_PEER;
            return status;
        }
        if (give_up_ns != UINT64_MAX && (nobody_listens(caller) || wefti_os_now_ns() >= give_up_ns)) {
            return WEFT_OK;
        }
        if (!wefti_caller_is_done(caller) && wefti_os_now_ns() >= tree->until_ns) {
            WEFT_TRY(wefti_caller_judge(caller));
            return tree->hello.ticket == 0 ? wefti_tree_missing_one(tree, 0, "its creation") : miss_word(tree);
        }
    }
    return WEFT_OK;
}

static weft_status reach_root(wefti_tree *tree)
{
    wefti_caller caller;
    WEFT_TRY(wefti_caller_init(&caller, tree->site, &tree->hello, 0, &tree->site->root));
    if (wefti_tree_span(tree->pe, tree->pes) > 1) {
        caller.listeners = &tree->listeners;
    }
    weft_status status = call_root(tree, &caller, UINT64_MAX);
    if (status == WEFT_OK) {
        /* PE 0 counts as the parent until the connection has its place in the star, so that an error reaches PE 0. */
        tree->parent = wefti_caller_take(&caller);
        size_t at;
        WEFT_TRY(wefti_tree_add_star(tree, &tree->parent, &at));
        wefti_link_init(&tree->parent, -1, wefti_tree_parent(tree->pe, tree->pes));
    }
    wefti_caller_fini(&caller);
    return status;
}

/* What PE 0 says: welcome, or to come back later. */
typedef struct word {
    int is_parked;
    wefti_tree_welcome welcome;
    wefti_tree_parked parked;
} word;

/* Whether this frame is such a word. */
static int read_word(const wefti_link *link, word *said)
{
    said->is_parked = link->in.type == WEFTI_FRAME_PARKED;
    if (link->in.type == WEFTI_FRAME_WELCOME && link->in.bytes == sizeof said->welcome) {
        memcpy(&said->welcome, link->body, sizeof said->welcome);
        return 1;
    }
    if (said->is_parked && link->in.bytes == sizeof said->parked) {
        memcpy(&said->parked, link->body, sizeof said->parked);
        return 1;
    }
    return 0;
}

/* Wait for the word of PE 0. It gives one even at the deadline: that is when it names those who are missing. */
static weft_status await_word(wefti_tree *tree, wefti_link *link, word *said)
{
    uint64_t until_ns = tree->until_ns;
    int has_asked = 0;
    for (;;) {
        wefti_link_event event;
        WEFT_TRY(wefti_tree_receive(tree, link, &event));
        if (event == WEFTI_LINK_FRAME && read_word(link, said)) {
            return WEFT_OK;
        }
        if (wefti_os_now_ns() >= until_ns) {
            if (has_asked) {
                return wefti_tree_missing_one(tree, 0, "its creation");
            }
            has_asked = 1;
            until_ns = wefti_os_now_ns() + WORD_NS;
            (void)wefti_link_send(link, WEFTI_FRAME_EXPIRED, tree->sequence, NULL, 0);
        }
        wefti_polls_clear(&tree->polls);
        wefti_link_watch(link, &tree->polls);
        WEFT_TRY(wefti_polls_wait(&tree->polls, until_ns));
    }
}

/* ---- to parent and children ---- */

/* What a PE waits for while it takes its place. */
typedef struct placing {
    wefti_caller caller; /* to the parent */
    wefti_acceptor acceptor;
    int children_left;
    int parent_left;
    int has_asked; /* after the deadline PE 0 has been asked whether it is there */
    int is_led; /* PE 0 has answered that it is */
    int was_parked; /* there is no connection to PE 0 by which it could be asked */
} placing;

static wefti_link *child_of(wefti_tree *tree, int pe)
{
    for (int i = 0; i < tree->child_count; i++) {
        if (tree->children[i].pe == pe) {
            return &tree->children[i];
        }
    }
    return NULL;
}

/* Take in those who are children; who else should knock knows the secret, but has no business here. */
static void take_children(wefti_tree *tree, placing *now)
{
    wefti_link link;
    wefti_tree_hello said;
    while (wefti_acceptor_take(&now->acceptor, &link, &said)) {
        wefti_link *child = child_of(tree, said.pe);
        if (child == NULL || wefti_link_is_open(child) || strcmp(said.name, tree->hello.name) != 0) {
            wefti_link_fini(&link);
            continue;
        }
        *child = link;
        now->children_left--;
    }
}

/* Decide the error: `pe` has not come; or PE 0 is gone, which may have failed before it told the others so. */
static weft_status name_missing(wefti_tree *tree, const placing *now, int pe)
{
    char who[48];
    if (now->was_parked) {
        (void)snprintf(who, sizeof who, "PE %d, or PE 0 to tell it where,", pe);
        return wefti_tree_missing_text(tree, who, "its place");
    }
    return wefti_tree_missing_one(tree, now->is_led ? pe : 0, "its place");
}

/* Name those who have not come, the PEs nearest to the leaves first. */
static weft_status check_time(wefti_tree *tree, const placing *now)
{
    int levels = wefti_tree_levels(tree->pes);
    uint64_t now_ns = wefti_os_now_ns();
    uint64_t child_ns = tree->until_ns + wefti_tree_level_ns(tree) * (unsigned)wefti_tree_height(tree->pe, tree->pes);
    uint64_t parent_ns =
        tree->until_ns + wefti_tree_level_ns(tree) * (unsigned)(levels + 1 + wefti_tree_depth(tree->pe));
    for (int i = 0; i < tree->child_count && now_ns >= child_ns; i++) {
        if (!wefti_link_is_open(&tree->children[i])) {
            return name_missing(tree, now, tree->children[i].pe);
        }
    }
    if (now->parent_left && now_ns >= parent_ns) {
        return name_missing(tree, now, now->caller.pe);
    }
    return WEFT_OK;
}

static weft_status receive_root(wefti_tree *tree, placing *now)
{
    wefti_link_event event;
    WEFT_TRY(wefti_tree_receive(tree, &tree->star[0], &event));
    now->is_led |= event == WEFTI_LINK_FRAME && tree->star[0].in.type == WEFTI_FRAME_ALIVE;
    if (tree->peer_timed_out) {
        tree->until_ns = sooner(tree->until_ns, wefti_os_now_ns());
    }
    return WEFT_OK;
}

static void ask_root(wefti_tree *tree, placing *now)
{
    if (!now->has_asked && wefti_os_now_ns() >= tree->until_ns) {
        now->has_asked = 1;
        (void)wefti_link_send(&tree->star[0], WEFTI_FRAME_EXPIRED, tree->sequence, NULL, 0);
    }
}

/* One wait for whatever comes first. */
static weft_status place_step(wefti_tree *tree, placing *now)
{
    wefti_polls_clear(&tree->polls);
    uint64_t due_ns = wefti_acceptor_watch(&now->acceptor, &tree->polls);
    if (now->parent_left) {
        due_ns = sooner(due_ns, wefti_caller_watch(&now->caller, &tree->polls));
    }
    wefti_link_watch(&tree->star[0], &tree->polls);
    uint64_t now_ns = wefti_os_now_ns();
    uint64_t until_ns = now_ns < tree->until_ns ? tree->until_ns : now_ns + wefti_tree_level_ns(tree) / 8;
    WEFT_TRY(wefti_polls_wait(&tree->polls, sooner(due_ns, until_ns)));
    if (wefti_link_ready(&tree->star[0], &tree->polls)) {
        WEFT_TRY(receive_root(tree, now));
    }
    ask_root(tree, now);
    WEFT_TRY(wefti_acceptor_step(&now->acceptor, &tree->polls));
    take_children(tree, now);
    if (now->parent_left) {
        WEFT_TRY(wefti_caller_step(&now->caller, &tree->polls));
        now->parent_left = !wefti_caller_is_done(&now->caller);
    }
    return check_time(tree, now);
}

static weft_status take_place(wefti_tree *tree, const wefti_tree_contact *parent)
{
    placing now;
    weft_status status = WEFT_OK;
    if (tree->parent.pe == 0) {
        parent = &tree->site->root; /* which is connected already */
    }
    WEFT_TRY(wefti_caller_init(&now.caller, tree->site, &tree->hello, tree->parent.pe, parent));
    wefti_acceptor_init(&now.acceptor, tree->site, &tree->listeners, tree->pe);
    now.children_left = tree->child_count;
    now.parent_left = tree->parent.pe != 0;
    now.has_asked = 0;
    now.is_led = 0;
    now.was_parked =
        tree->parent.pe != 0 && !wefti_link_is_open(&tree->star[0]); /* PE 0 has said its last word to it */
    while (status == WEFT_OK && (now.children_left > 0 || now.parent_left)) {
        status = place_step(tree, &now);
    }
    wefti_acceptor_fini(&now.acceptor);
    if (tree->parent.pe == 0) {
        tree->parent = tree->star[0];
        wefti_link_init(&tree->star[0], -1, 0);
    } else if (wefti_caller_is_known(&now.caller)) { /* also to tell it of an error */
        tree->parent = wefti_caller_take(&now.caller);
    }
    wefti_caller_fini(&now.caller);
    return status;
}

/* Come back to PE 0, which has no descriptor to spare for a PE that waits. Its word is due even if the deadline passes
 * meanwhile. */
static weft_status come_back(wefti_tree *tree, const wefti_tree_parked *parked)
{
    wefti_caller caller;
    uint64_t away_ns = sooner(parked->away_ns, WEFTI_TREE_AWAY_MAX_NS);
    wefti_link_fini(&tree->star[0]);
    wefti_os_sleep_ns(away_ns);
    if (tree->hello.ticket == 0) {
        tree->due_ns = tree->until_ns;
        tree->until_ns += WORD_NS + wefti_tree_parked_ns(tree);
    }
    tree->hello.ticket = parked->ticket;
    tree->hello.is_overdue = wefti_os_now_ns() >= tree->due_ns;
    weft_status status = wefti_caller_init(&caller, tree->site, &tree->hello, 0, &tree->site->root);
    if (status == WEFT_OK) {
        status = call_root(tree, &caller, UINT64_MAX);
    }
    if (status == WEFT_OK) {
        tree->star[0] = wefti_caller_take(&caller);
    }
    wefti_caller_fini(&caller);
    return status;
}

/* Until PE 0 says who this PE's parent is. */
static weft_status await_welcome(wefti_tree *tree, wefti_tree_welcome *welcome)
{
    word said;
    int was_parked = 0;
    WEFT_TRY(await_word(tree, &tree->star[0], &said));
    while (said.is_parked) {
        was_parked = 1;
        WEFT_TRY(come_back(tree, &said.parked));
        WEFT_TRY(await_word(tree, &tree->star[0], &said));
    }
    if (was_parked) {
        tree->until_ns = tree->due_ns; /* as that of those who were not: each waits for others in its turn */
    }
    if (was_parked && tree->parent.pe != 0) {
        wefti_link_fini(&tree->star[0]);
    }
    *welcome = said.welcome;
    tree->hello.ticket = 0;
    tree->hello.is_overdue = 0;
    return WEFT_OK;
}

weft_status wefti_tree_form_member(wefti_tree *tree)
{
    wefti_tree_welcome welcome;
    WEFT_TRY(reach_root(tree));
    WEFT_TRY(wefti_tree_make_children(tree));
    WEFT_TRY(await_welcome(tree, &welcome));
    wefti_tree_begin_forming(tree);
    WEFT_TRY(take_place(tree, &welcome.parent));
    wefti_tree_stop_listening(tree);
    WEFT_TRY(wefti_tree_exchange(tree, NULL, NULL, 0));
    wefti_tree_drop_star(tree);
    return WEFT_OK;
}

/* ---- a PE 0 too many ---- */

weft_status wefti_tree_report_second_root(wefti_tree *tree, const wefti_tree_contact *occupied)
{
    wefti_caller caller;
    word said;
    uint64_t patience_ns = sooner(SECOND_ROOT_NS, tree->deadline_ns / 4);
    WEFT_TRY(wefti_caller_init(&caller, tree->site, &tree->hello, 0, occupied));
    weft_status status = call_root(tree, &caller, wefti_os_now_ns() + patience_ns);
    if (status == WEFT_OK && wefti_caller_is_done(&caller)) {
        status = await_word(tree, &caller.link, &said);
    }
    tree->site->silent = !wefti_caller_is_done(&caller) && !nobody_listens(&caller);
    wefti_caller_fini(&caller);
    return status;
}

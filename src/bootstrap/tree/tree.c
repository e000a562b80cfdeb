/* bootstrap/tree/tree.c: what the stages of a tree share: errors that are decided, connections. */
#include "bootstrap/tree/tree.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pe_list.h"
#include "bootstrap/tree/positions.h"
#include "os/os.h"
#include "os/socket.h"

/* ---- deciding errors ---- */

/* Decide that the PE at the other end is gone. */
static weft_status lost(wefti_tree *tree, const wefti_link *link)
{
    tree->names_culprit = 1;
    return wefti_error(WEFT_ERR_PEER,
                       "world \"%s\": PE %d is gone, it ended or gave up during creation; see its own output",
                       tree->hello.name, link->pe);
}

weft_status wefti_tree_missing_text(wefti_tree *tree, const char *who, const char *where)
{
    const wefti_tree_net *net = tree->site->net;
    tree->names_culprit = 1;
    return wefti_error(WEFT_ERR_TIMEOUT,
                       "world \"%s\": %s had not come to %s when the deadline of %.3g s passed; start what is missing, "
                       "or raise WEFT_DEADLINE%s",
                       tree->hello.name, who, where, (double)tree->deadline_ns * 1e-9,
                       tree->pe == 0 && net->explain != NULL ? net->explain(tree->site) : "");
}

weft_status wefti_tree_missing(wefti_tree *tree, const unsigned char *missing, const char *where)
{
    char list[WEFTI_PE_LIST_BYTES];
    (void)wefti_pe_list_text(missing, tree->pes, 1, list);
    return wefti_tree_missing_text(tree, list, where);
}

weft_status wefti_tree_missing_one(wefti_tree *tree, int pe, const char *where)
{
    char who[16];
    (void)snprintf(who, sizeof who, "PE %d", pe);
    return wefti_tree_missing_text(tree, who, where);
}

weft_status wefti_tree_take_over(wefti_tree *tree, const wefti_link *link)
{
    wefti_tree_failure failure;
    if (link->in.bytes != sizeof failure) {
        return lost(tree, link);
    }
    memcpy(&failure, link->body, sizeof failure);
    failure.text[sizeof failure.text - 1] = '\0';
    tree->names_culprit = 1;
    tree->received_from = link;
    return wefti_error_relay(failure.status < 0 ? (weft_status)failure.status : WEFT_ERR_PEER, failure.text);
}

static weft_status name_broken(wefti_tree *tree, const wefti_link *link)
{
    tree->names_culprit = 1;
    return wefti_error(WEFT_ERR_MISMATCH,
                       "world \"%s\": PE %d is at another step of its creation than PE %d (it sent %llu bytes as frame "
                       "%u.%u); do all PEs make the same calls?",
                       tree->hello.name, link->pe, tree->pe, (unsigned long long)link->in.bytes, link->in.type,
                       link->in.sequence);
}

static weft_status name_forged(wefti_tree *tree, const wefti_link *link)
{
    tree->names_culprit = 1;
    return wefti_error(WEFT_ERR_AUTHENTICATION,
                       "world \"%s\": what came to PE %d from PE %d is not what that PE sent: somebody between them "
                       "changes it",
                       tree->hello.name, tree->pe, link->pe);
}

weft_status wefti_tree_receive(wefti_tree *tree, wefti_link *link, wefti_link_event *event)
{
    for (int frames = 0; frames < WEFTI_LINK_FRAMES_MAX; frames++) {
        *event = wefti_link_receive(link);
        if (*event == WEFTI_LINK_CLOSED) {
            return lost(tree, link);
        }
        if (*event == WEFTI_LINK_BROKEN) {
            return name_broken(tree, link);
        }
        if (*event == WEFTI_LINK_FORGED) {
            return name_forged(tree, link);
        }
        if (*event != WEFTI_LINK_FRAME) {
            return WEFT_OK;
        }
        if (link->in.type == WEFTI_FRAME_FAILURE) {
            return wefti_tree_take_over(tree, link);
        }
        if (link->in.type != WEFTI_FRAME_EXPIRED) {
            return WEFT_OK;
        }
        tree->peer_timed_out |= link->in.sequence == tree->sequence; /* else that wait is over */
    }
    *event = WEFTI_LINK_IDLE; /* the rest is read after the next wait, which it ends at once */
    return WEFT_OK;
}

/* What was said last may come in parts, and a socket may say that there is nothing when there is. */
weft_status wefti_tree_lost_on_sending(wefti_tree *tree, wefti_link *link)
{
    uint64_t until_ns = wefti_os_now_ns() + WEFTI_TREE_TELLING_NS;
    wefti_link_event event;
    do {
        WEFT_TRY(wefti_tree_receive(tree, link, &event));
        if (event == WEFTI_LINK_IDLE) {
            wefti_polls_clear(&tree->polls);
            (void)wefti_polls_watch(&tree->polls, link->descriptor, POLLIN);
            WEFT_TRY(wefti_polls_wait(&tree->polls, until_ns));
        }
    } while (event != WEFTI_LINK_HELD && wefti_os_now_ns() < until_ns);
    return lost(tree, link);
}

int wefti_tree_should_warn(wefti_tree *tree)
{
    if (wefti_os_now_ns() < tree->warn_ns) {
        return 0;
    }
    tree->warn_ns = UINT64_MAX;
    return 1;
}

/* ---- connections ---- */

void wefti_tree_stop_listening(wefti_tree *tree)
{
    if (tree->listeners.count > 0 && tree->pe == 0 && tree->site->net->unlisten_as_root != NULL) {
        tree->site->net->unlisten_as_root(tree->site);
    }
    for (int i = 0; i < tree->listeners.count; i++) {
        wefti_os_socket_stop(tree->listeners.descriptors[i]);
    }
    tree->listeners.count = 0;
}

/* A place whose connection was closed: of a PE that was parked, since all others stay until creation ends or fails. */
static size_t find_place(const wefti_tree *tree)
{
    size_t at = 0;
    while (at < tree->star_count && (wefti_link_is_open(&tree->star[at]) || !tree->star[at].is_leaving)) {
        at++;
    }
    return at;
}

weft_status wefti_tree_add_star(wefti_tree *tree, const wefti_link *link, size_t *at)
{
    tree->has_met = 1;
    *at = find_place(tree);
    if (*at < tree->star_count) {
        tree->star[*at] = *link;
        return WEFT_OK;
    }
    if (tree->star_count == tree->star_capacity) {
        size_t capacity = tree->star_capacity == 0 ? 4 : 2 * tree->star_capacity;
        wefti_link *star = wefti_realloc(tree->star, capacity * sizeof *star);
        if (star == NULL) {
            return wefti_error(WEFT_ERR_MEMORY, "no memory for %zu connections", capacity);
        }
        tree->star = star;
        tree->star_capacity = capacity;
    }
    tree->star[tree->star_count++] = *link;
    return WEFT_OK;
}

void wefti_tree_drop_star(wefti_tree *tree)
{
    for (size_t i = 0; i < tree->star_count; i++) {
        wefti_link_fini(&tree->star[i]);
    }
    wefti_free(tree->star);
    tree->star = NULL;
    tree->star_count = 0;
    tree->star_capacity = 0;
}

void wefti_tree_begin_forming(wefti_tree *tree)
{
    uint64_t least_ns = tree->deadline_ns < WEFTI_TREE_FORMING_NS ? tree->deadline_ns : WEFTI_TREE_FORMING_NS;
    uint64_t until_ns = wefti_os_now_ns() + least_ns;
    tree->until_ns = tree->until_ns > until_ns ? tree->until_ns : until_ns;
    tree->peer_timed_out = 0;
    tree->sequence = WEFTI_TREE_SEQUENCE_FORMING;
}

weft_status wefti_tree_make_children(wefti_tree *tree)
{
    int children[WEFTI_TREE_CHILDREN_MAX];
    int count = wefti_tree_children(tree->pe, tree->pes, children);
    tree->children = wefti_alloc((size_t)count * sizeof *tree->children);
    if (tree->children == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for %d connections", count);
    }
    for (int i = 0; i < count; i++) {
        wefti_link_init(&tree->children[i], -1, children[i]);
    }
    tree->child_count = count;
    return WEFT_OK;
}

/* bootstrap/tree/open.c: the life of a tree, and how an error reaches all PEs. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "bootstrap/tree/tree.h"
#include "os/os.h"

/* How often a second PE 0 looks whether the first is still there. */
#define AGAIN_NS UINT64_C(100000)

/* ---- telling others ---- */

static void tell(wefti_tree *tree, wefti_link *link, const wefti_tree_failure *failure)
{
    if (link != tree->received_from) {
        (void)wefti_link_send(link, WEFTI_FRAME_FAILURE, 0, failure, sizeof *failure);
    }
}

/* Watch the links on which something is left to send; returns how many there are. */
static size_t watch_unsent(wefti_tree *tree)
{
    wefti_polls_clear(&tree->polls);
    wefti_link_watch(&tree->parent, &tree->polls);
    size_t count = !wefti_link_is_flushed(&tree->parent);
    for (int i = 0; i < tree->child_count; i++) {
        wefti_link_watch(&tree->children[i], &tree->polls);
        count += !wefti_link_is_flushed(&tree->children[i]);
    }
    for (size_t i = 0; i < tree->star_count; i++) {
        wefti_link_watch(&tree->star[i], &tree->polls);
        count += !wefti_link_is_flushed(&tree->star[i]);
    }
    return count;
}

static void flush_all(wefti_tree *tree)
{
    (void)wefti_link_flush(&tree->parent);
    for (int i = 0; i < tree->child_count; i++) {
        (void)wefti_link_flush(&tree->children[i]);
    }
    for (size_t i = 0; i < tree->star_count; i++) {
        (void)wefti_link_flush(&tree->star[i]);
    }
}

/* Keep the error of this thread for later calls, and pass it on to all neighbours as well as possible. */
static weft_status fail(wefti_tree *tree, weft_status status)
{
    wefti_tree_failure failure = {.status = status};
    if (!tree->names_culprit) {
        (void)wefti_error_context(status, "world \"%s\": PE %d failed", tree->hello.name, tree->pe);
    }
    (void)snprintf(tree->text, sizeof tree->text, "%s", weft_last_error());
    memcpy(failure.text, tree->text, sizeof failure.text);
    tree->failed = status;
    tell(tree, &tree->parent, &failure);
    for (int i = 0; i < tree->child_count; i++) {
        tell(tree, &tree->children[i], &failure);
    }
    for (size_t i = 0; i < tree->star_count; i++) {
        tell(tree, &tree->star[i], &failure);
    }
    uint64_t until_ns = wefti_os_now_ns() + WEFTI_TREE_TELLING_NS;
    while (watch_unsent(tree) > 0 && wefti_os_now_ns() < until_ns) {
        for (size_t i = 0; i < tree->polls.count; i++) {
            if (!(tree->polls.items[i].events & POLLOUT)) {
                tree->polls.items[i].fd = -1;
            }
        }
        if (wefti_polls_wait(&tree->polls, until_ns) != WEFT_OK) {
            break;
        }
        flush_all(tree);
    }
    return wefti_error_relay(status, tree->text);
}

/* ---- life ---- */

static void init(wefti_tree *tree, wefti_tree_site *site, const weft_world_config *config, int pe, int pes)
{
    memset(tree, 0, sizeof *tree);
    tree->site = site;
    tree->pe = pe;
    tree->pes = pes;
    tree->deadline_ns = config->deadline_ns;
    tree->until_ns = wefti_os_now_ns() + config->deadline_ns;
    tree->warn_ns = config->warn_ns == 0 ? UINT64_MAX : wefti_os_now_ns() + config->warn_ns;
    wefti_link_init(&tree->parent, -1, -1);
    tree->hello.magic = WEFTI_TREE_MAGIC;
    tree->hello.protocol = WEFTI_TREE_PROTOCOL;
    tree->hello.version = WEFT_VERSION;
    tree->hello.pe = pe;
    tree->hello.pes = pes;
    (void)snprintf(tree->hello.name, sizeof tree->hello.name, "%s", wefti_bootstrap_world_name(config));
}

/* PE 0 waits for the others. When another PE 0 does so already, that one gets the error, and passes it on to all. */
static weft_status form_as_root(wefti_tree *tree)
{
    for (;;) {
        wefti_tree_contact occupied = {0};
        weft_status status = tree->site->net->listen_as_root(tree->site, &tree->listeners, &occupied);
        if (status != WEFT_ERR_STATE) {
            return status == WEFT_OK || tree->listeners.count > 0 ? wefti_tree_form_root(tree, status) : status;
        }
        WEFT_TRY(wefti_tree_report_second_root(tree, &occupied));
        if (wefti_os_now_ns() >= tree->until_ns) {
            return wefti_tree_missing_one(tree, 0, "its creation");
        }
        wefti_os_sleep_ns(AGAIN_NS);
    }
}

weft_status wefti_tree_open(wefti_tree *tree, wefti_tree_site *site, const weft_world_config *config, int pe, int pes)
{
    init(tree, site, config, pe, pes);
    weft_status status = pe == 0 ? form_as_root(tree) : wefti_tree_form_member(tree);
    if (status != WEFT_OK) {
        status = fail(tree, status);
        wefti_tree_close(tree);
        return status;
    }
    return WEFT_OK;
}

weft_status wefti_tree_allgather(wefti_tree *tree, const void *mine, void *all, size_t bytes, uint64_t until_ns)
{
    if (tree->failed != WEFT_OK) {
        return wefti_error_relay(tree->failed, tree->text);
    }
    tree->until_ns = until_ns;
    weft_status status = wefti_tree_exchange(tree, mine, all, bytes);
    return status == WEFT_OK ? WEFT_OK : fail(tree, status);
}

weft_status wefti_tree_digest(wefti_tree *tree, const wefti_digest_call *call, uint64_t until_ns)
{
    if (tree->failed != WEFT_OK) {
        return wefti_error_relay(tree->failed, tree->text);
    }
    tree->until_ns = until_ns;
    weft_status status = wefti_tree_exchange_digest(tree, call);
    return status == WEFT_OK ? WEFT_OK : fail(tree, status);
}

/* Read from all neighbours. Contributions to the next exchange may be there already, and questions about it: both are
 * kept until it begins. */
static weft_status receive_neighbours(wefti_tree *tree)
{
    wefti_link_event event;
    wefti_polls_clear(&tree->polls);
    wefti_link_watch(&tree->parent, &tree->polls);
    for (int i = 0; i < tree->child_count; i++) {
        wefti_link_watch(&tree->children[i], &tree->polls);
    }
    WEFT_TRY(wefti_polls_wait(&tree->polls, 0));
    if (wefti_link_ready(&tree->parent, &tree->polls)) {
        WEFT_TRY(wefti_tree_receive(tree, &tree->parent, &event));
    }
    for (int i = 0; i < tree->child_count; i++) {
        if (wefti_link_ready(&tree->children[i], &tree->polls)) {
            WEFT_TRY(wefti_tree_receive(tree, &tree->children[i], &event));
        }
    }
    return WEFT_OK;
}

weft_status wefti_tree_check(wefti_tree *tree)
{
    if (tree->failed != WEFT_OK) {
        return wefti_error_relay(tree->failed, tree->text);
    }
    weft_status status = receive_neighbours(tree);
    return status == WEFT_OK ? WEFT_OK : fail(tree, status);
}

void wefti_tree_close(wefti_tree *tree)
{
    wefti_tree_stop_listening(tree);
    wefti_tree_drop_star(tree);
    wefti_link_fini(&tree->parent);
    for (int i = 0; i < tree->child_count; i++) {
        wefti_link_fini(&tree->children[i]);
    }
    wefti_free(tree->children);
    tree->children = NULL;
    tree->child_count = 0;
    wefti_polls_fini(&tree->polls);
}

/* bootstrap/tree/tree.h: the engine of the bootstraps that use sockets.
 *
 * Forming: PE 0 listens where all can find it. Every other PE connects to it (the star), proves itself and says hello;
 * where PE 0 has no descriptor to spare it comes back for the answer instead of waiting connected (parking.h).
 * When all have come and agree, PE 0 answers each with the address of its parent in the tree (positions.h); children
 * connect to their parents; a first exchange of nothing makes sure that the tree stands, and the star is closed.
 * Exchanging: contributions are gathered up the tree and the result is sent down: O(log n) steps, n - 1 connections.
 * Failing: whoever decides an error tells its neighbours, who tell theirs, so that all return the same. Who waits too
 * long first asks those it waits for whom they wait for; only if they stay silent are they the ones that are named.
 *
 * A site (net.h) is the network under it. A tree is used by one thread, and in one direction only:
 * open, any number of allgathers, close. */
#ifndef WEFTI_BOOTSTRAP_TREE_TREE_H
#define WEFTI_BOOTSTRAP_TREE_TREE_H

#include "bootstrap/bootstrap.h"
#include "bootstrap/tree/link.h"
#include "bootstrap/tree/net.h"

/* How long a PE that fails tries to send its error to PEs that do not read, and how long one tries to read what a PE
 * that is gone told it. */
#define WEFTI_TREE_TELLING_NS UINT64_C(200000000)

/* How much later than one level of the tree the next one names those who are silent: a part of the deadline, since who
 * answers may have to wait for a processor, between these two. */
#define WEFTI_TREE_LEVEL_SHARE 20
#define WEFTI_TREE_LEVEL_NS UINT64_C(50000000)
#define WEFTI_TREE_LEVEL_MAX_NS UINT64_C(250000000)
/* Exchanges are counted from here; before is the star. */
#define WEFTI_TREE_SEQUENCE_FORMING 1
/* What forming may take after all have come, whatever is left of the deadline. */
#define WEFTI_TREE_FORMING_NS UINT64_C(300000000)

typedef struct wefti_tree {
    wefti_tree_site *site;
    wefti_tree_hello hello; /* of this PE */
    int pe;
    int pes;
    uint64_t deadline_ns; /* a duration */
    uint64_t until_ns; /* when the wait under way ends */
    uint64_t warn_ns; /* when to log whom this PE waits for, while forming; UINT64_MAX: it was done */
    wefti_tree_listeners listeners; /* while forming */
    wefti_link parent;
    wefti_link *children;
    int child_count;
    wefti_link *star; /* while forming: PE 0 has one to each PE that came, the others one to PE 0 */
    size_t star_count;
    size_t star_capacity;
    wefti_polls polls;
    uint32_t sequence; /* of the exchange under way */
    uint64_t due_ns; /* of a PE that is parked: its deadline, after which it asks PE 0 whom it waits for */
    int peer_timed_out; /* somebody wants to know whom we wait for */
    int has_met; /* another PE has been connected: who fails has told it */
    int names_culprit; /* the error decided here says already whose it is */
    const wefti_link *received_from; /* the link by which the error came; NULL: it was decided here */
    weft_status failed; /* the latched error: what all later calls return */
    char text[WEFTI_ERROR_BYTES];
} wefti_tree;

/* The ops of a backend, behind its own open: `site` belongs to the tree's owner and outlives it. */
weft_status wefti_tree_open(wefti_tree *tree, wefti_tree_site *site, const weft_world_config *config, int pe, int pes);
weft_status wefti_tree_allgather(wefti_tree *tree, const void *mine, void *all, size_t bytes, uint64_t until_ns);
weft_status wefti_tree_digest(wefti_tree *tree, const wefti_digest_call *call, uint64_t until_ns);
weft_status wefti_tree_check(wefti_tree *tree);
void wefti_tree_close(wefti_tree *tree);

/* ---- for the files of the tree ---- */

static inline uint64_t wefti_tree_level_ns(const wefti_tree *tree)
{
    uint64_t share_ns = tree->deadline_ns / WEFTI_TREE_LEVEL_SHARE;
    return share_ns < WEFTI_TREE_LEVEL_NS       ? WEFTI_TREE_LEVEL_NS
           : share_ns > WEFTI_TREE_LEVEL_MAX_NS ? WEFTI_TREE_LEVEL_MAX_NS
                                                : share_ns;
}

/* Form: of PE 0, with its listeners; and of all others. `status` not WEFT_OK: PE 0 cannot take part, with this thread's
 * error, which it tells to those who come. */
weft_status wefti_tree_form_root(wefti_tree *tree, weft_status status);
weft_status wefti_tree_form_member(wefti_tree *tree);
/* This PE says that it is PE 0, but there is one already, at `occupied`: tell it, so that all learn. WEFT_OK: it is
 * gone by now, or says nothing (site->silent). */
weft_status wefti_tree_report_second_root(wefti_tree *tree, const wefti_tree_contact *occupied);
/* Gather and spread; each wait ends at tree->until_ns. */
weft_status wefti_tree_exchange(wefti_tree *tree, const void *mine, void *all, size_t bytes);
weft_status wefti_tree_exchange_digest(wefti_tree *tree, const wefti_digest_call *call);

/* Whether it is time, once, to log whom this PE waits for. */
int wefti_tree_should_warn(wefti_tree *tree);
/* Make room for the links to the children; they are not open yet. */
weft_status wefti_tree_make_children(wefti_tree *tree);
/* All have come: what is left to do gets some time even if they came at the last moment. */
void wefti_tree_begin_forming(wefti_tree *tree);
void wefti_tree_stop_listening(wefti_tree *tree);
/* Add a connection to the star, at place *at; the caller keeps it on failure. */
weft_status wefti_tree_add_star(wefti_tree *tree, const wefti_link *link, size_t *at);
void wefti_tree_drop_star(wefti_tree *tree);
/* Read once. Errors: the one the other end tells of; that it is gone; that it sends what it should not. */
weft_status wefti_tree_receive(wefti_tree *tree, wefti_link *link, wefti_link_event *event);
/* Take over the error in the frame just read. */
weft_status wefti_tree_take_over(wefti_tree *tree, const wefti_link *link);
/* A link takes nothing any more: decide what its other end said last, if that was an error, else that it is gone. */
weft_status wefti_tree_lost_on_sending(wefti_tree *tree, wefti_link *link);
/* How much longer than others PE 0 and those that it has parked may need at the deadline to hear of each other: they
 * are many, and connect anew. */
static inline uint64_t wefti_tree_parked_ns(const wefti_tree *tree)
{
    return tree->deadline_ns / 8;
}
/* Decide that the marked PEs did not come. */
weft_status wefti_tree_missing(wefti_tree *tree, const unsigned char *missing, const char *where);
weft_status wefti_tree_missing_one(wefti_tree *tree, int pe, const char *where);
weft_status wefti_tree_missing_text(wefti_tree *tree, const char *who, const char *where); /* "PE 3" */

#endif

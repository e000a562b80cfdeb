/* bootstrap/tree/acceptor.h: the side that accepts connections.
 *
 * Strangers are held apart from the world until they have proved that they know its secret: each has its own time
 * limit, their number is bounded, and where others wait for a place, or for a descriptor, those that are silent lose
 * theirs. So they delay others by the time that a crowd of them takes to be sent away, and fail nobody. */
#ifndef WEFTI_BOOTSTRAP_TREE_ACCEPTOR_H
#define WEFTI_BOOTSTRAP_TREE_ACCEPTOR_H

#include "bootstrap/tree/link.h"
#include "bootstrap/tree/net.h"

/* A connection that has not proved itself. */
typedef struct wefti_stranger {
    wefti_link link;
    unsigned char nonce[WEFTI_TREE_NONCE_BYTES]; /* sent to it */
    uint64_t since_ns;
    int door; /* the listener that it came by */
    int is_proven;
    wefti_tree_hello hello; /* once proven */
} wefti_stranger;

#define WEFTI_ACCEPTOR_STRANGERS_MAX 128 /* of one listener: those of one network take no place of the other's */

typedef struct wefti_acceptor {
    const wefti_tree_site *site;
    const wefti_tree_listeners *listeners; /* owned by the caller */
    int pe; /* who answers */
    const char *world; /* its name: PEs of another world are told to look elsewhere; NULL: they are not */
    int has_warned;
    size_t places[WEFTI_TREE_LISTENERS_MAX];
    wefti_stranger *strangers[WEFTI_TREE_LISTENERS_MAX * WEFTI_ACCEPTOR_STRANGERS_MAX]; /* in order of arrival */
    size_t count;
    size_t counts[WEFTI_TREE_LISTENERS_MAX]; /* by listener */
    uint64_t scarce_since_ns; /* no descriptor is free since then; 0: the last connection got one */
    uint64_t scarce_until_ns; /* when to try again */
} wefti_acceptor;

void wefti_acceptor_init(wefti_acceptor *acceptor, const wefti_tree_site *site, const wefti_tree_listeners *listeners,
                         int pe);
/* Drop all strangers; safe on zeroed memory. */
void wefti_acceptor_fini(wefti_acceptor *acceptor);
/* Watch the listeners and the strangers. Returns when wefti_acceptor_step is due even if nothing happens. */
uint64_t wefti_acceptor_watch(wefti_acceptor *acceptor, wefti_polls *polls);
/* Accept, read and verify what there is. Fails on a lack of memory or descriptors here, never because of a stranger. */
weft_status wefti_acceptor_step(wefti_acceptor *acceptor, const wefti_polls *polls);
/* Take over a connection that has proved itself. Returns 0 when there is none. */
int wefti_acceptor_take(wefti_acceptor *acceptor, wefti_link *link, wefti_tree_hello *hello);

#endif

/* bootstrap/tree/net.h: what a network gives the tree: sockets, where PE 0 is, and proofs. */
#ifndef WEFTI_BOOTSTRAP_TREE_NET_H
#define WEFTI_BOOTSTRAP_TREE_NET_H

#include <stddef.h>

#include "bootstrap/crypto/sodium.h"
#include "bootstrap/tree/message.h"

#define WEFTI_TREE_ADDRESSES_MAX 8
#define WEFTI_TREE_LISTENERS_MAX 2

/* Where to connect to: a socket address. */
typedef struct wefti_tree_address {
    uint32_t bytes;
    unsigned char sockaddr[124];
} wefti_tree_address;

/* Where a PE listens while its world forms. Zeroed memory: nowhere. */
typedef struct wefti_tree_listeners {
    int descriptors[WEFTI_TREE_LISTENERS_MAX];
    int count;
} wefti_tree_listeners;

/* What is known of who is at the other end of a new connection, before anything was said. */
typedef enum wefti_tree_trust {
    WEFTI_TREE_FOREIGN, /* does not belong here: not even a byte should be sent */
    WEFTI_TREE_UNKNOWN, /* nothing could prove who it is: PE 0 says so, and nobody says anything else */
    WEFTI_TREE_TRUSTED /* may prove itself */
} wefti_tree_trust;

#define WEFTI_TREE_SEARCHES (1u << 31) /* a bit beside the number of a round: see resolve */

/* The world as the network sees it: filled by the backend before it starts the tree, alive until the tree is closed. */
typedef struct wefti_tree_net wefti_tree_net;
typedef struct wefti_tree_site {
    const wefti_tree_net *net;
    void *state; /* the network's */
    wefti_tree_contact root; /* of PE 0 */
    const wefti_sodium *sodium; /* not NULL: what follows a handshake is sealed with keys that follow from the secret */
    int silent; /* the PE 0 at which listen_as_root pointed last says nothing */
    unsigned char secret[WEFTI_TREE_SECRET_BYTES];
} wefti_tree_site;

struct wefti_tree_net {
    /* What it is called in messages. */
    const char *name;
    /* Whether several worlds' PEs 0 listen at one address, and connections are dealt out among them. */
    int is_shared;
    /* Whether a refused connection means that the PE is gone, because it listens before anybody learns its address. */
    int refusal_is_final;
    /* PE 0 only: take its listeners, non-blocking. WEFT_ERR_STATE, without an error being decided: another process of
     * this user is PE 0 of this world, or was and left its socket to others, and may be reached at *occupied; called
     * again after that contact stayed silent (site->silent), listen_as_root passes it over. Any other failure: PE 0
     * cannot be found by all, and tells those who come by the listeners that it could take. The caller closes them
     * all. */
    weft_status (*listen_as_root)(wefti_tree_site *site, wefti_tree_listeners *listeners, wefti_tree_contact *occupied);
    /* PE 0 only, as soon as all have come, before its listeners are closed: give up what listen_as_root took beside
     * them. NULL: nothing. */
    void (*unlisten_as_root)(wefti_tree_site *site);
    /* Listen for children, non-blocking, where they can reach a PE that reached PE 0 by the connection `near`. */
    weft_status (*listen)(wefti_tree_site *site, int near, int *listener, wefti_tree_contact *contact);
    /* The addresses of a contact, the most promising first, for the attempt `round` at all of them, counted from 0;
     * with WEFTI_TREE_SEARCHES now and then, for what takes long to find. Returns how many, 0 for a contact that makes
     * no sense. */
    size_t (*resolve)(const wefti_tree_site *site, const wefti_tree_contact *contact, unsigned round,
                      wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX]);
    /* Set up a new connection. */
    wefti_tree_trust (*admit)(const wefti_tree_site *site, int descriptor);
    /* proof = what only those who know the site's secret can say about this handshake. */
    void (*prove)(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                  unsigned char proof[WEFTI_TREE_PROOF_BYTES]);
    /* Write an address as a person reads it. */
    void (*print)(const wefti_tree_address *address, char *text, size_t bytes);
    /* PE 0 only, for an error about PEs that have not come: what it knows beside that, as the end of a sentence, or "".
     * NULL: nothing. */
    const char *(*explain)(const wefti_tree_site *site);
};

#endif

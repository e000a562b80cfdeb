/* bootstrap/tree/net.h: what a network gives the tree: sockets, where PE 0 is, and proofs. */
#ifndef WEFTI_BOOTSTRAP_TREE_NET_H
#define WEFTI_BOOTSTRAP_TREE_NET_H

#include <stddef.h>

#include "bootstrap/tree/message.h"

#define WEFTI_TREE_ADDRESSES_MAX 6

/* Where to connect to: a socket address. */
typedef struct wefti_tree_address {
    uint32_t bytes;
    unsigned char sockaddr[124];
} wefti_tree_address;

/* The world as the network sees it: filled by the backend before it starts the tree, alive until the tree is closed. */
typedef struct wefti_tree_net wefti_tree_net;
typedef struct wefti_tree_site {
    const wefti_tree_net *net;
    void *state; /* the network's */
    wefti_tree_contact root; /* of PE 0 */
    unsigned char secret[WEFTI_TREE_SECRET_BYTES];
} wefti_tree_site;

struct wefti_tree_net {
    /* What it is called in messages. */
    const char *name;
    /* Whether the side that accepts opens the handshake with a nonce: the proof is then made of both sides'. */
    int has_challenge;
    /* Whether several worlds' PEs 0 listen at one address, and connections are dealt out among them. */
    int is_shared;
    /* Whether a refused connection means that the PE is gone, because it listens before anybody learns its address. */
    int refusal_is_final;
    /* PE 0 only: take its listener, non-blocking. WEFT_ERR_STATE, without an error being decided: somebody else is
     * PE 0 of this world. */
    weft_status (*meet)(wefti_tree_site *site, int *listener);
    /* PE 0 only: close what meet gave, as soon as all have come; the site may be met at anew. */
    void (*part)(wefti_tree_site *site, int listener);
    /* Listen for children, non-blocking, where they can reach a PE that reached PE 0 by the connection `near`. */
    weft_status (*listen)(wefti_tree_site *site, int near, int *listener, wefti_tree_contact *contact);
    /* The addresses of a contact, the most promising first. Returns how many, 0 for one that makes no sense. */
    size_t (*resolve)(const wefti_tree_site *site, const wefti_tree_contact *contact,
                      wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX]);
    /* Set up a new connection; 0: it comes from somebody to whom not even a byte should be sent. */
    int (*admit)(const wefti_tree_site *site, int descriptor);
    /* proof = what only those who know the site's secret can say about this handshake. */
    void (*prove)(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                  unsigned char proof[WEFTI_TREE_PROOF_BYTES]);
    /* Write an address as a person reads it. */
    void (*print)(const wefti_tree_address *address, char *text, size_t bytes);
};

#endif

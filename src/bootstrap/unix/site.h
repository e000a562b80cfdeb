/* bootstrap/unix/site.h: the tree's network (tree/net.h) over abstract unix sockets: one host and one network
 * namespace.
 *
 * The system says which user is at the other end of a connection, and only this one's are let in. */
#ifndef WEFTI_BOOTSTRAP_UNIX_SITE_H
#define WEFTI_BOOTSTRAP_UNIX_SITE_H

#include "bootstrap/bootstrap.h"
#include "bootstrap/unix/name.h"

/* Where PE 0 of one world is found; `number` is the name that is tried first, or, once listen_as_root has returned,
 * taken. */
typedef struct wefti_unix_root {
    unsigned char key[WEFTI_HASH_BYTES];
    unsigned number;
} wefti_unix_root;

/* Take a listener for PE 0, with the contract of wefti_tree_net's listen_as_root. */
weft_status wefti_unix_root_listen(wefti_unix_root *root, wefti_tree_site *site, wefti_tree_listeners *listeners,
                                   wefti_tree_contact *occupied);

/* The site of a world whose PEs meet by such sockets alone; its state is `root`. */
typedef struct wefti_unix_site {
    wefti_tree_site site;
    wefti_unix_root root;
} wefti_unix_site;

/* Fill it in: the name at which PE 0 listens follows from `secret`, so that only those who have it know the name, and
 * from what tells this world from others with that secret, at most WEFTI_BOOTSTRAP_NAME_BYTES bytes. */
void wefti_unix_site_init(wefti_unix_site *unix_site, const wefti_tree_net *net,
                          const unsigned char secret[WEFTI_TREE_SECRET_BYTES], const void *world, size_t bytes);
void wefti_unix_site_fini(wefti_unix_site *unix_site); /* safe on zeroed memory; wipes the secret */

/* Slots of wefti_tree_net; the first two for a wefti_unix_site. The system says whose the other end is, so it suffices
 * as a proof that both sides show the secret. */
weft_status wefti_unix_site_listen_as_root(wefti_tree_site *site, wefti_tree_listeners *listeners,
                                           wefti_tree_contact *occupied);
void wefti_unix_site_prove(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                           unsigned char proof[WEFTI_TREE_PROOF_BYTES]);
weft_status wefti_unix_site_listen(wefti_tree_site *site, int near, int *listener, wefti_tree_contact *contact);
size_t wefti_unix_site_resolve(const wefti_tree_site *site, const wefti_tree_contact *contact, unsigned round,
                               wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX]);
wefti_tree_trust wefti_unix_site_admit(const wefti_tree_site *site, int descriptor);

#endif

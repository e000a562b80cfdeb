/* bootstrap/tcp/site.h: the tree's network (tree/net.h) over TCP, IPv4 and IPv6: all of it but where PE 0 listens,
 * which is its backend's. PE 0 may also listen at a unix socket for PEs of its own host and user.
 *
 * Both sides of every connection prove that they know the world's secret, if it has one: each sends 32 fresh random
 * bytes, and a BLAKE2b hash, keyed with the secret, of both sides' bytes, the role, and who is who. What was overheard
 * is of no use on another connection, nor on the same one in the other direction. From the same follow the keys by
 * which all that is sent afterwards is encrypted and authenticated (crypto/seal.h). Without a secret nobody is let in
 * who comes by TCP, but where the site is open: then the hash is an unkeyed one, which keeps out what does not speak
 * the protocol, and nobody else. */
#ifndef WEFTI_BOOTSTRAP_TCP_SITE_H
#define WEFTI_BOOTSTRAP_TCP_SITE_H

#include "bootstrap/crypto/sodium.h"
#include "bootstrap/tcp/contact.h"
#include "bootstrap/unix/site.h"

/* Stands first in the backend's state. */
typedef struct wefti_tcp_site {
    wefti_tree_site site;
    wefti_tcp_contact root; /* PE 0's, as this PE knows it */
    wefti_unix_root near; /* where PEs of PE 0's host find it too, whatever happens at its port */
    /* Whether the root's addresses, where one is not loopback, are those by which others reach this PE too if it shares
     * PE 0's node; else this PE lists its own. */
    int root_is_complete;
    int has_secret;
    int is_open; /* who comes by TCP need not prove anything */
    int has_turned_away; /* a caller from another address, who can prove nothing where there is no secret */
    wefti_sodium sodium;
    unsigned char node[16];
} wefti_tcp_site;

/* Fill the site in: `root` and, NULL for none, the secret are copied. */
weft_status wefti_tcp_site_init(wefti_tcp_site *tcp, const wefti_tree_net *net, const wefti_tcp_contact *root,
                                const unsigned char *secret);
/* What the PEs of this world, host and user have in common: their unix sockets' names follow from it and from the
 * secret. */
void wefti_tcp_site_set_near(wefti_tcp_site *tcp, const void *common, size_t bytes);
void wefti_tcp_site_fini(wefti_tcp_site *tcp); /* safe on zeroed memory; wipes the secret */

/* Slots of wefti_tree_net. */
weft_status wefti_tcp_site_listen(wefti_tree_site *site, int near, int *listener, wefti_tree_contact *contact);
size_t wefti_tcp_site_resolve(const wefti_tree_site *site, const wefti_tree_contact *contact, unsigned round,
                              wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX]);
wefti_tree_trust wefti_tcp_site_admit(const wefti_tree_site *site, int descriptor);
void wefti_tcp_site_prove(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                          unsigned char proof[WEFTI_TREE_PROOF_BYTES]);
void wefti_tcp_site_print(const wefti_tree_address *address, char *text, size_t bytes);
const char *wefti_tcp_site_explain(const wefti_tree_site *site);

#endif

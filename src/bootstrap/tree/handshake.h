/* bootstrap/tree/handshake.h: the proof that the other end knows the secret, the same for both sides, and the keys that
 * follow from it. */
#ifndef WEFTI_BOOTSTRAP_TREE_HANDSHAKE_H
#define WEFTI_BOOTSTRAP_TREE_HANDSHAKE_H

#include "bootstrap/tree/link.h"
#include "bootstrap/tree/net.h"

/* The two sides of a connection. */
typedef enum wefti_handshake_role {
    WEFTI_HANDSHAKE_CONNECTED = 'C',
    WEFTI_HANDSHAKE_ACCEPTED = 'A'
} wefti_handshake_role;

/* Write the proof of the side `role`. */
void wefti_handshake_prove(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                           wefti_handshake_role role, unsigned char proof[WEFTI_TREE_PROOF_BYTES]);
/* Whether `proof` is the one of the side `role`; takes the same time whichever bytes differ. */
int wefti_handshake_verify(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                           wefti_handshake_role role, const unsigned char proof[WEFTI_TREE_PROOF_BYTES]);

/* Give the link of the side `role` the keys that follow from this handshake: nothing is sealed yet (link.h). WEFT_OK
 * without doing anything where the site has no secret. */
weft_status wefti_handshake_seal(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                                 wefti_handshake_role role, wefti_link *link);

#endif

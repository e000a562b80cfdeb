/* bootstrap/tree/handshake.c: the proof that the other end knows the secret. */
#include "bootstrap/tree/handshake.h"

#include <string.h>

#include "bootstrap/crypto/seal.h"

#define KEY_OF 0x100u /* a bit beside a role: of the key with which that side sends, not of its proof */

_Static_assert(WEFTI_SEAL_KEY_BYTES == WEFTI_TREE_PROOF_BYTES, "keys are made as proofs are");

void wefti_handshake_prove(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                           wefti_handshake_role role, unsigned char proof[WEFTI_TREE_PROOF_BYTES])
{
    wefti_tree_handshake own = *handshake;
    own.role = (uint32_t)role;
    site->net->prove(site, &own, proof);
}

int wefti_handshake_verify(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                           wefti_handshake_role role, const unsigned char proof[WEFTI_TREE_PROOF_BYTES])
{
    unsigned char right[WEFTI_TREE_PROOF_BYTES];
    volatile unsigned char difference = 0;
    wefti_handshake_prove(site, handshake, role, right);
    for (int i = 0; i < WEFTI_TREE_PROOF_BYTES; i++) {
        difference = (unsigned char)(difference | (right[i] ^ proof[i]));
    }
    return difference == 0;
}

/* The key of what one side sends: like a proof, but never said. */
static void make_key(const wefti_tree_site *site, const wefti_tree_handshake *handshake, wefti_handshake_role sender,
                     unsigned char key[WEFTI_SEAL_KEY_BYTES])
{
    wefti_tree_handshake own = *handshake;
    own.role = KEY_OF | (uint32_t)sender;
    site->net->prove(site, &own, key);
}

weft_status wefti_handshake_seal(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                                 wefti_handshake_role role, wefti_link *link)
{
    unsigned char connected[WEFTI_SEAL_KEY_BYTES];
    unsigned char accepted[WEFTI_SEAL_KEY_BYTES];
    if (site->sodium == NULL) {
        return WEFT_OK;
    }
    make_key(site, handshake, WEFTI_HANDSHAKE_CONNECTED, connected);
    make_key(site, handshake, WEFTI_HANDSHAKE_ACCEPTED, accepted);
    int is_caller = role == WEFTI_HANDSHAKE_CONNECTED;
    weft_status status = wefti_seal_create(site->sodium, is_caller ? connected : accepted,
                                           is_caller ? accepted : connected, &link->seal);
    explicit_bzero(connected, sizeof connected);
    explicit_bzero(accepted, sizeof accepted);
    return status;
}

/* bootstrap/tree/handshake.c: the proof that the other end knows the secret. */
#include "bootstrap/tree/handshake.h"

#include "weft/protocol/mutate.h"

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
    return difference == 0 || WEFTI_MUTATED(PROOF_UNCHECKED);
}

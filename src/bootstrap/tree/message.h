/* bootstrap/tree/message.h: the bodies of the frames by which PEs meet. Sent as they are: the magic number tells apart
 * byte orders as it does strangers. */
#ifndef WEFTI_BOOTSTRAP_TREE_MESSAGE_H
#define WEFTI_BOOTSTRAP_TREE_MESSAGE_H

#include <stdint.h>

#include "base/error.h"
#include "bootstrap/bootstrap.h"

#define WEFTI_TREE_MAGIC UINT32_C(0x77656674) /* "weft" */
#define WEFTI_TREE_PROTOCOL 4 /* grows with each change of these structs or of their sequence */
#define WEFTI_TREE_NONCE_BYTES 32
#define WEFTI_TREE_PROOF_BYTES 32
#define WEFTI_TREE_SECRET_BYTES 32

/* How a PE can be reached, in the words of the network in use (net.h); bytes 0: not at all. */
typedef struct wefti_tree_contact {
    uint32_t bytes;
    unsigned char data[124];
} wefti_tree_contact;

/* Who a PE says it is. */
typedef struct wefti_tree_hello {
    uint32_t magic;
    uint32_t protocol;
    uint32_t version; /* of the library */
    int32_t pe;
    int32_t pes;
    uint32_t is_overdue; /* of a PE that comes back: its deadline has passed */
    uint64_t ticket; /* of a PE that comes back to PE 0; else 0 */
    char name[WEFTI_BOOTSTRAP_NAME_BYTES];
    wefti_tree_contact listens_at; /* where its children find it */
} wefti_tree_hello;

typedef struct wefti_tree_challenge {
    unsigned char nonce[WEFTI_TREE_NONCE_BYTES];
} wefti_tree_challenge;

typedef struct wefti_tree_introduction {
    wefti_tree_hello hello;
    unsigned char nonce[WEFTI_TREE_NONCE_BYTES];
    unsigned char proof[WEFTI_TREE_PROOF_BYTES];
} wefti_tree_introduction;

typedef struct wefti_tree_answer {
    int32_t pe;
    uint32_t zero;
    unsigned char proof[WEFTI_TREE_PROOF_BYTES];
} wefti_tree_answer;

typedef struct wefti_tree_welcome {
    wefti_tree_contact parent; /* bytes 0: PE 0 */
} wefti_tree_welcome;

/* The longest time that a PE is asked to stay away. */
#define WEFTI_TREE_AWAY_MAX_NS UINT64_C(200000000)

typedef struct wefti_tree_parked {
    uint64_t ticket;
    uint64_t away_ns;
} wefti_tree_parked;

typedef struct wefti_tree_failure {
    int32_t status;
    char text[WEFTI_ERROR_BYTES];
} wefti_tree_failure;

/* What both proofs of one handshake are made of: replayed elsewhere, or sent back, they do not fit. */
typedef struct wefti_tree_handshake {
    uint32_t role; /* what this is for: wefti_handshake_role */
    int32_t accepting_pe;
    unsigned char connecting_nonce[WEFTI_TREE_NONCE_BYTES];
    unsigned char accepting_nonce[WEFTI_TREE_NONCE_BYTES];
    wefti_tree_hello hello; /* of the side that connected */
} wefti_tree_handshake;

_Static_assert(sizeof(wefti_tree_handshake) == 8 + 64 + sizeof(wefti_tree_hello), "no padding enters a proof");
_Static_assert(sizeof(wefti_tree_hello) == 32 + WEFTI_BOOTSTRAP_NAME_BYTES + 128, "no padding enters a proof");

#endif

/* support/forked.h: what the processes that a test forks have in common: memory, and an allgather by it, with which
 * they meet as PEs of a world (WEFT_BOOTSTRAP_CALLBACK). */
#ifndef SUPPORT_FORKED_H
#define SUPPORT_FORKED_H

#include <stdatomic.h>
#include <stddef.h>

#define FORKED_PES_MAX 5
#define FORKED_PLACE_BYTES 8192 /* of one PE in an allgather, at most */

/* Zeroed memory that this process and those that it forks later share. */
void *forked_share(size_t bytes);

/* Wait until the count is `wanted`, for a minute at most; whether it is. */
int forked_await(_Atomic unsigned *count, unsigned wanted);

/* In memory of forked_share, zeroed before each world. */
typedef struct forked_exchange {
    _Atomic unsigned arrived;
    unsigned char places[FORKED_PES_MAX][FORKED_PLACE_BYTES];
} forked_exchange;

typedef struct forked_member {
    forked_exchange *exchange;
    int pe;
    int pes;
    unsigned calls; /* so far: 0 */
} forked_member;

/* As weft_callback_ops.allgather; the context is a forked_member. */
int forked_allgather(void *context, const void *mine, void *all, size_t bytes);

#endif

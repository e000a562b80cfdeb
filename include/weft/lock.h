/* weft/lock.h: locks in symmetric memory. (OpenSHMEM 1.5, 9.12.)
 *
 * A lock is a symmetric long, 0 at first on all PEs and touched by these calls only. It is given in the order in which
 * PEs ask for it; who waits looks at its own memory, and needs nothing of the holder but that it clears the lock. One
 * thread of a PE at a time uses a lock. */
#ifndef WEFT_LOCK_H
#define WEFT_LOCK_H

#include "weft/world.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Take the lock. Blocks at most the deadline: WEFT_ERR_TIMEOUT names the PE that holds it or, where none does, the
 * first of the queue, and this PE has left the queue; it may ask again. (Not where PEs are far and one of them did not
 * answer: then nobody knows whether this PE stands in the queue, and the lock is WEFT_ERR_STATE here from then on; use
 * another.) What earlier holders did is visible.
 * WEFT_ERR_STATE when this PE holds it already, WEFT_ERR_ARGUMENT, WEFT_ERR_RANGE. */
WEFT_API weft_status weft_set_lock(weft_world *world, long *lock) WEFT_MUST_CHECK;

/* Take the lock if it is free: *taken is 1 then, else 0. Does not block. Errors as weft_set_lock, but for
 * WEFT_ERR_TIMEOUT. (shmem_test_lock with the opposite result.) */
WEFT_API weft_status weft_test_lock(weft_world *world, long *lock, int *taken) WEFT_MUST_CHECK;

/* Give the lock to who has waited longest. Completes this PE's earlier accesses first (a quiet). WEFT_ERR_STATE when
 * this PE does not hold it; WEFT_ERR_TIMEOUT when one that asked for it has stopped half way: then call again.
 * WEFT_ERR_PEER when a PE is gone: accesses to it have not been completed, and the lock has been given away; or nobody
 * can be found who comes next, and the lock stays with this PE. Called again it is WEFT_ERR_STATE after the first. */
WEFT_API weft_status weft_clear_lock(weft_world *world, long *lock) WEFT_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif

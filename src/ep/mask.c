/* weft_ep_mask. */
#include <string.h>

#include "base/error.h"
#include "ep/backend.h"

static weft_status check(const weft_ep *ep, int rank, int alive)
{
    static const char call[] = "weft_ep_mask";
    if (!wefti_ep_is_alive(ep)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'ep' is NULL or destroyed", call);
    }
    WEFT_TRY(wefti_world_check_handle(ep->world, call));
    if (alive != 0 && alive != 1) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: alive is %d; give 0 or 1", call, alive);
    }
    if (rank < 0 || rank >= ep->ranks) {
        return wefti_error(WEFT_ERR_RANGE, "%s: rank is %d; give 0 .. %d", call, rank, ep->ranks - 1);
    }
    if (rank == ep->rank) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: rank %d is this one; mask others", call, rank);
    }
    if (ep->half != WEFTI_EP_HALF_NONE) {
        return wefti_error(WEFT_ERR_STATE, "%s: a send of the group waits for its recv; call that first", call);
    }
    if (ep->dead != WEFT_OK && !wefti_ep_missed_ranks(ep)) {
        return wefti_error(WEFT_ERR_STATE, "%s: the group is dead since a call failed with %s; destroy it", call,
                           weft_status_name(ep->dead));
    }
    return WEFT_OK;
}

weft_status weft_ep_mask(weft_ep *ep, int rank, int alive)
{
    WEFT_TRY(check(ep, rank, alive));
    WEFT_TRY(ep->backend->mask(ep, rank, alive));
    ep->masked[rank] = !alive;
    if (wefti_ep_missed_ranks(ep) && ep->late[rank]) {
        ep->dead = WEFT_OK;
        memset(ep->late, 0, (size_t)ep->ranks);
    }
    return WEFT_OK;
}

#include "ep/host/peers.h"

#include "base/error.h"
#include "base/log.h"

void wefti_ep_give_up(const weft_ep *ep, int rank)
{
    wefti_log(WEFTI_LOG_WARN, "PE %d: a call of the group goes on without PE %d: %s", weft_world_pe(ep->world),
              ep->host->peers[rank].pe, weft_last_error());
    wefti_ep_set_masked(ep, rank, 1);
}

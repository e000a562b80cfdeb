/* weft_ep_stats_query and weft_ep_stats_clear. */
#include <string.h>

#include "base/error.h"
#include "ep/backend.h"

static weft_status check(const weft_ep *ep, const char *call)
{
    if (!wefti_ep_is_alive(ep)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'ep' is NULL or destroyed", call);
    }
    WEFT_TRY(wefti_world_check_handle(ep->world, call));
    if (ep->stats == NULL) {
        return wefti_error(WEFT_ERR_STATE, "%s: the group keeps no statistics; make it with WEFT_EP_STATISTICS", call);
    }
    return WEFT_OK;
}

static void give(uint64_t *to, const uint64_t *from, int count)
{
    if (to != NULL) {
        memcpy(to, from, (size_t)count * sizeof *to);
    }
}

weft_status weft_ep_stats_query(const weft_ep *ep, weft_ep_stats *stats)
{
    static const char call[] = "weft_ep_stats_query";
    WEFT_TRY(check(ep, call));
    if (stats == NULL || stats->size < sizeof *stats) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'stats' is %s; start from WEFT_EP_STATS_INIT", call,
                           stats == NULL ? "NULL" : "too small");
    }
    WEFT_TRY(ep->backend->stats_fetch != NULL ? ep->backend->stats_fetch(ep) : WEFT_OK);
    stats->dispatches = *wefti_ep_stats_calls(ep, 0);
    stats->combines = *wefti_ep_stats_calls(ep, 1);
    give(stats->rows_of_expert, ep->stats, wefti_ep_local_experts(ep));
    give(stats->dispatch_wait_ns, wefti_ep_stats_waits(ep, 0), ep->ranks);
    give(stats->combine_wait_ns, wefti_ep_stats_waits(ep, 1), ep->ranks);
    return WEFT_OK;
}

weft_status weft_ep_stats_clear(weft_ep *ep)
{
    WEFT_TRY(check(ep, "weft_ep_stats_clear"));
    memset(ep->stats, 0, wefti_ep_stats_words(ep) * sizeof *ep->stats);
    return ep->backend->stats_clear != NULL ? ep->backend->stats_clear(ep) : WEFT_OK;
}

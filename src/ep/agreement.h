/* ep/agreement.h: how the ranks of a new group compare what they were given, before anything depends on it. */
#ifndef WEFTI_EP_AGREEMENT_H
#define WEFTI_EP_AGREEMENT_H

#include "ep/group.h"

/* Tell all ranks, in `call`, this rank's config and `verdict`, the status it would fail with (its text is the thread's
 * last error). Returns WEFT_OK on all ranks; or on all of them the first rank's verdict that is not WEFT_OK; or
 * WEFT_ERR_MISMATCH, naming a rank whose config differs and in what; or the status of a collective call that failed.
 * Collective over the team. `ep` may be NULL when the verdict is not WEFT_OK. */
weft_status wefti_ep_agree(weft_team *team, const weft_ep_config *config, const weft_ep *ep, weft_status verdict,
                           const char *call);

/* Whether all ranks have a failure of creation alike, so that they give memory back; after others the team is dead. */
static inline int wefti_ep_is_alike(weft_status status)
{
    return status != WEFT_OK && status != WEFT_ERR_TIMEOUT && status != WEFT_ERR_ABORTED && status != WEFT_ERR_PEER;
}

#endif

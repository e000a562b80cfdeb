/* ep/owners.h: which rank owns which experts: a contiguous range each. */
#ifndef WEFTI_EP_OWNERS_H
#define WEFTI_EP_OWNERS_H

#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"

typedef struct wefti_ep_owners {
    int ranks;
    int experts;
    int local_max; /* the most experts of a rank */
    int32_t *first; /* [ranks + 1]: rank r owns first[r] .. first[r + 1] - 1 */
    int32_t *rank_of; /* [experts] */
} wefti_ep_owners;

/* `experts_of_rank`: [ranks] counts that add up to `experts`, or NULL: experts / ranks each, the first ones one more.
 * On failure *owners is good for fini. */
weft_status wefti_ep_owners_init(wefti_ep_owners *owners, int ranks, int experts, const int *experts_of_rank);
void wefti_ep_owners_fini(wefti_ep_owners *owners); /* safe on zeroed memory */

static inline int wefti_ep_owners_count(const wefti_ep_owners *owners, int rank)
{
    return owners->first[rank + 1] - owners->first[rank];
}

/* Per-owner messages {one word, a word per expert} of all owners lie one after another, R + E words: where owner
 * `rank`'s begins. */
static inline size_t wefti_ep_owners_message(const wefti_ep_owners *owners, int rank)
{
    return (size_t)owners->first[rank] + (size_t)rank;
}

/* The word of expert `expert` in such messages. */
static inline size_t wefti_ep_owners_word(const wefti_ep_owners *owners, int expert)
{
    return (size_t)expert + (size_t)owners->rank_of[expert] + 1;
}

#endif

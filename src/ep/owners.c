#include "ep/owners.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

static weft_status check_table(int ranks, int experts, const int *experts_of_rank)
{
    int64_t sum = 0;
    for (int rank = 0; rank < ranks; rank++) {
        if (experts_of_rank[rank] < 0) {
            return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_config: experts_of_rank[%d] is %d; give 0 or more", rank,
                               experts_of_rank[rank]);
        }
        sum += experts_of_rank[rank];
    }
    if (sum != experts) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_ep_config: experts_of_rank adds up to %lld over %d ranks; it must be experts, %d",
                           (long long)sum, ranks, experts);
    }
    return WEFT_OK;
}

static void fill(wefti_ep_owners *owners, const int *experts_of_rank)
{
    int32_t expert = 0;
    for (int rank = 0; rank < owners->ranks; rank++) {
        int even = owners->experts / owners->ranks + (rank < owners->experts % owners->ranks ? 1 : 0);
        int count = experts_of_rank != NULL ? experts_of_rank[rank] : even;
        owners->first[rank] = expert;
        owners->local_max = count > owners->local_max ? count : owners->local_max;
        for (int i = 0; i < count; i++) {
            owners->rank_of[expert++] = rank;
        }
    }
    owners->first[owners->ranks] = expert;
}

weft_status wefti_ep_owners_init(wefti_ep_owners *owners, int ranks, int experts, const int *experts_of_rank)
{
    memset(owners, 0, sizeof *owners);
    if (experts_of_rank != NULL) {
        WEFT_TRY(check_table(ranks, experts, experts_of_rank));
    }
    owners->ranks = ranks;
    owners->experts = experts;
    owners->first = wefti_alloc(((size_t)ranks + 1) * sizeof *owners->first);
    owners->rank_of = wefti_alloc((size_t)experts * sizeof *owners->rank_of);
    if (owners->first == NULL || owners->rank_of == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_config: no memory for the owners of %d experts", experts);
    }
    fill(owners, experts_of_rank);
    return WEFT_OK;
}

void wefti_ep_owners_fini(wefti_ep_owners *owners)
{
    wefti_free(owners->first);
    wefti_free(owners->rank_of);
    memset(owners, 0, sizeof *owners);
}

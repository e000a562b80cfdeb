#include "ep/domains.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

static weft_status check(int ranks, const int *labels, int each)
{
    if (labels != NULL && each != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_config: domain_of is given and domain_ranks is %d; give one",
                           each);
    }
    if (each < 0 || (each > 0 && ranks % each != 0)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_ep_config: domain_ranks is %d; give 0 or a divisor of the %d ranks, or domain_of",
                           each, ranks);
    }
    for (int rank = 0; rank < ranks && labels != NULL; rank++) {
        if (labels[rank] < 0) {
            return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_config: domain_of[%d] is %d; give 0 or more", rank,
                               labels[rank]);
        }
    }
    return WEFT_OK;
}

/* The first rank with the label of `rank`. The label that the rank before it had is likely. */
static int first_alike(const wefti_ep_domains *domains, const int *labels, int rank)
{
    if (rank > 0 && labels[rank] == labels[rank - 1]) {
        return rank - 1;
    }
    for (int d = 0; d < domains->count; d++) {
        if (labels[domains->members[d]] == labels[rank]) { /* the lowest ranks, so far */
            return domains->members[d];
        }
    }
    return rank;
}

static void number(wefti_ep_domains *domains, const int *labels, int each)
{
    for (int rank = 0; rank < domains->ranks; rank++) {
        int alike = labels != NULL ? first_alike(domains, labels, rank) : each > 0 ? rank / each * each : 0;
        if (alike == rank) {
            domains->members[domains->count] = rank;
            domains->of[rank] = domains->count++;
        } else {
            domains->of[rank] = domains->of[alike];
        }
    }
}

static void list(wefti_ep_domains *domains)
{
    memset(domains->first, 0, ((size_t)domains->ranks + 1) * sizeof *domains->first);
    for (int rank = 0; rank < domains->ranks; rank++) {
        domains->slot[rank] = domains->first[domains->of[rank] + 1]++;
    }
    for (int d = 0; d < domains->count; d++) {
        domains->first[d + 1] += domains->first[d];
    }
    for (int rank = 0; rank < domains->ranks; rank++) {
        domains->members[domains->first[domains->of[rank]] + domains->slot[rank]] = rank;
    }
}

weft_status wefti_ep_domains_init(wefti_ep_domains *domains, int ranks, const int *labels, int each)
{
    size_t count = (size_t)ranks;
    memset(domains, 0, sizeof *domains);
    WEFT_TRY(check(ranks, labels, each));
    domains->ranks = ranks;
    domains->of = wefti_alloc(count * sizeof *domains->of);
    domains->slot = wefti_alloc(count * sizeof *domains->slot);
    domains->first = wefti_alloc((count + 1) * sizeof *domains->first);
    domains->members = wefti_alloc(count * sizeof *domains->members);
    if (domains->of == NULL || domains->slot == NULL || domains->first == NULL || domains->members == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_config: no memory for the domains of %d ranks", ranks);
    }
    number(domains, labels, each);
    list(domains);
    return WEFT_OK;
}

void wefti_ep_domains_fini(wefti_ep_domains *domains)
{
    wefti_free(domains->of);
    wefti_free(domains->slot);
    wefti_free(domains->first);
    wefti_free(domains->members);
    memset(domains, 0, sizeof *domains);
}

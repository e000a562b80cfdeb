/* ep/domains.h: which ranks are a domain: those among which rows of a token cross once, and whose results are added
 * first. */
#ifndef WEFTI_EP_DOMAINS_H
#define WEFTI_EP_DOMAINS_H

#include <stdint.h>

#include "weft/protocol/ep_ring.h"
#include "weft/status.h"

/* Domains are counted in ascending order of their lowest ranks; a rank's slot is its place in its domain. */
typedef struct wefti_ep_domains {
    int ranks;
    int count;
    int32_t *of; /* [ranks] the domain of each rank, 0 .. count - 1 */
    int32_t *slot; /* [ranks] */
    int32_t *first; /* [count + 1]: the members of domain d are members[first[d]] .. members[first[d + 1] - 1] */
    int32_t *members; /* [ranks] ascending in each domain */
} wefti_ep_domains;

/* `labels`: [ranks] 0 or more, equal in a domain; or NULL: domains of `each` consecutive ranks, 0: one of all. On
 * failure *domains is good for fini. */
weft_status wefti_ep_domains_init(wefti_ep_domains *domains, int ranks, const int *labels, int each);
void wefti_ep_domains_fini(wefti_ep_domains *domains); /* safe on zeroed memory */

static inline int wefti_ep_domains_size(const wefti_ep_domains *domains, int domain)
{
    return domains->first[domain + 1] - domains->first[domain];
}

/* The rank of `domain` that takes what `source`, of another one, sends there. */
static inline int wefti_ep_domains_forwarder(const wefti_ep_domains *domains, int source, int domain)
{
    int slot = wefti_ep_forwarder_slot(domains->slot[source], wefti_ep_domains_size(domains, domain));
    return domains->members[domains->first[domain] + slot];
}

#endif

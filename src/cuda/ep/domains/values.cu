/* cuda/ep/domains/values.cu: what goes back beside rows in groups of several domains. */
#include "cuda/ep/domains/values.cuh"

EP_KERNEL(15combine_spreads, C1, ep_domains, ep_domains_spread)
EP_KERNEL(12combine_dots, C1, ep_domains, ep_domains_dots)
EP_KERNEL(15combine_gathers, C1, ep_domains, ep_domains_gather)

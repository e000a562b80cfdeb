/* cuda/ep/domains/crossing.cu: rows to other domains, and sums back. */
#include "cuda/ep/domains/crossing.cuh"

EP_KERNEL(16dispatch_crosses, C1, ep_domains, ep_domains_cross<false>)
EP_KERNEL(15combine_crosses, C1, ep_domains, ep_domains_cross<true>)

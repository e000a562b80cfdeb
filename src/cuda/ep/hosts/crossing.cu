/* cuda/ep/hosts/crossing.cu: rows to other domains, and sums back. */
#include "cuda/ep/hosts/crossing.cuh"

EP_KERNEL(16dispatch_crosses, C1, ep_hosts, ep_hosts_cross<false>)
EP_KERNEL(15combine_crosses, C1, ep_hosts, ep_hosts_cross<true>)

/* cuda/ep/hosts/values.cu: what goes back beside rows in groups of several domains. */
#include "cuda/ep/hosts/values.cuh"

EP_KERNEL(15combine_spreads, C1, ep_hosts, ep_hosts_spread)
EP_KERNEL(12combine_dots, C1, ep_hosts, ep_hosts_dots)
EP_KERNEL(15combine_gathers, C1, ep_hosts, ep_hosts_gather)

/* cuda/ep/domains/direct.cu: calls of few tokens that go directly from rank to rank. */
#include "cuda/ep/domains/direct.cuh"

EP_KERNEL(15dispatch_direct, C1, ep_domains, ep_direct_dispatch)
EP_KERNEL(14combine_direct, C1, ep_domains, ep_direct_combine)

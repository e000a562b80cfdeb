/* cuda/ep/domains/local.cu: what a rank of a group of several domains does by itself, before and behind what moves. */
#include "cuda/ep/domains/local.cuh"

EP_KERNEL(15dispatch_begins, C1, ep_domains, ep_domains_begin)
EP_KERNEL(16dispatch_numbers, C1, ep_domains, ep_domains_number)
EP_KERNEL(14dispatch_packs, C1, ep_domains, ep_domains_pack)
EP_KERNEL(16dispatch_indexes, C1, ep_domains, ep_domains_index)
EP_KERNEL(15dispatch_counts, C1, ep_domains, ep_domains_count)
EP_KERNEL(14dispatch_scans, C1, ep_domains, ep_domains_scan)
EP_KERNEL(15dispatch_places, C1, ep_domains, ep_domains_place)
EP_KERNEL(15combine_chooses, C1, ep_domains, ep_domains_choose)
EP_KERNEL(15combine_results, C1, ep_domains, ep_domains_add<false>)
EP_KERNEL(14combine_totals, C1, ep_domains, ep_domains_add<true>)

/* cuda/ep/host/domains_masks.c: groups of several domains that go on without ranks.
 *
 * A rank that is left out has experts that count as -1, and calls have no ends there. A domain of which only some ranks
 * are left out has no forwarders: calls go directly until all of them are. What a masked rank sends late comes to rings
 * of its own in this rank's memory, which nobody reads any more and which stay the group's; and if it is of this
 * domain, to what the inner group receives, from which it is shut out as in a group of one domain. Chunks that live
 * ranks sent in the call that failed, and that were not taken, are told by the number of their call, and dropped
 * (domains/crossing.cuh, domains/direct.cuh). The group inside has failed with the call, and is as after a mask. */
#include <string.h>

#include "cuda/ep/host/domains.h"

/* The domain's ranks that are masked, with `rank`; *left: the lowest that is not. */
static int count_masked(const weft_ep *ep, int domain, int rank, int *left)
{
    int count = 0;
    *left = -1;
    for (int i = ep->domains.first[domain + 1] - 1; i >= ep->domains.first[domain]; i--) {
        const int member = ep->domains.members[i];
        const int is_masked = ep->masked[member] || member == rank;
        count += is_masked;
        *left = is_masked ? *left : member;
    }
    return count;
}

/* Whether a domain has masked ranks, with `rank`, and others. */
static int is_partial(const weft_ep *ep, int rank)
{
    for (int domain = 0; domain < ep->domains.count; domain++) {
        int left;
        if (count_masked(ep, domain, rank, &left) > 0 && left >= 0) {
            return 1;
        }
    }
    return 0;
}

static weft_status check(const weft_ep *ep, int rank, int alive)
{
    if (alive && ep->masked[rank]) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "weft_ep_mask: rank %d is masked; in a group of several domains on GPUs it stays so. "
                           "Destroy the group and make one with that rank",
                           rank);
    }
    return WEFT_OK;
}

/* A rank has become one that is left out, and with it its domain, if it was the last of that: calls are counted
 * anew. */
static void leave_out(const weft_ep *ep, int rank, wefti_cuda_ep_domains_control *control)
{
    const int domain = ep->domains.of[rank];
    uint32_t masks = 0;
    int left;
    (void)count_masked(ep, domain, rank, &left);
    if (left < 0) {
        control->masked[domain / 32] |= UINT32_C(1) << domain % 32;
    }
    control->masked_ranks[rank / 32] |= UINT32_C(1) << rank % 32;
    for (int other = 0; other < ep->ranks; other++) {
        masks += control->masked_ranks[other / 32] >> other % 32 & 1;
    }
    control->calls = masks << WEFTI_CUDA_EP_DOMAINS_COUNT_BITS;
}

/* How many other ranks of this rank's domain are not masked. */
static uint32_t live_here(const weft_ep *ep, const wefti_cuda_ep_domains_control *control)
{
    const int own = ep->domains.of[ep->rank];
    uint32_t count = 0;
    for (int i = ep->domains.first[own]; i < ep->domains.first[own + 1]; i++) {
        const int rank = ep->domains.members[i];
        count += rank != ep->rank && (control->masked_ranks[rank / 32] >> rank % 32 & 1) == 0;
    }
    return count;
}

/* The group inside is as before the call that failed, but that a rank which is left out stores nothing more to this
 * rank, once this has returned. */
static weft_status revive_inner(const weft_ep *ep, int rank, int alive)
{
    weft_ep *inner = ep->between->inner;
    const int is_inside = ep->domains.of[rank] == ep->domains.of[ep->rank] && !alive;
    WEFT_TRY(wefti_cuda_ep_mask(inner, is_inside ? ep->domains.slot[rank] : inner->rank, !is_inside));
    inner->dead = WEFT_OK;
    memset(inner->late, 0, (size_t)inner->ranks);
    return WEFT_OK;
}

/* No kernel of the group runs on this rank. Routings were made with the experts of all ranks. */
weft_status wefti_ep_between_mask(weft_ep *ep, int rank, int alive)
{
    wefti_ep_between *between = ep->between;
    wefti_device *device = &between->cuda->base;
    wefti_cuda_ep_domains_control *there = between->group.control;
    wefti_cuda_ep_domains_control control;
    uint64_t *told = (uint64_t *)between->group.host_status;
    const size_t bytes = offsetof(wefti_cuda_ep_domains_control, sent);
    WEFT_TRY(check(ep, rank, alive));
    const int has_failed = ep->dead != WEFT_OK || wefti_ep_between_failed(ep) != 0;
    WEFT_TRY(revive_inner(ep, rank, alive));
    WEFT_TRY(wefti_cuda_copy(device, &control, there, bytes));
    control.failed = 0;
    memset(control.missing, 0, sizeof control.missing);
    if (!alive && !ep->masked[rank]) {
        leave_out(ep, rank, &control);
    }
    if (has_failed || control.awaited != 0) {
        control.awaited = live_here(ep, &control);
        control.here = 0;
    }
    WEFT_TRY(wefti_cuda_copy(device, there, &control, bytes));
    between->is_partial = is_partial(ep, alive ? -1 : rank);
    for (weft_ep_route *route = ep->routes; route != NULL && (!alive || has_failed); route = route->next) {
        route->is_routed = 0;
    }
    memset(&told[WEFTI_CUDA_EP_HOST_STATUS_MISSING], 0, WEFTI_CUDA_EP_MANY_MAX / 8);
    __atomic_store_n(&told[WEFTI_CUDA_EP_HOST_STATUS_FAILED], 0, __ATOMIC_RELEASE);
    ep->late[rank] |= !alive; /* who names only a forwarder waited for what that waited for */
    return WEFT_OK;
}

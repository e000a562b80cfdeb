/* cuda/ep/host/domains_masks.c: groups of several domains that go on without a domain.
 *
 * A domain is left out once all its ranks are masked: its experts count as -1 then, and crossings have no ends there.
 * What a rank of it sends late comes to rings of its own in this rank's host memory, which nobody reads any more and
 * which stay the group's. Chunks that live ranks sent in the call that failed, and that were not taken, are told by the
 * number of their call, and dropped (domains/crossing.cuh). The group inside has failed with the call, and is as after
 * a mask that changes nothing. */
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

/* Calls go on without whole domains. */
weft_status wefti_ep_between_check_masks(const weft_ep *ep, const char *call)
{
    for (int domain = 0; domain < ep->domains.count; domain++) {
        int left;
        const int count = count_masked(ep, domain, -1, &left);
        if (count > 0 && left >= 0) {
            return wefti_error(WEFT_ERR_STATE,
                               "%s: rank %d is not masked, and other ranks of its domain are; a group of several "
                               "domains on GPUs goes on without whole domains: mask that rank, too (weft_ep_mask)",
                               call, left);
        }
    }
    return WEFT_OK;
}

static weft_status check(const weft_ep *ep, int rank, int alive)
{
    static const char call[] = "weft_ep_mask";
    if (!alive && ep->domains.of[rank] == ep->domains.of[ep->rank]) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "%s: rank %d is of this rank's own domain; a group of several domains on GPUs goes on "
                           "without whole other domains only. Destroy it and make one without that rank",
                           call, rank);
    }
    if (alive && ep->masked[rank]) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "%s: rank %d is masked; in a group of several domains on GPUs it stays so. Destroy the "
                           "group and make one with that rank",
                           call, rank);
    }
    return WEFT_OK;
}

/* A domain has become one that is left out: calls are counted anew. */
static void leave_out(const weft_ep *ep, int domain, wefti_cuda_ep_domains_control *control)
{
    uint32_t masks = 0;
    control->masked[domain / 32] |= UINT32_C(1) << domain % 32;
    for (int other = 0; other < ep->domains.count; other++) {
        masks += control->masked[other / 32] >> other % 32 & 1;
    }
    control->calls = masks << WEFTI_CUDA_EP_DOMAINS_COUNT_BITS;
}

/* The group inside is as before the call that failed. */
static weft_status revive_inner(weft_ep *inner)
{
    WEFT_TRY(wefti_cuda_ep_mask(inner, inner->rank, 1));
    inner->dead = WEFT_OK;
    memset(inner->late, 0, (size_t)inner->ranks);
    return WEFT_OK;
}

/* No kernel of the group runs on this rank. Routings were made with the experts of all domains. */
weft_status wefti_ep_between_mask(weft_ep *ep, int rank, int alive)
{
    wefti_ep_between *between = ep->between;
    wefti_device *device = &between->cuda->base;
    wefti_cuda_ep_domains_control *there = between->group.control;
    wefti_cuda_ep_domains_control control;
    uint64_t *told = (uint64_t *)between->group.host_status;
    const size_t bytes = offsetof(wefti_cuda_ep_domains_control, sent);
    const int domain = ep->domains.of[rank];
    int left;
    WEFT_TRY(check(ep, rank, alive));
    const int is_complete = count_masked(ep, domain, alive ? -1 : rank, &left) > 0 && left < 0;
    const int has_failed = ep->dead != WEFT_OK || wefti_ep_between_failed(ep) != 0;
    WEFT_TRY(wefti_cuda_copy(device, &control, there, bytes));
    control.failed = 0;
    memset(control.missing, 0, sizeof control.missing);
    if (!alive && is_complete && !ep->masked[rank]) {
        leave_out(ep, domain, &control);
    }
    WEFT_TRY(wefti_cuda_copy(device, there, &control, bytes));
    WEFT_TRY(revive_inner(between->inner));
    for (weft_ep_route *route = ep->routes; route != NULL && (!alive || has_failed); route = route->next) {
        route->is_routed = 0;
    }
    memset(&told[WEFTI_CUDA_EP_HOST_STATUS_MISSING], 0, WEFTI_CUDA_EP_MANY_MAX / 8);
    __atomic_store_n(&told[WEFTI_CUDA_EP_HOST_STATUS_FAILED], 0, __ATOMIC_RELEASE);
    ep->late[rank] |= !alive; /* who names only a forwarder waited for what that waited for */
    return WEFT_OK;
}

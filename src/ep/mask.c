/* weft_ep_mask, and what asks for masked ranks or brings one back. */
#include <string.h>

#include "base/error.h"
#include "ep/backend.h"

static weft_status check(const weft_ep *ep, int rank, int alive)
{
    static const char call[] = "weft_ep_mask";
    if (!wefti_ep_is_alive(ep)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'ep' is NULL or destroyed", call);
    }
    WEFT_TRY(wefti_world_check_handle(ep->world, call));
    if (alive != 0 && alive != 1) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: alive is %d; give 0 or 1", call, alive);
    }
    if (rank < 0 || rank >= ep->ranks) {
        return wefti_error(WEFT_ERR_RANGE, "%s: rank is %d; give 0 .. %d", call, rank, ep->ranks - 1);
    }
    if (rank == ep->rank) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: rank %d is this one; mask others", call, rank);
    }
    if (wefti_ep_has_halves(ep)) {
        return wefti_error(WEFT_ERR_STATE, "%s: a send of the group waits for its recv; call that first", call);
    }
    if (ep->dead != WEFT_OK && !wefti_ep_missed_ranks(ep)) {
        return wefti_error(WEFT_ERR_STATE, "%s: the group is dead since a call failed with %s; destroy it", call,
                           weft_status_name(ep->dead));
    }
    return WEFT_OK;
}

weft_status weft_ep_mask(weft_ep *ep, int rank, int alive)
{
    WEFT_TRY(check(ep, rank, alive));
    wefti_ep_take_masks(ep);
    WEFT_TRY(ep->backend->mask(ep, rank, alive));
    wefti_ep_set_masked(ep, rank, !alive);
    const int names_nobody = memchr(ep->late, 1, (size_t)ep->ranks) == NULL; /* then this rank's own GPU was late */
    if (wefti_ep_missed_ranks(ep) && (ep->late[rank] || names_nobody)) {
        ep->dead = WEFT_OK;
        memset(ep->late, 0, (size_t)ep->ranks);
    }
    return WEFT_OK;
}

static weft_status check_group(const weft_ep *ep, const char *call)
{
    if (!wefti_ep_is_alive(ep)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'ep' is NULL or destroyed", call);
    }
    return wefti_world_check_handle(ep->world, call);
}

weft_status weft_ep_mask_query(const weft_ep *ep, unsigned char *masked, int *count)
{
    WEFT_TRY(check_group(ep, "weft_ep_mask_query"));
    int all = 0;
    for (int rank = 0; rank < ep->ranks; rank++) {
        uint64_t word = wefti_ld64(&wefti_ep_mask_words(ep)[rank / 64], WEFTI_ACQUIRE);
        word |= wefti_ep_told_masks(ep, rank / 64);
        int is_masked = (int)(word >> (rank % 64) & 1);
        all += is_masked;
        if (masked != NULL) {
            masked[rank] = (unsigned char)is_masked;
        }
    }
    if (count != NULL) {
        *count = all;
    }
    return WEFT_OK;
}

weft_status weft_ep_failure(const weft_ep *ep)
{
    WEFT_TRY(check_group(ep, "weft_ep_failure"));
    return ep->dead == WEFT_OK && ep->backend->failure != NULL ? ep->backend->failure(ep) : ep->dead;
}

weft_status weft_ep_overflow_query(const weft_ep *ep, weft_ep_overflow_report *report)
{
    static const char call[] = "weft_ep_overflow_query";
    WEFT_TRY(check_group(ep, call));
    if (report == NULL || report->size < sizeof *report) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: report is NULL or its size is wrong; start from "
                           "WEFT_EP_OVERFLOW_REPORT_INIT",
                           call);
    }
    if (ep->backend->overflow == NULL) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "%s: the group is not one of GPUs of a single domain; its calls say themselves that too "
                           "many rows came",
                           call);
    }
    ep->backend->overflow(ep, report);
    return WEFT_OK;
}

static weft_status check_rejoin(const weft_ep *ep, const char *call)
{
    WEFT_TRY(check_group(ep, call));
    if (ep->backend->rejoin == NULL) {
        return wefti_error(
            WEFT_ERR_UNSUPPORTED,
            "%s: a group of several domains on GPUs cannot do that; make one of a single domain, or with on_device 0",
            call);
    }
    return WEFT_OK;
}

weft_status weft_ep_mask_words(const weft_ep *ep, const uint64_t **words)
{
    WEFT_TRY(check_group(ep, "weft_ep_mask_words"));
    if (words == NULL) {
        return wefti_error_null("weft_ep_mask_words", "words");
    }
    *words = wefti_ep_mask_words(ep);
    return WEFT_OK;
}

weft_status weft_ep_calls(const weft_ep *ep, uint64_t *calls)
{
    WEFT_TRY(check_rejoin(ep, "weft_ep_calls"));
    if (calls == NULL) {
        return wefti_error_null("weft_ep_calls", "calls");
    }
    return ep->backend->calls(ep, calls);
}

weft_status weft_ep_rejoin(weft_ep *ep, uint64_t calls)
{
    static const char call[] = "weft_ep_rejoin";
    WEFT_TRY(check_rejoin(ep, call));
    if (wefti_ep_has_halves(ep)) {
        return wefti_error(WEFT_ERR_STATE, "%s: a send of the group waits for its recv; call that first", call);
    }
    if (ep->dead != WEFT_OK && !wefti_ep_missed_ranks(ep)) {
        return wefti_error(WEFT_ERR_STATE, "%s: the group is dead since a call failed with %s; destroy it", call,
                           weft_status_name(ep->dead));
    }
    WEFT_TRY(ep->backend->rejoin(ep, calls));
    ep->dead = WEFT_OK;
    memset(ep->late, 0, (size_t)ep->ranks);
    for (int rank = 0; rank < ep->ranks; rank++) {
        wefti_ep_set_masked(ep, rank, 0);
    }
    return WEFT_OK;
}

/* Gets that return before their data is here: who waits for them, and who is told of failures. */
#include <string.h>

#include "base/error.h"
#include "base/thread_state.h"
#include "transport/am/am.h"

/* ---- who waits for them ---- */

static void take_older(uint64_t get, uint32_t asked, uint64_t *oldest, int *pe)
{
    if (get < *oldest) {
        *oldest = get;
        *pe = (int)asked;
    }
}

/* Whether one up to number `last` is open; *pe: whom the oldest asks. */
static int is_open(const wefti_am *am, uint64_t last, int *pe)
{
    uint64_t oldest = UINT64_MAX;
    for (size_t i = 0; am->requests_left > 0 && i < WEFTI_AM_WAITING_MAX; i++) {
        const wefti_am_request *request = &am->requests[i];
        if (request->number != 0 && request->get != 0) {
            take_older(request->get, request->pe, &oldest, pe);
        }
    }
    for (size_t i = 0; am->reads_left > 0 && i < WEFTI_AM_RMA_MAX; i++) {
        if (am->rma[i].get != 0) {
            take_older(am->rma[i].get, am->rma[i].pe, &oldest, pe);
        }
    }
    return oldest <= last;
}

static weft_status close_until(wefti_am_wait *now, uint64_t last)
{
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && is_open(now->am, last, &now->pe)) {
        status = wefti_am_wait_step(now);
    }
    wefti_am_give_up_gets(now->am, 0, last, status);
    return status;
}

weft_status wefti_am_close_gets(wefti_am_wait *now)
{
    return close_until(now, now->am->gets_made);
}

/* ---- who is told of failures ---- */

static int is_getter(const wefti_am *am)
{
    const wefti_thread_gets *own = wefti_thread_own_gets();
    return own->world == am->setup.world && own->pe == am->setup.pe;
}

void wefti_am_note_getter(const wefti_am *am)
{
    if (!is_getter(am)) {
        *wefti_thread_own_gets() =
            (wefti_thread_gets){.world = am->setup.world, .pe = am->setup.pe, .failures = am->failures.count};
    }
}

/* So many failures the thread knows of, or has nothing to do with. One that has begun no get since it was last here is
 * told of what nobody was told. */
static uint64_t count_known(const wefti_am *am)
{
    return is_getter(am) ? wefti_thread_own_gets()->failures : am->failures.told;
}

static void note_told(wefti_am *am)
{
    am->failures.told = am->failures.count;
    if (is_getter(am)) { /* until it begins the next one */
        *wefti_thread_own_gets() = (wefti_thread_gets){.world = 0};
    }
}

/* Another call may have met the failure. */
static weft_status tell_failure(wefti_am_wait *now)
{
    const wefti_am_failures *failures = &now->am->failures;
    now->pe = failures->pe;
    switch (failures->status) {
    case WEFT_ERR_PEER:
        return wefti_am_lost(now);
    case WEFT_ERR_TIMEOUT:
        return wefti_am_timed_out(now);
    default:
        return wefti_error(failures->status, "a get from PE %d has ended without its data", now->pe);
    }
}

/* ---- the end ---- */

static weft_status end_all(wefti_am *am)
{
    wefti_am_wait now = wefti_am_wait_start(am, -1);
    const uint64_t known = count_known(am);
    weft_status status = wefti_am_close_gets(&now);
    if (status == WEFT_OK && am->failures.count > known) {
        status = tell_failure(&now);
    }
    note_told(am);
    return status;
}

/* A quiet has failed, which is what is told: here PEs that are there have time to answer, if there is any. */
static void end_after(wefti_am *am, weft_status of_quiet)
{
    char text[WEFTI_ERROR_BYTES];
    wefti_am_wait now = wefti_am_wait_start(am, -1);
    now.is_silent = 1;
    memcpy(text, wefti_thread_text(), sizeof text);
    if (of_quiet != WEFT_ERR_PEER) {
        wefti_am_give_up_gets(am, 0, am->gets_made, of_quiet);
    } else if (wefti_am_close_gets(&now) != WEFT_OK) { /* the world may have failed */
        memcpy(wefti_thread_text(), text, sizeof text);
    }
    note_told(am);
}

weft_status wefti_am_end_gets(wefti_transport *transport, weft_status of_quiet)
{
    wefti_am *am = transport->state;
    weft_status status = of_quiet;
    wefti_am_enter(am);
    if (of_quiet == WEFT_OK) {
        status = end_all(am);
    } else {
        end_after(am, of_quiet);
    }
    return wefti_am_leave(am, status);
}

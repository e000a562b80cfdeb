#include "ep/host/arrivals.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/pe_list.h"
#include "base/thread_state.h"
#include "common/gone.h"
#include "ep/host/crossing.h"
#include "ep/host/notices.h"
#include "ep/host/peers.h"
#include "os/os.h"

static uint64_t flag_at(const wefti_ep_arrivals *arrivals, int rank)
{
    const wefti_ep_layout *layout = &arrivals->ep->host->layout;
    switch (arrivals->word) {
    case WEFTI_EP_WORD_CALL:
        return wefti_ep_call_at(layout, rank) + offsetof(wefti_ep_call_header, epoch);
    case WEFTI_EP_WORD_REPLY:
        return wefti_ep_reply_at(layout, rank) + offsetof(wefti_ep_reply, epoch);
    case WEFTI_EP_WORD_FINAL:
        return wefti_ep_reply_at(layout, rank) + offsetof(wefti_ep_reply, final);
    case WEFTI_EP_WORD_MARK:
        return wefti_ep_mark_at(layout, rank);
    default:
        return wefti_ep_done_at(layout, rank);
    }
}

wefti_ep_arrivals wefti_ep_arrivals_none(const weft_ep *ep, wefti_ep_word word, uint64_t epoch, const char *what)
{
    wefti_ep_arrivals arrivals;
    arrivals.ep = ep;
    arrivals.word = word;
    arrivals.epoch = epoch;
    arrivals.pending = ep->host->scratch.pending;
    arrivals.count = 0;
    arrivals.kept = 0;
    arrivals.look = 0;
    arrivals.next_look = 0;
    arrivals.extended = 0;
    arrivals.wait_ns = NULL;
    arrivals.start_ns = 0;
    arrivals.has_come = NULL;
    arrivals.through_forwarders = 0;
    arrivals.waiter = wefti_waiter_start(ep->world, what);
    arrivals.waiter.caller_knows = 1;
    return arrivals;
}

void wefti_ep_arrivals_measure(wefti_ep_arrivals *arrivals, uint64_t *wait_ns)
{
    arrivals->wait_ns = wait_ns;
    arrivals->start_ns = wait_ns != NULL ? wefti_os_now_ns() : 0;
}

void wefti_ep_arrivals_add(wefti_ep_arrivals *arrivals, int rank)
{
    arrivals->pending[arrivals->count++] = rank;
}

wefti_ep_arrivals wefti_ep_arrivals_start(const weft_ep *ep, wefti_ep_word word, uint64_t epoch, const char *what)
{
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_none(ep, word, epoch, what);
    for (int i = 0; i < ep->ranks; i++) {
        int rank = (ep->rank + i) % ep->ranks;
        if (!ep->masked[rank]) {
            wefti_ep_arrivals_add(&arrivals, rank);
        }
    }
    return arrivals;
}

/* Of the late ranks those that are why, where the call can never end: who is lost; if nobody is, who has left. Others
 * may have given up because of them, or are yet to come. NULL: all. */
typedef int late_ranks(const weft_world *world, int pe);

static late_ranks *find_why(const weft_ep *ep)
{
    int has_lost = 0;
    int has_left = 0;
    for (int rank = 0; rank < ep->ranks && wefti_world_late(ep->world) == WEFT_ERR_PEER; rank++) {
        const int pe = ep->host->peers[rank].pe;
        has_lost |= ep->late[rank] && wefti_world_is_lost(ep->world, pe);
        has_left |= ep->late[rank] && wefti_world_has_left(ep->world, pe);
    }
    return has_lost ? wefti_world_is_lost : has_left ? wefti_world_has_left : NULL;
}

/* The PEs of the late ranks, or of those of whom `why` says so, as text, such as "PEs 1, 3-5". */
static void list_late(const weft_ep *ep, late_ranks *why, char text[WEFTI_PE_LIST_BYTES])
{
    int pes = weft_world_pes(ep->world);
    unsigned char *marks = wefti_alloc_zeroed((size_t)pes, 1);
    if (marks == NULL) {
        snprintf(text, WEFTI_PE_LIST_BYTES, "some PEs");
        return;
    }
    for (int rank = 0; rank < ep->ranks; rank++) {
        const int pe = ep->host->peers[rank].pe;
        marks[pe] = ep->late[rank] && (why == NULL || why(ep->world, pe));
    }
    (void)wefti_pe_list_text(marks, pes, 1, text);
    wefti_free(marks);
}

/* What becomes of the call without a rank that is not masked. In this order: who is gone has stored all that it will.
 * Of a far one nobody can see whether it has ended the call: if it is lost, it counts as one that has not; if it has
 * left, others tell, which await it. */
static wefti_completion completion_without(const wefti_ep_arrivals *arrivals, int rank)
{
    const weft_ep *ep = arrivals->ep;
    const unsigned char *near = wefti_ep_near(ep, rank, ep->host->layout.epoch);
    const wefti_completion seen = ep->masked[rank]
                                      ? WEFTI_COMPLETION_POSSIBLE
                                      : wefti_world_completion_without(ep->world, ep->host->peers[rank].pe);
    if (seen == WEFTI_COMPLETION_POSSIBLE) {
        return seen;
    }
    const int has_ended =
        near != NULL ? wefti_ld64(near, WEFTI_ACQUIRE) >= arrivals->epoch : seen == WEFTI_COMPLETION_DOUBTFUL;
    return has_ended ? WEFTI_COMPLETION_POSSIBLE : seen;
}

static int is_lost(const wefti_ep_arrivals *arrivals, int rank)
{
    return completion_without(arrivals, rank) != WEFTI_COMPLETION_POSSIBLE;
}

/* Who sets a rank's flag: itself, or the forwarder for it in this domain. */
static int writer_of(const wefti_ep_arrivals *arrivals, int rank)
{
    const weft_ep *ep = arrivals->ep;
    int own = ep->domains.of[ep->rank];
    int is_handed_on =
        arrivals->through_forwarders || (arrivals->word == WEFTI_EP_WORD_CALL && wefti_ep_crossing_is_on(ep));
    return is_handed_on && ep->domains.of[rank] != own ? wefti_ep_domains_forwarder(&ep->domains, rank, own) : rank;
}

static int has_come(const wefti_ep_arrivals *arrivals, int rank)
{
    if (arrivals->has_come != NULL) {
        return arrivals->has_come(arrivals, rank);
    }
    if (arrivals->word == WEFTI_EP_WORD_CALL && wefti_ep_notices_has(arrivals->ep, rank, arrivals->epoch)) {
        return 1;
    }
    uint64_t epoch = wefti_ld64(arrivals->ep->host->base + flag_at(arrivals, rank), WEFTI_ACQUIRE);
    return epoch == arrivals->epoch;
}

/* The same of a rank that is awaited here, and of who writes its flag: it has not done its part, unless that has come
 * since it was looked at. */
static wefti_completion completion_without_awaited(const wefti_ep_arrivals *arrivals, int rank)
{
    const weft_ep *ep = arrivals->ep;
    const int writer = writer_of(arrivals, rank);
    const wefti_completion by_rank = wefti_world_completion_without(ep->world, ep->host->peers[rank].pe);
    const wefti_completion by_writer = ep->masked[writer]
                                           ? WEFTI_COMPLETION_POSSIBLE
                                           : wefti_world_completion_without(ep->world, ep->host->peers[writer].pe);
    const wefti_completion worst = by_rank > by_writer ? by_rank : by_writer;
    return worst != WEFTI_COMPLETION_POSSIBLE && has_come(arrivals, rank) ? WEFTI_COMPLETION_POSSIBLE : worst;
}

/* Whether the call can still end: also ranks that are not awaited here count, since those that are may wait for them.
 */
static wefti_completion completion_of(const wefti_ep_arrivals *arrivals)
{
    wefti_completion worst = WEFTI_COMPLETION_POSSIBLE;
    for (int rank = 0; rank < arrivals->ep->ranks; rank++) {
        const wefti_completion seen = completion_without(arrivals, rank);
        worst = seen > worst ? seen : worst;
    }
    for (int i = 0; i < arrivals->count; i++) {
        const wefti_completion seen = completion_without_awaited(arrivals, arrivals->pending[i]);
        worst = seen > worst ? seen : worst;
    }
    return worst;
}

/* Late are the ranks that are awaited and those that are gone. */
static void mark_late(const wefti_ep_arrivals *arrivals)
{
    for (int rank = 0; rank < arrivals->ep->ranks; rank++) {
        arrivals->ep->late[rank] = is_lost(arrivals, rank) != 0;
    }
    for (int i = 0; i < arrivals->count; i++) {
        int rank = arrivals->pending[i];
        arrivals->ep->late[rank] = 1;
        if (writer_of(arrivals, rank) != arrivals->ep->rank) { /* the rank or its forwarder may be why */
            arrivals->ep->late[writer_of(arrivals, rank)] = 1;
        }
    }
}

static weft_status expire(const wefti_ep_arrivals *arrivals)
{
    static const char *const lacking[] = {"did not make it", "did not answer the counts",
                                          "did not answer the counts again", "did not come half-way in it",
                                          "did not end it"};
    char late[WEFTI_PE_LIST_BYTES];
    if (wefti_world_late(arrivals->ep->world) == WEFT_ERR_PEER) {
        wefti_world_await_all_lost(arrivals->ep->world);
    }
    mark_late(arrivals);
    list_late(arrivals->ep, find_why(arrivals->ep), late);
    wefti_st64(arrivals->ep->host->base + arrivals->ep->host->layout.epoch, arrivals->epoch, WEFTI_RELAXED);
    wefti_fence_release(); /* as at the end of a call */
    char limit[WEFTI_LIMIT_BYTES];
    return wefti_error(wefti_world_late(arrivals->ep->world),
                       "%s: call %" PRIu64
                       " of the group cannot end: %s %s, %s; the group is dead unless a rank that is "
                       "gone is masked",
                       arrivals->waiter.what, arrivals->epoch, late, lacking[arrivals->word],
                       wefti_world_limit_text(arrivals->ep->world, limit));
}

/* ---- going on without them ---- */

#define EXTENSIONS_MAX 3

/* The index-th of those awaited is masked from now on. */
static void mask_awaited(wefti_ep_arrivals *arrivals, int index)
{
    const weft_ep *ep = arrivals->ep;
    int rank = arrivals->pending[index];
    wefti_log(WEFTI_LOG_WARN, "PE %d: %s goes on without PE %d in call %" PRIu64 " of the group",
              weft_world_pe(ep->world), arrivals->waiter.what, ep->host->peers[rank].pe, arrivals->epoch);
    wefti_ep_set_masked(ep, rank, 1);
    arrivals->count--;
    for (int i = index; i < arrivals->count; i++) {
        arrivals->pending[i] = arrivals->pending[i + 1];
    }
}

/* Whether a rank, which is near, has not ended all calls before this one, on either bank. */
static int has_not_ended_before(const wefti_ep_arrivals *arrivals, int rank, uint64_t ended)
{
    const weft_ep *ep = arrivals->ep;
    int banks = wefti_ep_banks(ep);
    if (ended + (uint64_t)banks < arrivals->epoch) {
        return 1;
    }
    const wefti_ep_host *other = ep->host_of[banks - 1 - ep->bank];
    return banks == 2 && wefti_ld64(other->peers[rank].near + other->layout.epoch, WEFTI_ACQUIRE) + 1 < arrivals->epoch;
}

/* Whether a rank that is awaited is in this call, or still in an earlier one, and so may wait for one that is gone. In
 * this order: who is gone has stored all that it will. */
static int is_inside(const wefti_ep_arrivals *arrivals, int rank)
{
    const weft_ep *ep = arrivals->ep;
    const wefti_ep_host *host = ep->host;
    uint64_t at = wefti_ep_call_at(&host->layout, rank) + offsetof(wefti_ep_call_header, epoch);
    const unsigned char *near = wefti_ep_near(ep, rank, host->layout.epoch);
    int has_begun = wefti_ld64(host->base + at, WEFTI_ACQUIRE) == arrivals->epoch;
    if (wefti_world_is_gone(ep->world, host->peers[rank].pe)) {
        return 0;
    }
    if (near == NULL) {
        return has_begun;
    }
    uint64_t ended = wefti_ld64(near, WEFTI_ACQUIRE);
    return has_begun ? ended < arrivals->epoch : has_not_ended_before(arrivals, rank, ended);
}

/* The deadline is over: those that are not inside are masked, the others too when they have had theirs, but for those
 * whose flag has come since it was looked at, which may just have ended the call. Before it those that are gone; where
 * none is awaited, who is keeps its deadline. */
static void mask_late(wefti_ep_arrivals *arrivals)
{
    int has_deadline = wefti_world_late(arrivals->ep->world) == WEFT_ERR_TIMEOUT;
    int may_extend = arrivals->extended++ < EXTENSIONS_MAX;
    int has_masked = 0;
    for (int i = arrivals->count - 1; i >= 0; i--) {
        int rank = arrivals->pending[i];
        int stays = has_deadline ? (may_extend && is_inside(arrivals, rank)) || has_come(arrivals, rank)
                                 : completion_without_awaited(arrivals, rank) == WEFTI_COMPLETION_POSSIBLE;
        if (!stays) {
            mask_awaited(arrivals, i);
            has_masked = 1;
        }
    }
    if (!has_deadline && !has_masked) {
        arrivals->waiter.is_hopeless = 0;
        return;
    }
    arrivals->waiter = wefti_waiter_start(arrivals->ep->world, arrivals->waiter.what);
    arrivals->waiter.caller_knows = 1;
}

int wefti_ep_arrivals_poll(wefti_ep_arrivals *arrivals, int *rank)
{
    int progress;
    do {
        while (arrivals->look < arrivals->count) {
            int32_t next = arrivals->pending[arrivals->look++];
            if (has_come(arrivals, next)) {
                if (arrivals->wait_ns != NULL) {
                    arrivals->wait_ns[next] += wefti_os_now_ns() - arrivals->start_ns;
                }
                *rank = next;
                return 1;
            }
            if (!arrivals->ep->masked[next]) { /* as one that did not answer meanwhile */
                arrivals->pending[arrivals->kept++] = next;
            }
        }
        progress = arrivals->kept < arrivals->count;
        arrivals->count = arrivals->kept;
        arrivals->kept = 0;
        arrivals->look = 0;
    } while (progress);
    return 0;
}

/* ---- who has given this rank up ---- */

/* Whether a rank has ended the call, though this one has not told it that it has read its rows: it has given this one
 * up, and may have put others there. A far one that is gone cannot be asked, and counts so where the group goes on
 * without it; elsewhere the call fails, since that one does not end it here. */
static int has_given_up(const weft_ep *ep, int rank, uint64_t epoch)
{
    const wefti_ep_host *host = ep->host;
    const unsigned char *near = wefti_ep_near(ep, rank, host->layout.epoch);
    uint64_t ended = 0;
    if (near != NULL) {
        return wefti_ld64(near, WEFTI_ACQUIRE) >= epoch;
    }
    const void *far = wefti_ep_symmetric(ep, host->layout.epoch);
    const weft_status status = weft_getmem(ep->world, &ended, far, sizeof ended, host->peers[rank].pe);
    return status == WEFT_OK ? ended >= epoch : wefti_ep_masks(ep);
}

int wefti_ep_find_given_up(const weft_ep *ep, uint64_t epoch)
{
    const uint64_t waited_ns = wefti_os_now_ns() - ep->host->begun_before_ns;
    int count = 0;
    if (WEFTI_LIKELY(waited_ns < wefti_world_deadline_ns(ep->world))) {
        return 0; /* for anybody who waited for this rank */
    }
    wefti_fence_full(); /* rows before what tells whether they were still there */
    for (int rank = 0; rank < ep->ranks; rank++) {
        ep->late[rank] = rank != ep->rank && !ep->masked[rank] && has_given_up(ep, rank, epoch);
        count += ep->late[rank];
    }
    for (int rank = 0; rank < ep->ranks && wefti_ep_masks(ep); rank++) {
        if (ep->late[rank]) {
            wefti_ep_set_masked(ep, rank, 1);
        }
    }
    return count;
}

weft_status wefti_ep_given_up(const weft_ep *ep, uint64_t epoch, const char *name)
{
    char late[WEFTI_PE_LIST_BYTES];
    list_late(ep, NULL, late);
    wefti_st64(ep->host->base + ep->host->layout.epoch, epoch, WEFTI_RELAXED);
    return wefti_error(wefti_world_late(ep->world),
                       "%s: call %" PRIu64 " of the group cannot end: %s went on without this rank, which came too "
                       "late to read their rows; the group is dead until it has come back by weft_ep_rejoin",
                       name, epoch, late);
}

/* ---- what has come ---- */

/* The last call of a bank that a rank has told this one of by itself, as it does after one that it has given up. */
static uint64_t called_on(const wefti_ep_host *host, int rank)
{
    uint64_t at = wefti_ep_call_at(&host->layout, rank) + offsetof(wefti_ep_call_header, epoch);
    return wefti_ld64(host->base + at, WEFTI_ACQUIRE);
}

/* The same of the group. Where there are two banks a rank may be in the next call as well as in this one: one on the
 * other bank counts when it has ended this one, and this rank has not come to it. */
static uint64_t called(const wefti_ep_arrivals *arrivals, int rank)
{
    const weft_ep *ep = arrivals->ep;
    const uint64_t epoch = called_on(ep->host, rank);
    if (wefti_ep_banks(ep) == 1 || wefti_ep_masks(ep)) {
        return epoch;
    }
    const uint64_t beside = called_on(ep->host_of[1 - ep->bank], rank);
    const int is_ahead = beside > epoch && beside > *ep->started; /* which is seldom so, and far ones are asked */
    return is_ahead && has_given_up(ep, rank, arrivals->epoch) ? beside : epoch;
}

/* All calls before this one have ended here, but for a pair that is outstanding on the other bank. */
static void end_before(const weft_ep *ep, uint64_t epoch)
{
    const uint64_t banks = (uint64_t)wefti_ep_banks(ep);
    for (uint64_t ended = epoch - 1; ended + banks >= epoch; ended--) {
        const int bank = (int)(ended % banks);
        if (bank == ep->bank || ep->half[bank] == WEFTI_EP_HALF_NONE) {
            const wefti_ep_host *host = ep->host_of[bank];
            wefti_st64(host->base + host->layout.epoch, ended, WEFTI_RELAXED);
        }
    }
    *ep->started = epoch - 1;
}

/* The next call here becomes the one that `writer` is in. Who went on because a rank is lost has only heard of that
 * sooner: that one is named. */
static weft_status join_next(wefti_ep_arrivals *arrivals, int writer, uint64_t epoch)
{
    const weft_ep *ep = arrivals->ep;
    const int pe = ep->host->peers[writer].pe;
    const wefti_completion seen = completion_of(arrivals);
    end_before(ep, epoch);
    if (seen != WEFTI_COMPLETION_IMPOSSIBLE) {
        return wefti_error(WEFT_ERR_MISMATCH,
                           "%s: PE %d has gone on from call %" PRIu64 " of the group to call %" PRIu64
                           ", as after a deadline; the next call joins it",
                           arrivals->waiter.what, pe, arrivals->epoch, epoch);
    }
    char late[WEFTI_PE_LIST_BYTES];
    *wefti_thread_is_hopeless() = 1;
    wefti_world_await_all_lost(ep->world);
    mark_late(arrivals);
    list_late(ep, find_why(ep), late);
    return wefti_error(wefti_world_late(ep->world),
                       "%s: call %" PRIu64 " of the group cannot end: %s did not make it, and never will; others have "
                       "gone on to call %" PRIu64 ", which the next call joins if who is gone is masked",
                       arrivals->waiter.what, arrivals->epoch, late, epoch);
}

/* As a forwarder: before what has come is looked at, and as often as it is waited for. */
static weft_status hand_on(const wefti_ep_arrivals *arrivals)
{
    return arrivals->word == WEFTI_EP_WORD_CALL ? wefti_ep_notices_hand_on(arrivals->ep, arrivals->epoch) : WEFT_OK;
}

/* Who has begun a later call without setting a flag that is awaited of it has given this one up, after a deadline of
 * its own: what is awaited never comes. The next call here becomes the one that it is in. A header that is handed on
 * never comes when both have: one of them may have waited for the other only, as this rank does. What this rank itself
 * hands on has been sent by then, if it was sent by a notice at all. */
static weft_status look_ahead(wefti_ep_arrivals *arrivals)
{
    int rank = arrivals->pending[arrivals->next_look++ % (unsigned)arrivals->count];
    const int by_forwarder = writer_of(arrivals, rank);
    const int writer = by_forwarder != arrivals->ep->rank ? by_forwarder : rank;
    uint64_t epoch = called(arrivals, writer);
    if (arrivals->word == WEFTI_EP_WORD_CALL && writer != rank) {
        const uint64_t of_rank = called(arrivals, rank);
        epoch = of_rank < epoch ? of_rank : epoch;
    }
    WEFT_TRY(epoch > arrivals->epoch ? hand_on(arrivals) : WEFT_OK);
    if (epoch <= arrivals->epoch || has_come(arrivals, rank)) { /* its flag may have come since it was looked at */
        return WEFT_OK;
    }
    if (wefti_ep_masks(arrivals->ep)) { /* it has masked this one */
        mask_awaited(arrivals, (int)((arrivals->next_look - 1) % (unsigned)arrivals->count));
        return WEFT_OK;
    }
    return join_next(arrivals, writer, epoch);
}

static void warn(const wefti_ep_arrivals *arrivals)
{
    char late[WEFTI_PE_LIST_BYTES];
    mark_late(arrivals);
    list_late(arrivals->ep, NULL, late);
    wefti_log(WEFTI_LOG_WARN, "PE %d: %s waits for %s in call %" PRIu64 " of the group",
              weft_world_pe(arrivals->ep->world), arrivals->waiter.what, late, arrivals->epoch);
}

weft_status wefti_ep_arrivals_pause(wefti_ep_arrivals *arrivals)
{
    WEFT_TRY(hand_on(arrivals));
    WEFT_TRY(arrivals->count > 0 ? look_ahead(arrivals) : WEFT_OK);
    if (arrivals->count == 0) {
        return WEFT_OK;
    }
    wefti_waiter *waiter = &arrivals->waiter;
    const void *flag = arrivals->ep->host->base + flag_at(arrivals, arrivals->pending[0]);
    weft_status status = wefti_waiter_pause(waiter, flag);
    if (WEFTI_UNLIKELY(waiter->warned == 1)) {
        waiter->warned = 2;
        warn(arrivals);
    }
    if (WEFTI_UNLIKELY(waiter->must_look != 0)) {
        waiter->must_look = 0;
        wefti_waiter_judge(waiter, completion_of(arrivals));
    }
    if (status == WEFT_ERR_TIMEOUT && wefti_ep_masks(arrivals->ep)) {
        mask_late(arrivals);
        return WEFT_OK;
    }
    return status == WEFT_ERR_TIMEOUT ? expire(arrivals) : status;
}

weft_status wefti_ep_arrivals_next(wefti_ep_arrivals *arrivals, int *rank)
{
    WEFT_TRY(hand_on(arrivals));
    while (!wefti_ep_arrivals_poll(arrivals, rank)) {
        WEFT_TRY(wefti_ep_arrivals_pause(arrivals));
        if (!wefti_ep_arrivals_left(arrivals)) {
            *rank = -1;
            return WEFT_OK;
        }
    }
    return WEFT_OK;
}

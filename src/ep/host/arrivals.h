/* ep/host/arrivals.h: waiting for flags of all ranks, in whatever order they come.
 *
 *     wefti_ep_arrivals arrivals = wefti_ep_arrivals_start(ep, WEFTI_EP_WORD_DONE, epoch, "done flags");
 *     while (wefti_ep_arrivals_left(&arrivals)) {
 *         WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &rank));
 *         ... what `rank` announced is visible; -1: those that were left have been masked (WEFT_EP_MASK_ON_TIMEOUT) ...
 *     }
 *
 * Ranks that have come already are given from this rank on upwards, modulo R, so that not all begin with the same. */
#ifndef WEFTI_EP_HOST_ARRIVALS_H
#define WEFTI_EP_HOST_ARRIVALS_H

#include "ep/host/host.h"
#include "weft/protocol/wait.h"

/* The flags of protocol/ep_layout.h. */
typedef enum wefti_ep_word {
    WEFTI_EP_WORD_CALL,
    WEFTI_EP_WORD_REPLY,
    WEFTI_EP_WORD_FINAL,
    WEFTI_EP_WORD_MARK,
    WEFTI_EP_WORD_DONE
} wefti_ep_word;

typedef struct wefti_ep_arrivals {
    const weft_ep *ep;
    wefti_ep_word word;
    uint64_t epoch;
    int32_t *pending; /* [count] ranks: before `kept` those that had not come yet, from `look` on those not looked at */
    int count;
    int kept;
    int look;
    unsigned next_look; /* of which pending rank the epoch is looked at next: whether it has gone on without its flag */
    wefti_waiter waiter; /* one deadline for all */
    int extended; /* deadlines given in addition */
    uint64_t *wait_ns; /* NULL, or [R]: adds up how long each rank was waited for, from the time below on */
    uint64_t start_ns;
    /* NULL, or whether what is awaited of `rank` has come after all, where that is no flag of all ranks. */
    int (*has_come)(const struct wefti_ep_arrivals *arrivals, int rank);
    int through_forwarders; /* flags of ranks of other domains come from their forwarders in this one */
} wefti_ep_arrivals;

/* Of all ranks that are not masked. One at a time a group: they share its scratch. After a timeout the epoch is that of
 * this call, as if it had ended. */
wefti_ep_arrivals wefti_ep_arrivals_start(const weft_ep *ep, wefti_ep_word word, uint64_t epoch, const char *what);

/* The same of some ranks: of none, then add them before the first is waited for. */
wefti_ep_arrivals wefti_ep_arrivals_none(const weft_ep *ep, wefti_ep_word word, uint64_t epoch, const char *what);
void wefti_ep_arrivals_add(wefti_ep_arrivals *arrivals, int rank);

static inline int wefti_ep_arrivals_left(const wefti_ep_arrivals *arrivals)
{
    return arrivals->kept > 0 || arrivals->look < arrivals->count;
}

/* Add to wait_ns [R], unless NULL, how long each rank is waited for from now on. */
void wefti_ep_arrivals_measure(wefti_ep_arrivals *arrivals, uint64_t *wait_ns);

/* Wait for one more rank. WEFT_ERR_TIMEOUT names all that have not come; or the world's fault. Some are left. */
weft_status wefti_ep_arrivals_next(wefti_ep_arrivals *arrivals, int *rank);

/* The same in two halves: look for one more rank, 1 when there is one; and when there is none but some are left, wait a
 * moment. */
int wefti_ep_arrivals_poll(wefti_ep_arrivals *arrivals, int *rank);
weft_status wefti_ep_arrivals_pause(wefti_ep_arrivals *arrivals);

/* How many ranks that are not masked have given this one up in the call, so that their rows may have been others when
 * it read them. They are masked where the group goes on by itself; else it is the call's end, with this status. Costs
 * no look at others unless this rank was late for a deadline. */
int wefti_ep_find_given_up(const weft_ep *ep, uint64_t epoch);
weft_status wefti_ep_given_up(const weft_ep *ep, uint64_t epoch, const char *name);

#endif

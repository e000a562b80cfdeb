/* bootstrap/tree/parking.c: PEs that wait without a connection. */
#include "bootstrap/tree/parking.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "os/os.h"
#include "os/socket.h"

/* Descriptors that PE 0 leaves to strangers, to the rest of creation and to the rest of the process. */
#define LEFT_MIN 48

/* How long a parked PE stays away before it connects again: with so much for each of them, about a thousand connect in
 * a second, however many they are. */
#define AWAY_EACH_NS UINT64_C(1000000)
#define AWAY_MIN_NS UINT64_C(2000000)

weft_status wefti_parking_init(wefti_parking *parking, int pes)
{
    parking->tickets = wefti_alloc_zeroed((size_t)pes, sizeof *parking->tickets);
    parking->pes = pes;
    parking->count = 0;
    return parking->tickets != NULL ? WEFT_OK
                                    : wefti_error(WEFT_ERR_MEMORY, "no memory for the tickets of %d PEs", pes);
}

void wefti_parking_fini(wefti_parking *parking)
{
    wefti_free(parking->tickets);
    memset(parking, 0, sizeof *parking);
}

int wefti_parking_is_due(const wefti_link *link)
{
    return wefti_os_descriptors_left(link->descriptor) < LEFT_MIN;
}

static uint64_t away_ns(const wefti_parking *parking)
{
    const uint64_t wanted_ns = AWAY_EACH_NS * (unsigned)parking->count;
    return wanted_ns < AWAY_MIN_NS              ? AWAY_MIN_NS
           : wanted_ns < WEFTI_TREE_AWAY_MAX_NS ? wanted_ns
                                                : WEFTI_TREE_AWAY_MAX_NS;
}

weft_status wefti_parking_park(wefti_parking *parking, wefti_link *link, int pe)
{
    uint64_t *ticket = &parking->tickets[pe];
    if (*ticket == 0) {
        WEFT_TRY(wefti_os_random(ticket, sizeof *ticket));
        *ticket |= 1; /* 0: it is not parked */
        parking->count++;
    }
    wefti_tree_parked body = {.ticket = *ticket, .away_ns = away_ns(parking)};
    /* If it cannot be sent the PE is gone: it will be missing at the deadline, as one that never came. */
    (void)wefti_link_send(link, WEFTI_FRAME_PARKED, 0, &body, sizeof body);
    link->is_leaving = 1;
    return WEFT_OK;
}

int wefti_parking_knows(const wefti_parking *parking, const wefti_tree_hello *said)
{
    return said->pe >= 0 && said->pe < parking->pes && said->ticket != 0 && said->ticket == parking->tickets[said->pe];
}

void wefti_parking_release(wefti_parking *parking, int pe)
{
    parking->tickets[pe] = 0;
    parking->count--;
}

/* bootstrap/tree/parking.h: PEs that have come to PE 0 and wait without a connection, which would cost PE 0 a
 * descriptor each.
 *
 * Where descriptors get scarce PE 0 gives who comes a ticket and closes the connection. The PE comes back with the
 * ticket every so often, until PE 0 welcomes it or tells it of an error. */
#ifndef WEFTI_BOOTSTRAP_TREE_PARKING_H
#define WEFTI_BOOTSTRAP_TREE_PARKING_H

#include "bootstrap/tree/link.h"
#include "bootstrap/tree/message.h"

typedef struct wefti_parking {
    uint64_t *tickets; /* by PE; 0: it is not parked */
    int pes;
    int count; /* of those that are */
} wefti_parking;

weft_status wefti_parking_init(wefti_parking *parking, int pes);
void wefti_parking_fini(wefti_parking *parking); /* safe on zeroed memory */

/* Whether so few descriptors are left that this connection should not be kept. */
int wefti_parking_is_due(const wefti_link *link);
/* Give PE `pe` a ticket, or its own once more, and mark the link as one that is closed once all is sent. */
weft_status wefti_parking_park(wefti_parking *parking, wefti_link *link, int pe);
/* Whether this is what a parked PE says. */
int wefti_parking_knows(const wefti_parking *parking, const wefti_tree_hello *said);
/* PE `pe` is back for good. */
void wefti_parking_release(wefti_parking *parking, int pe);

#endif

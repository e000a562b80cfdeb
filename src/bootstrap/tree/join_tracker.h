/* bootstrap/tree/join_tracker.h: who has come to PE 0, and whether they agree. */
#ifndef WEFTI_BOOTSTRAP_TREE_JOIN_TRACKER_H
#define WEFTI_BOOTSTRAP_TREE_JOIN_TRACKER_H

#include "bootstrap/tree/parking.h"
#include "bootstrap/tree/tree.h"

#define WEFTI_JOIN_TRACKER_PARKED (-1)

typedef struct wefti_join_tracker {
    int *places; /* by PE: 1 + its place in the star, or WEFTI_JOIN_TRACKER_PARKED; 0: has not come */
    wefti_tree_contact *contacts; /* by PE: where its children find it */
    wefti_parking parking;
    int is_welcoming; /* all have come: who was parked gets its welcome when it comes back */
    int arrived; /* PEs, or who says to be one, that proved themselves */
    int expected; /* how many there will be */
    uint64_t last_ns; /* when the last came, or something went wrong */
    int has_comers; /* some came at the last look */
    uint64_t receive_ns; /* while others come, those who are here are not read before: reading many takes long */
    int offences; /* what was wrong with PEs that came; not 0: creation is bound to fail */
    weft_status status; /* of the first offence */
    char text[WEFTI_ERROR_BYTES];
} wefti_join_tracker;

weft_status wefti_join_tracker_init(wefti_join_tracker *tracker, int pes);
void wefti_join_tracker_fini(wefti_join_tracker *tracker);

/* This PE cannot take part, with this thread's error: all who come are told. */
void wefti_join_tracker_refuse(wefti_join_tracker *tracker, wefti_tree *tree, weft_status status);
/* Take a connection into the star and compare what it says. The PEs that are here, and each that comes later, are told
 * at once of the first offence; then their connections are closed. */
weft_status wefti_join_tracker_add(wefti_join_tracker *tracker, wefti_tree *tree, wefti_link *link,
                                   const wefti_tree_hello *said);
/* Hear those who are here, after a wait: that they fail, end, or wait no longer (tree->peer_timed_out). */
void wefti_join_tracker_receive(wefti_join_tracker *tracker, wefti_tree *tree);
/* Welcome a PE that is here, or came back: tell it who its parent is. Nothing for one that is parked still. */
weft_status wefti_join_tracker_welcome(wefti_join_tracker *tracker, wefti_tree *tree, int pe);
/* Whether nobody else is to come, and, of a creation that is bound to fail, whether all who wait have been told. */
int wefti_join_tracker_is_complete(const wefti_join_tracker *tracker, const wefti_tree *tree);
/* Tell all who are here that PE 0 is. */
void wefti_join_tracker_answer_waiting(const wefti_join_tracker *tracker, wefti_tree *tree);
/* The error that names the PEs that were parked and did not come back. */
weft_status wefti_join_tracker_name_parked(const wefti_join_tracker *tracker, wefti_tree *tree);
/* Log who is missing. */
void wefti_join_tracker_warn(const wefti_join_tracker *tracker, const wefti_tree *tree);
/* WEFT_OK when all have come and agree; else the error that names those who are missing, or who does not fit. */
weft_status wefti_join_tracker_judge(const wefti_join_tracker *tracker, wefti_tree *tree);

#endif

/* bootstrap/tree/join_tracker.c: who has come to PE 0, and whether they agree. */
#include "bootstrap/tree/join_tracker.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/pe_list.h"
#include "bootstrap/tree/positions.h"
#include "os/os.h"

/* How many arrivals beyond the world's size are read: they show that something is wrong. */
#define EXCESS_MAX 64

weft_status wefti_join_tracker_init(wefti_join_tracker *tracker, int pes)
{
    memset(tracker, 0, sizeof *tracker);
    tracker->expected = pes - 1;
    tracker->places = wefti_alloc_zeroed((size_t)pes, sizeof *tracker->places);
    tracker->contacts = wefti_alloc_zeroed((size_t)pes, sizeof *tracker->contacts);
    if (tracker->places == NULL || tracker->contacts == NULL) {
        wefti_join_tracker_fini(tracker);
        return wefti_error(WEFT_ERR_MEMORY, "no memory to meet %d PEs", pes);
    }
    weft_status status = wefti_parking_init(&tracker->parking, pes);
    if (status != WEFT_OK) {
        wefti_join_tracker_fini(tracker);
    }
    return status;
}

void wefti_join_tracker_fini(wefti_join_tracker *tracker)
{
    wefti_free(tracker->places);
    wefti_free(tracker->contacts);
    wefti_parking_fini(&tracker->parking);
    memset(tracker, 0, sizeof *tracker);
}

/* ---- offences ---- */

/* Decide what is wrong with a hello, if anything is. */
static weft_status check(const wefti_join_tracker *tracker, const wefti_tree *tree, const wefti_tree_hello *said)
{
    const wefti_tree_hello *own = &tree->hello;
    if (said->version != own->version) {
        return wefti_error(WEFT_ERR_MISMATCH,
                           "world \"%s\": PE %d uses version %u.%u.%u of weft, PE 0 uses %u.%u.%u; install the same",
                           own->name, said->pe, said->version >> 16, said->version >> 8 & 255, said->version & 255,
                           own->version >> 16, own->version >> 8 & 255, own->version & 255);
    }
    if (strcmp(said->name, own->name) != 0) {
        return wefti_error(WEFT_ERR_MISMATCH, "PE %d creates the world \"%s\" where PE 0 creates \"%s\"", said->pe,
                           said->name, own->name);
    }
    if (said->pes != own->pes) {
        return wefti_error(WEFT_ERR_MISMATCH, "world \"%s\": PE %d was given %d PEs, PE 0 was given %d", own->name,
                           said->pe, said->pes, own->pes);
    }
    if (said->pe < 0 || said->pe >= tree->pes) {
        return wefti_error(WEFT_ERR_MISMATCH, "world \"%s\": PE %d does not fit a world of %d PEs", own->name, said->pe,
                           own->pes);
    }
    if (said->pe == 0 || tracker->places[said->pe] != 0) {
        return wefti_error(WEFT_ERR_MISMATCH, "world \"%s\": PE %d came twice; give each PE a number of its own",
                           own->name, said->pe);
    }
    return WEFT_OK;
}

/* Send somebody away with the first offence. Who cannot take all of it at once stays until then. */
static void dismiss(const wefti_join_tracker *tracker, wefti_link *link)
{
    wefti_tree_failure failure = {.status = tracker->status};
    if (wefti_link_is_open(link)) {
        memcpy(failure.text, tracker->text, sizeof failure.text);
        if (!wefti_link_send(link, WEFTI_FRAME_FAILURE, 0, &failure, sizeof failure) || wefti_link_is_flushed(link)) {
            wefti_link_fini(link);
        }
    }
}

/* An error that this thread has just decided or taken over. */
static void note_offence(wefti_join_tracker *tracker, wefti_tree *tree, weft_status status)
{
    tracker->last_ns = wefti_os_now_ns();
    if (tracker->offences++ == 0) {
        tracker->status = status;
        (void)snprintf(tracker->text, sizeof tracker->text, "%s", weft_last_error());
        for (size_t i = 0; i < tree->star_count; i++) {
            dismiss(tracker, &tree->star[i]);
        }
    }
}

void wefti_join_tracker_refuse(wefti_join_tracker *tracker, wefti_tree *tree, weft_status status)
{
    note_offence(tracker, tree, status);
}

/* ---- arrivals ---- */

/* Whoever was given a larger size shows that more may come. */
static void expect_claimed(wefti_join_tracker *tracker, const wefti_tree *tree, int claimed_pes)
{
    if (claimed_pes > tracker->expected + 1 && claimed_pes <= tree->pes + EXCESS_MAX) {
        tracker->expected = claimed_pes - 1;
    }
}

/* A PE that agrees with PE 0 takes its place, with a connection or without one. */
static weft_status place(wefti_join_tracker *tracker, wefti_tree *tree, size_t at, const wefti_tree_hello *said)
{
    wefti_link *link = &tree->star[at];
    tracker->contacts[said->pe] = said->listens_at;
    if (wefti_parking_is_due(link)) {
        tracker->places[said->pe] = WEFTI_JOIN_TRACKER_PARKED;
        return wefti_parking_park(&tracker->parking, link, said->pe);
    }
    tracker->places[said->pe] = (int)at + 1;
    return WEFT_OK;
}

/* A parked PE is here again. */
static weft_status take_back(wefti_join_tracker *tracker, wefti_tree *tree, size_t at, const wefti_tree_hello *said)
{
    int pe = said->pe;
    tree->peer_timed_out |= said->is_overdue != 0;
    if (tracker->offences > 0) {
        wefti_parking_release(&tracker->parking, pe);
        dismiss(tracker, &tree->star[at]);
        return WEFT_OK;
    }
    if (!tracker->is_welcoming) {
        return wefti_parking_park(&tracker->parking, &tree->star[at], pe);
    }
    wefti_parking_release(&tracker->parking, pe);
    tracker->places[pe] = (int)at + 1;
    return wefti_join_tracker_welcome(tracker, tree, pe);
}

static weft_status take_new(wefti_join_tracker *tracker, wefti_tree *tree, size_t at, const wefti_tree_hello *said)
{
    tracker->arrived++;
    tracker->last_ns = wefti_os_now_ns();
    weft_status status = check(tracker, tree, said);
    if (status != WEFT_OK) {
        expect_claimed(tracker, tree, said->pes);
        note_offence(tracker, tree, status);
    } else if (tracker->offences == 0) {
        return place(tracker, tree, at, said);
    } else {
        tracker->places[said->pe] = (int)at + 1;
    }
    dismiss(tracker, &tree->star[at]);
    return WEFT_OK;
}

weft_status wefti_join_tracker_add(wefti_join_tracker *tracker, wefti_tree *tree, wefti_link *link,
                                   const wefti_tree_hello *said)
{
    size_t at;
    if (said->ticket != 0 && !wefti_parking_knows(&tracker->parking, said)) {
        wefti_link_fini(link); /* welcomed already, or never parked */
        return WEFT_OK;
    }
    weft_status status = wefti_tree_add_star(tree, link, &at);
    if (status != WEFT_OK) {
        wefti_link_fini(link);
        return status;
    }
    return said->ticket != 0 ? take_back(tracker, tree, at, said) : take_new(tracker, tree, at, said);
}

weft_status wefti_join_tracker_welcome(wefti_join_tracker *tracker, wefti_tree *tree, int pe)
{
    if (tracker->places[pe] == WEFTI_JOIN_TRACKER_PARKED) {
        return WEFT_OK;
    }
    wefti_link *link = &tree->star[tracker->places[pe] - 1];
    int parent = wefti_tree_parent(pe, tree->pes);
    int was_parked = tracker->is_welcoming;
    wefti_tree_welcome body = {{0}};
    if (parent != 0) {
        body.parent = tracker->contacts[parent];
    }
    if (!wefti_link_send(link, WEFTI_FRAME_WELCOME, 0, &body, sizeof body)) {
        return wefti_tree_lost_on_sending(tree, link);
    }
    link->is_leaving = was_parked && parent != 0;
    return WEFT_OK;
}

void wefti_join_tracker_receive(wefti_join_tracker *tracker, wefti_tree *tree)
{
    for (size_t i = 0; i < tree->star_count; i++) {
        wefti_link *link = &tree->star[i];
        wefti_link_event event;
        int is_ready = wefti_link_is_open(link) && wefti_link_ready(link, &tree->polls);
        if ((tracker->offences > 0 || link->is_leaving) && wefti_link_is_flushed(link)) {
            int is_leaving = link->is_leaving;
            wefti_link_fini(link); /* it has been told */
            link->is_leaving = is_leaving; /* its place is free */
        }
        if (!is_ready || tracker->offences > 0 || link->is_leaving) {
            continue;
        }
        weft_status status = wefti_tree_receive(tree, link, &event);
        if (status != WEFT_OK) {
            wefti_link_fini(link);
            note_offence(tracker, tree, status);
        }
    }
}

int wefti_join_tracker_is_complete(const wefti_join_tracker *tracker, const wefti_tree *tree)
{
    if (tracker->offences == 0) {
        return tracker->arrived >= tree->pes - 1;
    }
    return tracker->arrived >= tracker->expected && tracker->parking.count == 0;
}

/* ---- the result ---- */

/* Write the PEs that have not come. Returns 0 when there is no memory for it. */
static int mark_missing(const wefti_join_tracker *tracker, const wefti_tree *tree, unsigned char **missing)
{
    *missing = wefti_alloc_zeroed((size_t)tree->pes, 1);
    for (int pe = 1; pe < tree->pes && *missing != NULL; pe++) {
        (*missing)[pe] = tracker->places[pe] == 0;
    }
    return *missing != NULL;
}

void wefti_join_tracker_answer_waiting(const wefti_join_tracker *tracker, wefti_tree *tree)
{
    for (int pe = 1; pe < tree->pes; pe++) {
        if (tracker->places[pe] > 0) {
            (void)wefti_link_send(&tree->star[tracker->places[pe] - 1], WEFTI_FRAME_ALIVE, 0, NULL, 0);
        }
    }
}

weft_status wefti_join_tracker_name_parked(const wefti_join_tracker *tracker, wefti_tree *tree)
{
    unsigned char *away = wefti_alloc_zeroed((size_t)tree->pes, 1);
    if (away == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory to name the PEs that did not come");
    }
    for (int pe = 1; pe < tree->pes; pe++) {
        away[pe] = tracker->parking.tickets[pe] != 0;
    }
    weft_status status = wefti_tree_missing(tree, away, "its place");
    wefti_free(away);
    return status;
}

void wefti_join_tracker_warn(const wefti_join_tracker *tracker, const wefti_tree *tree)
{
    char list[WEFTI_PE_LIST_BYTES];
    unsigned char *missing;
    if (mark_missing(tracker, tree, &missing)) {
        (void)wefti_pe_list_text(missing, tree->pes, 1, list);
        wefti_log(WEFTI_LOG_WARN, "world \"%s\": PE 0 still waits for %s to come", tree->hello.name, list);
    }
    wefti_free(missing);
}

weft_status wefti_join_tracker_judge(const wefti_join_tracker *tracker, wefti_tree *tree)
{
    unsigned char *missing;
    if (tracker->offences > 0) {
        tree->names_culprit = 1;
        tree->received_from = NULL;
        return wefti_error_relay(tracker->status, tracker->text);
    }
    if (wefti_join_tracker_is_complete(tracker, tree)) {
        return WEFT_OK;
    }
    if (!mark_missing(tracker, tree, &missing)) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory to name the PEs that did not come");
    }
    weft_status status = wefti_tree_missing(tree, missing, "its creation");
    wefti_free(missing);
    return status;
}

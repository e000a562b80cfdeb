/* sim/inner/gone.h: scenes of PEs that end, leave or stand still at one moment, which tests and the campaign run. */
#ifndef SIM_INNER_GONE_H
#define SIM_INNER_GONE_H

#include <stdint.h>

/* X(name, PEs, PEs a link domain, over messages, variants, seeds of the test, how many of the variants the campaign
 * has, what it shows). A scene is a pe_main without an argument, of processes of one PE, on a simulator that jumps
 * ahead where all wait. The campaign has none that is dear. Where both of two leaders leave as the rest of a node ends,
 * one of some thousand seeds has nobody left who could tell of that. */
#define GONE_TABLE(X)                                                                                                  \
    X(end_at_once, 5, 2, 1, 5, 2, 5, "who ends at once is told of")                                                    \
    X(end_as_one_leaves, 6, 3, 1, 2, 60, 1, "who leaves tells of those that end")                                      \
    X(come_back, 6, 1, 1, 1, 20, 1, "who was silent is not believed")                                                  \
    X(leave_before_the_late, 3, 2, 1, 1, 2, 0, "who is late is waited for")                                            \
    X(leave_without_a_part, 3, 2, 1, 1, 2, 1, "who leaves without its part is told of")                                \
    X(leave_all_to_others, 3, 1, 1, 4, 2, 4, "who takes no part and leaves is told of")                                \
    X(leave_before_the_news, 3, 2, 1, 1, 2, 1, "who is lost is named before who leaves")                               \
    X(end_one_by_one, 4, 2, 1, 10, 1, 10, "all that end together are named")                                           \
    X(ask_in_turn, 4, 1, 1, 1, 2, 1, "who asks slowly for a lock is waited for")                                       \
    X(clear_without_home, 3, 1, 1, 4, 2, 4, "a lock whose queue ends at who is gone is not waited for")                \
    X(wait_for_who_stands, 3, 1, 1, 3, 1, 0, "an abort ends what is asked of who stands still")                        \
    X(call_otherwise, 3, 1, 0, 1, 4, 1, "who is in another call is told of")                                           \
    X(call_otherwise, 3, 1, 1, 1, 4, 1, "who is in another call over messages is told of")                             \
    X(leave_unasked, 2, 1, 1, 1, 4, 1, "who cannot be asked has gone on")                                              \
    X(allocate_beside_a_proposal, 3, 0, 0, 1, 4, 1, "what is only proposed is free soon")                              \
    X(keep_who_leaves, 2, 0, 0, 1, 10, 1, "who leaves is kept until it is replaced")                                   \
    X(take_the_place, 2, 0, 0, 1, 10, 1, "who leaves is kept until its place is taken")                                \
    X(leave_behind_another, 2, 0, 0, 1, 10, 1, "who is needed itself lets nobody go")                                  \
    X(connect_beyond_the_ended, 2, 0, 0, 1, 10, 1, "leaders connect beyond those that have ended")                     \
    X(connect_again, 2, 0, 0, 1, 10, 1, "who ends a connection too soon is tried again")                               \
    X(refuse, 2, 0, 0, 1, 10, 1, "who refuses when its node has lost another has ended")

#define GONE_DECLARE(name, pes, domain_pes, messages, variants, seeds, drawn, text) void gone_##name(void *argument);
GONE_TABLE(GONE_DECLARE)
#undef GONE_DECLARE

/* Before a run of such a variant. */
void gone_begin(int variant);
/* The part of it that is of watch.c. */
void watch_begin(void);
/* How often, in all runs, one that has ended was not known to one that could have been told. */
extern uint64_t gone_missed;

#endif

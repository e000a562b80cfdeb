/* sim/tree/scenes.h: what the PEs of a run do that form a tree or exchange over it, some of them played (fake_net.h).
 * Each scene is a pe_main without an argument, of so many PEs, on a simulator that jumps ahead where all wait; what is
 * wrong ends the run. */
#ifndef SIM_TREE_SCENES_H
#define SIM_TREE_SCENES_H

typedef enum scenes { SCENES_CONNECTION, SCENES_EXCHANGE, SCENES_FORMING } scenes;

/* X(name, of which test, PEs, what it shows) */
#define SCENE_TABLE(X)                                                                                                 \
    X(be_silent, CONNECTION, 2, "silent strangers go")                                                                 \
    X(be_silent_elsewhere, CONNECTION, 2, "who is silent elsewhere keeps nobody from PE 0")                            \
    X(be_foreign, CONNECTION, 2, "who is foreign is sent nothing")                                                     \
    X(be_unknown, CONNECTION, 2, "who is unknown is sent no proof")                                                    \
    X(come_and_go, CONNECTION, 2, "refusals are forgotten")                                                            \
    X(listen_no_more, CONNECTION, 2, "who finds nobody is told in time")                                               \
    X(end_unread, CONNECTION, 2, "what was said last is not reset")                                                    \
    X(hear_oneself, CONNECTION, 2, "own words are no answer")                                                          \
    X(ask_late, EXCHANGE, 2, "a question of a step that is over counts for no other")                                  \
    X(ask_and_go_on, EXCHANGE, 2, "a question ends with its step")                                                     \
    X(ask_beside_another, EXCHANGE, 3, "another's word does not make a question forgotten")                            \
    X(contribute_again, EXCHANGE, 2, "a contribution to a step that is over is refused")                               \
    X(stall_root, EXCHANGE, 2, "who was late itself looks before it blames")                                           \
    X(root_stands_still, EXCHANGE, 7, "all hear that PE 0 stands still")                                               \
    X(take_slowly, EXCHANGE, 2, "each stage asks anew")                                                                \
    X(offend, FORMING, 4, "the first offence is told to all")                                                          \
    X(ask_while_one_is_away, FORMING, 3, "PE 0 answers while one is away")                                             \
    X(come_to_a_parent, FORMING, 7, "only children are taken, once")                                                   \
    X(park_long, FORMING, 2, "who is parked says that it is late")                                                     \
    X(park_once, FORMING, 2, "who was parked waits no longer than others")                                             \
    X(seek_among_worlds, CONNECTION, 2, "PE 0 of another world turns nobody away")                                     \
    X(fail_to_answer, CONNECTION, 2, "who counts has an answer")                                                       \
    X(hang_up, CONNECTION, 2, "who has hung up does not count")                                                        \
    X(lack_descriptors_twice, CONNECTION, 2, "a lack of descriptors that is over is forgotten")                        \
    X(ask_twice, EXCHANGE, 3, "who is silent is asked once, and named in time")                                        \
    X(ask_for_the_result, EXCHANGE, 2, "who has asked its child asks its parent anew")                                 \
    X(child_goes, EXCHANGE, 2, "a child that goes is told of")                                                         \
    X(root_fails, EXCHANGE, 2, "what PE 0 says past the tree is heard")                                                \
    X(ask_as_the_last_comes, FORMING, 3, "a question ends as all have come")                                           \
    X(wait_for_a_parent, FORMING, 2, "who waits for a parent names it, or PE 0, in time")                              \
    X(wait_for_a_child, FORMING, 2, "a child has the time of its levels")                                              \
    X(claim_more, FORMING, 3, "who claims more is waited for, and no longer")                                          \
    X(park_beyond_a_word, FORMING, 2, "who comes back has more time for a word")                                       \
    X(come_back_twice, FORMING, 3, "who comes back twice is one")                                                      \
    X(stay_away, FORMING, 3, "who does not come back is named")                                                        \
    X(come_back_overdue, FORMING, 3, "who comes back overdue ends the wait")

#define SCENE_DECLARE(name, of, pes, text) void scene_##name(void *argument);
SCENE_TABLE(SCENE_DECLARE)
#undef SCENE_DECLARE

/* The main of a test: run each of its scenes over a number of seeds (run.c). */
int scenes_test(scenes of);

#endif

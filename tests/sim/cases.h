/* sim/cases.h: what a PE does in a run of the campaign. Each is a pe_main; its argument is a case_run. What is wrong
 * ends the run. */
#ifndef SIM_CASES_H
#define SIM_CASES_H

#include <stdint.h>

#include "weft.h"
#include "weft_ep.h"
#include "weft_sim.h"

/* What is decided by the run's seed before the run, equal on all PEs. */
typedef struct case_run {
    uint64_t seed;
    int pes;
    int messages; /* between link domains run the messages of networks */
    uint64_t board[2048]; /* zeroed: what the PEs of the run tell each other beside weft */
} case_run;

/* X(name, least PEs, most PEs, deadlock mode, what it does) */
#define CASE_TABLE(X)                                                                                                  \
    X(worlds, 1, 64, FAIL, "create and destroy worlds, some at the same time")                                         \
    X(heap, 1, 32, FAIL, "allocate and free, and write the blocks of others")                                          \
    X(teams, 1, 48, FAIL, "make teams of any shape, synchronise in them, destroy them")                                \
    X(barriers, 1, 64, FAIL, "puts before a barrier are seen after it; slow PEs")                                      \
    X(signals, 2, 24, FAIL, "put_signal, fence and p, atomics, in rings and all to all")                               \
    X(orders, 2, 10, FAIL, "what is written, completed or fenced in any way, and who must find it")                    \
    X(strided, 1, 12, FAIL, "strided and block accesses, contexts without a team, vectors, word by word")              \
    X(threads, 2, 12, FAIL, "threads of a PE put, ask and complete at once")                                           \
    X(gets, 2, 6, FAIL, "over messages, threads begin gets of any sizes, and any of them waits for all")               \
    X(floods, 2, 4, FAIL, "over messages, threads of PEs put and get more at one PE than it takes at once")            \
    X(meet, 1, 64, ADVANCE, "PEs, late ones among them, meet over bad sockets, beside strangers")                      \
    X(meet_wrong, 2, 24, ADVANCE, "a PE with another's number, size or secret: all are told whose")                    \
    X(meet_slowly, 2, 12, ADVANCE, "each PE takes its time in creation, about the deadline; who is late is named")     \
    X(meet_loss, 2, 24, ADVANCE, "a PE is absent, killed, stalled or cut off, or a call fails, while PEs meet")        \
    X(tree, 7, 7, ADVANCE, "PEs that are played ask twice, hang up, come back, come late, or say what is over")        \
    X(gone, 2, 6, ADVANCE, "PEs end, leave or stand still at one moment, between two steps of a call")                 \
    X(mismatch, 2, 24, ADVANCE, "calls that do not match are told on all PEs, and teams live on")                      \
    X(memory_failure, 2, 12, ADVANCE, "an allocation or system call fails while worlds, blocks and teams are made")    \
    X(lost_peer, 2, 16, ADVANCE, "a PE is killed; the others get a status before long")                                \
    X(no_deadline, 2, 16, ADVANCE, "a process is killed, or a PE is late, in a world without a deadline")              \
    X(late, 2, 12, ADVANCE, "PEs come to calls at about the deadline, or are stalled in them; all go on")              \
    X(late_locks, 2, 8, ADVANCE, "the same with locks: none is lost or held twice")                                    \
    X(hurried_locks, 4, 8, ADVANCE, "locks with a deadline of a few steps, while PEs stand still at any step")         \
    X(unanswered, 2, 6, ADVANCE, "over messages, a PE stands still or dies while all put, get, add and signal")        \
    X(statuses, 4, 8, ADVANCE, "over messages, some PEs are gone and some only late: each call tells which")           \
    X(silent, 3, 8, ADVANCE, "over messages, a host is silent for a while; nobody else is taken to be gone")           \
    X(abort, 2, 24, FAIL, "a PE aborts the world; the others are told")                                                \
    X(coll, 1, 12, FAIL, "collectives against a serial reference, in place and not, on several teams")                 \
    X(halves, 2, 12, FAIL, "collectives of two teams at once, or of one beside the memory of others")                  \
    X(coll_wide, 33, 40, FAIL, "the same, a few calls on many PEs")                                                    \
    X(run_ahead, 1, 12, FAIL, "a root of broadcasts waits for nobody")                                                 \
    X(locks, 1, 16, FAIL, "locks exclude, and are free at the end")                                                    \
    X(ep, 1, 16, FAIL, "expert parallelism against the serial reference, slow consumers")                              \
    X(ep_mismatch, 2, 12, FAIL, "a rank gives another config or plan, or limits grow; all are told, and go on")        \
    X(ep_late, 2, 12, ADVANCE, "a rank stands still at any moment of a step; who gives up names it")                   \
    X(ep_lost, 2, 12, ADVANCE, "a rank is killed at any moment of an update; the others mask it and go on")            \
    X(ep_forwarder_lost, 2, 12, ADVANCE, "the same at any moment of steps between domains, a forwarder or not")        \
    X(ep_rejoin, 3, 12, ADVANCE, "a rank is given up in steps between domains, comes late, and is back")               \
    X(ep_masks, 2, 12, ADVANCE, "a rank is killed or late at any moment of steps; the others go on without it")        \
    X(ep_drift, 2, 8, ADVANCE, "ranks that mask make drawn steps in halves, one of them late; who has what of whom")   \
    X(ep_pairs, 1, 8, FAIL, "two pairs of halves in any order, beside what is refused; rows and sums known")           \
    X(ep_differ, 2, 12, FAIL, "a rank makes another call than the others, or rows overflow; what is left of routes")   \
    X(ep_kept, 2, 12, ADVANCE, "ranks, or a domain, late for any call are kept, and are in the next one")              \
    X(ep_passed, 2, 12, ADVANCE, "a rank late for any call, when all have masked it and gone on, does likewise")       \
    X(ep_wide, 24, 64, FAIL, "the same, a few calls on many PEs")

#define CASE_DECLARE(name, least, most, mode, text) void case_##name(void *argument);
CASE_TABLE(CASE_DECLARE)
#undef CASE_DECLARE

/* The shape of a run of the case `gone`, which is drawn with what happens in it (played.c). */
void shape_gone(case_run *run, weft_sim_config *config);

/* ---- for the cases (part.c) ---- */

/* The call must succeed. */
void must(weft_status status, const char *what);
#define MUST(call) must((call), #call)

/* A world of all PEs. */
weft_world *case_world(const char *name);

/* Which of a group's ranks are masked, as bits; at most 64 ranks. */
uint64_t masked_ranks(const weft_ep *ep, int ranks);

/* What is in use of this PE's heap, whose records are seen to be sound; while no thread of it allocates. */
uint64_t heap_used(const weft_world *world);

/* Free memory of the world's heap holds what a program left there: line after line the next number. */
void soil_heap(weft_world *world, uint64_t *common);

/* Numbers that are equal on all PEs. */
uint64_t common_next(uint64_t *state);
int common_below(uint64_t *state, int bound);

/* The rank that PE `number` has in a team of all PEs that half of the runs turn round, or the PE that this rank is; and
 * that team. Collective, where it is made. */
int turned(const case_run *run, int number);
weft_team *turned_team(const case_run *run, weft_world *world);

/* Sleep in one of `one_in` calls, for at most `ns`. */
void dawdle(int one_in, uint64_t ns);

/* Whether the members of a team meet and agree by counting: then all come to the same end of a call (late.c). */
int meets_by_count(weft_team *team);

/* A bit for each PE of a list such as " 0-2, 5"; *end: what follows it (late.c). */
uint64_t named_pes(const char *text, const char **end);

/* The error says who has a lock: where one has held it all the time, that one. `before`, `after`: what holders say, the
 * turn and in the low 16 bits the PE plus 1, before and after the call; 0: nobody (late.c). */
void check_lock_holder(uint64_t before, uint64_t after);

/* A value for WEFT_COLL, which prefers drawn algorithms, of COLL_WAYS_BYTES at most (coll.c). */
void draw_algorithms(uint64_t seed, char *text);

/* What PE `from` puts to PE `to` in round `round`. */
uint64_t case_value(int from, int to, uint64_t round);

#endif

/* Ready, rows and done of src/ep, for PES ranks and CALLS dispatches on a cached route, with explicit store buffers.
 *
 *   src/ep                                              here
 *   wefti_ep_call_post(call, rank)                      store(READY(rank, me), call, 1)
 *   wefti_ep_arrivals_next, of the call lines           memory[READY(me, rank)] == call, ranks in any order
 *   send_row to a near rank                             store(ROW(rank, me), call, 0)
 *   wefti_ep_call_done(call, rank)                      store(DONE(rank, me), call, 1)
 *   wefti_ep_call_await_done                            memory[DONE(me, rank)] == call, for all
 *   the caller's experts read the rows                  the assertions: one row a source, of this call
 *   wefti_ep_call_end                                   the next turn of the loop
 *
 * Checked: when a call ends on a rank its rows are those of this call, neither missing nor already overwritten by a
 * rank that is a call ahead, until it calls again; and all calls end. Bugs that the assertion must find:
 * -DDONE_RELAXED (done may overtake rows), -DREADY_SKIPPED (rows are sent without waiting for the ready word),
 * -DDONE_NOT_AWAITED. Not modelled: counts, shapes that differ, staging, expert-major replicas, far ranks (put_signal
 * behind a fence gives the order that release gives here), old values read by loads that are no acquire. */
#ifndef PES
#define PES 2
#endif
#ifndef CALLS
#define CALLS 2
#endif
#ifndef BUFFER
#define BUFFER 4
#endif
#define READY(at, from) ((at) * PES + (from))
#define ROW(at, from) (PES * PES + (at) * PES + (from))
#define DONE(at, from) (2 * PES * PES + (at) * PES + (from))
#define PLACES (3 * PES * PES)
#ifdef DONE_RELAXED
#define DONE_RELEASE 0
#else
#define DONE_RELEASE 1
#endif

#include "buffers.pml"

inline send(rank)
{
    store(me, ROW(rank, me), call, 0);
    store(me, DONE(rank, me), call, DONE_RELEASE);
    sent = sent | (1 << rank)
}

proctype rank_of(byte me)
{
    byte call;
    byte rank;
    byte sent; /* a bit a rank */
    for (call : 1 .. CALLS) {
        for (rank : 0 .. PES - 1) {
            if
            :: rank != me -> store(me, READY(rank, me), call, 1)
            :: else
            fi
        }
        sent = 1 << me;
        do
        :: sent == (1 << PES) - 1 -> break
#ifdef READY_SKIPPED
        :: !(sent & 1) -> send(0)
        :: !(sent & 2) -> send(1)
#if PES > 2
        :: !(sent & 4) -> send(2)
#endif
#else
        :: !(sent & 1) && memory[READY(me, 0)] == call -> send(0)
        :: !(sent & 2) && memory[READY(me, 1)] == call -> send(1)
#if PES > 2
        :: !(sent & 4) && memory[READY(me, 2)] == call -> send(2)
#endif
#endif
        od;
#ifndef DONE_NOT_AWAITED
        for (rank : 0 .. PES - 1) {
            rank == me || memory[DONE(me, rank)] == call
        }
#endif
        /* The experts look at the rows, one by one. */
        for (rank : 0 .. PES - 1) {
            assert(rank == me || memory[ROW(me, rank)] == call)
        }
        rank = 0;
        sent = 0
    }
}

init
{
    byte pe;
    atomic {
        for (pe : 0 .. PES - 1) {
            run rank_of(pe);
            run lander(pe)
        }
    }
}

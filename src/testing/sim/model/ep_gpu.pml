/* The flags of src/cuda/ep, between two ranks and inside a block, with loads that may find old values.
 *
 * A store to a place appends a value; here a place's values are the numbers of calls, so that a value says which
 * store it is. A thread has a view: of each place the oldest value that it may still load. A store by release gives
 * its thread's view along, a relaxed one the view at the thread's last fence; a load by acquire takes over what the
 * store gave, after a relaxed load the next fence does. A barrier of a warp joins its lanes' views; votes and
 * shuffles join nothing; a kernel begins with the views of all before it on its stream.
 *
 *   src/cuda/ep                                              here
 *   ep_send_own_choices of the kernel before, to a peer      store(KERNEL_BEFORE, OWN, ..)
 *   ep_post_header: fence, relaxed stores                    fence(HEADER_WARP), store(.., HEADER, .., 0)
 *   ep_wait_headers: relaxed loads, fence, block barrier     await(SENDER_A, HEADER), fence, meet
 *   records or scales by other lanes, warp barrier, release  store(SENDER_B, ROW), meet, store(SENDER_A, READY, .., 1)
 *   ep_await_coming: acquire, warp barrier, loads            await(RECEIVER_A, READY), meet, load(RECEIVER_B, ROW)
 *   ep_wait_headers_once: the last warp, and another         store(LAST_B, COUNT) .. load(OTHER_B, COUNT)
 *   ep_offer_units, ep_next_other_unit                       store(BLOCK_A, UNIT) .. load(THIEF_B, UNIT)
 *   ep_many_meet: barrier, fence, a word a block, fence      fence(BLOCK_A), store(.., MET_A, .., 0), await, fence
 *   ep_many_exchange: DONE, RETURNED                         store(BLOCK_A2, DONE, .., 1) .. load(PEER_B, ROW_B)
 *   bulk stores of a combine, values of other lanes          store(BULK, SUM), store(LANE, VALUE)
 *   ep_pushed: barrier, fence, several words                 meet, fence(PUSHER), store(.., WORD_1), store(.., WORD_2)
 *   ep_verdict: acquired words, barrier, fence, the verdict  meet, fence(FIRST_A), store(.., VERDICT) .. load(OTHERS_B)
 *   rows that leave with send, by parity; recv's headers     store(EARLY_B, ROW_..), store(EARLY_A, READY_.., .., 1) ..
 *                                                            await(EARLY_A, HEADER_..): behind, not before
 *   ep_clear_values, barrier, fence, ep_post_header          clears, header_warp, peer: with a store buffer
 *
 * `meta_ready`, `rows_ready` of a dispatch and of sums by expert, `returned` and low-latency words are all what READY is
 * here: several lanes store, meet, one releases; one acquires, they meet, all read. So it is with the words of what
 * leaves with send, but that the sender has the receiver's header of the call before, and not that of this one (EARLY);
 * and with `meta_ready` of records that a rank completes for its own warps.
 *
 * Checked: who reads what a flag has announced finds this call's, neither older nor newer. WITHOUT=NAME leaves one
 * order out, and each must be missed. Stores do not commit late but where two threads store to one place (CLEARED).
 * Not modelled: scopes; and loads keep their order, so that a header's relaxed load is before the stores that go to
 * the address it found, as their address depends on it. */
#ifndef CALLS
#define CALLS 2
#endif
#define READY_RELEASE 1
#define READY_ACQUIRE 2
#define SENDER_MEETS 3
#define RECEIVER_MEETS 4
#define HEADER_FENCE 5
#define HEADER_ACQUIRE 6
#define HEADER_AWAITED 7
#define LAST_MEETS 8
#define LAST_FENCE 9
#define OTHER_FENCE 10
#define OTHER_MEETS 11
#define LAST_FENCES_BEHIND_MEETING 12
#define OFFER_RELEASE 13
#define THIEF_FENCE 14
#define THIEF_MEETS 15
#define BLOCK_MEETS 16
#define BLOCK_MEETS_OVER_HEADERS 17
#define MEET_MEETS 18
#define MEET_FENCE 19
#define MEET_ACQUIRE 20
#define MEET_MEETS_BEHIND 21
#define DONE_RELEASE 22
#define DONE_ACQUIRE 23
#define DONE_MEETS 24
#define BULK_AWAITED 25
#define BULK_PROXY_FENCE 26
#define PUSH_MEETS 27
#define PUSH_FENCE 28
#define PUSH_ACQUIRE 29
#define SUM_MEETS 30
#define VERDICT_MEETS 31
#define VERDICT_FENCE 32
#define VERDICT_ACQUIRE 33
#define VERDICT_MEETS_BEHIND 34
#define CLEAR_MEETS 35
#define CLEAR_FENCE 36
#define EARLY_RELEASE 37
#define EARLY_ACQUIRE 38
#define EARLY_MEETS 39
#define EARLY_MEETS_BEHIND 40
#define EARLY_HEADER 41
#define EARLY_PARITY 42
#ifndef WITHOUT
#define WITHOUT 0
#endif
#define HAS(order) (WITHOUT != order)

#ifdef INSIDE /* a rank: places and threads */
#define COUNT 0
#define HERE 1
#define UNIT 2
#define NEXT 3
#define PLACES 4
#define LAST_A 0
#define LAST_B 1
#define OTHER_A 2
#define OTHER_B 3
#define BLOCK_A 4
#define BLOCK_B 5
#define THIEF_A 6
#define THIEF_B 7
#define THREADS 8
#elif defined(MANY) /* two blocks of a rank of many, and the block of another rank */
#define ROW_A 0
#define ROW_B 1
#define MET_A 2
#define MET_B 3
#define DONE 4
#define PLACES 5
#define BLOCK_A 0 /* a block's thread 0 */
#define BLOCK_A2 1 /* and another */
#define BLOCK_B 2
#define BLOCK_B2 3
#define PEER_A 4
#define PEER_B 5
#define THREADS 6
#elif defined(PUSHES) /* a warp that pushes, with its bulk copies, and one that adds up */
#define SUM 0
#define VALUE 1
#define WORD_1 2
#define WORD_2 3
#define PLACES 4
#define PUSHER 0
#define LANE 1
#define BULK 2
#define ADDER_A 3
#define ADDER_B 4
#define THREADS 5
#elif defined(VERDICTS) /* a source, the block that decides, another */
#define WORD 0
#define VERDICT 1
#define PLACES 2
#define SOURCE 0
#define FIRST_A 1
#define FIRST_B 2
#define OTHERS_A 3
#define OTHERS_B 4
#define THREADS 5
#elif defined(EARLY) /* between ranks, of what leaves with send: places by parity */
#define ROW_0 0
#define ROW_1 1
#define READY_0 2
#define READY_1 3
#define HEADER_0 4
#define HEADER_1 5
#define PLACES 6
#define LATE_A 0 /* of the rank that receives */
#define LATE_B 1
#define EARLY_A 2 /* of the rank that sends */
#define EARLY_B 3
#define THREADS 4
#elif !defined(CLEARED) /* between ranks */
#define OWN 0
#define HEADER 1
#define ROW 2
#define READY 3
#define PLACES 4
#define KERNEL_BEFORE 0
#define HEADER_WARP 1
#define RECEIVER_A 2
#define RECEIVER_B 3
#define SENDER_A 4
#define SENDER_B 5
#define THREADS 6
#endif

#ifndef CLEARED
byte last[PLACES]; /* the newest value */
byte view[THREADS * PLACES];
byte pending[THREADS * PLACES]; /* what the next fence takes over */
byte fenced[THREADS * PLACES]; /* the view at the last fence */
byte given[PLACES * (CALLS + 1) * PLACES]; /* with each value */
#define AT(thread, place) ((thread) * PLACES + (place))
#define GIVEN(place, value, with) (((place) * (CALLS + 1) + (value)) * PLACES + (with))
#define RAISE(to, by) to = (to > by -> to : by)

inline store(thread, place, value, is_release)
{
    d_step {
        last[place] = value;
        view[AT(thread, place)] = value;
        for (i : 0 .. PLACES - 1) {
            given[GIVEN(place, value, i)] = (is_release -> view[AT(thread, i)] : fenced[AT(thread, i)])
        }
        given[GIVEN(place, value, place)] = value;
        i = 0
    }
}

/* Any value that the thread may still find, into `found`. */
inline load(thread, place, is_acquire)
{
    atomic {
        found = view[AT(thread, place)];
        do
        :: found < last[place] -> found++
        :: break
        od;
        view[AT(thread, place)] = found;
        for (i : 0 .. PLACES - 1) {
            RAISE(pending[AT(thread, i)], given[GIVEN(place, found, i)]);
            if
            :: is_acquire -> RAISE(view[AT(thread, i)], given[GIVEN(place, found, i)])
            :: else
            fi
        }
        i = 0
    }
}

inline await(thread, place, value, is_acquire)
{
    do
    :: load(thread, place, is_acquire);
       if
       :: found == value -> break
       :: else -> last[place] > view[AT(thread, place)] || last[place] == value
       fi
    od
}

inline fence(thread)
{
    d_step {
        for (i : 0 .. PLACES - 1) {
            RAISE(view[AT(thread, i)], pending[AT(thread, i)]);
            fenced[AT(thread, i)] = view[AT(thread, i)]
        }
        i = 0
    }
}

inline meet(one, other)
{
    d_step {
        for (i : 0 .. PLACES - 1) {
            RAISE(view[AT(one, i)], view[AT(other, i)]);
            RAISE(view[AT(other, i)], view[AT(one, i)])
        }
        i = 0
    }
}

inline meet_if(order, one, other)
{
    if
    :: HAS(order) -> meet(one, other)
    :: else
    fi
}

inline fence_if(order, thread)
{
    if
    :: HAS(order) -> fence(thread)
    :: else
    fi
}

#endif

#ifdef INSIDE
/* The last warp of a low-latency block reads the call headers, and tells another warp. */
proctype last_warp()
{
    byte call;
    byte i;
    for (call : 1 .. CALLS) {
        store(LAST_B, COUNT, call, 0);
        if
        :: WITHOUT == LAST_FENCES_BEHIND_MEETING -> fence(LAST_A)
        :: else
        fi;
        meet_if(LAST_MEETS, LAST_A, LAST_B);
        if
        :: HAS(LAST_FENCE) && WITHOUT != LAST_FENCES_BEHIND_MEETING -> fence(LAST_A)
        :: else
        fi;
        store(LAST_A, HERE, call, 0);
        last[NEXT] == call /* the next call comes when this one has ended */
    }
}

proctype other_warp()
{
    byte call;
    byte found;
    byte i;
    for (call : 1 .. CALLS) {
        await(OTHER_A, HERE, call, 0);
        fence_if(OTHER_FENCE, OTHER_A);
        meet_if(OTHER_MEETS, OTHER_A, OTHER_B);
        load(OTHER_B, COUNT, 0);
        assert(found == call);
        /* A block whose units another takes. */
        store(BLOCK_A, UNIT, call, 0);
        meet_if(BLOCK_MEETS, BLOCK_A, BLOCK_B);
        if
        :: HAS(OFFER_RELEASE) -> store(BLOCK_B, NEXT, call, 1)
        :: else -> store(BLOCK_B, NEXT, call, 0)
        fi;
        await(THIEF_A, NEXT, call, 0);
        fence_if(THIEF_FENCE, THIEF_A);
        meet_if(THIEF_MEETS, THIEF_A, THIEF_B);
        load(THIEF_B, UNIT, 0);
        assert(found == call)
    }
}

init
{
    atomic {
        run last_warp();
        run other_warp()
    }
}
#elif defined(MANY)
byte ended[3]; /* the last call that each has read */

/* The blocks of a rank store, meet, and read what the other stored; the first tells another rank. */
inline meet_blocks(thread, own, other)
{
    fence_if(MEET_FENCE, thread);
    store(thread, own, call, 0);
    await(thread, other, call, 0);
    fence_if(MEET_ACQUIRE, thread)
}

proctype block_a()
{
    byte call;
    byte found;
    byte i;
    for (call : 1 .. CALLS) {
        store(BLOCK_A2, ROW_A, call, 0);
        meet_if(MEET_MEETS, BLOCK_A, BLOCK_A2);
        meet_blocks(BLOCK_A, MET_A, MET_B);
        meet_if(MEET_MEETS_BEHIND, BLOCK_A, BLOCK_A2);
        load(BLOCK_A2, ROW_B, 0);
        assert(found == call);
        if
        :: HAS(DONE_RELEASE) -> store(BLOCK_A2, DONE, call, 1)
        :: else -> store(BLOCK_A2, DONE, call, 0)
        fi;
        ended[0] = call;
        ended[1] >= call && ended[2] >= call; /* the next call */
        meet(BLOCK_A, BLOCK_A2)
    }
}

proctype block_b()
{
    byte call;
    byte found;
    byte i;
    for (call : 1 .. CALLS) {
        store(BLOCK_B2, ROW_B, call, 0);
        meet_if(MEET_MEETS, BLOCK_B, BLOCK_B2);
        meet_blocks(BLOCK_B, MET_B, MET_A);
        meet_if(MEET_MEETS_BEHIND, BLOCK_B, BLOCK_B2);
        load(BLOCK_B2, ROW_A, 0);
        assert(found == call);
        ended[1] = call;
        ended[0] >= call && ended[2] >= call;
        meet(BLOCK_B, BLOCK_B2)
    }
}

proctype peer()
{
    byte call;
    byte found;
    byte i;
    for (call : 1 .. CALLS) {
        if
        :: HAS(DONE_ACQUIRE) -> await(PEER_A, DONE, call, 1)
        :: else -> await(PEER_A, DONE, call, 0)
        fi;
        meet_if(DONE_MEETS, PEER_A, PEER_B);
        load(PEER_B, ROW_A, 0);
        assert(found == call);
        load(PEER_B, ROW_B, 0);
        assert(found == call);
        ended[2] = call;
        ended[0] >= call && ended[1] >= call
    }
}

init
{
    atomic {
        run block_a();
        run block_b();
        run peer()
    }
}
#elif defined(PUSHES)
byte issued;
byte stored;
byte added;

/* What copies in bulk: beside the thread that asked for it. */
proctype bulk()
{
    byte call;
    byte i;
    for (call : 1 .. CALLS) {
        issued == call;
        store(BULK, SUM, call, 0);
        stored = call
    }
}

proctype pusher()
{
    byte call;
    byte i;
    for (call : 1 .. CALLS) {
        issued = call;
        store(LANE, VALUE, call, 0);
        if
        :: HAS(BULK_AWAITED) -> stored == call
        :: else
        fi;
        if
        :: HAS(BULK_PROXY_FENCE) -> meet(PUSHER, BULK)
        :: else
        fi;
        meet_if(PUSH_MEETS, PUSHER, LANE);
        fence_if(PUSH_FENCE, PUSHER);
        store(PUSHER, WORD_1, call, 0);
        store(PUSHER, WORD_2, call, 0);
        added == call && stored == call; /* the next call */
        meet(PUSHER, LANE)
    }
}

proctype adder()
{
    byte call;
    byte found;
    byte i;
    for (call : 1 .. CALLS) {
        if
        :: HAS(PUSH_ACQUIRE) -> await(ADDER_A, WORD_2, call, 1)
        :: else -> await(ADDER_A, WORD_2, call, 0)
        fi;
        meet_if(SUM_MEETS, ADDER_A, ADDER_B);
        load(ADDER_B, SUM, 0);
        assert(found == call);
        load(ADDER_B, VALUE, 0);
        assert(found == call);
        added = call
    }
}

init
{
    atomic {
        run bulk();
        run pusher();
        run adder()
    }
}
#elif defined(VERDICTS)
byte followed;

proctype source()
{
    byte call;
    byte i;
    for (call : 1 .. CALLS) {
        store(SOURCE, WORD, call, 0);
        followed == call
    }
}

/* A thread has seen the source's word; after the block barrier another writes the verdict. */
proctype first_block()
{
    byte call;
    byte found;
    byte i;
    for (call : 1 .. CALLS) {
        await(FIRST_B, WORD, call, 1);
        meet_if(VERDICT_MEETS, FIRST_A, FIRST_B);
        fence_if(VERDICT_FENCE, FIRST_A);
        store(FIRST_A, VERDICT, call, 0);
        followed == call
    }
}

/* A block that finds the verdict loads the source's word, which it has not seen. */
proctype other_block()
{
    byte call;
    byte found;
    byte i;
    for (call : 1 .. CALLS) {
        await(OTHERS_A, VERDICT, call, 0);
        fence_if(VERDICT_ACQUIRE, OTHERS_A);
        meet_if(VERDICT_MEETS_BEHIND, OTHERS_A, OTHERS_B);
        load(OTHERS_B, WORD, 0);
        assert(found == call);
        followed = call
    }
}

init
{
    atomic {
        run source();
        run first_block();
        run other_block()
    }
}
#elif defined(EARLY)
#define PARITY(call) (WITHOUT == EARLY_PARITY -> 0 : (call) % 2)

proctype receiver()
{
    byte call;
    byte found;
    byte i;
    for (call : 1 .. CALLS) {
        fence(LATE_A);
        store(LATE_A, HEADER_0 + call % 2, call, 0); /* in send; its kernels before have ended */
        if
        :: HAS(EARLY_ACQUIRE) -> await(LATE_A, READY_0 + PARITY(call), call, 1)
        :: else -> await(LATE_A, READY_0 + PARITY(call), call, 0)
        fi;
        meet_if(EARLY_MEETS_BEHIND, LATE_A, LATE_B);
        load(LATE_B, ROW_0 + PARITY(call), 0);
        assert(found == call);
        meet(LATE_A, LATE_B) /* the next kernel */
    }
}

proctype sender()
{
    byte call;
    byte found;
    byte i;
    for (call : 1 .. CALLS) {
        store(EARLY_B, ROW_0 + PARITY(call), call, 0);
        meet_if(EARLY_MEETS, EARLY_A, EARLY_B);
        if
        :: HAS(EARLY_RELEASE) -> store(EARLY_A, READY_0 + PARITY(call), call, 1)
        :: else -> store(EARLY_A, READY_0 + PARITY(call), call, 0)
        fi;
        if
        :: HAS(EARLY_HEADER) -> await(EARLY_A, HEADER_0 + call % 2, call, 0) /* in recv, before the next call's rows */
        :: else
        fi;
        meet(EARLY_A, EARLY_B)
    }
}

init
{
    atomic {
        run receiver();
        run sender()
    }
}
#elif defined(CLEARED)
/* Values to be summed are cleared by all threads of the receiver, and stored by a peer that has its header. */
#define NONE 255
byte value = NONE;
byte header;
byte ready;
bool buffered; /* a clearing store that has not committed */
byte cleared; /* the last call in which it was made */

proctype commits()
{
end:
    do
    :: atomic { buffered -> value = 0; buffered = false }
    od
}

proctype clears()
{
    byte call;
    for (call : 1 .. CALLS) {
        buffered = true;
        cleared = call;
        ready == call; /* its values are read, and the next kernel begins */
        !buffered;
        assert(value == call);
        header = 0
    }
}

proctype header_warp()
{
    byte call;
    for (call : 1 .. CALLS) {
        if
        :: HAS(CLEAR_MEETS) -> cleared == call
        :: else
        fi;
        if
        :: HAS(CLEAR_FENCE) -> !buffered
        :: else
        fi;
        header = call;
        ready == call && header == 0
    }
}

proctype peer()
{
    byte call;
    for (call : 1 .. CALLS) {
        header == call;
        value = call;
        ready = call
    }
}

init
{
    atomic {
        run commits();
        run clears();
        run header_warp();
        run peer()
    }
}
#else
/* The rank that receives. */
proctype receiver()
{
    byte call;
    byte found;
    byte i;
    for (call : 1 .. CALLS) {
        store(KERNEL_BEFORE, OWN, call, 0);
        meet(KERNEL_BEFORE, HEADER_WARP); /* the stream's order */
        fence_if(HEADER_FENCE, HEADER_WARP);
        store(HEADER_WARP, HEADER, call, 0);
        if
        :: HAS(READY_ACQUIRE) -> await(RECEIVER_A, READY, call, 1)
        :: else -> await(RECEIVER_A, READY, call, 0)
        fi;
        meet_if(RECEIVER_MEETS, RECEIVER_A, RECEIVER_B);
        load(RECEIVER_B, ROW, 0);
        assert(found == call);
        meet(RECEIVER_A, RECEIVER_B);
        meet(RECEIVER_B, KERNEL_BEFORE) /* the next kernel */
    }
}

/* The rank that sends. */
proctype sender()
{
    byte call;
    byte found;
    byte i;
    for (call : 1 .. CALLS) {
        if
        :: HAS(HEADER_AWAITED) ->
               await(SENDER_A, HEADER, call, 0);
               fence_if(HEADER_ACQUIRE, SENDER_A);
               meet_if(BLOCK_MEETS_OVER_HEADERS, SENDER_A, SENDER_B);
               load(SENDER_B, OWN, 0);
               assert(found == call)
        :: else
        fi;
        store(SENDER_B, ROW, call, 0);
        meet_if(SENDER_MEETS, SENDER_A, SENDER_B);
        if
        :: HAS(READY_RELEASE) -> store(SENDER_A, READY, call, 1)
        :: else -> store(SENDER_A, READY, call, 0)
        fi
    }
}

init
{
    atomic {
        run receiver();
        run sender()
    }
}
#endif

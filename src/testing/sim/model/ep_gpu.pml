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
 *
 * Checked: who reads what a flag has announced finds this call's, neither older nor newer. WITHOUT=NAME leaves one
 * order out, and each must be missed. Not modelled: stores that commit late to a place that another writes (cleared
 * values), the proxy of bulk copies, scopes; and loads keep their order, so that a header's relaxed load is before
 * the stores that go to the address it found, as their address depends on it. */
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
#else /* between ranks */
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

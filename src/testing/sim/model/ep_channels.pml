/* The two channels by which a rank sends another's domain its rows (docs/ep-gpu-domains.md), in CALLS calls of 1 or 2
 * chunks each: the first goes by channel 0 and says how many there are, the second, if there is one, by channel 1.
 * Chunks of a channel are counted through all calls, so that the sender may be calls ahead, and channel 1 may have a
 * chunk of a later call while the receiver looks for one of this. A flag says the chunk's number and its call. The
 * proxy, which comes later, moves chunks and credits in any order.
 *
 * Bugs: ANY_CALL, a flag says its number alone; FIRST_SEEN, a channel takes the total from its own first chunk only. */
#define SLOTS 2
#define AT(channel, number) ((channel) * SLOTS + (number) % SLOTS)
#define NOT_KNOWN 0

#ifdef ANY_CALL
#define IS_MINE(channel) (flag[AT(channel, taken[channel])] == taken[channel] + 1)
#else
#define IS_MINE(channel)                                                                                               \
    (flag[AT(channel, taken[channel])] == taken[channel] + 1 && flag_call[AT(channel, taken[channel])] == call + 1)
#endif

byte chunk[2 * SLOTS]; /* at the receiver: its call and place in it */
byte total_of[2 * SLOTS];
byte flag[2 * SLOTS];
byte flag_call[2 * SLOTS];
byte credit[2]; /* at the sender */
byte drawn[CALLS];

/* A chunk or credit under way, which nothing holds up. */
proctype mover(bit channel; byte number; byte call; byte total)
{
    chunk[AT(channel, number)] = 2 * call + channel;
    total_of[AT(channel, number)] = total;
    atomic {
        flag[AT(channel, number)] = number + 1;
        flag_call[AT(channel, number)] = call + 1
    }
}

proctype sender()
{
    byte sent[2];
    byte call = 0;
    byte total;
    do
    :: call < CALLS ->
           if
           :: total = 1
           :: total = 2
           fi;
           drawn[call] = total;
           sent[0] - credit[0] < SLOTS;
           run mover(0, sent[0], call, total);
           sent[0]++;
           if
           :: total == 2 -> sent[1] - credit[1] < SLOTS;
                  run mover(1, sent[1], call, total);
                  sent[1]++
           :: else
           fi;
           call++
    :: else -> break
    od
}

proctype receiver()
{
    byte taken[2];
    byte call = 0;
    byte total;
    bit done[2];
    do
    :: call < CALLS ->
           total = NOT_KNOWN;
           done[0] = 0;
           done[1] = 0;
           do
           :: !done[0] && IS_MINE(0) ->
                  assert(chunk[AT(0, taken[0])] == 2 * call);
                  total = total_of[AT(0, taken[0])];
                  taken[0]++;
                  credit[0] = taken[0];
                  done[0] = 1
           :: !done[1] && IS_MINE(1) ->
                  assert(chunk[AT(1, taken[1])] == 2 * call + 1);
                  taken[1]++;
                  credit[1] = taken[1];
                  done[1] = 1
#ifndef FIRST_SEEN
           :: !done[1] && total == 1 -> done[1] = 1
#endif
           :: done[0] && done[1] -> break
           od;
           assert(total == drawn[call]);
           call++
    :: else -> break
    od
}

init {
    atomic {
        run sender();
        run receiver()
    }
}

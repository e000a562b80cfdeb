/* The rings between two ranks of different domains of a group on GPUs (docs/ep-gpu-domains.md): both send rows and take the
 * other's, outward and then back, in each of CALLS calls, CHUNKS chunks each way. Chunks are counted through all calls,
 * so a rank may be a crossing ahead of the other. A kernel fills a slot of its own and posts a descriptor; the proxy,
 * which comes later, copies the chunk to the other's slot and then sets its flag; credits go by the proxy, too. A rank
 * that gives up, when nothing else can happen, has to have met one that is gone.
 *
 * Bugs: SIGNAL_EARLY, the flag before the chunk; CREDIT_EARLY, the slot is given back before it has been read;
 * ONE_TOO_MANY, chunks as if there was a slot more; SENDS_FIRST, nothing is taken while something is left to be sent;
 * STARTS_ANEW, numbers begin at 0 in each crossing. GOES: rank 1 may end at any time, as whoever forwards may. */
#define AT(rank, back, slot) ((((rank) * 2 + (back)) * SLOTS) + (slot))
#define END(rank, back) ((rank) * 2 + (back))
#define OTHER (1 - me)

#ifdef ONE_TOO_MANY
#define ROOM (SLOTS + 1)
#else
#define ROOM SLOTS
#endif

byte filled[4 * SLOTS]; /* in this rank's memory, by its kernel */
byte came[4 * SLOTS]; /* by the other's proxy */
byte flag[4 * SLOTS];
byte credit[4];
bit is_gone;

mtype = {MOVE, CREDIT};
chan ring0 = [4] of {mtype, bit, byte}; /* what kernels have posted */
chan ring1 = [4] of {mtype, bit, byte};

proctype proxy(bit me; chan ring)
{
    bit back;
    byte number;
end:
    do
    :: ring ? MOVE, back, number ->
#ifdef SIGNAL_EARLY
           flag[AT(OTHER, back, number % SLOTS)] = number + 1;
           came[AT(OTHER, back, number % SLOTS)] = filled[AT(me, back, number % SLOTS)]
#else
           came[AT(OTHER, back, number % SLOTS)] = filled[AT(me, back, number % SLOTS)];
           flag[AT(OTHER, back, number % SLOTS)] = number + 1
#endif
    :: ring ? CREDIT, back, number -> credit[END(OTHER, back)] = number
    od
}

proctype kernel(bit me; chan ring)
{
    byte sent[2];
    byte taken[2];
    byte crossing = 0;
    byte sends;
    byte takes;
    bit back;
    do
    :: crossing < 2 * CALLS ->
           back = crossing % 2;
           sends = 0;
           takes = 0;
#ifdef STARTS_ANEW
           sent[back] = 0;
           taken[back] = 0;
#endif
           do
           :: sends < CHUNKS && sent[back] - credit[END(me, back)] < ROOM ->
                  filled[AT(me, back, sent[back] % SLOTS)] = crossing * CHUNKS + sends + 1;
                  ring ! MOVE, back, sent[back];
                  sent[back]++;
                  sends++
#ifdef SENDS_FIRST
           :: sends == CHUNKS && takes < CHUNKS && flag[AT(me, back, taken[back] % SLOTS)] == taken[back] + 1 ->
#else
           :: takes < CHUNKS && flag[AT(me, back, taken[back] % SLOTS)] == taken[back] + 1 ->
#endif
                  taken[back]++;
#ifdef CREDIT_EARLY
                  ring ! CREDIT, back, taken[back];
#endif
                  assert(came[AT(me, back, (taken[back] - 1) % SLOTS)] == crossing * CHUNKS + takes + 1);
#ifndef CREDIT_EARLY
                  if
                  :: taken[back] % (SLOTS / 2) == 0 -> ring ! CREDIT, back, taken[back]
                  :: else
                  fi;
#endif
                  takes++
           :: sends == CHUNKS && takes == CHUNKS -> break
#ifdef GOES
           :: me == 1 -> is_gone = 1; goto done
#endif
           :: timeout -> assert(is_gone); goto done
           od;
           crossing++
    :: else -> break
    od;
done:
    skip
}

init {
    atomic {
        run proxy(0, ring0);
        run proxy(1, ring1);
        run kernel(0, ring0);
        run kernel(1, ring1)
    }
}

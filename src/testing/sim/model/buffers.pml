/* Store buffers, for the models beside this file. A store waits in its PE's buffer and commits later: a relaxed one as
 * soon as no earlier store to the same place waits, a release only when nothing earlier waits. That is what
 * src/testing/sim/flow.h does, and what protocol/mem.h promises. Loads read memory: what the models load is flags, by
 * acquire, and data that a flag has announced. PLACES, PES and BUFFER are defined by who includes this. */

byte memory[PLACES];

typedef buffer_of {
    byte count;
    byte place[BUFFER];
    byte value[BUFFER];
    bit release[BUFFER];
};
buffer_of buffers[PES];

/* Blocks while the buffer is full. */
inline store(pe, where, what, is_release)
{
    atomic {
        buffers[pe].count < BUFFER ->
            buffers[pe].place[buffers[pe].count] = where;
            buffers[pe].value[buffers[pe].count] = what;
            buffers[pe].release[buffers[pe].count] = is_release;
            buffers[pe].count++
    }
}

/* One a PE: lets its stores commit, any that may. */
proctype lander(byte pe)
{
    byte i;
    byte j;
    bool may;
end:
    do
    :: atomic {
           buffers[pe].count > 0 ->
               i = 0;
               /* choose */
               do
               :: i + 1 < buffers[pe].count -> i++
               :: break
               od;
               skip;
               d_step {
                   may = true;
                   for (j : 0 .. BUFFER - 1) {
                       if
                       :: j < i && (buffers[pe].release[i] || buffers[pe].place[j] == buffers[pe].place[i]) ->
                              may = false
                       :: else
                       fi
                   }
                   if
                   :: may ->
                          memory[buffers[pe].place[i]] = buffers[pe].value[i];
                          for (j : 0 .. BUFFER - 2) {
                              if
                              :: j >= i ->
                                     buffers[pe].place[j] = buffers[pe].place[j + 1];
                                     buffers[pe].value[j] = buffers[pe].value[j + 1];
                                     buffers[pe].release[j] = buffers[pe].release[j + 1]
                              :: else
                              fi
                          }
                          buffers[pe].place[BUFFER - 1] = 0;
                          buffers[pe].value[BUFFER - 1] = 0;
                          buffers[pe].release[BUFFER - 1] = 0;
                          buffers[pe].count--
                   :: else
                   fi;
                   i = 0;
                   j = 0;
                   may = false
               }
       }
    od
}

/* sim/barriers.c: what was put before a barrier is seen after it, bulk and words, by plain loads too. */
#include <string.h>

#include "sim/cases.h"

#define BYTES 150

void case_barriers(void *argument)
{
    const case_run *run = argument;
    uint64_t common = run->seed;
    weft_world *world = case_world("barriers");
    int pe = weft_world_pe(world);
    int pes = run->pes;
    unsigned char *blocks;
    MUST(weft_malloc(world, 2 * BYTES, (void **)&blocks));
    for (int round = 1; round <= 4; round++) {
        unsigned char *block = blocks + (round % 2) * BYTES; /* the other one is still read */
        int shift = 1 + common_below(&common, pes);
        unsigned char bytes[BYTES];
        unsigned char wanted = (unsigned char)((pe + pes - shift % pes) * 5 + round);
        memset(bytes, pe * 5 + round, sizeof bytes);
        for (int i = 0; i < BYTES; i++) {
            wanted = (unsigned char)(((pe + pes - shift % pes) % pes) * 5 + round);
        }
        MUST(weft_putmem(world, block, bytes, sizeof bytes, (pe + shift) % pes));
        dawdle(8, 5000);
        MUST(weft_barrier(world));
        for (int i = 0; i < BYTES; i++) {
            if (block[i] != wanted) {
                weft_sim_fail("round %d: byte %d is %d, not %d", round, i, block[i], wanted);
            }
        }
        unsigned char got[BYTES];
        int from = common_below(&common, pes);
        MUST(weft_getmem(world, got, block, sizeof got, from));
        if (got[0] != (unsigned char)(((from + pes - shift % pes) % pes) * 5 + round) ||
            memcmp(got, got + 1, BYTES - 1) != 0) {
            weft_sim_fail("round %d: got %d from PE %d", round, got[0], from);
        }
    }
    MUST(weft_barrier(world));
    MUST(weft_world_destroy(world));
}

/* A user of an installed weft, as C11 and as C++17: each PE puts its number at the next one and hears from the one
 * before. Exit 0 when it does. */
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>
#include <weft_ep.h>

static void check(weft_status status)
{
    if (status != WEFT_OK) {
        fprintf(stderr, "%s: %s\n", weft_status_name(status), weft_last_error());
        exit(1);
    }
}

int main(void)
{
    weft_world *world;
    void *block;
    check(weft_world_create(NULL, &world));
    int pe = weft_world_pe(world);
    int pes = weft_world_pes(world);
    check(weft_calloc(world, 2, sizeof(long), &block));
    long *words = (long *)block;
    check(weft_long_p(world, &words[0], pe + 1, (pe + 1) % pes));
    check(weft_barrier(world));
    check(weft_long_sum_reduce(weft_team_world(world), &words[1], &words[0], 1));
    long heard = words[0];
    long sum = words[1];
    int right = heard == (pe + pes - 1) % pes + 1 && sum == (long)pes * (pes + 1) / 2;
    check(weft_free(world, block));
    check(weft_world_destroy(world));
    if (!right) {
        fprintf(stderr, "PE %d of %d heard %ld, the sum is %ld\n", pe, pes, heard, sum);
    }
    return !right;
}

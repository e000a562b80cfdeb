/* A world in thirty lines: every PE writes its number to its right neighbour. Run: weftrun -n 4 hello */
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

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
    check(weft_world_create(NULL, &world)); /* all processes of weftrun or torchrun; alone: a world of one */
    int pe = weft_world_pe(world);
    int pes = weft_world_pes(world);
    check(weft_calloc(world, 1, sizeof(int), &block)); /* the same offset in every PE's heap */
    int *from = block;
    check(weft_int_p(world, from, pe, (pe + 1) % pes));
    check(weft_barrier(world));
    printf("PE %d of %d heard from PE %d\n", pe, pes, *from);
    check(weft_free(world, block));
    check(weft_world_destroy(world));
    return 0;
}

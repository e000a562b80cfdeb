/* A user of an installed simulator: a hundred PEs under a seeded schedule, on links of four, each of which puts its
 * number at the next one. Exit 0 when all hear from the one before, and the same seed gives the same trace. */
#include <stdio.h>

#include <weft.h>
#include <weft_sim.h>

#define PES 100

static void check(weft_status status)
{
    if (status != WEFT_OK) {
        weft_sim_fail("%s: %s", weft_status_name(status), weft_last_error());
    }
}

static void pe_main(void *argument)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    void *block;
    (void)argument;
    weft_sim_world_config(&config);
    check(weft_world_create(&config, &world));
    int pe = weft_world_pe(world);
    check(weft_calloc(world, 1, sizeof(long), &block));
    check(weft_long_p(world, (long *)block, pe + 1, (pe + 1) % PES));
    check(weft_barrier(world));
    long heard = 0;
    check(weft_long_g(world, (long *)block, pe, &heard));
    if (heard != (pe + PES - 1) % PES + 1) {
        weft_sim_fail("PE %d heard %ld", pe, heard);
    }
    check(weft_free(world, block));
    check(weft_world_destroy(world));
}

int main(void)
{
    weft_sim_result results[2];
    for (int i = 0; i < 2; i++) {
        weft_sim_config config = WEFT_SIM_CONFIG_INIT;
        config.seed = 20;
        config.domain_pes = 4;
        config.result = &results[i];
        if (weft_sim_run(&config, PES, pe_main, NULL) != WEFT_OK) {
            return 1;
        }
    }
    printf("%llu events, twice\n", (unsigned long long)results[0].events);
    return results[0].trace_hash != results[1].trace_hash || results[0].messages == 0;
}

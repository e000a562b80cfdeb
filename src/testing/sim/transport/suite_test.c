/* Goal: `sim` keeps the contract of transport/transport.h, and reaches every PE.
 * Method: the conformance suite in simulations of several seeds; its threads are fibers. */
#include <stdio.h>
#include <stdlib.h>

#include "transport/conformance.h"
#include "weft_sim.h"

#define SEEDS 6

static int failed;

static void run_suite(void *argument)
{
    (void)argument;
    failed += conformance_run(&wefti_transport_sim, CONFORMANCE_REACHES_ALL) != 0;
}

int main(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        weft_sim_config config = WEFT_SIM_CONFIG_INIT;
        config.seed = seed;
        config.stack_bytes = (size_t)1 << 20;
        if (weft_sim_run(&config, 1, run_suite, NULL) != WEFT_OK || failed != 0) {
            printf("the suite fails with seed %llu\n", (unsigned long long)seed);
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}

/* support/pe_main.c: the main function of the programs in tests/multi. */
#include "support/pe_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/pattern.h"
#include "support/pes.h"

static void (*body_of_program)(weft_world *world);
static int is_process;

int pe_main_is_process(void)
{
    return is_process;
}

static void run_body(weft_world *world, void *context)
{
    (void)context;
    body_of_program(world);
}

static void run_threads(int pes)
{
    weft_threads *meeting = pes_meeting(pes);
    weft_world_config configs[PES_MAX];
    pes_outcome outcomes[PES_MAX];
    weft_world *worlds[PES_MAX];
    for (int pe = 0; pe < pes; pe++) {
        configs[pe] = pes_config(meeting, pe, pes);
        configs[pe].heap_max_bytes = 0; /* as the processes have it */
    }
    pes_create(configs, pes, outcomes);
    for (int pe = 0; pe < pes; pe++) {
        worlds[pe] = outcomes[pe].world;
        if (!CHECK_SAY(outcomes[pe].status == WEFT_OK, "PE %d: %s", pe, outcomes[pe].text)) {
            exit(1);
        }
    }
    pes_run_in(pes, worlds, run_body, NULL);
    pes_destroy_world(pes, worlds);
    weft_threads_destroy(meeting);
}

static void run_process(void)
{
    weft_world *world;
    if (!CHECK_OK(weft_world_create(NULL, &world))) {
        return;
    }
    check_as_pe(weft_world_pe(world));
    body_of_program(world);
    CHECK_OK(weft_world_destroy(world));
}

int pe_main(int argc, char **argv, void (*body)(weft_world *world))
{
    int pes = 0;
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0) {
            pes = atoi(argv[i + 1]);
        }
    }
    if (argc > 1 && (pes < 1 || pes > PES_MAX)) {
        fprintf(stderr, "usage: [weftrun -n N] %s, or %s --threads N\n", argv[0], argv[0]);
        return 2;
    }
    body_of_program = body;
    is_process = pes == 0;
    (void)setenv("WEFT_LOG", "none", 0); /* errors that are expected */
    if (pes > 0) {
        run_threads(pes);
    } else {
        run_process();
    }
    return check_failures() != 0;
}

static void *allocate(weft_world *world, size_t bytes, int byte)
{
    void *block;
    if (!CHECK_OK(weft_malloc(world, bytes, &block))) {
        exit(1); /* nothing can go on without it */
    }
    memset(block, byte, bytes);
    CHECK_OK(weft_barrier(world));
    return block;
}

void *pe_poisoned(weft_world *world, size_t bytes)
{
    return allocate(world, bytes, POISON);
}

void *pe_zeroed(weft_world *world, size_t bytes)
{
    return allocate(world, bytes, 0);
}

uint64_t pe_common_seed(weft_world *world)
{
    uint64_t *word = pe_zeroed(world, sizeof *word);
    if (weft_world_pe(world) == 0) {
        uint64_t seed = test_seed();
        for (int pe = 0; pe < weft_world_pes(world); pe++) {
            CHECK_OK(weft_uint64_p(world, word, seed, pe));
        }
    }
    CHECK_OK(weft_barrier(world));
    uint64_t seed = *word;
    CHECK_OK(weft_free(world, word));
    return seed;
}

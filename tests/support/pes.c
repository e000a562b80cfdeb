/* support/pes.c: the PEs of a world as threads of this process. */
#include "support/pes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "world/world.h"

weft_threads *pes_meeting(int pes)
{
    weft_threads *threads = NULL;
    if (!CHECK_OK(weft_threads_create(pes, &threads))) {
        abort();
    }
    return threads;
}

weft_world_config pes_config(weft_threads *threads, int pe, int pes)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    config.bootstrap = WEFT_BOOTSTRAP_THREADS;
    config.threads = threads;
    config.pe = pe;
    config.pes = pes;
    config.heap_max_bytes = PES_HEAP_MAX_BYTES;
    config.deadline_ns = UINT64_C(30000000000);
    return config;
}

uint64_t pes_set_deadline(weft_world *world, uint64_t deadline_ns)
{
    uint64_t before = world->deadline_ns;
    world->deadline_ns = deadline_ns;
    return before;
}

void pes_gather(int *arrived, int wanted)
{
    (void)__atomic_add_fetch(arrived, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(arrived, __ATOMIC_ACQUIRE) < wanted) {
        wefti_os_sleep_ns(1000000);
    }
}

typedef struct creations {
    const weft_world_config *configs;
    pes_outcome *outcomes;
} creations;

static void create_one(int pe, void *context)
{
    const creations *all = context;
    pes_outcome *outcome = &all->outcomes[pe];
    uint64_t start = wefti_os_now_ns();
    outcome->world = NULL;
    outcome->text[0] = '\0';
    outcome->status = weft_world_create(&all->configs[pe], &outcome->world);
    outcome->ns = wefti_os_now_ns() - start;
    if (outcome->status != WEFT_OK) {
        (void)snprintf(outcome->text, sizeof outcome->text, "%s", weft_last_error());
        CHECK_SAY(outcome->world == NULL, "a failed creation wrote a handle");
    }
}

void pes_create(const weft_world_config *configs, int pes, pes_outcome *outcomes)
{
    creations all = {.configs = configs, .outcomes = outcomes};
    pes_each(pes, create_one, &all);
}

void pes_create_world(int pes, weft_world **worlds)
{
    pes_create_world_of(pes, PES_HEAP_MAX_BYTES, worlds);
}

void pes_create_world_of(int pes, size_t heap_max_bytes, weft_world **worlds)
{
    weft_threads *threads = pes_meeting(pes);
    weft_world_config configs[PES_MAX];
    pes_outcome outcomes[PES_MAX];
    for (int pe = 0; pe < pes; pe++) {
        configs[pe] = pes_config(threads, pe, pes);
        configs[pe].heap_max_bytes = heap_max_bytes;
    }
    pes_create(configs, pes, outcomes);
    for (int pe = 0; pe < pes; pe++) {
        if (!CHECK_SAY(outcomes[pe].status == WEFT_OK, "PE %d: %s", pe, outcomes[pe].text)) {
            abort(); /* nothing can go on without a world */
        }
        worlds[pe] = outcomes[pe].world;
    }
    weft_threads_destroy(threads);
}

void pes_destroy_world(int pes, weft_world **worlds)
{
    for (int pe = 0; pe < pes; pe++) {
        CHECK_OK(weft_world_destroy(worlds[pe]));
        worlds[pe] = NULL;
    }
}

typedef struct world_work {
    weft_world **worlds;
    void (*body)(weft_world *world, void *context);
    void *context;
} world_work;

static void work_in_world(int pe, void *context)
{
    const world_work *work = context;
    work->body(work->worlds[pe], work->context);
}

void pes_run_in(int pes, weft_world **worlds, void (*body)(weft_world *world, void *context), void *context)
{
    world_work work = {.worlds = worlds, .body = body, .context = context};
    pes_each(pes, work_in_world, &work);
}

void pes_run(int pes, void (*body)(weft_world *world, void *context), void *context)
{
    weft_world *worlds[PES_MAX];
    pes_create_world(pes, worlds);
    pes_run_in(pes, worlds, body, context);
    pes_destroy_world(pes, worlds);
}

/* Goal: two libraries of one process hold worlds that overlap, under one weftrun: A two of half the processes each, B
 * one of all, numbered in reverse. They are made and ended in any order and move data at the same time. Method: all
 * four orders, several times; while both live, a thread of each module exchanges words that name module, half, sender,
 * receiver and round; the one that lives longer goes on alone. */
/* PES: 2 4 16 */
#include <stdio.h>
#include <stdlib.h>

#include "os/os.h"
#include "support/check.h"
#include "support/pe_main.h"
#include "support/pes.h"

#define ROUNDS 15
#define WORDS 32

typedef struct module {
    weft_world *world;
    weft_team *team; /* of every second PE; NULL on the others */
    uint64_t *inbox; /* WORDS from each PE */
    uint64_t salt;
} module;

/* The environment that weftrun gives. */
static int number_of(const char *name)
{
    const char *text = getenv(name);
    return text == NULL ? 0 : atoi(text);
}

static void open_module(module *m, int is_a, int process, int processes)
{
    int half = processes / 2;
    int is_upper = process >= half;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    void *block;
    config.name = !is_a ? "B" : is_upper ? "A, upper half" : "A, lower half";
    config.pe = is_a ? process % half : processes - 1 - process;
    config.pes = is_a ? half : processes;
    config.heap_max_bytes = is_a ? 1 << 20 : 3 << 20;
    m->salt = is_a ? 1 + (uint64_t)is_upper : 9;
    if (!CHECK_OK(weft_world_create(&config, &m->world))) {
        exit(1);
    }
    CHECK(weft_world_pe(m->world) == config.pe && weft_world_pes(m->world) == config.pes);
    CHECK_OK(weft_calloc(m->world, (size_t)config.pes * WORDS, sizeof(uint64_t), &block));
    m->inbox = block;
    CHECK_OK(weft_team_split_strided(weft_team_world(m->world), 0, 2, (config.pes + 1) / 2, &m->team));
}

static void close_module(module *m)
{
    CHECK_OK(weft_team_destroy(m->team));
    CHECK_OK(weft_free(m->world, m->inbox));
    CHECK_OK(weft_world_destroy(m->world));
}

static uint64_t word_of(const module *m, int from, int to, int round, int i)
{
    return m->salt << 56 | (uint64_t)from << 40 | (uint64_t)to << 24 | (uint64_t)round << 8 | (uint64_t)i;
}

static void work(module *m)
{
    int me = weft_world_pe(m->world);
    int pes = weft_world_pes(m->world);
    for (int round = 0; round < ROUNDS; round++) {
        for (int to = 0; to < pes; to++) {
            uint64_t out[WORDS];
            for (int i = 0; i < WORDS; i++) {
                out[i] = word_of(m, me, to, round, i);
            }
            CHECK_OK(weft_uint64_put(m->world, m->inbox + (size_t)me * WORDS, out, WORDS, to));
        }
        CHECK_OK(weft_barrier(m->world));
        for (int k = 0; k < pes * WORDS; k++) {
            uint64_t wanted = word_of(m, k / WORDS, me, round, k % WORDS);
            CHECK_SAY(m->inbox[k] == wanted, "round %d: a word from PE %d is %#llx, not %#llx", round, k / WORDS,
                      (unsigned long long)m->inbox[k], (unsigned long long)wanted);
        }
        CHECK_OK(weft_barrier(m->world));
        if (m->team != NULL) {
            CHECK_OK(weft_team_sync(m->team));
        }
    }
}

static void work_in_thread(int which, void *context)
{
    module *const *modules = context;
    check_as_pe(weft_world_pe(modules[which]->world));
    work(modules[which]);
}

int main(void)
{
    int process = number_of("WEFT_LOCAL_PE");
    int processes = number_of("WEFT_LOCAL_PES");
    (void)setenv("WEFT_LOG", "none", 0);
    check_as_pe(process);
    if (processes < 2 || processes % 2 != 0) {
        fprintf(stderr, "start me with weftrun and an even number of PEs\n");
        return 2;
    }
    for (int order = 0; order < 8; order++) {
        module a;
        module b;
        module *both[2] = {&a, &b};
        module *first = order & 1 ? &a : &b;
        module *last = order & 2 ? &a : &b;
        open_module(first, first == &a, process, processes);
        open_module(first == &a ? &b : &a, first != &a, process, processes);
        pes_each(2, work_in_thread, both);
        close_module(last == &a ? &b : &a);
        work(last);
        close_module(last);
    }
    return check_failures() != 0;
}

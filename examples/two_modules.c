/* Two libraries in one process, each with worlds of its own. Run: weftrun -n 16 two_modules
 *
 * Module A holds two worlds of half the processes each (0-7 and 8-15), as a tensor-parallel layer would; module B one
 * world of all, as an expert-parallel layer would, and numbers its PEs in reverse. Neither knows of the other. Each has
 * its own heap, numbering and teams. They are created and destroyed in both orders, and move data at the same time. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

#define ROUNDS 50
#define WORDS 512

/* What a module keeps: nothing of it is global. */
typedef struct module {
    const char *name;
    weft_world *world;
    weft_team *evens; /* NULL on odd PEs */
    uint64_t *inbox; /* WORDS from each PE of the world */
    uint64_t salt;
    uint64_t words_checked;
} module;

static void check(weft_status status, const char *what)
{
    if (status != WEFT_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, weft_status_name(status), weft_last_error());
        exit(1);
    }
}

static void module_open(module *m, const char *name, int pe, int pes, uint64_t salt)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    void *block;
    config.name = name;
    config.pe = pe;
    config.pes = pes;
    m->name = name;
    m->salt = salt;
    m->words_checked = 0;
    check(weft_world_create(&config, &m->world), name);
    check(weft_calloc(m->world, (size_t)pes * WORDS, sizeof(uint64_t), &block), name);
    m->inbox = block;
    check(weft_team_split_strided(weft_team_world(m->world), 0, 2, (pes + 1) / 2, &m->evens), name);
}

static void module_close(module *m)
{
    check(weft_team_destroy(m->evens), m->name);
    check(weft_free(m->world, m->inbox), m->name);
    check(weft_world_destroy(m->world), m->name);
}

static uint64_t pattern(const module *m, int from, int to, int round, int i)
{
    return m->salt ^ ((uint64_t)from << 48 | (uint64_t)to << 32 | (uint64_t)round << 16 | (uint64_t)i);
}

/* Everyone writes to everyone, then reads what it was sent. */
static void *module_work(void *argument)
{
    module *m = argument;
    int pe = weft_world_pe(m->world);
    int pes = weft_world_pes(m->world);
    uint64_t out[WORDS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int to = 0; to < pes; to++) {
            for (int i = 0; i < WORDS; i++) {
                out[i] = pattern(m, pe, to, round, i);
            }
            check(weft_uint64_put(m->world, m->inbox + (size_t)pe * WORDS, out, WORDS, to), m->name);
        }
        check(weft_barrier(m->world), m->name);
        for (int from = 0; from < pes; from++) {
            for (int i = 0; i < WORDS; i++) {
                if (m->inbox[(size_t)from * WORDS + (size_t)i] != pattern(m, from, pe, round, i)) {
                    fprintf(stderr, "%s: PE %d: word %d from PE %d in round %d is wrong\n", m->name, pe, i, from,
                            round);
                    exit(1);
                }
                m->words_checked++;
            }
        }
        check(weft_barrier(m->world), m->name);
        if (m->evens != NULL) {
            check(weft_team_sync(m->evens), m->name);
        }
    }
    return NULL;
}

/* One module in a thread of its own, the other here: both at once. */
static void work_together(module *a, module *b)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, module_work, a) != 0) {
        fprintf(stderr, "no thread for module A\n");
        exit(1);
    }
    (void)module_work(b);
    pthread_join(thread, NULL);
}

static void open_in_order(module *a, module *b, int pe, int pes, int a_first)
{
    int half = pes / 2;
    const char *a_name = pe < half ? "A, lower half" : "A, upper half";
    int a_pe = pe < half ? pe : pe - half;
    int a_pes = pe < half ? half : pes - half;
    if (a_first) {
        module_open(a, a_name, a_pe, a_pes, 0xaaaa000000000000u);
    }
    module_open(b, "B", pes - 1 - pe, pes, 0x5555000000000000u);
    if (!a_first) {
        module_open(a, a_name, a_pe, a_pes, 0xaaaa000000000000u);
    }
}

int main(void)
{
    const char *pe_text = getenv("WEFT_LOCAL_PE");
    const char *pes_text = getenv("WEFT_LOCAL_PES");
    int pe = pe_text != NULL ? atoi(pe_text) : 0;
    int pes = pes_text != NULL ? atoi(pes_text) : 0;
    if (pes < 2) {
        fprintf(stderr, "start me with: weftrun -n 16 two_modules\n");
        return 2;
    }
    for (int order = 0; order < 4; order++) {
        int a_first_in = (order & 1) == 0;
        int a_first_out = (order & 2) == 0;
        module a;
        module b;
        open_in_order(&a, &b, pe, pes, a_first_in);
        work_together(&a, &b);
        uint64_t words = a.words_checked + b.words_checked;
        module_close(a_first_out ? &a : &b);
        module_close(a_first_out ? &b : &a);
        if (pe == 0) {
            printf(
                "created %s, destroyed %s: worlds of %d, %d and %d PEs side by side, %llu words checked on each PE\n",
                a_first_in ? "A then B" : "B then A", a_first_out ? "A then B" : "B then A", pes / 2, pes - pes / 2,
                pes, (unsigned long long)words);
        }
    }
    return 0;
}

/* A program that ends as its first argument says; ends.py starts it. */
#include <signal.h>
#include <unistd.h>

#include "faces/shmem/check.h"

static int me;
static int pes;
static int argument; /* the second of the command line, or 0 */
static long *word; /* symmetric */

static void say(const char *what)
{
    printf("PE %d %s\n", shmem_my_pe(), what);
}

/* For ever, without a call of the library. */
static void compute(void)
{
    for (volatile long i = 0;; i++) {
    }
}

/* ---- before the library is initialised, and after it was finalized ---- */

static void put_early(void)
{
    long own = 0;
    shmem_long_p(&own, 1, 0);
}

static void allocate(void)
{
    free(shmem_malloc(8));
}

static void ask_for_a_wrong_level(void)
{
    (void)shmem_init_thread(7, NULL);
}

/* ---- ends ---- */

/* What was put before is there for the others' exit. */
static void end_without_finalize(void)
{
    shmem_long_p(word, 1, (me + 1) % pes);
    say("returns");
    exit(0);
}

/* The others' exit must wait for the last. */
static void exit_late(void)
{
    if (me == pes - 1) {
        usleep(200000);
        for (int pe = 0; pe < pes; pe++) {
            shmem_long_p(word, 1, pe);
        }
    }
    exit(0);
}

static void exit_alone(void)
{
    if (me == pes - 1) {
        exit(argument);
    }
    shmem_barrier_all();
    shmem_barrier_all();
}

static void exit_globally(void)
{
    say("is here");
    shmem_barrier_all();
    if (me == pes - 1) {
        say("ends all");
        shmem_global_exit(argument);
    }
    if (me % 2 == 0) {
        compute();
    }
    shmem_long_wait_until(word, SHMEM_CMP_EQ, 1);
}

static void be_killed(void)
{
    if (me == pes - 1) {
        kill(getpid(), SIGKILL);
    }
    shmem_barrier_all();
}

/* The child finalizes nothing. */
static void exit_in_a_child(void)
{
    if (fork() == 0) {
        exit(0);
    }
    shmem_barrier_all();
}

/* Nobody writes the word. */
static void wait_in_vain(void)
{
    shmem_long_wait_until(word, SHMEM_CMP_EQ, 1);
}

/* ---- wrong uses ---- */

static void put_beyond_the_pes(void)
{
    const int own = 0;
    if (me == pes - 1) {
        shmem_int_put((int *)(void *)word, &own, 1, pes);
    }
    shmem_barrier_all();
}

static void change_a_local_word(void)
{
    long own = 0;
    if (me == pes - 1) {
        shmem_long_atomic_inc(&own, 0);
    }
    shmem_barrier_all();
}

static void allocate_other_sizes(void)
{
    void *block = shmem_calloc(me == 0 ? 64 : 128, 1);
    (void)block;
}

static void free_inside_a_block(void)
{
    shmem_free(word + 1);
}

static void unlock_what_is_free(void)
{
    shmem_clear_lock(word);
}

static void lock_a_local_word(void)
{
    long own = 0;
    shmem_set_lock(&own);
}

static void lock_twice(void)
{
    shmem_set_lock(word + me * 2);
    shmem_set_lock(word + me * 2);
}

static void compare_wrongly(void)
{
    shmem_long_wait_until(word, 17, 1);
}

static void signal_wrongly(void)
{
    shmem_putmem_signal(word, word, 8, (uint64_t *)(void *)word, 1, 17, me);
}

static void make_a_wrong_context(void)
{
    shmem_ctx_t ctx;
    (void)shmem_ctx_create(1L << 20, &ctx);
}

static void use_no_context(void)
{
    shmem_ctx_long_p(SHMEM_CTX_INVALID, word, 1, me);
}

static void put_beyond_a_team(void)
{
    shmem_ctx_t ctx;
    shmem_team_t alone;
    (void)shmem_team_split_strided(SHMEM_TEAM_WORLD, me, 1, 1, NULL, 0, &alone);
    (void)shmem_team_create_ctx(alone, 0, &ctx);
    shmem_ctx_long_p(ctx, word, 1, 1);
}

static void sync_with_a_local_word(void)
{
    long sync[SHMEM_SYNC_SIZE] = {SHMEM_SYNC_VALUE};
    if (me < 2) {
        shmem_barrier(0, 0, 2, sync);
    }
    shmem_barrier_all();
}

static void barrier_of_too_many(void)
{
    static long sync[SHMEM_SYNC_SIZE];
    shmem_barrier(1, 1, pes, sync);
}

static void change_a_part_of_a_word(void)
{
    shmem_long_atomic_inc((long *)(void *)((char *)word + 1), 0);
}

static void broadcast_from_nobody(void)
{
    shmem_long_broadcast(SHMEM_TEAM_WORLD, word, word + 8, 1, pes);
}

/* The address is told, to find the variable by it. */
static void enlarge_a_local_word(void)
{
    long own = 0;
    char text[64];
    (void)snprintf(text, sizeof text, "means %p", (void *)&own);
    say(text);
    (void)shmem_realloc(&own, 64);
}

static void allocate_much(void)
{
    void *block = shmem_malloc((size_t)argument << 20);
    say(block != NULL ? "has it" : "has none");
}

/* ---- all ---- */

typedef struct ending {
    const char *name;
    void (*act)(void);
} ending;

static const ending before_init[] = {
    {"early", put_early},
    {"early malloc", allocate},
    {"level", ask_for_a_wrong_level},
};

static const ending inside[] = {
    {"return", end_without_finalize},
    {"late", exit_late},
    {"exit", exit_alone},
    {"global", exit_globally},
    {"range", put_beyond_the_pes},
    {"local", change_a_local_word},
    {"mismatch", allocate_other_sizes},
    {"free", free_inside_a_block},
    {"unlock", unlock_what_is_free},
    {"lock", lock_a_local_word},
    {"again", lock_twice},
    {"compare", compare_wrongly},
    {"signal", signal_wrongly},
    {"option", make_a_wrong_context},
    {"context", use_no_context},
    {"member", put_beyond_a_team},
    {"sync", sync_with_a_local_word},
    {"set", barrier_of_too_many},
    {"part", change_a_part_of_a_word},
    {"root", broadcast_from_nobody},
    {"enlarge", enlarge_a_local_word},
    {"waits", wait_in_vain},
    {"fork", exit_in_a_child},
    {"killed", be_killed},
    {"heap", allocate_much},
};

static const ending after_finalize[] = {
    {"after", shmem_barrier_all},
    {"after malloc", allocate},
};

static void act(const ending *endings, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(endings[i].name, name) == 0) {
            endings[i].act();
        }
    }
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    argument = argc > 2 ? atoi(argv[2]) : 0;
    act(before_init, COUNT(before_init), name);
    shmem_init();
    me = shmem_my_pe();
    pes = shmem_n_pes();
    word = ZEROED(long, 64);
    act(inside, COUNT(inside), name);
    shmem_finalize();
    act(after_finalize, COUNT(after_finalize), name);
    return 0;
}

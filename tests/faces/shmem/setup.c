/* Goal: library setup, exit and query (9.1) do what the specification says.
 * Method: every query against what is known, also for the last byte of the executable's variables, and of a child
 * that was forked, which has its own; init and finalize nested and again, where a finalize that is not the last must
 * be a barrier: a late PE's put must be there behind it; what went through a network is counted; and active sets of
 * one world are none of the next. */
#include <sys/wait.h>
#include <unistd.h>

#include <shmemx.h>

#include "faces/shmem/check.h"

/* As programs for Sandia's OpenSHMEM do: this one here would be another one. */
#ifndef HAVE_SHMEMX_WTIME
static double shmemx_wtime(void)
{
    return -1;
}
#endif

static uint64_t own_thread(void)
{
    return 1;
}

static void check_queries(void)
{
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    int major = 0;
    int minor = 0;
    char name[SHMEM_MAX_NAME_LEN];
    CHECK(me >= 0 && me < pes);
    CHECK(_my_pe() == me && _num_pes() == pes);
    shmem_info_get_version(&major, &minor);
    CHECK(major == 1 && minor == 6 && major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION);
    CHECK(OSHMEM_SPEC_VERSION == SHMEM_MAJOR_VERSION * 10000 + SHMEM_MINOR_VERSION * 100);
    const double before = shmemx_wtime();
    char host[256] = "";
    (void)usleep(20000);
    const double seconds = shmemx_wtime() - before;
    CHECK(before > 0 && seconds >= 0.02 && seconds < 20);
    CHECK(gethostname(host, sizeof host - 1) == 0 && strcmp(shmemx_nodename(), host) == 0);
    shmemx_register_gettid(own_thread); /* changes nothing */
    CHECK(SHMEMX_TEAM_NODE == SHMEM_TEAM_NODE && shmem_team_n_pes(SHMEMX_TEAM_NODE) >= 1);
    memset(name, 'x', sizeof name);
    shmem_info_get_name(name);
    CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0 && strlen(name) < SHMEM_MAX_NAME_LEN);
    shmem_pcontrol(1);
    shmem_pcontrol(3, "more", 1.0);
}

/* What goes to a PE of this node is no put through a network, what goes to another's is one. */
static void check_counters(void)
{
    const int next = (shmem_my_pe() + 1) % shmem_n_pes();
    long *word = shmem_malloc_with_hints(sizeof *word, SHMEMX_MALLOC_NO_BARRIER);
    const uint64_t far = shmem_ptr(word, next) == NULL;
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    shmemx_pcntr_t before;
    shmemx_pcntr_t after;
    uint64_t issued = 0;
    uint64_t completed = 0;
    uint64_t target = 1;
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE | SHMEMX_CTX_BOUNCE_BUFFER, &ctx) == 0);
    shmemx_pcntr_get_all(ctx, &before);
    shmem_ctx_long_p(ctx, word, 7, next);
    shmem_ctx_quiet(ctx);
    CHECK(shmem_ctx_long_g(ctx, word, next) == 7);
    shmemx_pcntr_get_all(ctx, &after);
    CHECK(after.pending_put == before.pending_put + far && after.completed_put == after.pending_put);
    CHECK(after.pending_get == before.pending_get + far && after.completed_get == after.pending_get);
    shmemx_pcntr_get_issued_write(ctx, &issued);
    shmemx_pcntr_get_completed_write(ctx, &completed);
    CHECK(issued == after.pending_put && completed == issued);
    shmemx_pcntr_get_pending_put(ctx, &issued);
    shmemx_pcntr_get_completed_put(SHMEM_CTX_DEFAULT, &completed);
    CHECK(issued == after.pending_put && completed == issued);
    shmemx_pcntr_get_issued_read(ctx, &issued);
    shmemx_pcntr_get_completed_read(ctx, &completed);
    CHECK(issued == after.pending_get && completed == issued);
    shmemx_pcntr_get_pending_get(ctx, &issued);
    shmemx_pcntr_get_completed_get(ctx, &completed);
    CHECK(issued == after.pending_get && completed == issued);
    shmemx_pcntr_get_completed_target(&target);
    CHECK(target == 0 && after.target == 0);
    shmem_ctx_destroy(ctx);
    shmem_barrier_all();
    shmem_free(word);
}

extern char _end; /* of the executable's variables */
static volatile int kept = 3;

static void check_variables(void)
{
    const void *last = (const void *)((uintptr_t)&_end - 1);
    for (int pe = 0; pe < shmem_n_pes(); pe++) {
        CHECK(shmem_addr_accessible(last, pe) == 1);
        CHECK(shmem_addr_accessible((const void *)&kept, pe) == 1);
    }
    kept = 3;
    const pid_t child = fork();
    if (child == 0) {
        kept = 4;
        _exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child && kept == 3);
    shmem_barrier_all();
}

/* Every other PE. */
static void check_active_set(void)
{
    static long sync[SHMEM_SYNC_SIZE];
    if (shmem_my_pe() % 2 == 0) {
        shmem_barrier(0, 1, (shmem_n_pes() + 1) / 2, sync);
    }
    shmem_barrier_all();
}

static void check_access(void)
{
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    int local = 0;
    int *word = ZEROED(int, 1);
    *word = 100 + me;
    shmem_barrier_all();
    for (int pe = 0; pe < pes; pe++) {
        CHECK(shmem_pe_accessible(pe) == 1);
        CHECK(shmem_addr_accessible(word, pe) == 1);
        CHECK(shmem_addr_accessible(&local, pe) == 0);
        const int *theirs = shmem_ptr(word, pe);
        const int is_shared = shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED) >= 0;
        CHECK((theirs != NULL) == is_shared && (!is_shared || *theirs == 100 + pe));
        CHECK(shmem_int_g(word, pe) == 100 + pe);
        CHECK(shmem_team_ptr(SHMEM_TEAM_WORLD, word, pe) == theirs);
        CHECK(shmem_ptr(&local, pe) == NULL);
    }
    CHECK(shmem_pe_accessible(-1) == 0 && shmem_pe_accessible(pes) == 0);
    CHECK(shmem_addr_accessible(word, pes) == 0 && shmem_ptr(word, -1) == NULL);
    CHECK(shmem_team_ptr(SHMEM_TEAM_INVALID, word, 0) == NULL && shmem_team_ptr(SHMEM_TEAM_WORLD, word, pes) == NULL);
    shmem_barrier_all();
    shmem_free(word);
}

static void check_nested(void)
{
    int provided = -1;
    int is = 0;
    long *late = ZEROED(long, 1);
    for (int i = 0; i < 3; i++) {
        shmem_init();
    }
    CHECK(shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided) == 0);
    for (int i = 1; i <= 4; i++) {
        const int last = shmem_n_pes() - 1;
        if (shmem_my_pe() == last) {
            usleep(20000);
            for (int pe = 0; pe < shmem_n_pes(); pe++) {
                shmem_long_p(late, i, pe);
            }
        }
        shmem_finalize();
        CHECK_SAY(*late == i, "finalize %d was no barrier: %ld", i, *late);
        shmem_query_initialized(&is);
        CHECK(is != 0);
        shmem_barrier_all();
    }
    shmem_free(late);
}

int main(void)
{
    int is = 1;
    int provided = -1;
    shmem_query_initialized(&is);
    if (is != 0) {
        return 3;
    }
    shmem_init();
    shmem_query_initialized(&is);
    CHECK(is != 0);
    shmem_query_thread(&provided);
    CHECK(provided >= SHMEM_THREAD_SINGLE);
    check_queries();
    check_access();
    check_counters();
    check_variables();
    check_active_set();
    check_nested();
    shmem_finalize();
    shmem_query_initialized(&is);
    if (is != 0) {
        return 4;
    }
    shmem_finalize(); /* once too often, as programs from before 1.6 do */
    for (int level = SHMEM_THREAD_SINGLE; level <= SHMEM_THREAD_MULTIPLE; level++) { /* again, and again */
        if (shmem_init_thread(level, &provided) != 0 || provided < level) {
            return 5;
        }
        int asked = -1;
        shmem_query_thread(&asked);
        CHECK(asked == provided);
        check_access();
        check_active_set();
        if (level < SHMEM_THREAD_MULTIPLE) {
            shmem_finalize();
        }
    }
    start_pes(0); /* does nothing more */
    return check_end();
}

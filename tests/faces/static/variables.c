/* Variables of the executable, initialised and not, global, static and in functions: what was in them at shmem_init
 * stays; every PE reaches them; what they have at shmem_finalize stays, and they can be symmetric again. */
#include <stdint.h>
#include <string.h>

#include "faces/static/check.h"

#ifndef COUNT
#define COUNT 5000
#endif

int initialised = 7;
int zero;
int set_before_init;
double values[COUNT];
long sync[SHMEM_REDUCE_SYNC_SIZE];
int work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static int file_static = 11;
static long lock;
static uint64_t signal_word;
static const int constant = 13;
static char name[64] = "a name in the data";

static long *function_static(void)
{
    static long inside = 17;
    return &inside;
}

/* What the loader has sealed stays so, and private: an address that it has filled in. */
static int *const sealed[] = {&initialised, &zero};

static int is_sealed(void)
{
    char line[512];
    char rights[8];
    unsigned long begin;
    unsigned long end;
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) == 3 && (uintptr_t)sealed >= begin &&
            (uintptr_t)sealed < end) {
            found = strcmp(rights, "r--p") == 0;
        }
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return found;
}

static void reach(int me, int pes)
{
    const int next = (me + 1) % pes;
    const int before = (me + pes - 1) % pes;
    shmem_int_p(&zero, 100 + me, next);
    shmem_int_atomic_add(&file_static, 1000, next);
    shmem_long_atomic_set(function_static(), 1700 + me, next);
    double mine[3] = {me, me + 0.5, me + 0.25};
    shmem_double_put(&values[COUNT - 3], mine, 3, next);
    shmem_barrier_all();
    CHECK(zero == 100 + before);
    CHECK(file_static == 1011);
    CHECK(*function_static() == 1700 + before);
    CHECK(values[COUNT - 3] == before && values[COUNT - 1] == before + 0.25 && values[0] == 1.5);
    CHECK(shmem_int_g(&zero, next) == 100 + me);
    shmem_char_get(name, name, sizeof name, next);
    CHECK(strcmp(name, "a name in the data") == 0);
}

static void reach_by_pointer(int me, int pes)
{
    const int next = (me + 1) % pes;
    shmem_barrier_all();
    int *theirs = shmem_ptr(&initialised, next);
    CHECK(theirs != NULL && shmem_addr_accessible(&initialised, next));
    *theirs = 900 + me;
    shmem_barrier_all();
    CHECK(initialised == 900 + (me + pes - 1) % pes);
    int *mine = shmem_ptr(&initialised, me);
    *mine = 7;
    CHECK(*(volatile int *)&initialised == 7);
    CHECK(!shmem_addr_accessible(&me, next) && shmem_ptr(&me, next) == NULL); /* the stack is not symmetric */
}

/* Locks, signals, waits, and collectives old and new. */
static void meet(int me, int pes)
{
    shmem_barrier_all();
    for (int i = 0; i < 20; i++) {
        shmem_set_lock(&lock);
        int seen = shmem_int_g(&zero, 0);
        shmem_int_p(&zero, me == 0 && i == 0 ? 1 : seen + 1, 0);
        shmem_quiet();
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    shmem_uint64_put_signal(&signal_word + 0, &(uint64_t){5}, 0, &signal_word, 3, SHMEM_SIGNAL_ADD, (me + 1) % pes);
    CHECK(shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, 3) == 3);
    static int one;
    static int sum;
    one = me + 1;
    for (size_t i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++) {
        sync[i] = SHMEM_SYNC_VALUE;
    }
    shmem_barrier_all();
    shmem_int_sum_to_all(&sum, &one, 1, 0, 0, pes, work, sync);
    CHECK(sum == pes * (pes + 1) / 2);
    static int others[1024];
    CHECK(shmem_int_fcollect(SHMEM_TEAM_WORLD, others, &one, 1) == 0);
    CHECK(others[pes - 1] == pes && others[0] == 1);
    CHECK(shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &sum, &one, 1) == 0);
    CHECK(sum == pes * (pes + 1) / 2);
}

static void check_values(void)
{
    CHECK(initialised == 7 && zero == 0 && set_before_init == 19 && file_static == 11 && constant == 13);
    CHECK(*function_static() == 17 && values[0] == 1.5 && values[COUNT - 1] == 0);
}

int main(int argc, char **argv)
{
    set_before_init = 19;
    values[0] = 1.5;
    shmem_init();
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    check_values();
    CHECK(argc < 2 || strcmp(argv[1], "sealed") != 0 || is_sealed());
    shmem_barrier_all();
    reach(me, pes);
    reach_by_pointer(me, pes);
    shmem_barrier_all();
    zero = 0;
    meet(me, pes);
    shmem_barrier_all();
    zero = 300 + me;
    shmem_finalize();

    if (zero != 300 + me || initialised != 7 || file_static != 1011) {
        (void)fprintf(stderr, "PE %d: values were lost with shmem_finalize\n", me);
        return 1;
    }
    zero++;
    shmem_init();
    CHECK(zero == 301 + me && initialised == 7 && file_static == 1011);
    shmem_barrier_all();
    shmem_int_atomic_add(&zero, 10000, (me + 1) % pes);
    shmem_barrier_all();
    CHECK(zero == 10301 + me);
    shmem_finalize();
    return zero == 10301 + me ? 0 : 1;
}

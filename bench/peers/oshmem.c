/* A peer: the measurements of bench/host.c against another OpenSHMEM library, through its public API alone, and its
 * collectives and lock. Run it as `oshrun -n 2 --bind-to core oshmem [--json FILE] [--blocks N]`. */
#include "peers/face_oshmem.h"

#include "suite/bulk.h"
#include "suite/pairs.h"
#include "suite/words.h"

#define COLLECTIVE_BYTES_MAX ((size_t)1 << 20)

/* The work arrays of the collectives, each free again after the barrier that ends a round of them. */
#define SYNC_ARRAYS 64
static long sync_arrays[SYNC_ARRAYS][SHMEM_ALLTOALL_SYNC_SIZE + SHMEM_REDUCE_SYNC_SIZE + SHMEM_COLLECT_SYNC_SIZE +
                                     SHMEM_BCAST_SYNC_SIZE];
static long *reduce_work;

static long *sync_array(uint64_t turn)
{
    return sync_arrays[turn % SYNC_ARRAYS];
}

/* The loop of one collective; CALL sees from, to, words (8-byte elements a PE), i, s. */
#define COLLECTIVE_BODY(NAME, CALL)                                                                                    \
    static int NAME(void *context, uint64_t count)                                                                     \
    {                                                                                                                  \
        suite *s = context;                                                                                            \
        const int pes = s->face.pes;                                                                                   \
        const size_t words = s->bytes / 8;                                                                             \
        long *from = (long *)(void *)s->memory;                                                                        \
        long *to = from + (size_t)pes * words;                                                                         \
        for (uint64_t i = 0; i < count; i++) {                                                                         \
            CALL;                                                                                                      \
            if (i % SYNC_ARRAYS == SYNC_ARRAYS - 1 || i + 1 == count) {                                                \
                shmem_barrier_all();                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
        return 0;                                                                                                      \
    }

COLLECTIVE_BODY(run_broadcast, shmem_broadcast64(to, from, words, 0, 0, 0, pes, sync_array(i)))
COLLECTIVE_BODY(run_fcollect, shmem_fcollect64(to, from, words, 0, 0, pes, sync_array(i)))
COLLECTIVE_BODY(run_alltoall, shmem_alltoall64(to, from, words, 0, 0, pes, sync_array(i)))
COLLECTIVE_BODY(run_sum, shmem_long_sum_to_all(to, from, (int)words, 0, 0, pes, reduce_work, sync_array(i)))
#undef COLLECTIVE_BODY

static long lock_word;

/* Taken by PE 0 alone. */
static int run_lock(void *context, uint64_t count)
{
    (void)context;
    for (uint64_t i = 0; i < count; i++) {
        shmem_set_lock(&lock_word);
        shmem_clear_lock(&lock_word);
    }
    return 0;
}

static int run_collectives(suite *s)
{
    static const struct {
        const char *name;
        bench_body body;
    } collectives[] = {
        {"broadcast", run_broadcast},
        {"fcollect", run_fcollect},
        {"alltoall", run_alltoall},
        {"sum", run_sum},
    };
    static const size_t sizes[] = {8, 1024, 65536, COLLECTIVE_BYTES_MAX};
    size_t work = COLLECTIVE_BYTES_MAX / 16 + 1;
    work = work > SHMEM_REDUCE_MIN_WRKDATA_SIZE ? work : SHMEM_REDUCE_MIN_WRKDATA_SIZE;
    s->memory = face_alloc(&s->face, 2 * (size_t)s->face.pes * COLLECTIVE_BYTES_MAX);
    reduce_work = face_alloc(&s->face, work * sizeof *reduce_work);
    if (s->memory == NULL || reduce_work == NULL) {
        return -1;
    }
    for (size_t i = 0; i < sizeof sync_arrays / sizeof(long); i++) {
        ((long *)sync_arrays)[i] = SHMEM_SYNC_VALUE;
    }
    shmem_barrier_all();
    int failed = 0;
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++) {
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            s->bytes = sizes[j];
            failed |= suite_run_collective(s, collectives[i].name, sizes[j], collectives[i].body);
        }
    }
    return failed;
}

static int run_locks(suite *s)
{
    if (s->pe == 0) {
        bench_samples samples = {0};
        int failed = bench_blocks(run_lock, s, s->options.blocks, &samples);
        suite_scale(&samples, 1e-3);
        suite_write(s, "lock", NULL, sizeof lock_word, "us", &samples);
        return failed | face_barrier(&s->face);
    }
    return face_barrier(&s->face);
}

int main(int argc, char **argv)
{
    static suite s;
    if (suite_open(&s, argc, argv) != 0) {
        return 1;
    }
    int failed = suite_run_words(&s);
    failed |= suite_run_pairs(&s, NULL);
    failed |= suite_run_bulk(&s, 0);
    failed |= run_locks(&s);
    failed |= run_collectives(&s);
    return suite_close(&s, failed);
}

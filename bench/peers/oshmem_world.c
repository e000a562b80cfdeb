/* A peer: the measurements of bench/world.c against another OpenSHMEM library: its one creation a process, and its
 * memory. Run it as `oshrun -n N oshmem_world [--json FILE]`. */
#include <shmem.h>

#include "part/clock.h"
#include "part/memory.h"
#include "part/options.h"
#include "part/record.h"
#include "part/span.h"

#define PEER_IMPL "ompi"
#define PES_MAX 1024

static bench_span spans[PES_MAX]; /* symmetric, as all of a program's static data */
static double pss[PES_MAX];

static void write_one(bench_record *record, const char *name, const char *unit, const char *more, double value)
{
    const bench_figure figure = {.name = name, .unit = unit, .more = more};
    bench_samples samples = {0};
    bench_samples_add(&samples, value);
    bench_record_write(record, &figure, &samples);
}

static int report(const bench_options *options, int pes)
{
    bench_record record;
    if (bench_record_open(&record, options->json, PEER_IMPL, 0, pes) != 0) {
        return 1;
    }
    double sum = 0;
    for (int i = 0; i < pes; i++) {
        sum += pss[i];
    }
    write_one(&record, "world_create", "ms", "\"mode\": \"first\"", bench_span_ms(spans, pes));
    write_one(&record, "pss_per_pe", "MB", NULL, sum / pes);
    bench_record_close(&record);
    return 0;
}

int main(int argc, char **argv)
{
    bench_options options = BENCH_OPTIONS_INIT;
    if (bench_options_read(&options, NULL, argc, argv) != 0) {
        return 1;
    }
    bench_span mine;
    mine.entry_ns = bench_now_ns();
    shmem_init();
    mine.return_ns = bench_now_ns();
    int pe = shmem_my_pe();
    int pes = shmem_n_pes();
    if (pes > PES_MAX) {
        return 1;
    }
    shmem_barrier_all();
    double mine_pss = bench_pss_mb();
    shmem_putmem(&spans[pe], &mine, sizeof mine, 0);
    shmem_double_p(&pss[pe], mine_pss, 0);
    shmem_barrier_all();
    int failed = pe == 0 ? report(&options, pes) : 0;
    shmem_finalize();
    return failed;
}

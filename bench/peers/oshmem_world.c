/* A peer: the measurements of bench/world.c against another OpenSHMEM library: its one creation a process, and its
 * memory. Run it as `oshrun -n N oshmem_world [--json FILE]`. */
#include <shmem.h>

#include "suite/options.h"
#include "tools/lib/clock.h"
#include "tools/lib/memory.h"
#include "tools/lib/record.h"
#include "tools/lib/span.h"

#define PEER_IMPL "ompi"
#define PES_MAX 1024

static tool_span spans[PES_MAX]; /* symmetric, as all of a program's static data */
static double pss[PES_MAX];

static void write_one(tool_record *record, const char *name, const char *unit, const char *more, double value)
{
    const tool_measurement figure = {.name = name, .unit = unit, .more = more};
    tool_samples samples = {0};
    tool_samples_add(&samples, value);
    tool_record_write(record, &figure, &samples);
}

static int report(const bench_options *options, int pes)
{
    tool_record record;
    if (tool_record_open(&record, options->json, PEER_IMPL, 0, pes) != 0) {
        return 1;
    }
    double sum = 0;
    for (int i = 0; i < pes; i++) {
        sum += pss[i];
    }
    write_one(&record, "world_create", "ms", "\"mode\": \"first\"", tool_span_ms(spans, pes));
    write_one(&record, "pss_per_pe", "MB", NULL, sum / pes);
    tool_record_close(&record);
    return 0;
}

int main(int argc, char **argv)
{
    bench_options options = BENCH_OPTIONS_INIT;
    if (bench_options_read(&options, NULL, 0, argc, argv) != 0) {
        return 1;
    }
    tool_span mine;
    mine.entry_ns = tool_now_ns();
    shmem_init();
    mine.return_ns = tool_now_ns();
    int pe = shmem_my_pe();
    int pes = shmem_n_pes();
    if (pes > PES_MAX) {
        return 1;
    }
    shmem_barrier_all();
    double mine_pss = tool_pss_mb();
    shmem_putmem(&spans[pe], &mine, sizeof mine, 0);
    shmem_double_p(&pss[pe], mine_pss, 0);
    shmem_barrier_all();
    int failed = pe == 0 ? report(&options, pes) : 0;
    shmem_finalize();
    return failed;
}

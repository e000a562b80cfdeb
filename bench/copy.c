/* Copy: the library's bulk copy (src/common/copy.c), the work of every put and get, beside memcpy, at sizes from
 * nothing to 64 MiB and several places inside a cache line. Run it as `bench_copy [--json FILE] [--blocks N]`, on one
 * core, as taskset -c 0 does. See bench/README.md. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "suite/options.h"
#include "tools/lib/block.h"
#include "tools/lib/clock.h"
#include "tools/lib/record.h"
#include "weft/protocol/mem.h"

#define BYTES_MOST ((size_t)64 << 20)
#define SMALL_BYTES 1024 /* up to here a figure is a time, beyond a rate */

typedef struct copying {
    unsigned char *dst;
    const unsigned char *src;
    size_t bytes;
} copying;

static int run_weft(void *context, uint64_t count)
{
    copying c = *(copying *)context;
    for (uint64_t i = 0; i < count; i++) {
        wefti_copy_bulk(c.dst, c.src, tool_opaque(c.bytes));
        tool_compiler_barrier();
    }
    return 0;
}

static int run_memcpy(void *context, uint64_t count)
{
    copying c = *(copying *)context;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(c.dst, c.src, tool_opaque(c.bytes));
        tool_compiler_barrier();
    }
    return 0;
}

static void write_one(tool_record *record, const char *impl, size_t bytes, const char *more, tool_samples *samples)
{
    for (int i = 0; i < samples->count && bytes > SMALL_BYTES; i++) {
        samples->values[i] = (double)bytes / samples->values[i];
    }
    const tool_measurement figure = {.name = bytes > SMALL_BYTES ? "copy_bw" : "copy",
                                     .impl = impl,
                                     .bytes = bytes,
                                     .unit = bytes > SMALL_BYTES ? "GB/s" : "ns",
                                     .more = more};
    tool_record_write(record, &figure, samples);
}

static void measure(tool_record *record, const bench_options *options, copying c, int dst, int src)
{
    tool_samples ours = {0};
    tool_samples theirs = {0};
    char more[64];
    snprintf(more, sizeof more, "\"dst_at\": %d, \"src_at\": %d", dst, src);
    c.dst += dst;
    c.src += src;
    (void)tool_blocks_beside(run_weft, run_memcpy, &c, options->blocks, &ours, &theirs);
    write_one(record, "weft", c.bytes, more, &ours);
    write_one(record, "memcpy", c.bytes, more, &theirs);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {0,
                                   1,
                                   2,
                                   4,
                                   8,
                                   12,
                                   16,
                                   24,
                                   32,
                                   48,
                                   64,
                                   96,
                                   128,
                                   192,
                                   256,
                                   512,
                                   1024,
                                   2048,
                                   4096,
                                   8192,
                                   16384,
                                   65536,
                                   262144,
                                   (size_t)1 << 20,
                                   (size_t)4 << 20,
                                   (size_t)8 << 20,
                                   (size_t)16 << 20,
                                   BYTES_MOST};
    static const int places[][2] = {{0, 0}, {8, 0}, {0, 8}, {17, 5}};
    bench_options options = BENCH_OPTIONS_INIT;
    tool_record record;
    if (bench_options_read(&options, NULL, 0, argc, argv) != 0 ||
        tool_record_open(&record, options.json, "weft", 0, 1) != 0) {
        return 1;
    }
    size_t room = BYTES_MOST + 4096;
    unsigned char *memory = mmap(NULL, 2 * room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    memset(memory, 1, 2 * room);
    for (size_t place = 0; place < sizeof places / sizeof *places; place++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            copying c = {.dst = memory + room, .src = memory, .bytes = sizes[i]};
            measure(&record, &options, c, places[place][0], places[place][1]);
        }
    }
    tool_record_close(&record);
    return 0;
}

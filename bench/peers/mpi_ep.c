/* A peer of weft-ep-bench, whose choices and defaults it has: the same dispatch and combine as one writes them with
 * MPI: pack the rows by destination, MPI_Alltoallv, and for the combine MPI_Alltoallv back and add up each token's
 * rows. Run it as
 *     mpirun -n 2 mpi_ep [--tokens T] [--hidden H] [--topk K] [--experts E] [--json FILE] [--blocks N]
 * Rows are bf16, rank-major: one row a (token, PE). How many rows go where is known before the clock starts, as on
 * weft's cached routes. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite/options.h"
#include "tools/lib/clock.h"
#include "tools/lib/record.h"
#include "tools/weft-ep-bench/gate.h"

#define SEED 1 /* of choices, as weft-ep-bench has it by default */

/* As weft-ep-bench has them by default. */
#define POINT                                                                                                          \
    {                                                                                                                  \
        .tokens = 1024, .hidden = 4096, .topk = 8, .experts = 64, .routing = BENCH_CACHED                              \
    }

/* What is timed. */
enum step { STEP_DISPATCH, STEP_COMBINE, STEP_PAIR, STEPS };

/* How many bytes go to each PE, and where they begin: as MPI_Alltoallv takes them. */
typedef struct parts {
    int *bytes;
    int *at;
    size_t rows; /* in all */
} parts;

typedef struct bench {
    bench_point point;
    int pe;
    int pes;
    bench_options options;
    tool_record record;
    size_t row_bytes;
    int32_t *ids; /* [tokens][topk] */
    int *sent_token; /* [sent rows], by PE, then token */
    int *returned; /* [tokens][pes]: which of the sent rows is this one; -1: none */
    parts sent;
    parts come;
    uint16_t *in; /* [tokens] rows */
    uint16_t *out; /* [tokens] rows */
    uint16_t *packed; /* sent rows, and those that come back */
    uint16_t *received;
    float *sum; /* [hidden] */
} bench;

/* The byte that fills a token's row. */
static int row_byte(int pe, int token)
{
    return 1 + (pe * 31 + token) % 100;
}

static void *allocate(size_t bytes)
{
    void *block = NULL;
    if (posix_memalign(&block, 4096, bytes > 0 ? bytes : 1) != 0) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(block, 0, bytes);
    return block;
}

static void begin_parts(bench *b, parts *of)
{
    of->at = allocate((size_t)b->pes * sizeof(int));
    int end = 0;
    for (int pe = 0; pe < b->pes; pe++) {
        of->at[pe] = end;
        end += of->bytes[pe];
    }
    of->rows = (size_t)end / b->row_bytes;
}

/* Which rows go where. */
static void plan(bench *b)
{
    size_t pes = (size_t)b->pes;
    size_t tokens = (size_t)b->point.tokens;
    int count = 0;
    b->ids = allocate(tokens * (size_t)b->point.topk * sizeof *b->ids);
    b->sent_token = allocate(tokens * pes * sizeof(int));
    b->returned = allocate(tokens * pes * sizeof(int));
    b->sent.bytes = allocate(pes * sizeof(int));
    b->come.bytes = allocate(pes * sizeof(int));
    bench_gate_choose(&b->point, b->pes, SEED, b->pe, b->ids);
    for (int pe = 0; pe < b->pes; pe++) {
        for (int t = 0; t < b->point.tokens; t++) {
            int *returned = &b->returned[t * b->pes + pe];
            *returned = -1;
            if (bench_gate_goes(&b->point, b->pes, b->ids, t, pe)) {
                *returned = count;
                b->sent_token[count++] = t;
                b->sent.bytes[pe] += (int)b->row_bytes;
            }
        }
    }
    MPI_Alltoall(b->sent.bytes, 1, MPI_INT, b->come.bytes, 1, MPI_INT, MPI_COMM_WORLD);
    begin_parts(b, &b->sent);
    begin_parts(b, &b->come);
}

static void open_buffers(bench *b)
{
    size_t tokens = (size_t)b->point.tokens;
    b->in = allocate(tokens * b->row_bytes);
    b->out = allocate(tokens * b->row_bytes);
    b->packed = allocate(b->sent.rows * b->row_bytes);
    b->received = allocate(b->come.rows * b->row_bytes);
    b->sum = allocate((size_t)b->point.hidden * sizeof *b->sum);
    for (int t = 0; t < b->point.tokens; t++) {
        memset(b->in + (size_t)t * (size_t)b->point.hidden, row_byte(b->pe, t), b->row_bytes);
    }
}

static void dispatch(bench *b)
{
    size_t hidden = (size_t)b->point.hidden;
    for (size_t i = 0; i < b->sent.rows; i++) {
        memcpy(b->packed + i * hidden, b->in + (size_t)b->sent_token[i] * hidden, b->row_bytes);
    }
    MPI_Alltoallv(b->packed, b->sent.bytes, b->sent.at, MPI_BYTE, b->received, b->come.bytes, b->come.at, MPI_BYTE,
                  MPI_COMM_WORLD);
}

static void add_row(float *sum, const uint16_t *row, int hidden)
{
    for (int i = 0; i < hidden; i++) {
        uint32_t bits = (uint32_t)row[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        sum[i] += value;
    }
}

static void round_row(uint16_t *row, const float *sum, int hidden)
{
    for (int i = 0; i < hidden; i++) {
        uint32_t bits;
        memcpy(&bits, &sum[i], sizeof bits);
        row[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

static void combine(bench *b)
{
    int hidden = b->point.hidden;
    MPI_Alltoallv(b->received, b->come.bytes, b->come.at, MPI_BYTE, b->packed, b->sent.bytes, b->sent.at, MPI_BYTE,
                  MPI_COMM_WORLD);
    for (int t = 0; t < b->point.tokens; t++) {
        memset(b->sum, 0, (size_t)hidden * sizeof *b->sum);
        for (int pe = 0; pe < b->pes; pe++) {
            int row = b->returned[t * b->pes + pe];
            if (row >= 0) {
                add_row(b->sum, b->packed + (size_t)row * (size_t)hidden, hidden);
            }
        }
        round_row(b->out + (size_t)t * (size_t)hidden, b->sum, hidden);
    }
}

static void pair(bench *b)
{
    dispatch(b);
    combine(b);
}

static const struct {
    const char *name;
    void (*run)(bench *b);
} steps[STEPS] = {
    [STEP_DISPATCH] = {"ep_dispatch", dispatch},
    [STEP_COMBINE] = {"ep_combine", combine},
    [STEP_PAIR] = {"ep_pair", pair},
};

/* The rows that came, whole, where their source and token tell them; and what the combine made of them. */
static int check(bench *b)
{
    const unsigned char *row = (const unsigned char *)b->received;
    int wrong = 0;
    dispatch(b);
    for (int source = 0; source < b->pes; source++) {
        bench_gate_choose(&b->point, b->pes, SEED, source, b->ids);
        for (int t = 0; t < b->point.tokens; t++) {
            if (bench_gate_goes(&b->point, b->pes, b->ids, t, b->pe)) {
                wrong += row[0] != row_byte(source, t) || row[b->row_bytes - 1] != row[0];
                row += b->row_bytes;
            }
        }
    }
    bench_gate_choose(&b->point, b->pes, SEED, b->pe, b->ids);
    combine(b);
    for (int t = 0; t < b->point.tokens; t++) {
        float one = 0.0f;
        float sum = 0.0f;
        uint16_t wanted;
        add_row(&one, b->in + (size_t)t * (size_t)b->point.hidden, 1);
        for (int pe = 0; pe < b->pes; pe++) {
            sum += b->returned[t * b->pes + pe] >= 0 ? one : 0.0f;
        }
        round_row(&wanted, &sum, 1);
        wrong += b->out[(size_t)(t + 1) * (size_t)b->point.hidden - 1] != wanted;
    }
    if (wrong > 0) {
        fprintf(stderr, "PE %d: %d rows are wrong\n", b->pe, wrong);
    }
    return wrong;
}

static void measure(bench *b)
{
    static tool_samples samples[STEPS];
    char more[512];
    bench_point_describe(&b->point, more, sizeof more);
    for (int round = -3; round < b->options.blocks; round++) {
        for (int i = 0; i < STEPS; i++) {
            double slowest;
            MPI_Barrier(MPI_COMM_WORLD);
            uint64_t start = tool_now_ns();
            steps[i].run(b);
            double us = (double)(tool_now_ns() - start) * 1e-3;
            MPI_Allreduce(&us, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (round >= 0) {
                tool_samples_add(&samples[i], slowest);
            }
        }
    }
    for (int i = 0; i < STEPS; i++) {
        const tool_measurement figure = {.name = steps[i].name,
                                         .bytes = b->sent.rows * b->row_bytes * (i == STEP_PAIR ? 2 : 1),
                                         .unit = "us",
                                         .more = more};
        tool_record_write(&b->record, &figure, &samples[i]);
    }
}

static int check_point(const bench_point *point)
{
    if (point->topk > point->experts || point->hidden % 8 != 0) {
        fprintf(stderr, "--topk %d: at most --experts, %d; --hidden %d: a multiple of 8\n", point->topk, point->experts,
                point->hidden);
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static bench b = {.point = POINT, .options = BENCH_OPTIONS_INIT};
    const tool_option own[] = {
        {"tokens", '\0', TOOL_NUMBER, &b.point.tokens, 1, 1 << 20, NULL, 0},
        {"hidden", '\0', TOOL_NUMBER, &b.point.hidden, 8, 1 << 20, NULL, 0},
        {"topk", '\0', TOOL_NUMBER, &b.point.topk, 1, 1024, NULL, 0},
        {"experts", '\0', TOOL_NUMBER, &b.point.experts, 1, 1 << 16, NULL, 0},
    };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.pe);
    MPI_Comm_size(MPI_COMM_WORLD, &b.pes);
    if (bench_options_read(&b.options, own, (int)(sizeof own / sizeof *own), argc, argv) != 0 ||
        check_point(&b.point) != 0 || tool_record_open(&b.record, b.options.json, "ompi", b.pe, b.pes) != 0) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    b.row_bytes = (size_t)b.point.hidden * 2;
    plan(&b);
    open_buffers(&b);
    if (check(&b) != 0) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    measure(&b);
    tool_record_close(&b.record);
    MPI_Finalize();
    return 0;
}

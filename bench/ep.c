/* Expert parallelism: a dispatch, a combine and the two together, beside memcpy of the same rows to and from the same
 * places by all PEs at once. Run it as
 *     weftrun -n 2 --bind bench_ep [--tokens T] [--hidden H] [--topk K] [--experts E] [--expert-major 0|1]
 *                                  [--json FILE] [--blocks N]
 * Rows are bf16, choices uniform and seeded. A time is the slowest PE's, the median of the repetitions, after a
 * barrier. See bench/README.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite/ep_layer.h"
#include "suite/options.h"
#include "tools/lib/clock.h"
#include "tools/lib/record.h"
#include "weft.h"
#include "weft_ep.h"

/* What is timed, in turn. */
enum step { STEP_DISPATCH, STEP_DISPATCH_COPY, STEP_COMBINE, STEP_COMBINE_COPY, STEP_PAIR, STEP_PAIR_COPY, STEPS };

typedef struct bench {
    weft_world *world;
    ep_layer layer;
    int expert_major;
    bench_options options;

    weft_ep *group;
    weft_ep_route *route;
    size_t row_bytes;
    size_t capacity; /* of `received` in rows */
    int32_t *ids; /* [tokens][topk] */
    float *weights;
    unsigned char *in; /* [tokens] rows */
    unsigned char *out; /* [tokens] rows */
    unsigned char *received; /* symmetric: [capacity] rows */
    unsigned char *pulled; /* where memcpy brings rows back to: [pes][tokens] rows */
    int32_t *source_token; /* [capacity] */
    /* The copies that memcpy makes. */
    unsigned char **to; /* [pes]: where this PE's first row lies in each PE's `received` */
    uint32_t *copy_rows; /* per copy: token * pes + PE */
    size_t copies;
    double *times; /* symmetric: [STEPS][blocks] of this PE, in ns */
    tool_record record;
} bench;

static int said(weft_status status)
{
    if (status != WEFT_OK) {
        fprintf(stderr, "%s: %s\n", weft_status_name(status), weft_last_error());
    }
    return status != WEFT_OK;
}

/* ---- the layer ---- */

static void *local_memory(size_t bytes)
{
    void *block = NULL;
    if (posix_memalign(&block, 4096, bytes > 0 ? bytes : 1) != 0) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        return NULL;
    }
    memset(block, 0, bytes);
    return block;
}

static int allocate(bench *b)
{
    size_t tokens = (size_t)b->layer.tokens;
    size_t pes = (size_t)b->layer.pes;
    size_t topk = (size_t)b->layer.topk;
    void *received;
    void *times;
    b->row_bytes = (size_t)b->layer.hidden * 2;
    b->capacity = pes * tokens * (b->expert_major ? topk : 1);
    b->ids = local_memory(tokens * topk * sizeof *b->ids);
    b->weights = local_memory(tokens * topk * sizeof *b->weights);
    b->in = local_memory(tokens * b->row_bytes);
    b->out = local_memory(tokens * b->row_bytes);
    b->pulled = local_memory(pes * tokens * b->row_bytes);
    b->source_token = local_memory(b->capacity * sizeof *b->source_token);
    b->to = local_memory(pes * sizeof *b->to);
    b->copy_rows = local_memory(pes * tokens * sizeof *b->copy_rows);
    if (b->ids == NULL || b->weights == NULL || b->in == NULL || b->out == NULL || b->pulled == NULL ||
        b->source_token == NULL || b->to == NULL || b->copy_rows == NULL) {
        return -1;
    }
    if (said(weft_align(b->world, 4096, b->capacity * b->row_bytes, &received)) ||
        said(weft_malloc(b->world, (size_t)STEPS * (size_t)b->options.blocks * sizeof *b->times, &times))) {
        return -1;
    }
    b->received = received;
    b->times = times;
    memset(b->received, 0, b->capacity * b->row_bytes);
    for (int t = 0; t < b->layer.tokens; t++) {
        memset(b->in + (size_t)t * b->row_bytes, ep_layer_byte(b->layer.pe, t), b->row_bytes);
    }
    ep_layer_choose(&b->layer, b->ids);
    for (size_t i = 0; i < tokens * topk; i++) {
        b->weights[i] = 1.0f / (float)b->layer.topk;
    }
    return 0;
}

static int open_group(bench *b)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = b->layer.experts;
    config.tokens_max = b->layer.tokens;
    config.topk_max = b->layer.topk;
    config.row_bytes_max = b->row_bytes;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = b->layer.topk;
    plan.layout = b->expert_major ? WEFT_EP_EXPERT_MAJOR : WEFT_EP_RANK_MAJOR;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = b->layer.tokens;
    choices.ids = b->ids;
    choices.weights = b->weights;
    return said(weft_ep_create(weft_team_world(b->world), &config, &b->group)) ||
           said(weft_ep_route_create(b->group, &plan, NULL, &b->route)) ||
           said(weft_ep_route_update(b->route, &choices, NULL));
}

static int dispatch(bench *b)
{
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    in.data = b->in;
    in.dtype = WEFT_EP_BF16;
    in.hidden = b->layer.hidden;
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    out.rows = in;
    out.rows.data = b->received;
    out.rows_capacity = b->capacity;
    out.source_token = b->source_token;
    return said(weft_ep_dispatch(b->route, &in, &out, NULL));
}

static int combine(bench *b)
{
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    in.data = b->received;
    in.dtype = WEFT_EP_BF16;
    in.hidden = b->layer.hidden;
    weft_ep_rows out = in;
    out.data = b->out;
    return said(weft_ep_combine(b->route, &in, &out, 0, NULL));
}

/* ---- the same rows by memcpy ---- */

/* Rank-major: a token's row goes once to each rank that owns one of its experts, behind the rows of the sources before
 * this one. Collective. */
static int plan_copies(bench *b)
{
    uint64_t *sent = NULL; /* symmetric: [source][PE] rows */
    void *block;
    size_t pes = (size_t)b->layer.pes;
    if (said(weft_calloc(b->world, pes * pes, sizeof *sent, &block))) {
        return -1;
    }
    sent = block;
    uint64_t *mine = &sent[(size_t)b->layer.pe * pes];
    for (int t = 0; t < b->layer.tokens; t++) {
        for (int pe = 0; pe < b->layer.pes; pe++) {
            if (ep_layer_goes(&b->layer, b->ids, t, pe)) {
                b->copy_rows[b->copies++] = (uint32_t)(t * b->layer.pes + pe);
                mine[pe]++;
            }
        }
    }
    for (int pe = 0; pe < b->layer.pes; pe++) {
        if (pe != b->layer.pe && said(weft_putmem(b->world, mine, mine, pes * sizeof *mine, pe))) {
            return -1;
        }
    }
    if (said(weft_barrier(b->world))) {
        return -1;
    }
    for (int pe = 0; pe < b->layer.pes; pe++) {
        uint64_t before = 0;
        for (int source = 0; source < b->layer.pe; source++) {
            before += sent[(size_t)source * pes + (size_t)pe];
        }
        b->to[pe] = (unsigned char *)weft_ptr(b->world, b->received, pe) + before * b->row_bytes;
    }
    return said(weft_free(b->world, block));
}

static int dispatch_copy(bench *b)
{
    unsigned char *to[64];
    memcpy(to, b->to, (size_t)b->layer.pes * sizeof *to);
    for (size_t i = 0; i < b->copies; i++) {
        size_t token = b->copy_rows[i] / (uint32_t)b->layer.pes;
        size_t pe = b->copy_rows[i] % (uint32_t)b->layer.pes;
        memcpy(to[pe], b->in + token * b->row_bytes, b->row_bytes);
        to[pe] += b->row_bytes;
    }
    return 0;
}

static int combine_copy(bench *b)
{
    unsigned char *from[64];
    memcpy(from, b->to, (size_t)b->layer.pes * sizeof *from);
    for (size_t i = 0; i < b->copies; i++) {
        size_t pe = b->copy_rows[i] % (uint32_t)b->layer.pes;
        memcpy(b->pulled + i * b->row_bytes, from[pe], b->row_bytes);
        from[pe] += b->row_bytes;
    }
    return 0;
}

/* ---- measuring ---- */

static int pair(bench *b)
{
    return dispatch(b) || combine(b);
}

static int pair_copy(bench *b)
{
    return dispatch_copy(b) || combine_copy(b);
}

static const struct {
    const char *name;
    const char *impl;
    int (*run)(bench *b);
} steps[STEPS] = {
    [STEP_DISPATCH] = {"ep_dispatch", "weft", dispatch},
    [STEP_DISPATCH_COPY] = {"ep_dispatch", "memcpy", dispatch_copy},
    [STEP_COMBINE] = {"ep_combine", "weft", combine},
    [STEP_COMBINE_COPY] = {"ep_combine", "memcpy", combine_copy},
    [STEP_PAIR] = {"ep_pair", "weft", pair},
    [STEP_PAIR_COPY] = {"ep_pair", "memcpy", pair_copy},
};

static int is_copy(int step)
{
    return step % 2 == 1;
}

/* One time of each step. The rows a dispatch has brought are those that memcpy brings, so that a combine may follow. */
static int run_round(bench *b, int round)
{
    for (int i = 0; i < STEPS; i++) {
        if (b->expert_major && is_copy(i)) {
            continue;
        }
        if (said(weft_barrier(b->world))) {
            return -1;
        }
        uint64_t start = tool_now_ns();
        int failed = steps[i].run(b);
        double ns = (double)(tool_now_ns() - start);
        if (failed != 0) {
            return -1;
        }
        if (round >= 0) {
            b->times[i * b->options.blocks + round] = ns;
        }
    }
    return 0;
}

/* The first and last byte of the rows that came, where their source tells them. */
static int check_rows(const bench *b)
{
    weft_ep_counts counts;
    if (said(weft_ep_route_counts(b->route, &counts))) {
        return -1;
    }
    for (int source = 0; source < b->layer.pes && !b->expert_major; source++) {
        for (int i = counts.offset_of_source[source]; i < counts.offset_of_source[source + 1]; i++) {
            const unsigned char *row = b->received + (size_t)i * b->row_bytes;
            int expected = ep_layer_byte(source, b->source_token[i]);
            if (row[0] != expected || row[b->row_bytes - 1] != expected) {
                fprintf(stderr, "PE %d: row %d of PE %d is wrong\n", b->layer.pe, i, source);
                return -1;
            }
        }
    }
    return 0;
}

/* The slowest PE's times, on PE 0. Collective. */
static int gather(bench *b)
{
    size_t count = (size_t)STEPS * (size_t)b->options.blocks;
    double *theirs = local_memory(count * sizeof *theirs);
    int failed = theirs == NULL || said(weft_barrier(b->world));
    for (int pe = 1; pe < b->layer.pes && b->layer.pe == 0 && !failed; pe++) {
        failed = said(weft_getmem(b->world, theirs, b->times, count * sizeof *theirs, pe));
        for (size_t i = 0; i < count; i++) {
            b->times[i] = theirs[i] > b->times[i] ? theirs[i] : b->times[i];
        }
    }
    free(theirs);
    return failed || said(weft_barrier(b->world)) ? -1 : 0;
}

static void write_figures(bench *b)
{
    char more[256];
    ep_layer_describe(&b->layer, b->expert_major ? "expert-major" : "rank-major", more, sizeof more);
    for (int i = 0; i < STEPS; i++) {
        if (b->expert_major && is_copy(i)) {
            continue;
        }
        tool_samples samples = {0};
        for (int round = 0; round < b->options.blocks; round++) {
            tool_samples_add(&samples, b->times[i * b->options.blocks + round] * 1e-3);
        }
        size_t bytes = b->copies * b->row_bytes * (i >= STEP_PAIR ? 2 : 1);
        const tool_measurement figure = {
            .name = steps[i].name, .impl = steps[i].impl, .bytes = bytes, .unit = "us", .more = more};
        tool_record_write(&b->record, &figure, &samples);
    }
}

static int measure(bench *b)
{
    for (int warm = -3; warm < 0; warm++) {
        if (run_round(b, warm) != 0) {
            return -1;
        }
    }
    if (dispatch(b) != 0 || check_rows(b) != 0 || said(weft_barrier(b->world)) || dispatch_copy(b) != 0 ||
        said(weft_barrier(b->world)) || check_rows(b) != 0) {
        return -1;
    }
    for (int round = 0; round < b->options.blocks; round++) {
        if (run_round(b, round) != 0) {
            return -1;
        }
    }
    if (gather(b) != 0) {
        return -1;
    }
    write_figures(b);
    return 0;
}

int main(int argc, char **argv)
{
    static bench b = {.layer = EP_LAYER_INIT, .options = BENCH_OPTIONS_INIT};
    const tool_option own[] = {
        BENCH_NUMBER("tokens", &b.layer.tokens),       BENCH_NUMBER("hidden", &b.layer.hidden),
        BENCH_NUMBER("topk", &b.layer.topk),           BENCH_NUMBER("experts", &b.layer.experts),
        BENCH_NUMBER("expert-major", &b.expert_major),
    };
    if (bench_options_read(&b.options, own, (int)(sizeof own / sizeof *own), argc, argv) != 0 ||
        said(weft_world_create(NULL, &b.world))) {
        return 1;
    }
    b.layer.pe = weft_world_pe(b.world);
    b.layer.pes = weft_world_pes(b.world);
    if (ep_layer_check(&b.layer) != 0) {
        return 1;
    }
    if (tool_record_open(&b.record, b.options.json, "weft", b.layer.pe, b.layer.pes) != 0 || allocate(&b) != 0 ||
        plan_copies(&b) != 0 || open_group(&b) || measure(&b) != 0) {
        return 1;
    }
    tool_record_close(&b.record);
    int failed = said(weft_ep_route_destroy(b.route)) || said(weft_ep_destroy(b.group));
    return said(weft_world_destroy(b.world)) || failed;
}

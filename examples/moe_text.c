/* A mixture-of-experts layer on real text. Run: weftrun -n 4 moe_text [file]
 *
 * The words of a text are embedded, gated by a fixed random projection (frequent words make some experts busy),
 * dispatched to 64 experts, eight each, worked on, and combined; every result is compared with a serial reference in
 * double precision. */
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weft.h>
#include <weft_ep.h>

enum { EXPERTS = 64, TOPK = 8, HIDDEN = 1024, TOKENS_MAX = 512, ALIGNMENT = 16, TEXT_WORDS_MAX = 8192 };

static void check(weft_status status, const char *what)
{
    if (status != WEFT_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, weft_status_name(status), weft_last_error());
        exit(1);
    }
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- numbers ---- */

static float from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); /* nearest, ties to even; no NaN here */
}

/* Uniform in [-1, 1), a pure function of its arguments (splitmix64). */
static float noise(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (float)((int64_t)(z ^ z >> 31) >> 40) * (1.0f / 8388608.0f);
}

/* ---- the model ---- */

typedef struct model {
    float *gate; /* [EXPERTS][HIDDEN] */
    float *scale; /* [EXPERTS][HIDDEN] */
    float *shift; /* [EXPERTS][HIDDEN] */
} model;

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

static void model_init(model *m)
{
    size_t count = (size_t)EXPERTS * HIDDEN;
    m->gate = allocate(count * sizeof(float));
    m->scale = allocate(count * sizeof(float));
    m->shift = allocate(count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        m->gate[i] = noise(1, i);
        m->scale[i] = 1.0f + noise(2, i);
        m->shift[i] = 0.5f * noise(3, i);
    }
}

static void model_fini(model *m)
{
    free(m->gate);
    free(m->scale);
    free(m->shift);
}

static void embed(const char *word, uint16_t *row)
{
    uint64_t seed = 0xcbf29ce484222325u;
    for (; *word != '\0'; word++) {
        seed = (seed ^ (unsigned char)*word) * 0x100000001b3u;
    }
    for (int h = 0; h < HIDDEN; h++) {
        row[h] = to_bf16(noise(seed, (uint64_t)h));
    }
}

/* The TOPK experts with the largest scores, weights by softmax over them. */
static void gate(const model *m, const uint16_t *row, int32_t *ids, float *weights)
{
    float scores[EXPERTS];
    float sum = 0;
    for (int e = 0; e < EXPERTS; e++) {
        scores[e] = 0;
        for (int h = 0; h < HIDDEN; h++) {
            scores[e] += m->gate[e * HIDDEN + h] * from_bf16(row[h]);
        }
    }
    for (int k = 0; k < TOPK; k++) {
        int best = 0;
        for (int e = 1; e < EXPERTS; e++) {
            best = scores[e] > scores[best] ? e : best;
        }
        ids[k] = best;
        weights[k] = expf(0.1f * scores[best]);
        scores[best] = -INFINITY;
        sum += weights[k];
    }
    for (int k = 0; k < TOPK; k++) {
        weights[k] /= sum;
    }
}

static void expert(const model *m, int e, const uint16_t *in, uint16_t *out)
{
    for (int h = 0; h < HIDDEN; h++) {
        float x = from_bf16(in[h]) * m->scale[e * HIDDEN + h] + m->shift[e * HIDDEN + h];
        out[h] = to_bf16(x > 0 ? x : 0.1f * x);
    }
}

/* ---- the text ---- */

static int read_words(const char *path, char (*words)[32])
{
    FILE *file = fopen(path, "r");
    int count = 0;
    int length = 0;
    int c;
    if (file == NULL) {
        return -1;
    }
    while (count < TEXT_WORDS_MAX && (c = fgetc(file)) != EOF) {
        if (isalpha(c) && length < 31) {
            words[count][length++] = (char)tolower(c);
        } else if (!isalpha(c) && length > 0) {
            words[count++][length] = '\0';
            length = 0;
        }
    }
    fclose(file);
    return count;
}

static const char *text_path(int argc, char **argv)
{
    static const char *const texts[] = {"/usr/share/common-licenses/GPL-3", "/usr/share/common-licenses/Apache-2.0",
                                        "/usr/share/common-licenses/GPL-2"};
    if (argc > 1) {
        return argv[1];
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FILE *file = fopen(texts[i], "r");
        if (file != NULL) {
            fclose(file);
            return texts[i];
        }
    }
    return texts[0];
}

/* ---- one PE ---- */

typedef struct layer {
    weft_world *world;
    weft_ep *ep;
    weft_ep_route *route;
    model m;
    int pe;
    int pes;
    uint16_t *tokens; /* [TOKENS_MAX][HIDDEN], local */
    uint16_t *output; /* [TOKENS_MAX][HIDDEN], local */
    int32_t *ids; /* [TOKENS_MAX][TOPK] */
    float *weights; /* [TOKENS_MAX][TOPK] */
    uint16_t *received; /* [rows_max][HIDDEN], symmetric */
    uint16_t *results; /* [rows_max][HIDDEN], symmetric */
    size_t rows_max;
    double dispatch_s;
    double combine_s;
    double bytes; /* of rows that crossed to another PE or to this one */
    double worst; /* |out - exact| over its bound */
    double error;
    int64_t load[EXPERTS]; /* rows of this PE's experts */
} layer;

static void layer_open(layer *l)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    void *block;
    l->pe = weft_world_pe(l->world);
    l->pes = weft_world_pes(l->world);
    l->rows_max = (size_t)l->pes * TOKENS_MAX * TOPK + (size_t)EXPERTS * ALIGNMENT;
    config.experts = EXPERTS;
    config.tokens_max = TOKENS_MAX;
    config.topk_max = TOPK;
    config.row_bytes_max = HIDDEN * sizeof(uint16_t);
    config.rows_max = l->rows_max;
    check(weft_ep_create(weft_team_world(l->world), &config, &l->ep), "group");
    plan.topk = TOPK;
    plan.layout = WEFT_EP_EXPERT_MAJOR;
    plan.alignment = ALIGNMENT;
    check(weft_ep_route_create(l->ep, &plan, NULL, &l->route), "route");
    check(weft_malloc(l->world, l->rows_max * HIDDEN * sizeof(uint16_t), &block), "receive buffer");
    l->received = block;
    check(weft_malloc(l->world, l->rows_max * HIDDEN * sizeof(uint16_t), &block), "result buffer");
    l->results = block;
    l->tokens = allocate((size_t)TOKENS_MAX * HIDDEN * sizeof(uint16_t));
    l->output = allocate((size_t)TOKENS_MAX * HIDDEN * sizeof(uint16_t));
    l->ids = allocate((size_t)TOKENS_MAX * TOPK * sizeof(int32_t));
    l->weights = allocate((size_t)TOKENS_MAX * TOPK * sizeof(float));
    model_init(&l->m);
}

static void layer_close(layer *l)
{
    check(weft_ep_route_destroy(l->route), "route");
    check(weft_ep_destroy(l->ep), "group");
    check(weft_free(l->world, l->results), "result buffer");
    check(weft_free(l->world, l->received), "receive buffer");
    free(l->tokens);
    free(l->output);
    free(l->ids);
    free(l->weights);
    model_fini(&l->m);
}

/* The serial reference of one token: exact up to the rounding of the experts' results. */
static void compare(layer *l, int t)
{
    uint16_t result[HIDDEN];
    double exact[HIDDEN] = {0};
    double magnitude[HIDDEN] = {0};
    for (int k = 0; k < TOPK; k++) {
        expert(&l->m, l->ids[t * TOPK + k], &l->tokens[t * HIDDEN], result);
        for (int h = 0; h < HIDDEN; h++) {
            double part = (double)l->weights[t * TOPK + k] * (double)from_bf16(result[h]);
            exact[h] += part;
            magnitude[h] += fabs(part);
        }
    }
    for (int h = 0; h < HIDDEN; h++) {
        double error = fabs((double)from_bf16(l->output[t * HIDDEN + h]) - exact[h]);
        double ratio = error / (0x1p-8 * (fabs(exact[h]) + magnitude[h]) + 1e-30);
        l->worst = ratio > l->worst ? ratio : l->worst;
        l->error = error > l->error ? error : l->error;
    }
}

static void run_experts(layer *l, const weft_ep_counts *counts, const weft_ep_host_counts *host)
{
    for (int e = 0; e < host->local_experts; e++) {
        for (int i = 0; i < counts->rows_of_expert[e]; i++) {
            size_t row = (size_t)(counts->offset_of_expert[e] + i);
            expert(&l->m, host->first_expert + e, &l->received[row * HIDDEN], &l->results[row * HIDDEN]);
        }
        l->load[host->first_expert + e] += counts->rows_of_expert[e];
    }
}

/* Rows this PE sends: a token once to each PE that has one of its experts. */
static int64_t rows_sent(const layer *l, int tokens)
{
    int64_t rows = 0;
    for (int t = 0; t < tokens; t++) {
        uint64_t seen = 0;
        for (int k = 0; k < TOPK; k++) {
            seen |= (uint64_t)1 << l->ids[t * TOPK + k] * l->pes / EXPERTS;
        }
        rows += __builtin_popcountll(seen);
    }
    return rows;
}

static void step(layer *l, int tokens)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    weft_ep_rows back = WEFT_EP_ROWS_INIT;
    weft_ep_rows out = WEFT_EP_ROWS_INIT;
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    weft_ep_counts counts;
    weft_ep_host_counts host;
    choices.tokens = tokens;
    choices.ids = l->ids;
    choices.weights = l->weights;
    check(weft_ep_route_update(l->route, &choices, NULL), "route_update");
    check(weft_ep_route_counts(l->route, &counts), "counts");
    check(weft_ep_route_query(l->route, NULL, &host), "query");
    in.data = l->tokens;
    in.dtype = WEFT_EP_BF16;
    in.hidden = HIDDEN;
    received.rows = in;
    received.rows.data = l->received;
    received.rows_capacity = l->rows_max;
    check(weft_barrier(l->world), "barrier"); /* only so that the times are of the call alone */
    double t0 = now_s();
    check(weft_ep_dispatch(l->route, &in, &received, NULL), "dispatch");
    l->dispatch_s += now_s() - t0;
    run_experts(l, &counts, &host);
    back = in;
    back.data = l->results;
    out = in;
    out.data = l->output;
    check(weft_barrier(l->world), "barrier");
    t0 = now_s();
    check(weft_ep_combine(l->route, &back, &out, WEFT_EP_WEIGHTED, NULL), "combine");
    l->combine_s += now_s() - t0;
    l->bytes += (double)rows_sent(l, tokens) * HIDDEN * sizeof(uint16_t);
    for (int t = 0; t < tokens; t++) {
        compare(l, t);
    }
}

/* ---- the report ---- */

typedef struct report {
    double dispatch_s;
    double combine_s;
    double bytes;
    double worst;
    double error;
    int64_t tokens;
    int64_t load[EXPERTS];
} report;

static void print_load(const int64_t *load)
{
    int64_t most = 1;
    int64_t total = 0;
    for (int e = 0; e < EXPERTS; e++) {
        most = load[e] > most ? load[e] : most;
        total += load[e];
    }
    printf("\nload of the %d experts (rows; the busiest has %.1f times the mean)\n", EXPERTS,
           (double)most * EXPERTS / (double)(total > 0 ? total : 1));
    for (int e = 0; e < EXPERTS; e += 2) {
        for (int i = e; i < e + 2; i++) {
            int bars = (int)(load[i] * 30 / most);
            printf("  %2d %6lld %-30.*s", i, (long long)load[i], bars, "##############################");
        }
        printf("\n");
    }
}

static int print_report(const layer *l, const report *reports)
{
    report all = {0};
    for (int pe = 0; pe < l->pes; pe++) {
        const report *r = &reports[pe];
        all.dispatch_s = r->dispatch_s > all.dispatch_s ? r->dispatch_s : all.dispatch_s;
        all.combine_s = r->combine_s > all.combine_s ? r->combine_s : all.combine_s;
        all.bytes += r->bytes;
        all.worst = r->worst > all.worst ? r->worst : all.worst;
        all.error = r->error > all.error ? r->error : all.error;
        all.tokens += r->tokens;
        for (int e = 0; e < EXPERTS; e++) {
            all.load[e] += r->load[e];
        }
    }
    print_load(all.load);
    printf("\n%lld tokens of %d bf16, %d of %d experts each, on %d PEs\n", (long long)all.tokens, HIDDEN, TOPK, EXPERTS,
           l->pes);
    printf("  dispatch %8.3f ms  %6.2f GB/s of rows, all PEs together\n", all.dispatch_s * 1e3,
           all.bytes / all.dispatch_s * 1e-9);
    printf("  combine  %8.3f ms  %6.2f GB/s\n", all.combine_s * 1e3, all.bytes / all.combine_s * 1e-9);
    if (!(all.worst <= 1.0)) {
        printf("DIFFERS from the serial reference: error %.3g, %.2f times the bound\n", all.error, all.worst);
        return 1;
    }
    printf("equal to the serial reference: largest error %.3g, %.2f of the bound 2^-8 (|exact| + sum |parts|)\n",
           all.error, all.worst);
    return 0;
}

static int gather(layer *l, int64_t tokens)
{
    void *block;
    report mine = {l->dispatch_s, l->combine_s, l->bytes, l->worst, l->error, tokens, {0}};
    memcpy(mine.load, l->load, sizeof mine.load);
    check(weft_malloc(l->world, (size_t)l->pes * sizeof mine, &block), "reports");
    check(weft_putmem(l->world, (report *)block + l->pe, &mine, sizeof mine, 0), "reports");
    check(weft_barrier(l->world), "reports");
    int failed = l->pe == 0 ? print_report(l, block) : 0;
    check(weft_free(l->world, block), "reports");
    return failed;
}

static void print_world(const weft_world *world, const char *path)
{
    weft_world_phase phases[16];
    char map[4096];
    size_t count = weft_world_phases(world, phases, 16);
    printf("text: %s\n\nthe world was created in\n", path);
    for (size_t i = 0; i < count && i < 16; i++) {
        printf("  %-10s %8.3f ms\n", phases[i].name, (double)phases[i].ns * 1e-6);
    }
    weft_world_transport_map(world, map, sizeof map);
    printf("\ntransport map: %s", map);
}

int main(int argc, char **argv)
{
    static char words[TEXT_WORDS_MAX][32];
    const char *path = text_path(argc, argv);
    layer l = {0};
    int count = read_words(path, words);
    if (count <= 0) {
        fprintf(stderr, "no words in %s; name a text file\n", path);
        return 2;
    }
    check(weft_world_create(NULL, &l.world), "world");
    layer_open(&l);
    if (l.pe == 0) {
        print_world(l.world, path);
    }
    int64_t tokens_done = 0;
    int per_step = l.pes * TOKENS_MAX;
    for (int first = 0; first < count; first += per_step) {
        int here = count - first < per_step ? count - first : per_step;
        int begin = first + here * l.pe / l.pes;
        int tokens = first + here * (l.pe + 1) / l.pes - begin;
        for (int t = 0; t < tokens; t++) {
            embed(words[begin + t], &l.tokens[t * HIDDEN]);
            gate(&l.m, &l.tokens[t * HIDDEN], &l.ids[t * TOPK], &l.weights[t * TOPK]);
        }
        step(&l, tokens);
        tokens_done += tokens;
    }
    int failed = gather(&l, tokens_done);
    layer_close(&l);
    check(weft_world_destroy(l.world), "world");
    return failed;
}

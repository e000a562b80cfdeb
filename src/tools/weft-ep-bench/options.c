/* weft-ep-bench/options.c: the command line of weft-ep-bench. */
#include "tools/weft-ep-bench/options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft.h"

#define EXIT_USAGE 2
#define THREADS_MAX 256
#define REPEATS_MAX 100000

static const char help[] =
    "usage: weft-ep-bench [option...]                        one PE\n"
    "       weftrun -n N [--bind] weft-ep-bench [option...]   N processes\n"
    "       weft-ep-bench --threads N [option...]            N threads of one process\n"
    "\n"
    "Time expert-parallel dispatch and combine over every combination of the values given, and print a table. Options\n"
    "that take a LIST take values separated by commas; numbers also as FIRST:LAST, doubling from one to the other.\n"
    "\n"
    "What is moved:\n"
    "  -t, --tokens LIST      tokens a rank (1024)\n"
    "  -H, --hidden LIST      elements a row (4096)\n"
    "  -k, --topk LIST        experts a token (8)\n"
    "  -e, --experts LIST     experts in all (64)\n"
    "  -d, --dtype LIST       bf16, f16, f32, fp8 (with scales), bf16-fp8 (quantised on the way) (bf16)\n"
    "  -l, --layout LIST      rank-major, expert-major, slots-source, slots-expert (rank-major)\n"
    "  -s, --skew LIST        uniform, zipf, one-rank: which experts are chosen (uniform)\n"
    "  -r, --routing LIST     fresh: each dispatch agrees on a new one; cached: one for all (cached)\n"
    "  -m, --mode LIST        ht: whole calls; ll: their halves, send and recv (ht)\n"
    "  -b, --backward         time the backward calls as well, with the gradients of weights\n"
    "  -a, --alignment N      rows to which expert-major groups are padded (1)\n"
    "      --seed N           of the choices (1)\n"
    "\n"
    "How:\n"
    "  -n, --repeats N        of each call; the median over them of the slowest rank's time is told (21)\n"
    "  -w, --warmup N         calls before (3)\n"
    "      --threads N        PEs are threads of this process\n"
    "  -c, --check            compare what arrives with what must; exit with 1 if it differs\n"
    "\n"
    "What is told:\n"
    "  -j, --json FILE        append a JSON line for each figure\n"
    "  -p, --plot FILE        write a gnuplot script; `gnuplot FILE` draws FILE.svg\n"
    "      --machine NAME     of the machine in JSON lines (its host name)\n"
    "  -h, --help             this text\n"
    "      --version          the version\n"
    "\n"
    "Figures: dispatch and combine, each after a barrier, and the two as a pair; set-up: creating the group and its\n"
    "route; memory: symmetric memory of the group and memory of the route, a PE. In fresh routing dispatch and pair\n"
    "contain the routing. Bytes are those of the rows that leave or reach a rank's tokens, its own included.\n"
    "\n"
    "Exits with 1 when a call fails or a check does, and with 2 when the command line is wrong.\n";

typedef enum option_kind {
    OPTION_NUMBERS,
    OPTION_NAMES,
    OPTION_NUMBER,
    OPTION_TEXT,
    OPTION_SEED,
    OPTION_FLAG
} option_kind;

typedef struct option_row {
    const char *name;
    char letter;
    option_kind kind;
    void *at;
    int least; /* of numbers */
    int most;
    const char *const *names;
    int names_count;
} option_row;

static int wrong(const char *option, const char *text, const char *remedy)
{
    fprintf(stderr, "weft-ep-bench: --%s: \"%s\": %s\n", option, text, remedy);
    return EXIT_USAGE;
}

static int read_number(const option_row *row, const char *text, int *value)
{
    char remedy[80];
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < row->least || number > row->most) {
        snprintf(remedy, sizeof remedy, "give a number from %d to %d", row->least, row->most);
        return wrong(row->name, text, remedy);
    }
    *value = (int)number;
    return BENCH_GO_ON;
}

static int add(const option_row *row, const char *text, bench_list *list, int value)
{
    if (list->count == BENCH_LIST_MAX) {
        return wrong(row->name, text, "too many values; give at most 32");
    }
    list->values[list->count++] = value;
    return BENCH_GO_ON;
}

/* "8" or "8:1024". */
static int read_range(const option_row *row, char *text, bench_list *list)
{
    char *colon = strchr(text, ':');
    int first;
    int last;
    if (colon != NULL) {
        *colon = '\0';
    }
    int code = read_number(row, text, &first);
    last = first;
    if (code == BENCH_GO_ON && colon != NULL) {
        code = read_number(row, colon + 1, &last);
    }
    if (code == BENCH_GO_ON && (last < first || (colon != NULL && first == 0))) {
        return wrong(row->name, colon + 1, "a range goes from a number above 0 to a larger one");
    }
    for (long value = first; value <= last && code == BENCH_GO_ON; value *= 2) {
        code = add(row, text, list, (int)value);
        if (first == last) {
            break;
        }
    }
    return code;
}

static int read_name(const option_row *row, const char *text, bench_list *list)
{
    char remedy[160] = "give one of:";
    for (int i = 0; i < row->names_count; i++) {
        if (strcmp(text, row->names[i]) == 0) {
            return add(row, text, list, i);
        }
        strcat(strcat(remedy, i == 0 ? " " : ", "), row->names[i]);
    }
    return wrong(row->name, text, remedy);
}

static int read_list(const option_row *row, const char *text)
{
    bench_list *list = row->at;
    char copy[512];
    int code = BENCH_GO_ON;
    char *rest = copy;
    if (strlen(text) >= sizeof copy) {
        return wrong(row->name, text, "too long");
    }
    strcpy(copy, text);
    list->count = 0;
    while (rest != NULL && code == BENCH_GO_ON) {
        char *value = strsep(&rest, ",");
        code = row->kind == OPTION_NAMES ? read_name(row, value, list) : read_range(row, value, list);
    }
    return code;
}

static int read_seed(const option_row *row, const char *text)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 0);
    if (end == text || *end != '\0' || errno != 0) {
        return wrong(row->name, text, "give a number");
    }
    *(uint64_t *)row->at = value;
    return BENCH_GO_ON;
}

static int read_value(const option_row *row, const char *text)
{
    switch (row->kind) {
    case OPTION_NUMBERS:
    case OPTION_NAMES:
        return read_list(row, text);
    case OPTION_NUMBER:
        return read_number(row, text, row->at);
    case OPTION_SEED:
        return read_seed(row, text);
    default:
        *(const char **)row->at = text;
        return BENCH_GO_ON;
    }
}

/* The row of "--name", "--name=value" or "-x"; *value is what follows "=", or NULL. */
static const option_row *find(const option_row *rows, const char *argument, const char **value)
{
    size_t length = strcspn(argument, "=");
    *value = argument[length] == '=' ? argument + length + 1 : NULL;
    for (; rows->name != NULL; rows++) {
        int is_long = length > 2 && strncmp(argument, "--", 2) == 0 && strlen(rows->name) == length - 2 &&
                      strncmp(argument + 2, rows->name, length - 2) == 0;
        int is_short = argument[0] == '-' && rows->letter != '\0' && argument[1] == rows->letter && length == 2;
        if (is_long || is_short) {
            return rows;
        }
    }
    return NULL;
}

static int read_all(const option_row *rows, int argc, char **argv)
{
    int code = BENCH_GO_ON;
    for (int i = 1; i < argc && code == BENCH_GO_ON; i++) {
        const char *value;
        const option_row *row = find(rows, argv[i], &value);
        if (row == NULL) {
            fprintf(stderr, "weft-ep-bench: no option \"%s\"; see weft-ep-bench --help\n", argv[i]);
            return EXIT_USAGE;
        }
        if (row->kind == OPTION_FLAG) {
            *(int *)row->at = 1;
            continue;
        }
        value = value != NULL ? value : ++i < argc ? argv[i] : NULL;
        if (value == NULL) {
            fprintf(stderr, "weft-ep-bench: --%s: its value is missing; see weft-ep-bench --help\n", row->name);
            return EXIT_USAGE;
        }
        code = read_value(row, value);
    }
    return code;
}

/* What of two parameters does not go together. */
static int check_shapes(const bench_options *options)
{
    for (int i = 0; i < bench_options_shapes(options); i++) {
        bench_shape shape = bench_options_shape(options, i);
        int grain = bench_sent_dtype(shape.dtype) == WEFT_EP_F32            ? 4
                    : bench_received_dtype(shape.dtype) == WEFT_EP_FP8_E4M3 ? 16
                                                                            : 8;
        if (shape.topk > shape.experts) {
            fprintf(stderr, "weft-ep-bench: --topk %d: a token chooses distinct experts; give at most --experts, %d\n",
                    shape.topk, shape.experts);
            return EXIT_USAGE;
        }
        if (shape.hidden % grain != 0) {
            fprintf(stderr, "weft-ep-bench: --hidden %d: rows of %s are multiples of 16 bytes; give a multiple of %d\n",
                    shape.hidden, bench_dtype_names[shape.dtype], grain);
            return EXIT_USAGE;
        }
    }
    return BENCH_GO_ON;
}

int bench_options_parse(bench_options *options, int argc, char **argv)
{
    int wants_help = 0;
    int wants_version = 0;
    const option_row rows[] = {
        {"tokens", 't', OPTION_NUMBERS, &options->tokens, 0, 1 << 20, NULL, 0},
        {"hidden", 'H', OPTION_NUMBERS, &options->hidden, 4, 1 << 20, NULL, 0},
        {"topk", 'k', OPTION_NUMBERS, &options->topk, 1, 1024, NULL, 0},
        {"experts", 'e', OPTION_NUMBERS, &options->experts, 1, 1 << 16, NULL, 0},
        {"dtype", 'd', OPTION_NAMES, &options->dtypes, 0, 0, bench_dtype_names, BENCH_DTYPES},
        {"layout", 'l', OPTION_NAMES, &options->layouts, 0, 0, bench_layout_names, BENCH_LAYOUTS},
        {"skew", 's', OPTION_NAMES, &options->skews, 0, 0, bench_skew_names, BENCH_SKEWS},
        {"routing", 'r', OPTION_NAMES, &options->routings, 0, 0, bench_routing_names, BENCH_ROUTINGS},
        {"mode", 'm', OPTION_NAMES, &options->modes, 0, 0, bench_mode_names, BENCH_MODES},
        {"backward", 'b', OPTION_FLAG, &options->backward, 0, 0, NULL, 0},
        {"alignment", 'a', OPTION_NUMBER, &options->alignment, 1, 1 << 16, NULL, 0},
        {"seed", '\0', OPTION_SEED, &options->seed, 0, 0, NULL, 0},
        {"repeats", 'n', OPTION_NUMBER, &options->repeats, 1, REPEATS_MAX, NULL, 0},
        {"warmup", 'w', OPTION_NUMBER, &options->warmup, 0, REPEATS_MAX, NULL, 0},
        {"threads", '\0', OPTION_NUMBER, &options->threads, 1, THREADS_MAX, NULL, 0},
        {"check", 'c', OPTION_FLAG, &options->check, 0, 0, NULL, 0},
        {"json", 'j', OPTION_TEXT, &options->json, 0, 0, NULL, 0},
        {"plot", 'p', OPTION_TEXT, &options->plot, 0, 0, NULL, 0},
        {"machine", '\0', OPTION_TEXT, &options->machine, 0, 0, NULL, 0},
        {"help", 'h', OPTION_FLAG, &wants_help, 0, 0, NULL, 0},
        {"version", '\0', OPTION_FLAG, &wants_version, 0, 0, NULL, 0},
        {NULL, '\0', OPTION_FLAG, NULL, 0, 0, NULL, 0},
    };
    const bench_list one = {.count = 1};
    *options = (bench_options){.tokens = {1, {1024}},
                               .hidden = {1, {4096}},
                               .topk = {1, {8}},
                               .experts = {1, {64}},
                               .dtypes = one,
                               .layouts = one,
                               .skews = one,
                               .routings = {1, {BENCH_CACHED}},
                               .modes = one,
                               .alignment = 1,
                               .repeats = 21,
                               .warmup = 3,
                               .seed = 1};
    int code = read_all(rows, argc, argv);
    if (code != BENCH_GO_ON) {
        return code;
    }
    if (wants_help) {
        (void)fputs(help, stdout);
        return 0;
    }
    if (wants_version) {
        printf("weft %d.%d.%d\n", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);
        return 0;
    }
    return check_shapes(options);
}

int bench_options_shapes(const bench_options *options)
{
    return options->tokens.count * options->hidden.count * options->topk.count * options->experts.count *
           options->dtypes.count * options->layouts.count * options->skews.count * options->routings.count *
           options->modes.count;
}

/* The value of a list whose turn it is; what is left of *i counts the lists after it. */
static int take(const bench_list *list, int *i)
{
    int value = list->values[*i % list->count];
    *i /= list->count;
    return value;
}

bench_shape bench_options_shape(const bench_options *options, int i)
{
    bench_shape shape;
    shape.tokens = take(&options->tokens, &i);
    shape.hidden = take(&options->hidden, &i);
    shape.topk = take(&options->topk, &i);
    shape.experts = take(&options->experts, &i);
    shape.routing = (bench_routing)take(&options->routings, &i);
    shape.mode = (bench_mode)take(&options->modes, &i);
    shape.skew = (bench_skew)take(&options->skews, &i);
    shape.layout = (bench_layout)take(&options->layouts, &i);
    shape.dtype = (bench_dtype)take(&options->dtypes, &i);
    return shape;
}

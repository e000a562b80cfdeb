/* weft-ep-bench/options.c: the command line of weft-ep-bench. */
#include "tools/weft-ep-bench/options.h"

#include <stdio.h>

#include "weft.h"

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
    "  -m, --mode LIST        ht: whole calls; ll: their halves, send and recv; eager: the same, on GPUs with rows "
    "that\n"
    "                         leave with send in all layouts (WEFT_EP_ROWS_WITH_SEND); two: two pairs of halves, on "
    "two\n"
    "                         routes: send, send, recv, recv; streams: on GPUs the same on a stream a pair, each\n"
    "                         with --sms (ht)\n"
    "  -B, --buffers LIST     symmetric: rows are received where senders write them; plain: in other memory "
    "(symmetric)\n"
    "  -W, --worst-case       limits and receive buffers for whatever may come, not for what does\n"
    "  -b, --backward         time the backward calls as well, with the gradients of weights\n"
    "  -a, --alignment N      rows to which expert-major groups are padded (1)\n"
    "      --seed N           of the choices (1)\n"
    "\n"
    "How:\n"
    "  -g, --gpu              on GPUs, one a PE\n"
    "      --sms LIST         on GPUs: multiprocessors of a call (0: the library's choice)\n"
    "  -n, --repeats N        of each call; the median over them of the slowest rank's time is told (21)\n"
    "  -w, --warmup N         calls before (3)\n"
    "      --memcpy           in turn with each call, the same rows from the same to the same places by memcpy; on the "
    "host,\n"
    "                         rank-major, in symmetric buffers\n"
    "      --counts           on GPUs: the time from a dispatch with a new routing until the host has its counts, and "
    "the\n"
    "                         same of an update, by which nothing moves; behind: of it, from when the route's arrays "
    "on the GPU have "
    "them\n"
    "      --unweighted       combine adds rows without weights\n"
    "      --threads N        PEs are threads of this process\n"
    "  -c, --check            compare what arrives with what must; exit with 1 if it differs\n"
    "\n"
    "What is told:\n"
    "  -j, --json FILE        append a JSON line for each figure\n"
    "      --machine NAME     of the machine in JSON lines (its host name)\n"
    "  -h, --help             this text\n"
    "      --version          the version\n"
    "\n"
    "Figures: dispatch and combine, each after a barrier, and the two as a pair; set-up: creating the group and its\n"
    "route, on GPUs and a first dispatch; memory: symmetric memory of the group and memory of the route, a PE; on "
    "GPUs\n"
    "what they take of the GPU's, and the received rows; of both routes and their rows where there are two pairs. In "
    "fresh routing "
    "dispatch and pair contain the routing. Bytes "
    "are\n"
    "those of the rows that leave or reach a rank's tokens, its own included. A call on GPUs is timed as a graph of "
    "the\n"
    "caches flushed, a barrier, an event, the call, an event. The floor beside a figure, of the same run (with "
    "--memcpy: that): the bytes "
    "that the\n"
    "rank sends most of sends to others, a token once a rank, in one piece to each, by all PEs at once; on GPUs over "
    "the rate\n"
    "at which all GPUs store to each other with as many multiprocessors.\n"
    "\n"
    "Exits with 1 when a call fails or a check does, and with 2 when the command line is wrong, and with 77 when "
    "there\n"
    "is no GPU for --gpu.\n";

static int can_copy(const bench_options *options, const bench_point *point)
{
    return !options->on_device && bench_pairs(point->mode) == 1 && point->layout == BENCH_RANK_MAJOR &&
           point->buffers == BENCH_SYMMETRIC && bench_sent_dtype(point->dtype) == bench_combined_dtype(point->dtype) &&
           bench_received_dtype(point->dtype) != WEFT_EP_FP8_E4M3;
}

/* What of two parameters does not go together. */
static int check_points(const bench_options *options)
{
    if (options->counts && !options->on_device) {
        fprintf(stderr, "weft-ep-bench: --counts is for GPUs: give --gpu, too\n");
        return TOOL_USAGE;
    }
    for (long i = 0; i < bench_options_points(options); i++) {
        bench_point point = bench_options_point(options, i);
        int grain = bench_sent_dtype(point.dtype) == WEFT_EP_F32            ? 4
                    : bench_received_dtype(point.dtype) == WEFT_EP_FP8_E4M3 ? 16
                                                                            : 8;
        if (point.topk > point.experts) {
            fprintf(stderr, "weft-ep-bench: --topk %d: a token chooses distinct experts; give at most --experts, %d\n",
                    point.topk, point.experts);
            return TOOL_USAGE;
        }
        if (point.hidden % grain != 0) {
            fprintf(stderr, "weft-ep-bench: --hidden %d: rows of %s are multiples of 16 bytes; give a multiple of %d\n",
                    point.hidden, bench_dtype_names[point.dtype], grain);
            return TOOL_USAGE;
        }
        if (point.mode == BENCH_STREAMS && (!options->on_device || point.sms == 0)) {
            fprintf(stderr, "weft-ep-bench: --mode streams is for GPUs, with multiprocessors for each pair: give --gpu "
                            "and --sms, too\n");
            return TOOL_USAGE;
        }
        if (options->beside_memcpy && !can_copy(options, &point)) {
            fprintf(stderr,
                    "weft-ep-bench: --memcpy is for the host, rank-major, one pair, symmetric and bf16, f16 or f32; "
                    "not for %s %s %s%s, mode %s\n",
                    bench_layout_names[point.layout], bench_buffers_names[point.buffers],
                    bench_dtype_names[point.dtype], options->on_device ? " on GPUs" : "", bench_mode_names[point.mode]);
            return TOOL_USAGE;
        }
    }
    return TOOL_GO_ON;
}

static bench_options usual_options(void)
{
    const tool_list one = {.count = 1};
    return (bench_options){.tokens = {1, {1024}},
                           .hidden = {1, {4096}},
                           .topk = {1, {8}},
                           .experts = {1, {64}},
                           .dtypes = one,
                           .layouts = one,
                           .skews = one,
                           .routings = {1, {BENCH_CACHED}},
                           .modes = one,
                           .buffers = one,
                           .sms = one,
                           .alignment = 1,
                           .repeats = 21,
                           .warmup = 3,
                           .seed = 1};
}

int bench_options_parse(bench_options *options, int argc, char **argv)
{
    int wants_help = 0;
    int wants_version = 0;
    const tool_option rows[] = {
        {"tokens", 't', TOOL_NUMBERS, &options->tokens, 0, 1 << 20, NULL, 0},
        {"hidden", 'H', TOOL_NUMBERS, &options->hidden, 4, 1 << 20, NULL, 0},
        {"topk", 'k', TOOL_NUMBERS, &options->topk, 1, 1024, NULL, 0},
        {"experts", 'e', TOOL_NUMBERS, &options->experts, 1, 1 << 16, NULL, 0},
        {"dtype", 'd', TOOL_NAMES, &options->dtypes, 0, 0, bench_dtype_names, BENCH_DTYPES},
        {"layout", 'l', TOOL_NAMES, &options->layouts, 0, 0, bench_layout_names, BENCH_LAYOUTS},
        {"skew", 's', TOOL_NAMES, &options->skews, 0, 0, bench_skew_names, BENCH_SKEWS},
        {"routing", 'r', TOOL_NAMES, &options->routings, 0, 0, bench_routing_names, BENCH_ROUTINGS},
        {"mode", 'm', TOOL_NAMES, &options->modes, 0, 0, bench_mode_names, BENCH_MODES},
        {"buffers", 'B', TOOL_NAMES, &options->buffers, 0, 0, bench_buffers_names, BENCH_BUFFERS},
        {"worst-case", 'W', TOOL_FLAG, &options->worst_case, 0, 0, NULL, 0},
        {"gpu", 'g', TOOL_FLAG, &options->on_device, 0, 0, NULL, 0},
        {"sms", '\0', TOOL_NUMBERS, &options->sms, 0, 65535, NULL, 0},
        {"backward", 'b', TOOL_FLAG, &options->backward, 0, 0, NULL, 0},
        {"alignment", 'a', TOOL_NUMBER, &options->alignment, 1, 1 << 16, NULL, 0},
        {"seed", '\0', TOOL_SEED, &options->seed, 0, 0, NULL, 0},
        {"repeats", 'n', TOOL_NUMBER, &options->repeats, 1, REPEATS_MAX, NULL, 0},
        {"warmup", 'w', TOOL_NUMBER, &options->warmup, 0, REPEATS_MAX, NULL, 0},
        {"threads", '\0', TOOL_NUMBER, &options->threads, 1, THREADS_MAX, NULL, 0},
        {"check", 'c', TOOL_FLAG, &options->check, 0, 0, NULL, 0},
        {"memcpy", '\0', TOOL_FLAG, &options->beside_memcpy, 0, 0, NULL, 0},
        {"counts", '\0', TOOL_FLAG, &options->counts, 0, 0, NULL, 0},
        {"unweighted", '\0', TOOL_FLAG, &options->unweighted, 0, 0, NULL, 0},
        {"json", 'j', TOOL_TEXT, &options->json, 0, 0, NULL, 0},
        {"machine", '\0', TOOL_TEXT, &options->machine, 0, 0, NULL, 0},
        {"help", 'h', TOOL_FLAG, &wants_help, 0, 0, NULL, 0},
        {"version", '\0', TOOL_FLAG, &wants_version, 0, 0, NULL, 0},
        {NULL, '\0', TOOL_FLAG, NULL, 0, 0, NULL, 0},
    };
    *options = usual_options();
    int code = tool_options_read(rows, argc, argv);
    if (code != TOOL_GO_ON) {
        return code;
    }
    if (wants_help) {
        (void)fputs(help, stdout);
        return 0;
    }
    if (wants_version) {
        tool_print_version();
        return 0;
    }
    return check_points(options);
}

long bench_options_points(const bench_options *options)
{
    return (long)options->tokens.count * options->hidden.count * options->topk.count * options->experts.count *
           options->dtypes.count * options->layouts.count * options->skews.count * options->routings.count *
           options->modes.count * options->buffers.count * options->sms.count;
}

bench_point bench_options_point(const bench_options *options, long i)
{
    bench_point point;
    point.tokens = (int)tool_list_take(&options->tokens, &i);
    point.hidden = (int)tool_list_take(&options->hidden, &i);
    point.topk = (int)tool_list_take(&options->topk, &i);
    point.experts = (int)tool_list_take(&options->experts, &i);
    point.sms = (int)tool_list_take(&options->sms, &i);
    point.buffers = (bench_buffers)tool_list_take(&options->buffers, &i);
    point.routing = (bench_routing)tool_list_take(&options->routings, &i);
    point.mode = (bench_mode)tool_list_take(&options->modes, &i);
    point.skew = (bench_skew)tool_list_take(&options->skews, &i);
    point.layout = (bench_layout)tool_list_take(&options->layouts, &i);
    point.dtype = (bench_dtype)tool_list_take(&options->dtypes, &i);
    return point;
}

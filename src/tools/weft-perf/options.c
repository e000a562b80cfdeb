/* weft-perf/options.c: the command line of weft-perf. */
#include "tools/weft-perf/options.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: weft-perf [option...]                        one PE\n"
    "       weftrun -n N [--bind] weft-perf [option...]   N processes, one a GPU where there are GPUs\n"
    "       weft-perf --threads N [option...]            N threads of one process\n"
    "\n"
    "Time operations over every combination of the values given, check what they did, and print a table. Options that\n"
    "take a LIST take values separated by commas; numbers also with K, M or G behind, and as FIRST:LAST, doubling "
    "from\n"
    "one to the other.\n"
    "\n"
    "What is called:\n"
    "  -o, --op LIST          put, put_quiet, get; put_signal, signal, p_pingpong (there and back; one way is told);\n"
    "                         p, g; fetch, set, swap, compare_swap, add, fetch_add, inc, fetch_inc, and, fetch_and, "
    "or,\n"
    "                         fetch_or, xor, fetch_xor; put_bw, get_bw, put_bulk_bw; barrier, sync, broadcast, "
    "fcollect,\n"
    "                         collect, alltoall, alltoallv, reduce, reduce_scatter, inscan, exscan; malloc, world;\n"
    "                         raw_put_signal, raw_put_bw, raw_get_bw, raw_get_bulk_bw: the bare hardware (put)\n"
    "  -s, --scope LIST       by whom: host, stream, graph, and inside kernels thread, warp, block (host)\n"
    "  -b, --bytes LIST       of a call: a PE's total, of all blocks where each member gets one (what suits the\n"
    "                         operation)\n"
    "  -d, --dtype LIST       int8, uint8, int16, uint16, int32, uint32, int64, uint64, float, double, fp16, bf16, "
    "e4m3,\n"
    "                         e5m2 (float; words: uint64)\n"
    "  -r, --reduction LIST   and, or, xor, min, max, sum, prod (sum)\n"
    "  -n, --pes LIST         the first so many PEs take part (all)\n"
    "  -a, --pattern LIST     of rates: one: PE 0 to PE 1; all: each to all others at once (one)\n"
    "  -B, --blocks LIST      of rates inside kernels (1)\n"
    "  -t, --block-threads LIST   threads of a block (1024; collectives with data: 512, which is the most)\n"
    "  -m, --memory LIST      where the data lie, one of: host, device (device if a scope needs it)\n"
    "\n"
    "How:\n"
    "  -c, --calls N          timed together (what suits the case)\n"
    "  -R, --rounds N         so many times; the median is told (9)\n"
    "  -w, --warmup N         rounds before (1)\n"
    "      --threads N        PEs are threads of this process\n"
    "      --no-check         do not compare data with what they must be\n"
    "\n"
    "What is told:\n"
    "  -j, --json FILE        append a JSON line for each figure\n"
    "      --machine NAME     of the machine in JSON lines (WEFT_MACHINE, else its host name)\n"
    "  -h, --help             this text\n"
    "      --version          the version\n"
    "\n"
    "Times are of one call, in us: of collectives the slowest PE's, else PE 0's. algbw is bytes over time, busbw what "
    "the\n"
    "busiest link carries, as nccl-tests count. Host: by the monotonic clock; stream: events around calls that follow "
    "each\n"
    "other; graph: the same calls in one graph; inside kernels: the GPU's clock around a loop of calls, and for rates\n"
    "events around the kernel. Where an operation, type or scope is not there, the row says \"not supported\".\n"
    "\n"
    "Exits with 1 when a call fails or data are wrong, with 2 when the command line is wrong, and with 77 when a "
    "scope\n"
    "needs a GPU and there is none.\n";

static const char *const memory_names[PERF_MEMORIES] = {"host", "device"};

int perf_options_parse(perf_options *options, int argc, char **argv)
{
    int wants_help = 0;
    int wants_version = 0;
    const tool_option rows[] = {
        {"op", 'o', TOOL_NAMES, &options->ops, 0, 0, perf_op_names, PERF_OP_COUNT},
        {"scope", 's', TOOL_NAMES, &options->scopes, 0, 0, perf_scope_names, PERF_SCOPES},
        {"bytes", 'b', TOOL_NUMBERS, &options->bytes, 1, 1L << 36, NULL, 0},
        {"dtype", 'd', TOOL_NAMES, &options->dtypes, 0, 0, perf_dtype_names, PERF_DTYPE_COUNT},
        {"reduction", 'r', TOOL_NAMES, &options->reductions, 0, 0, perf_reduction_names, PERF_REDUCTIONS},
        {"pes", 'n', TOOL_NUMBERS, &options->pes, 1, 1L << 20, NULL, 0},
        {"pattern", 'a', TOOL_NAMES, &options->patterns, 0, 0, perf_pattern_names, 2},
        {"blocks", 'B', TOOL_NUMBERS, &options->blocks, 1, 65535, NULL, 0},
        {"block-threads", 't', TOOL_NUMBERS, &options->block_threads, 1, 1024, NULL, 0},
        {"memory", 'm', TOOL_NAMES, &options->memories, 0, 0, memory_names, PERF_MEMORIES},
        {"calls", 'c', TOOL_NUMBER, &options->calls, 1, 1L << 20, NULL, 0},
        {"rounds", 'R', TOOL_NUMBER, &options->rounds, 1, 1000, NULL, 0},
        {"warmup", 'w', TOOL_NUMBER, &options->warmup, 0, 1000, NULL, 0},
        {"threads", '\0', TOOL_NUMBER, &options->threads, 1, 256, NULL, 0},
        {"no-check", '\0', TOOL_FLAG, &options->no_check, 0, 0, NULL, 0},
        {"json", 'j', TOOL_TEXT, &options->json, 0, 0, NULL, 0},
        {"machine", '\0', TOOL_TEXT, &options->machine, 0, 0, NULL, 0},
        {"help", 'h', TOOL_FLAG, &wants_help, 0, 0, NULL, 0},
        {"version", '\0', TOOL_FLAG, &wants_version, 0, 0, NULL, 0},
        {NULL, '\0', TOOL_FLAG, NULL, 0, 0, NULL, 0},
    };
    const tool_list first = {.count = 1};
    *options = (perf_options){.ops = first,
                              .scopes = first,
                              .reductions = {1, {WEFT_OP_SUM}},
                              .patterns = first,
                              .blocks = {1, {1}},
                              .rounds = 9,
                              .warmup = 1};
    int code = tool_options_read(rows, argc, argv);
    if (code == TOOL_GO_ON && wants_help) {
        (void)fputs(help, stdout);
        return 0;
    }
    if (code == TOOL_GO_ON && wants_version) {
        tool_print_version();
        return 0;
    }
    for (int i = 0; i < options->scopes.count; i++) {
        options->on_device |= options->scopes.values[i] != PERF_HOST;
    }
    if (options->memories.count > 0) {
        options->on_device |= options->memories.values[0] == PERF_MEMORY_DEVICE;
    }
    return code;
}

/* ---- the sweep ---- */

static const tool_list sizes_of_moves = {5, {8, 1 << 10, 16 << 10, 128 << 10, 1 << 20}};
static const tool_list sizes_of_collectives = {12,
                                               {1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10,
                                                1 << 20, 2 << 20, 4 << 20, 16 << 20, 32 << 20}};
static const tool_list one_mebibyte = {1, {1 << 20}};
static const tool_list nothing = {1, {0}};

static const tool_list *sizes_of(const perf_options *options, perf_op op)
{
    if (!perf_has_bytes(op)) {
        return &nothing;
    }
    if (options->bytes.count > 0) {
        return &options->bytes;
    }
    switch (perf_kind_of(op)) {
    case PERF_RATE:
        return &nothing; /* by the number of blocks */
    case PERF_ALLOC:
        return &one_mebibyte;
    case PERF_COLL:
    case PERF_COMBINE:
        return &sizes_of_collectives;
    default:
        return &sizes_of_moves;
    }
}

/* 16 MiB a block, 256 MiB at most; of all at once 255 MiB. */
static size_t rate_bytes(const perf_case *c)
{
    size_t blocks = perf_is_in_kernel(c) && c->blocks < 16 ? (size_t)c->blocks : 16;
    return c->everyone ? (size_t)255 << 20 : blocks << 24;
}

static const tool_list *threads_of(const perf_options *options, perf_op op)
{
    static const tool_list of_collectives = {1, {512}};
    static const tool_list of_all = {1, {1024}};
    int is_data = perf_kind_of(op) == PERF_COLL || perf_kind_of(op) == PERF_COMBINE;
    return options->block_threads.count > 0 ? &options->block_threads : is_data ? &of_collectives : &of_all;
}

static const tool_list *dtypes_of(const perf_options *options, perf_op op)
{
    static const tool_list of_words = {1, {PERF_UINT64_TYPE}};
    static const tool_list of_data = {1, {PERF_FLOAT_TYPE}};
    return perf_is_typed(op) && options->dtypes.count > 0 ? &options->dtypes
           : perf_kind_of(op) == PERF_WORD                ? &of_words
                                                          : &of_data;
}

int perf_next_case(const perf_options *options, int pes, long *place, perf_case *c)
{
    static const tool_list one = {.count = 1};
    const tool_list all = {1, {pes}};
    long first = 0; /* the place of the first case of this operation and scope */
    for (int o = 0; o < options->ops.count; o++) {
        for (int s = 0; s < options->scopes.count; s++) {
            *c = (perf_case){.op = (perf_op)options->ops.values[o], .scope = (perf_scope)options->scopes.values[s]};
            int is_rate = perf_kind_of(c->op) == PERF_RATE;
            int has_threads = c->scope == PERF_BLOCK;
            const tool_list *lists[] = {sizes_of(options, c->op),
                                        has_threads ? threads_of(options, c->op) : &one,
                                        is_rate && perf_is_in_kernel(c) ? &options->blocks : &one,
                                        is_rate ? &options->patterns : &one,
                                        perf_kind_of(c->op) == PERF_COMBINE ? &options->reductions : &one,
                                        dtypes_of(options, c->op),
                                        options->pes.count > 0 ? &options->pes : &all};
            long values[7];
            long count = 1;
            for (int l = 0; l < 7; l++) {
                count *= lists[l]->count;
            }
            if (*place < first + count) {
                long i = *place - first;
                for (int l = 0; l < 7; l++) {
                    values[l] = tool_list_take(lists[l], &i);
                }
                c->threads = has_threads ? (int)values[1] : c->scope == PERF_WARP ? 32 : 1;
                c->blocks = is_rate && perf_is_in_kernel(c) ? (int)values[2] : 1;
                c->everyone = (int)values[3];
                c->reduction = (weft_op)values[4];
                c->dtype = (perf_dtype)values[5];
                c->pes = (int)values[6];
                c->bytes = is_rate && values[0] == 0 ? rate_bytes(c) : (size_t)values[0];
                c->bytes = perf_rounded_bytes(c);
                (*place)++;
                return 1;
            }
            first += count;
        }
    }
    return 0;
}

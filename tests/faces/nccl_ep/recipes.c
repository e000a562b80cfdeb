/* Goal: the quantisations of NCCL EP's interface do what its header says: DS_FP8E3M4 makes fp8 rows with a scale for
 * 128 elements, with round_scales a power of two; packed 4-bit rows come by expert with their scales and zero padding,
 * also into buffers as large as the count, or of no row, and into slots, also from ranks without tokens; an NVFP4
 * combine gives the sums on GPUs that NCCL EP does it on and is refused on others; ids of empty slots are -1 whatever
 * comes.
 *
 * Method: two ranks as threads, with the stand-in for NCCL and the fake driver, whose GPUs say what capability
 * WEFT_FAKE_CAPABILITY has. Token t of rank r goes to expert (r + t) mod 4. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faces/nccl_ep/check.h"
#include "faces/nccl_ep/libnccl.h"
#include "faces/nccl_ep/rank_threads.h"
#include "weft.h"
#include <nccl_ep.h>

#define RANKS 2
#define LOCAL 2 /* experts */
#define EXPERTS (RANKS * LOCAL)
#define TOKENS 6
#define HIDDEN 512
#define GROUPS (HIDDEN / 128)
#define SLOTS (LOCAL * RANKS * TOKENS)
#define PACKED 128 /* bytes of a row of 256 4-bit numbers */
#define PACKED_SCALES 16
#define ALIGNMENT 8
#define ROWS_MOST (RANKS * TOKENS + LOCAL * ALIGNMENT)

typedef struct rig {
    int rank;
    int failures;
    ncclComm_t comm;
    int64_t ids[TOKENS];
    float weights[TOKENS];
    float row_weights[SLOTS + ROWS_MOST];
    int32_t row_ids[SLOTS];
    int32_t counts[EXPERTS];
    int32_t total;
    _Alignas(16) uint16_t x[TOKENS][HIDDEN];
    _Alignas(16) uint16_t y[TOKENS][HIDDEN];
    _Alignas(16) uint16_t rows[SLOTS][HIDDEN];
    _Alignas(16) unsigned char fp8[SLOTS][HIDDEN];
    _Alignas(16) float scales[1 + SLOTS * GROUPS];
    _Alignas(16) unsigned char packed[TOKENS][PACKED];
    _Alignas(16) unsigned char packed_scales[TOKENS][PACKED_SCALES];
    _Alignas(16) unsigned char packed_rows[ROWS_MOST][PACKED];
    _Alignas(16) unsigned char packed_row_scales[ROWS_MOST][PACKED_SCALES];
} rig;

static void check(rig *r, int line, int is, const char *what)
{
    if (!is) {
        (void)fprintf(stderr, "rank %d, line %d: %s\n", r->rank, line, what);
        r->failures++;
    }
}

#define CHECK(is) check(r, __LINE__, is, #is)

static int expert_of(int rank, int token)
{
    return (rank + token) % EXPERTS;
}

static ncclEpGroup_t group_of(rig *r, ncclEpAlgorithm_t algorithm, unsigned most_rows)
{
    ncclEpGroupConfig_t config = NCCL_EP_GROUP_CONFIG_INIT;
    ncclEpGroup_t group = NULL;
    config.algorithm = algorithm;
    config.num_experts = EXPERTS;
    config.max_dispatch_tokens_per_rank = TOKENS;
    config.max_recv_tokens_per_rank = most_rows;
    config.max_token_bytes = HIDDEN * sizeof r->x[0][0];
    config.num_topk = 1;
    OK(ncclEpCreateGroup(&group, r->comm, &config));
    return group;
}

/* ---- fp8 that is made on the way ---- */

/* Of bf16, whose bits are a float's upper half. */
static float value_of(int rank, int token, int h)
{
    return (float)(1 + (rank * 31 + token * 7 + h % 128 * (1 + h / 128)) % 200);
}

static uint16_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static float from_fp8(unsigned char bits)
{
    int exponent = bits >> 3 & 15;
    float value = exponent == 0 ? ldexpf((float)(bits & 7), -9) : ldexpf((float)(8 + (bits & 7)), exponent - 10);
    return (bits & 0x80) != 0 ? -value : value;
}

static void check_row(rig *r, size_t row, int source, int token, const float *scales, int rounds)
{
    for (int group = 0; group < GROUPS; group++) {
        float amax = 0;
        float scale = scales[row * GROUPS + (size_t)group];
        int far = 0;
        for (int h = group * 128; h < (group + 1) * 128; h++) {
            amax = fmaxf(amax, value_of(source, token, h));
            far +=
                fabsf(from_fp8(r->fp8[row][h]) * scale - value_of(source, token, h)) > value_of(source, token, h) / 16;
        }
        float wanted = amax / 448.0f;
        wanted = rounds ? exp2f(ceilf(log2f(wanted))) : wanted;
        if (scale != wanted || far != 0) {
            (void)fprintf(stderr,
                          "rank %d, row %zu of token %d of %d, group %d: scale %g, not %g; %d elements are off\n",
                          r->rank, row, token, source, group, (double)scale, (double)wanted, far);
            r->failures++;
            return;
        }
    }
}

/* What came: by expert or by source, in order of (source, token). */
static void check_rows(rig *r, int by_expert, const float *scales, int rounds)
{
    size_t next[EXPERTS] = {0};
    for (int source = 0; source < RANKS; source++) {
        for (int t = 0; t < TOKENS; t++) {
            int expert = expert_of(source, t);
            if (expert / LOCAL == r->rank) {
                int part = by_expert ? expert % LOCAL : source;
                size_t first = (size_t)part * TOKENS * (by_expert ? RANKS : 1);
                check_row(r, first + next[part]++, source, t, scales, rounds);
            }
        }
    }
    for (int part = 0; part < (by_expert ? LOCAL : RANKS); part++) {
        CHECK(r->counts[part] == (int32_t)next[part]);
    }
}

static void quantise_by(rig *r, ncclEpGroup_t group, ncclEpLayout_t layout)
{
    int by_expert = layout == NCCL_EP_LAYOUT_EXPERT_MAJOR;
    size_t parts = by_expert ? LOCAL : RANKS;
    size_t each = by_expert ? RANKS * TOKENS : TOKENS;
    size_t token_sizes[2] = {TOKENS, HIDDEN}, choice_sizes[2] = {TOKENS, 1};
    size_t row_sizes[3] = {parts, each, HIDDEN}, scale_sizes[3] = {parts, each, GROUPS}, count_sizes[1] = {parts};
    float *scales = r->scales + 1; /* aligned to 4 bytes only */
    ncclEpTensor_t x = tensor(r->x, ncclBfloat16, 2, token_sizes);
    ncclEpTensor_t ids = tensor(r->ids, ncclInt64, 2, choice_sizes);
    ncclEpTensor_t weights = tensor(r->weights, ncclFloat32, 2, choice_sizes);
    ncclEpTensor_t rows = tensor(r->fp8, ncclFloat8e4m3, 3, row_sizes);
    ncclEpTensor_t made = tensor(scales, ncclFloat32, 3, scale_sizes);
    ncclEpTensor_t counts = tensor(r->counts, ncclInt32, 1, count_sizes);
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpDispatchConfig_t config = NCCL_EP_DISPATCH_CONFIG_INIT;
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandle_t handle = NULL;
    inputs.tokens = &x;
    inputs.topk_weights = &weights;
    outputs.tokens = &rows;
    outputs.scales = &made;
    *(by_expert ? &info.expert_counters : &info.src_rank_counters) = &counts;
    OK(ncclEpCreateHandle(&handle, group, layout, &ids, NULL, NULL, NULL));
    for (int way = 0; way < 4; way++) { /* whole and in halves, each without and with rounding */
        memset(r->fp8, 0, sizeof r->fp8);
        memset(r->scales, 0, sizeof r->scales);
        config.quant_recipe = NCCL_EP_DISP_QUANT_DS_FP8E3M4;
        config.round_scales = (unsigned)way % 2;
        config.send_only = (unsigned)way / 2;
        OK(ncclEpDispatch(handle, &inputs, &outputs, &info, &config, NULL));
        OK(ncclEpComplete(handle, NULL, NULL));
        check_rows(r, by_expert, scales, way % 2);
    }
    config = NCCL_EP_DISPATCH_CONFIG_INIT;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, &info, &config, NULL), ncclInvalidArgument, "quant_recipe 0");
    config.size = NCCL_EP_DISPATCH_CONFIG_V1_SIZE; /* of a header without recipes, where scales said it */
    config.round_scales = 1;
    OK(ncclEpDispatch(handle, &inputs, &outputs, &info, &config, NULL));
    check_rows(r, by_expert, scales, 1);
    OK(ncclEpHandleDestroy(handle));
}

/* ---- NVFP4 sums ---- */

static void combine_as_nvfp4(rig *r, ncclEpGroup_t group, ncclEpLayout_t layout, int is_there)
{
    int by_expert = layout == NCCL_EP_LAYOUT_EXPERT_MAJOR;
    size_t parts = by_expert ? LOCAL : RANKS;
    size_t each = by_expert ? RANKS * TOKENS : TOKENS;
    size_t token_sizes[2] = {TOKENS, HIDDEN}, choice_sizes[2] = {TOKENS, 1}, count_sizes[1] = {parts};
    size_t row_sizes[3] = {parts, each, HIDDEN}, place_sizes[3] = {parts, each, 1};
    ncclEpTensor_t x = tensor(r->x, ncclBfloat16, 2, token_sizes), y = tensor(r->y, ncclBfloat16, 2, token_sizes);
    ncclEpTensor_t ids = tensor(r->ids, ncclInt64, 2, choice_sizes);
    ncclEpTensor_t weights = tensor(r->weights, ncclFloat32, 2, choice_sizes);
    ncclEpTensor_t rows = tensor(r->rows, ncclBfloat16, 3, row_sizes);
    ncclEpTensor_t scales = tensor(r->scales, ncclFloat32, 3, place_sizes);
    ncclEpTensor_t counts = tensor(r->counts, ncclInt32, 1, count_sizes);
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpCombineInputs_t results = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t sums = NCCL_EP_COMBINE_OUTPUTS_INIT;
    ncclEpCombineConfig_t config = NCCL_EP_COMBINE_CONFIG_INIT;
    ncclEpHandle_t handle = NULL;
    inputs.tokens = &x;
    inputs.topk_weights = &weights;
    outputs.tokens = results.tokens = &rows;
    sums.tokens = &y;
    sums.topk_weights = by_expert ? &weights : NULL;
    info.expert_counters = by_expert ? &counts : NULL;
    results.scales = &scales;
    memset(r->y, 0xff, sizeof r->y);
    OK(ncclEpCreateHandle(&handle, group, layout, &ids, NULL, NULL, NULL));
    OK(ncclEpDispatch(handle, &inputs, &outputs, &info, NULL, NULL));
    EXPECT(ncclEpCombine(handle, &results, &sums, &config, NULL), ncclInvalidArgument, "of NCCL_EP_COMB_QUANT_NVFP4");
    config.quant_recipe = NCCL_EP_COMB_QUANT_NVFP4;
    if (!is_there) {
        EXPECT(ncclEpCombine(handle, &results, &sums, &config, NULL), ncclInvalidUsage, "capability 10.0");
        OK(ncclEpHandleDestroy(handle));
        return;
    }
    place_sizes[2] = 2;
    EXPECT(ncclEpCombine(handle, &results, &sums, &config, NULL), ncclInvalidArgument, "the last 1");
    place_sizes[2] = 1;
    scales.datatype = ncclFloat16;
    EXPECT(ncclEpCombine(handle, &results, &sums, &config, NULL), ncclInvalidArgument, "needs inputs.scales");
    scales.datatype = ncclFloat32;
    rows.datatype = ncclFloat16;
    EXPECT(ncclEpCombine(handle, &results, &sums, &config, NULL), ncclInvalidArgument, "ncclBfloat16");
    rows.datatype = ncclBfloat16;
    results.scales = NULL;
    EXPECT(ncclEpCombine(handle, &results, &sums, &config, NULL), ncclInvalidArgument, "needs inputs.scales");
    results.scales = &scales;
    results.size = NCCL_EP_COMBINE_INPUTS_V1_SIZE; /* an older caller's, which has no scales */
    EXPECT(ncclEpCombine(handle, &results, &sums, &config, NULL), ncclInvalidArgument, "needs inputs.scales");
    results.size = NCCL_EP_COMBINE_INPUTS_V2_SIZE;
    for (int halves = 0; halves < 2; halves++) {
        memset(r->y, 0xff, sizeof r->y);
        config.send_only = (unsigned)halves;
        OK(ncclEpCombine(handle, &results, &sums, &config, NULL));
        OK(ncclEpComplete(handle, NULL, NULL));
        CHECK(memcmp(r->x, r->y, sizeof r->x) == 0);
    }
    OK(ncclEpHandleDestroy(handle));
}

/* ---- MXFP8 sums, of HT by expert: bf16 on the way ---- */

static void combine_as_mxfp8(rig *r)
{
    ncclEpGroup_t group = group_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT, ROWS_MOST);
    size_t token_sizes[2] = {TOKENS, HIDDEN}, choice_sizes[2] = {TOKENS, 1}, place_sizes[1] = {ROWS_MOST};
    size_t row_sizes[2] = {ROWS_MOST, HIDDEN};
    ncclEpTensor_t x = tensor(r->x, ncclBfloat16, 2, token_sizes), y = tensor(r->y, ncclBfloat16, 2, token_sizes);
    ncclEpTensor_t ids = tensor(r->ids, ncclInt64, 2, choice_sizes);
    ncclEpTensor_t weights = tensor(r->weights, ncclFloat32, 2, choice_sizes);
    ncclEpTensor_t rows = tensor(r->rows, ncclBfloat16, 2, row_sizes);
    ncclEpTensor_t places = tensor(r->row_weights, ncclFloat32, 1, place_sizes);
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpCombineInputs_t results = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t sums = NCCL_EP_COMBINE_OUTPUTS_INIT;
    ncclEpCombineConfig_t config = NCCL_EP_COMBINE_CONFIG_INIT;
    ncclEpHandle_t handle = NULL;
    inputs.tokens = &x;
    inputs.topk_weights = &weights;
    outputs.tokens = results.tokens = &rows;
    outputs.topk_weights = &places;
    sums.tokens = &y;
    config.quant_recipe = NCCL_EP_COMB_QUANT_MXFP8;
    OK(ncclEpCreateHandle(&handle, group, NCCL_EP_LAYOUT_EXPERT_MAJOR, &ids, NULL, NULL, NULL));
    OK(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL));
    results.scales = &places;
    EXPECT(ncclEpCombine(handle, &results, &sums, &config, NULL), ncclInvalidArgument, "inputs.scales is given");
    results.scales = NULL;
    rows.datatype = ncclFloat16;
    EXPECT(ncclEpCombine(handle, &results, &sums, &config, NULL), ncclInvalidArgument, "ncclBfloat16");
    rows.datatype = ncclBfloat16;
    memset(r->y, 0xff, sizeof r->y);
    OK(ncclEpCombine(handle, &results, &sums, &config, NULL));
    CHECK(memcmp(r->x, r->y, sizeof r->x) == 0);
    OK(ncclEpHandleDestroy(handle));
    OK(ncclEpGroupDestroy(group));
}

/* ---- ids of empty slots ---- */

static void empty_slots(rig *r, ncclEpGroup_t group, size_t tokens, int with_counts)
{
    size_t token_sizes[2] = {tokens, HIDDEN}, choice_sizes[2] = {tokens, 1}, count_sizes[1] = {RANKS};
    size_t row_sizes[3] = {RANKS, TOKENS, HIDDEN}, place_sizes[3] = {RANKS, TOKENS, 1};
    ncclEpTensor_t x = tensor(tokens != 0 ? r->x : NULL, ncclBfloat16, 2, token_sizes);
    ncclEpTensor_t ids = tensor(tokens != 0 ? r->ids : NULL, ncclInt64, 2, choice_sizes);
    ncclEpTensor_t weights = tensor(tokens != 0 ? r->weights : NULL, ncclFloat32, 2, choice_sizes);
    ncclEpTensor_t rows = tensor(r->rows, ncclBfloat16, 3, row_sizes);
    ncclEpTensor_t row_weights = tensor(r->row_weights, ncclFloat32, 3, place_sizes);
    ncclEpTensor_t row_ids = tensor(r->row_ids, ncclInt32, 3, place_sizes);
    ncclEpTensor_t counts = tensor(r->counts, ncclInt32, 1, count_sizes);
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandle_t handle = NULL;
    inputs.tokens = &x;
    inputs.topk_weights = &weights;
    outputs.tokens = &rows;
    outputs.topk_weights = &row_weights;
    outputs.topk_idx = &row_ids;
    info.src_rank_counters = with_counts ? &counts : NULL;
    memset(r->row_ids, 0x5a, sizeof r->row_ids);
    OK(ncclEpCreateHandle(&handle, group, NCCL_EP_LAYOUT_RANK_MAJOR, &ids, NULL, NULL, NULL));
    OK(ncclEpDispatch(handle, &inputs, &outputs, &info, NULL, NULL));
    for (int source = 0; source < RANKS; source++) {
        int slot = 0;
        for (int t = 0; t < (int)tokens; t++) {
            int expert = expert_of(source, t);
            CHECK(expert / LOCAL != r->rank || r->row_ids[source * TOKENS + slot++] == expert % LOCAL);
        }
        CHECK(!with_counts || r->counts[source] == slot);
        for (; slot < TOKENS; slot++) {
            CHECK(r->row_ids[source * TOKENS + slot] == -1);
        }
    }
    OK(ncclEpHandleDestroy(handle));
}

/* ---- packed rows by expert ---- */

static unsigned char byte_of(int rank, int token, int i)
{
    return (unsigned char)(1 + (rank * 67 + token * 23 + i * 3) % 251);
}

/* All rows of an expert, each once, in order of (source, token), and zeroes up to the next one's. */
static void check_packed(rig *r, int to_first)
{
    size_t row = 0;
    for (int e = 0; e < LOCAL; e++) {
        size_t first = row;
        for (int source = 0; source < RANKS; source++) {
            for (int t = 0; t < TOKENS; t++) {
                if ((to_first ? 0 : expert_of(source, t)) != r->rank * LOCAL + e) {
                    continue;
                }
                int wrong = 0;
                for (int i = 0; i < PACKED; i++) {
                    wrong += r->packed_rows[row][i] != byte_of(source, t, i);
                }
                for (int i = 0; i < PACKED_SCALES; i++) {
                    wrong += r->packed_row_scales[row][i] != byte_of(source, t, 100 + i);
                }
                CHECK(wrong == 0);
                row++;
            }
        }
        for (; (row - first) % ALIGNMENT != 0; row++) {
            CHECK(r->packed_rows[row][0] == 0 && r->packed_rows[row][PACKED - 1] == 0);
            CHECK(r->packed_row_scales[row][0] == 0 && r->packed_row_scales[row][PACKED_SCALES - 1] == 0);
        }
    }
    CHECK(r->total == (int32_t)row);
}

/* With most_rows AUTO the buffers have as many rows as are counted, none on a rank to which nothing comes. */
static void packed_by_expert(rig *r, unsigned most_rows, int to_first)
{
    ncclEpGroup_t group = group_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT, most_rows);
    size_t sizes[2] = {TOKENS, PACKED}, scale_sizes[2] = {TOKENS, PACKED_SCALES}, choice_sizes[2] = {TOKENS, 1};
    size_t one[1] = {1};
    int64_t firsts[TOKENS] = {0};
    ncclEpTensor_t in = tensor(r->packed, ncclFloat4x2, 2, sizes);
    ncclEpTensor_t in_scales = tensor(r->packed_scales, ncclUint8, 2, scale_sizes);
    ncclEpTensor_t ids = tensor(to_first ? firsts : r->ids, ncclInt64, 2, choice_sizes);
    ncclEpTensor_t weights = tensor(r->weights, ncclFloat32, 2, choice_sizes);
    ncclEpTensor_t total = tensor(&r->total, ncclInt32, 1, one);
    ncclEpHandleConfig_t config = NCCL_EP_HANDLE_CONFIG_INIT;
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpDispatchConfig_t forward = NCCL_EP_DISPATCH_CONFIG_INIT;
    ncclEpHandle_t handle = NULL;
    config.dispatch_output_per_expert_alignment = ALIGNMENT;
    info.recv_total_counter = &total;
    OK(ncclEpCreateHandle(&handle, group, NCCL_EP_LAYOUT_EXPERT_MAJOR, &ids, &info, &config, NULL));
    size_t many = most_rows == NCCL_EP_AUTO ? (size_t)r->total : ROWS_MOST;
    size_t row_sizes[2] = {many, PACKED}, row_scale_sizes[2] = {many, PACKED_SCALES}, place_sizes[1] = {many};
    ncclEpTensor_t rows = tensor(many != 0 ? r->packed_rows : NULL, ncclFloat4x2, 2, row_sizes);
    ncclEpTensor_t scales = tensor(many != 0 ? r->packed_row_scales : NULL, ncclUint8, 2, row_scale_sizes);
    ncclEpTensor_t places = tensor(many != 0 ? r->row_weights : NULL, ncclFloat32, 1, place_sizes);
    inputs.tokens = &in;
    inputs.scales = &in_scales;
    inputs.topk_weights = &weights;
    outputs.tokens = &rows;
    outputs.scales = &scales;
    outputs.topk_weights = &places;
    forward.quant_recipe = NCCL_EP_DISP_QUANT_FWD;
    for (int i = 0; i < 3; i++) { /* on one routing */
        memset(r->packed_rows, 0xa5, sizeof r->packed_rows);
        memset(r->packed_row_scales, 0x5a, sizeof r->packed_row_scales);
        OK(ncclEpDispatch(handle, &inputs, &outputs, NULL, &forward, NULL));
        OK(ncclEpComplete(handle, NULL, NULL));
        check_packed(r, to_first);
    }
    forward.round_scales = 1;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, &forward, NULL), ncclInvalidArgument, "round_scales");
    OK(ncclEpHandleDestroy(handle));
    OK(ncclEpGroupDestroy(group));
}

/* Into slots, in halves too, of which the second rank has no token and, as cudaMalloc gives for no bytes, no memory. */
static void packed_into_slots(rig *r, ncclEpGroup_t group, ncclEpLayout_t layout)
{
    const int by_expert = layout == NCCL_EP_LAYOUT_EXPERT_MAJOR;
    const size_t parts = by_expert ? LOCAL : RANKS;
    const size_t each = by_expert ? RANKS * TOKENS : TOKENS;
    const int has = r->rank == 0;
    size_t sizes[2] = {has ? TOKENS : 0, PACKED}, scale_sizes[2] = {has ? TOKENS : 0, PACKED_SCALES};
    size_t choice_sizes[2] = {has ? TOKENS : 0, 1}, count_sizes[1] = {parts};
    size_t row_sizes[3] = {parts, each, PACKED}, row_scale_sizes[3] = {parts, each, PACKED_SCALES};
    static _Thread_local _Alignas(16) unsigned char rows_there[SLOTS][PACKED];
    static _Thread_local _Alignas(16) unsigned char scales_there[SLOTS][PACKED_SCALES];
    ncclEpTensor_t in = tensor(has ? r->packed : NULL, ncclUint8, 2, sizes);
    ncclEpTensor_t in_scales = tensor(has ? r->packed_scales : NULL, ncclUint8, 2, scale_sizes);
    ncclEpTensor_t ids = tensor(has ? r->ids : NULL, ncclInt64, 2, choice_sizes);
    ncclEpTensor_t weights = tensor(has ? r->weights : NULL, ncclFloat32, 2, choice_sizes);
    ncclEpTensor_t rows = tensor(rows_there, ncclUint8, 3, row_sizes);
    ncclEpTensor_t scales = tensor(scales_there, ncclUint8, 3, row_scale_sizes);
    ncclEpTensor_t counts = tensor(r->counts, ncclInt32, 1, count_sizes);
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpDispatchConfig_t config = NCCL_EP_DISPATCH_CONFIG_INIT;
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandle_t handle = NULL;
    inputs.tokens = &in;
    inputs.scales = &in_scales;
    inputs.topk_weights = &weights;
    outputs.tokens = &rows;
    outputs.scales = &scales;
    config.quant_recipe = NCCL_EP_DISP_QUANT_FWD;
    *(by_expert ? &info.expert_counters : &info.src_rank_counters) = &counts;
    OK(ncclEpCreateHandle(&handle, group, layout, &ids, NULL, NULL, NULL));
    for (unsigned halves = 0; halves < 2; halves++) {
        size_t next[EXPERTS] = {0};
        memset(rows_there, 0, sizeof rows_there);
        memset(scales_there, 0, sizeof scales_there);
        config.send_only = halves;
        OK(ncclEpDispatch(handle, &inputs, &outputs, &info, &config, NULL));
        OK(ncclEpComplete(handle, NULL, NULL));
        for (int t = 0; t < TOKENS; t++) {
            const int expert = expert_of(0, t);
            if (expert / LOCAL == r->rank) {
                const size_t part = by_expert ? (size_t)(expert % LOCAL) : 0;
                const size_t row = part * each + next[part]++;
                CHECK(rows_there[row][PACKED - 1] == byte_of(0, t, PACKED - 1));
                CHECK(scales_there[row][PACKED_SCALES - 1] == byte_of(0, t, 100 + PACKED_SCALES - 1));
            }
        }
        for (size_t part = 0; part < parts; part++) {
            CHECK(r->counts[part] == (int32_t)next[part]);
        }
    }
    OK(ncclEpHandleDestroy(handle));
}

/* ---- threads ---- */

static int has_fp4; /* of the GPUs */

static void fill(rig *r)
{
    for (int t = 0; t < TOKENS; t++) {
        r->ids[t] = expert_of(r->rank, t);
        r->weights[t] = 1;
        for (int h = 0; h < HIDDEN; h++) {
            r->x[t][h] = bits_of(value_of(r->rank, t, h));
        }
        for (int i = 0; i < PACKED; i++) {
            r->packed[t][i] = byte_of(r->rank, t, i);
        }
        for (int i = 0; i < PACKED_SCALES; i++) {
            r->packed_scales[t][i] = byte_of(r->rank, t, 100 + i);
        }
    }
}

static int run(void *argument)
{
    rig *r = argument;
    if (!standin_choose_gpu(r->rank)) {
        (void)fprintf(stderr, "rank %d: no fake driver\n", r->rank);
        r->failures++;
        return r->failures;
    }
    fill(r);
    ncclEpGroup_t group = group_of(r, NCCL_EP_ALGO_LOW_LATENCY, NCCL_EP_AUTO);
    combine_as_nvfp4(r, group, NCCL_EP_LAYOUT_RANK_MAJOR, has_fp4);
    combine_as_nvfp4(r, group, NCCL_EP_LAYOUT_EXPERT_MAJOR, has_fp4);
    if (!has_fp4) {
        quantise_by(r, group, NCCL_EP_LAYOUT_RANK_MAJOR);
        quantise_by(r, group, NCCL_EP_LAYOUT_EXPERT_MAJOR);
        for (size_t tokens = 0; tokens <= 4; tokens += 2) {
            empty_slots(r, group, tokens, tokens % 4 == 0);
        }
        packed_into_slots(r, group, NCCL_EP_LAYOUT_RANK_MAJOR);
        packed_into_slots(r, group, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    }
    OK(ncclEpGroupDestroy(group));
    if (!has_fp4) {
        combine_as_mxfp8(r);
        packed_by_expert(r, ROWS_MOST, 0);
        packed_by_expert(r, NCCL_EP_AUTO, 0);
        packed_by_expert(r, NCCL_EP_AUTO, 1);
    }
    return r->failures;
}

/* `comms` stay, as libnccl.c has it. */
static int run_all(ncclComm_t comms[RANKS])
{
    static rig rigs[RANKS];
    standin_comms(RANKS, comms);
    memset(rigs, 0, sizeof rigs);
    for (int i = 0; i < RANKS; i++) {
        rigs[i].rank = i;
        rigs[i].comm = comms[i];
    }
    return run_rank_threads(RANKS, run, rigs, sizeof rigs[0]);
}

int main(void)
{
    static ncclComm_t comms[2][RANKS];
    int failures = run_all(comms[0]);
    (void)setenv("WEFT_FAKE_CAPABILITY", "10", 1);
    has_fp4 = 1;
    failures += run_all(comms[1]);
    return failures != 0;
}

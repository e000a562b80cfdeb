/* Goal: what HT counts when the routing changes is right, in counters of either type, with room to spare, and in groups
 * that drop rows or, where too many come, move none; ranks that receive nothing, in buffers of no rows, hold nobody up.
 *
 * Method: as steps.c; the counts are made from all ranks' choices, which follow from a seed. Usage: counters RANKS. */
#include <stdio.h>
#include <string.h>

#include "faces/nccl_ep/step.h"
#include "weft.h"

/* Weights of no rows beside rows, and of a row beside none: refused on every rank, so that nobody waits for another. */
static void uneven_received(rig *r, step *s, ncclEpHandle_t handle)
{
    static float weights[TOPK];
    size_t sizes[2] = {r->rank != 0, TOPK};
    ncclEpTensor_t row_weights = tensor(weights, ncclFloat32, s->layout == NCCL_EP_LAYOUT_EXPERT_MAJOR ? 1 : 2, sizes);
    ncclEpTensor_t weights_back = tensor(r->weights_back, ncclFloat32, 2, s->choice_sizes);
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpCombineInputs_t back = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t grads = NCCL_EP_COMBINE_OUTPUTS_INIT;
    ncclEpCombineConfig_t config = NCCL_EP_COMBINE_CONFIG_INIT;
    inputs.tokens = &s->x;
    inputs.topk_weights = &s->weights;
    outputs.tokens = back.tokens = &s->rows;
    outputs.topk_weights = back.topk_weights = &row_weights;
    grads.tokens = &s->y;
    grads.topk_weights = &weights_back;
    config.pass_direction = NCCL_EP_BWD_PASS;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "'outputs.topk_weights'");
    EXPECT(ncclEpCombine(handle, &back, &grads, &config, NULL), ncclInvalidArgument, "'inputs.topk_weights'");
}

/* All tokens to the first two experts: the other ranks receive nothing, in buffers of no rows at NULL, forward and
 * backward. */
static void nothing_received(rig *r, ncclEpLayout_t layout)
{
    ncclEpHandle_t handle = NULL;
    step s = step_of(r, layout, 0);
    if (r->rank != 0) {
        s.row_sizes[0] = s.place_sizes[0] = 0;
    }
    fill_tensors(r, &s);
    if (r->rank != 0) {
        s.rows.data = s.row_weights.data = s.row_ids.data = NULL;
    }
    choose(r, 1);
    for (unsigned t = 0; t < MOST; t++) {
        r->ids[t][0] = 0;
        r->ids[t][1] = 1;
    }
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, NULL, NULL, NULL));
    uneven_received(r, &s, handle);
    dispatch(r, &s, handle);
    backward(r, &s, handle);
    OK(ncclEpHandleDestroy(handle));
}

/* How many rows come to a rank, if all do. */
static int wanted_rows_of(const rig *r, int rank, ncclEpLayout_t layout, unsigned seed)
{
    int rows = 0;
    for (int source = 0; source < r->ranks; source++) {
        for (unsigned t = 0; t < MOST - (unsigned)source; t++) {
            int64_t first = choice_of(r, seed, source, t, 0);
            int64_t second = choice_of(r, seed, source, t, 1);
            int here = (first / LOCAL == rank) + (second >= 0 && second / LOCAL == rank);
            rows += layout == NCCL_EP_LAYOUT_FLAT ? here != 0 : here;
        }
    }
    return rows;
}

static int wanted_rows(const rig *r, ncclEpLayout_t layout, unsigned seed)
{
    return wanted_rows_of(r, r->rank, layout, seed);
}

/* Counters of either type, with room for one more, which is left alone. */
typedef struct room {
    ncclDataType_t type;
    union {
        int32_t narrow[LOCAL + 1];
        int64_t wide[LOCAL + 1];
    };
    size_t count;
    ncclEpTensor_t tensor;
} room;

static void open_room(room *m, ncclDataType_t type, size_t count)
{
    memset(m, 0xff, sizeof *m);
    m->type = type;
    m->count = count + 1;
    m->tensor = tensor(m->wide, type, 1, &m->count);
}

static int64_t count_in(const room *m, size_t at)
{
    return m->type == ncclInt64 ? m->wide[at] : m->narrow[at];
}

/* The choices of an expert of all ranks. */
static int64_t choices_of_expert(const rig *r, unsigned seed, int expert)
{
    int64_t all = 0;
    for (int source = 0; source < r->ranks; source++) {
        for (unsigned t = 0; t < MOST - (unsigned)source; t++) {
            for (int k = 0; k < TOPK; k++) {
                all += choice_of(r, seed, source, t, k) == expert;
            }
        }
    }
    return all;
}

/* Those of a local one. */
static int64_t wanted_choices(const rig *r, unsigned seed, int expert)
{
    return choices_of_expert(r, seed, r->rank * LOCAL + expert);
}

/* The first rank to which more than MOST rows come, by expert in multiples of 4; -1: to none. */
static int first_full_rank(const rig *r, ncclEpLayout_t layout, unsigned seed)
{
    for (int rank = 0; rank < r->ranks; rank++) {
        int64_t rows = layout == NCCL_EP_LAYOUT_FLAT ? wanted_rows_of(r, rank, layout, seed) : 0;
        for (int expert = rank * LOCAL; layout != NCCL_EP_LAYOUT_FLAT && expert < (rank + 1) * LOCAL; expert++) {
            rows += (choices_of_expert(r, seed, expert) + 3) / 4 * 4;
        }
        if (rows > MOST) {
            return rank;
        }
    }
    return -1;
}

/* What ncclEpGetAsyncError says, and in which words: of an overflow, with the rank and what it holds; rank -1: of
 * none. */
static void check_error(rig *r, int rank, long long most, const char *of, int line)
{
    char words[80];
    int error = -1;
    (void)snprintf(words, sizeof words, "rank %d than the %lld %s", rank, most, of);
    (void)weft_last_error_set(WEFT_ERR_STATE, "before");
    OK(ncclEpGetAsyncError(r->group, &error));
    const int wanted = rank >= 0 ? WEFT_NCCL_EP_OVERFLOWED : 0;
    if (error != wanted || strstr(weft_last_error(), rank >= 0 ? words : "before") == NULL) {
        (void)fprintf(stderr, "rank %d: line %d: error %d, not %d with \"%s\": \"%s\"\n", r->rank, line, error, wanted,
                      words, weft_last_error());
        r->failures++;
    }
}

/* What an update counts: by expert padding included, flat choices, and rows. */
static void check_counters(rig *r, ncclEpLayout_t layout, const room *experts, const room *offsets, const room *total)
{
    int by_expert = layout == NCCL_EP_LAYOUT_EXPERT_MAJOR;
    int64_t end = 0;
    for (int e = 0; e < LOCAL; e++) {
        int64_t wanted = wanted_choices(r, 3, e);
        wanted = by_expert ? (wanted + 3) / 4 * 4 : wanted;
        if (count_in(experts, (size_t)e) != wanted || (by_expert && count_in(offsets, (size_t)e) != end)) {
            (void)fprintf(stderr, "rank %d: expert %d has count %lld, not %lld, and offset %lld, not %lld\n", r->rank,
                          e, (long long)count_in(experts, (size_t)e), (long long)wanted,
                          (long long)count_in(offsets, (size_t)e), (long long)end);
            r->failures++;
        }
        end += wanted;
    }
    end = by_expert ? end : wanted_rows(r, layout, 3);
    if (count_in(total, 0) != end || count_in(total, 1) != -1 || count_in(experts, LOCAL) != -1 ||
        count_in(offsets, LOCAL) != -1) {
        (void)fprintf(stderr, "rank %d: total %lld, not %lld, or counts behind the last\n", r->rank,
                      (long long)count_in(total, 0), (long long)end);
        r->failures++;
    }
}

static void counted(rig *r, ncclEpLayout_t layout, ncclDataType_t of_experts, ncclDataType_t of_total)
{
    room experts;
    room offsets;
    room total;
    ncclEpGroupConfig_t group = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandleConfig_t config = NCCL_EP_HANDLE_CONFIG_INIT;
    ncclEpHandle_t handle = NULL;
    step s = step_of(r, layout, 0);
    fill_tensors(r, &s);
    open_room(&experts, of_experts, LOCAL);
    open_room(&offsets, of_experts, LOCAL);
    open_room(&total, of_total, 1);
    info.expert_counters = &experts.tensor;
    info.expert_offsets = layout == NCCL_EP_LAYOUT_EXPERT_MAJOR ? &offsets.tensor : NULL;
    info.recv_total_counter = &total.tensor;
    config.dispatch_output_per_expert_alignment = 4;
    OK(ncclEpCreateGroup(&r->group, r->comm, &group));
    choose(r, 3);
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, &info, &config, NULL));
    check_counters(r, layout, &experts, &offsets, &total);
    OK(ncclEpHandleDestroy(handle));
    OK(ncclEpGroupDestroy(r->group));
}

/* Counters of a dispatch, in place of an update's: of the first on a routing, and of one on a routing that is agreed
 * on; between them dispatches without, which leave them alone. Dispatches and combines have multiprocessors of their
 * own. */
static void counted_by_dispatch(rig *r, unsigned dispatch_sms, unsigned combine_sms)
{
    ncclEpGroupConfig_t group = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    ncclEpHandleConfig_t config = NCCL_EP_HANDLE_CONFIG_INIT;
    ncclEpDispatchInputs_t in = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t out = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpHandle_t handle = NULL;
    step s = step_of(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, 0);
    fill_tensors(r, &s);
    in.tokens = &s.x;
    in.topk_weights = &s.weights;
    out.tokens = &s.rows;
    out.topk_weights = &s.row_weights;
    group.dispatch_num_sms = dispatch_sms;
    group.combine_num_sms = combine_sms;
    config.dispatch_output_per_expert_alignment = 4;
    OK(ncclEpCreateGroup(&r->group, r->comm, &group));
    choose(r, 3);
    OK(ncclEpCreateHandle(&handle, r->group, NCCL_EP_LAYOUT_EXPERT_MAJOR, &s.ids, NULL, &config, NULL));
    for (int round = 0; round < 2; round++) {
        room experts;
        room offsets;
        room total;
        ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
        open_room(&experts, ncclInt32, LOCAL);
        open_room(&offsets, ncclInt32, LOCAL);
        open_room(&total, round == 0 ? ncclInt64 : ncclInt32, 1);
        info.expert_counters = &experts.tensor;
        info.expert_offsets = &offsets.tensor;
        info.recv_total_counter = &total.tensor;
        OK(ncclEpDispatch(handle, &in, &out, &info, NULL, NULL));
        check_counters(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, &experts, &offsets, &total);
        open_room(&experts, ncclInt32, LOCAL);
        weigh(r, 1);
        OK(ncclEpDispatch(handle, &in, &out, NULL, NULL, NULL));
        combine(r, &s, handle);
        r->failures += count_in(&experts, 0) != -1;
    }
    OK(ncclEpHandleDestroy(handle));
    OK(ncclEpGroupDestroy(r->group));
}

/* A group that drops what is beyond MOST rows: the total tells how many would have come. */
static void dropped(rig *r, ncclEpLayout_t layout)
{
    size_t one = 1;
    size_t local = LOCAL;
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    ncclEpTensor_t total = tensor(&r->total, ncclInt32, 1, &one);
    ncclEpTensor_t experts = tensor(r->experts, ncclInt32, 1, &local);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandle_t handle = NULL;
    step s = step_of(r, layout, 0);
    fill_tensors(r, &s);
    config.max_recv_tokens_per_rank = MOST;
    config.overflow_policy = NCCL_EP_OVERFLOW_DROP;
    info.recv_total_counter = &total;
    info.expert_counters = &experts;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    choose(r, 3);
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, &info, NULL, NULL));
    int wanted = wanted_rows(r, layout, 3);
    int kept = r->experts[0] + r->experts[1];
    if (r->total != wanted || (layout == NCCL_EP_LAYOUT_EXPERT_MAJOR && kept > MOST)) {
        (void)fprintf(stderr, "rank %d: total %d, not %d; %d rows of experts are kept\n", r->rank, (int)r->total,
                      wanted, kept);
        r->failures++;
    }
    dispatch(r, &s, handle);
    combine(r, &s, handle);
    check_error(r, -1, 0, "", __LINE__);
    OK(ncclEpHandleDestroy(handle));
    OK(ncclEpGroupDestroy(r->group));
}

/* Which rows a rank keeps of those that come to it: they lie by expert, in multiples of 4, as if all came, and it has
 * MOST, and takes in as many tokens. How many of each of its experts; and those of this rank's choices that it does not
 * keep become -1. */
static void drop_choices(rig *r, unsigned seed, int owner, int kept[LOCAL])
{
    int64_t next[LOCAL] = {0};
    int place = 0;
    for (int e = 1; e < LOCAL; e++) {
        next[e] = next[e - 1] + (choices_of_expert(r, seed, owner * LOCAL + e - 1) + 3) / 4 * 4;
    }
    memset(kept, 0, LOCAL * sizeof *kept);
    for (int source = 0; source < r->ranks; source++) {
        for (unsigned t = 0; t < MOST - (unsigned)source; t++) {
            int comes = 0;
            for (int k = 0; k < TOPK; k++) {
                const int64_t expert = choice_of(r, seed, source, t, k);
                if (expert < 0 || expert / LOCAL != owner) {
                    continue;
                }
                comes = 1;
                if (next[expert % LOCAL]++ < MOST && place < MOST) {
                    kept[expert % LOCAL]++;
                } else if (source == r->rank) {
                    r->ids[t][k] = -1;
                }
            }
            place += comes;
        }
    }
}

/* By expert in multiples of 4: what is kept, what is counted of it, and what becomes of tokens of which some or all is
 * not. */
static void dropped_rows(rig *r, unsigned seed)
{
    size_t local = LOCAL;
    size_t one = 1;
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    ncclEpTensor_t total = tensor(&r->total, ncclInt32, 1, &one);
    ncclEpTensor_t padded = tensor(r->padded, ncclInt32, 1, &local);
    ncclEpTensor_t offsets = tensor(r->offsets, ncclInt32, 1, &local);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandleConfig_t of_handle = NCCL_EP_HANDLE_CONFIG_INIT;
    ncclEpHandle_t handle = NULL;
    int kept[LOCAL];
    int all = 0;
    int is_wrong = 0;
    step s = step_of(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, 0);
    fill_tensors(r, &s);
    config.max_recv_tokens_per_rank = MOST;
    config.overflow_policy = NCCL_EP_OVERFLOW_DROP;
    of_handle.dispatch_output_per_expert_alignment = 4;
    info.recv_total_counter = &total;
    info.expert_counters = &padded;
    info.expert_offsets = &offsets;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    choose(r, seed);
    OK(ncclEpCreateHandle(&handle, r->group, s.layout, &s.ids, &info, &of_handle, NULL));
    for (int owner = 0; owner < r->ranks; owner++) {
        drop_choices(r, seed, owner, owner == r->rank ? kept : (int[LOCAL]){0});
    }
    for (int e = 0; e < LOCAL; e++) {
        is_wrong |= r->padded[e] != (kept[e] + 3) / 4 * 4 || r->offsets[e] != (e == 0 ? 0 : r->padded[e - 1]);
        all += (int)(wanted_choices(r, seed, e) + 3) / 4 * 4;
    }
    if (r->total != all || is_wrong) {
        (void)fprintf(stderr, "rank %d: seed %u: total %d, not %d; or other counts\n", r->rank, seed, (int)r->total,
                      all);
        r->failures++;
    }
    r->total = r->offsets[LOCAL - 1] + r->padded[LOCAL - 1];
    one_step(r, &s, handle, __LINE__);
    check_error(r, -1, 0, "", __LINE__);
    OK(ncclEpHandleDestroy(handle));
    OK(ncclEpGroupDestroy(r->group));
}

/* Where more rows come to any rank than it may have, none move on any: all calls succeed, and write nothing. */
static void check_trapped(rig *r, step *s, ncclEpHandle_t handle)
{
    static const unsigned char untouched[sizeof r->received] = {0};
    int is_over = 0;
    for (int rank = 0; rank < r->ranks; rank++) {
        is_over |= wanted_rows_of(r, rank, s->layout, 3) > MOST;
    }
    memset(r->received, 0, sizeof r->received);
    memset(r->y, 0, sizeof r->y);
    dispatch(r, s, handle);
    combine(r, s, handle);
    if (is_over &&
        (memcmp(r->received, untouched, sizeof r->received) != 0 || memcmp(r->y, untouched, sizeof r->y) != 0)) {
        (void)fprintf(stderr, "rank %d: rows have moved\n", r->rank);
        r->failures++;
    }
}

/* A group that takes MOST rows: the total tells how many would have come. The next routing is as if that had not been:
 * each token stays where it is. */
static void trapped(rig *r, ncclEpLayout_t layout)
{
    size_t one = 1;
    size_t local = LOCAL;
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    ncclEpTensor_t total = tensor(&r->total, ncclInt32, 1, &one);
    ncclEpTensor_t padded = tensor(r->padded, ncclInt32, 1, &local);
    ncclEpTensor_t offsets = tensor(r->offsets, ncclInt32, 1, &local);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandleConfig_t of_handle = NCCL_EP_HANDLE_CONFIG_INIT;
    ncclEpHandle_t handle = NULL;
    step s = step_of(r, layout, 0);
    fill_tensors(r, &s);
    config.max_recv_tokens_per_rank = MOST;
    config.overflow_policy = NCCL_EP_OVERFLOW_TRAP;
    of_handle.dispatch_output_per_expert_alignment = 4;
    info.recv_total_counter = &total;
    info.expert_counters = &padded;
    info.expert_offsets = &offsets;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    choose(r, 3);
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, &info, &of_handle, NULL));
    const int wanted = wanted_rows(r, layout, 3);
    r->failures += r->total < wanted || r->total > wanted + LOCAL * 3;
    check_error(r, first_full_rank(r, layout, 3), MOST, "of the group's max_recv_tokens_per_rank", __LINE__);
    check_trapped(r, &s, handle);
    OK(ncclEpErrorClear(r->group));
    check_error(r, -1, 0, "", __LINE__);
    for (unsigned t = 0; t < MOST; t++) {
        r->ids[t][0] = (int64_t)r->rank * LOCAL;
        r->ids[t][1] = -1;
    }
    OK(ncclEpUpdateHandle(handle, &s.ids, &info, NULL));
    one_step(r, &s, handle, __LINE__);
    check_error(r, -1, 0, "", __LINE__);
    OK(ncclEpHandleDestroy(handle));
    OK(ncclEpGroupDestroy(r->group));
}

/* In a group without a limit, buffers of a row fewer than come: likewise. In larger ones the same routing goes on. */
static void too_short(rig *r, ncclEpLayout_t layout)
{
    static const unsigned char untouched[sizeof r->received] = {0};
    size_t one = 1;
    size_t local = LOCAL;
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    ncclEpTensor_t total = tensor(&r->total, ncclInt32, 1, &one);
    ncclEpTensor_t padded = tensor(r->padded, ncclInt32, 1, &local);
    ncclEpTensor_t offsets = tensor(r->offsets, ncclInt32, 1, &local);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandleConfig_t of_handle = NCCL_EP_HANDLE_CONFIG_INIT;
    ncclEpHandle_t handle = NULL;
    step s = step_of(r, layout, 0);
    fill_tensors(r, &s);
    config.max_recv_tokens_per_rank = NCCL_EP_AUTO;
    of_handle.dispatch_output_per_expert_alignment = 4;
    info.recv_total_counter = &total;
    info.expert_counters = &padded;
    info.expert_offsets = &offsets;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    choose(r, 3);
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, &info, &of_handle, NULL));
    s.row_sizes[0] = s.place_sizes[0] = (size_t)r->total - 1;
    memset(r->received, 0, sizeof r->received);
    check_error(r, -1, 0, "", __LINE__);
    dispatch(r, &s, handle);
    if (r->rank == 0) { /* whose buffer is the first that is too short */
        check_error(r, 0, (long long)s.row_sizes[0], "that its received tensors hold", __LINE__);
    }
    OK(ncclEpErrorClear(r->group));
    if (memcmp(r->received, untouched, sizeof r->received) != 0) {
        (void)fprintf(stderr, "rank %d: rows have moved\n", r->rank);
        r->failures++;
    }
    s.row_sizes[0] = s.place_sizes[0] = ROWS;
    one_step(r, &s, handle, __LINE__);
    OK(ncclEpHandleDestroy(handle));
    OK(ncclEpGroupDestroy(r->group));
}

#define SPARE 3 /* rows */

/* Received weights and ids with room for more rows than the tokens have, which stay as they were; and, of layout_info,
 * what is of other layouts and of LL, of which nothing is read. */
static void spare_room(rig *r, ncclEpLayout_t layout)
{
    const size_t per_row = layout == NCCL_EP_LAYOUT_FLAT ? TOPK : 1;
    ncclEpTensor_t junk = tensor(NULL, ncclFloat32, 0, NULL);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandleConfig_t config = NCCL_EP_HANDLE_CONFIG_INIT;
    ncclEpHandle_t handle = NULL;
    size_t one = 1;
    size_t local = LOCAL;
    size_t all_room = ROWS * per_row;
    step s = step_of(r, layout, 0);
    s.row_sizes[0] -= SPARE;
    fill_tensors(r, &s);
    s.row_weights = tensor(r->received_weights, ncclFloat32, 1, &all_room); /* ids have as many dimensions as choices */
    ncclEpTensor_t total = tensor(&r->total, ncclInt32, 1, &one);
    ncclEpTensor_t padded = tensor(r->padded, ncclInt32, 1, &local);
    ncclEpTensor_t offsets = tensor(r->offsets, ncclInt32, 1, &local);
    junk.size = 1;
    config.dispatch_output_per_expert_alignment = 4;
    info.recv_total_counter = &total;
    info.expert_counters = &padded;
    info.expert_offsets = layout == NCCL_EP_LAYOUT_FLAT ? &junk : &offsets;
    info.src_rank_counters = &junk;
    choose(r, 3);
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, &info, &config, NULL));
    memset(r->wide_ids, 0x11, sizeof r->wide_ids);
    memset(r->received_weights, 0x11, sizeof r->received_weights);
    dispatch(r, &s, handle);
    for (size_t i = (ROWS - SPARE) * per_row; i < ROWS * per_row; i++) {
        const int32_t bits = 0x11111111;
        r->failures += memcmp(&r->received_weights[i], &bits, sizeof bits) != 0;
        r->failures += layout == NCCL_EP_LAYOUT_FLAT && r->wide_ids[i] != 0x1111111111111111;
        r->wide_ids[i] = -1; /* as work() wants them */
    }
    work(r, &s);
    combine(r, &s, handle);
    check_result(r, __LINE__);
    OK(ncclEpHandleDestroy(handle));
}

/* Tokens with room for more rows than weights and ids have; and weights that go back with more rows than tokens. */
static void spare_rows(rig *r, ncclEpLayout_t layout, int is_bounded)
{
    size_t one = 1;
    size_t local = LOCAL;
    ncclEpGroupConfig_t group = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    ncclEpTensor_t total = tensor(&r->total, ncclInt32, 1, &one);
    ncclEpTensor_t padded = tensor(r->padded, ncclInt32, 1, &local);
    ncclEpTensor_t offsets = tensor(r->offsets, ncclInt32, 1, &local);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandleConfig_t config = NCCL_EP_HANDLE_CONFIG_INIT;
    ncclEpHandle_t handle = NULL;
    step s = step_of(r, layout, 0);
    s.place_sizes[0] -= SPARE;
    fill_tensors(r, &s);
    group.max_recv_tokens_per_rank = is_bounded ? ROWS - SPARE : NCCL_EP_AUTO;
    config.dispatch_output_per_expert_alignment = 4;
    info.recv_total_counter = &total;
    info.expert_counters = &padded;
    info.expert_offsets = &offsets;
    OK(ncclEpCreateGroup(&r->group, r->comm, &group));
    choose(r, 3);
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, &info, &config, NULL));
    memset(r->wide_ids, 0xff, sizeof r->wide_ids); /* as work() wants those behind the last row */
    dispatch(r, &s, handle);
    s.row_sizes[0] -= SPARE;
    s.place_sizes[0] += SPARE; /* more weights than rows */
    backward(r, &s, handle);
    work(r, &s);
    combine(r, &s, handle);
    check_result(r, __LINE__);
    OK(ncclEpHandleDestroy(handle));
    OK(ncclEpGroupDestroy(r->group));
}

/* Nobody asks for weights or ids of what comes, and choices are of int32; experts do nothing. */
static void bare(rig *r, ncclEpLayout_t layout)
{
    int32_t narrow[MOST][TOPK];
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpHandle_t handle = NULL;
    step s = step_of(r, layout, 0);
    fill_tensors(r, &s);
    s.ids.datatype = ncclInt32;
    s.ids.data = narrow;
    inputs.tokens = &s.x;
    inputs.topk_weights = &s.weights;
    outputs.tokens = &s.rows;
    choose(r, 3);
    for (unsigned t = 0; t < MOST; t++) {
        narrow[t][0] = (int32_t)r->ids[t][0];
        narrow[t][1] = (int32_t)r->ids[t][1];
    }
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, NULL, NULL, NULL));
    OK(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL));
    combine(r, &s, handle);
    for (size_t t = 0; t < r->tokens; t++) {
        const int64_t *ids = r->ids[t];
        int is_twice = ids[1] >= 0 && (layout != NCCL_EP_LAYOUT_FLAT || ids[0] / LOCAL != ids[1] / LOCAL);
        r->failures += r->y[t][HIDDEN - 1] != (float)(1 + is_twice) * r->x[t][HIDDEN - 1];
    }
    OK(ncclEpHandleDestroy(handle));
}

static void in_one_group(rig *r)
{
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    config.max_recv_tokens_per_rank = NCCL_EP_AUTO;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    nothing_received(r, NCCL_EP_LAYOUT_FLAT);
    nothing_received(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    spare_room(r, NCCL_EP_LAYOUT_FLAT);
    spare_room(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    bare(r, NCCL_EP_LAYOUT_FLAT);
    bare(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    OK(ncclEpGroupDestroy(r->group));
}

static void all(rig *r)
{
    counted(r, NCCL_EP_LAYOUT_FLAT, ncclInt32, ncclInt32);
    counted(r, NCCL_EP_LAYOUT_FLAT, ncclInt32, ncclInt64);
    counted(r, NCCL_EP_LAYOUT_FLAT, ncclInt64, ncclInt64);
    counted(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, ncclInt32, ncclInt32);
    counted(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, ncclInt64, ncclInt64);
    counted_by_dispatch(r, NCCL_EP_AUTO, NCCL_EP_AUTO);
    counted_by_dispatch(r, 2, 1);
    counted_by_dispatch(r, NCCL_EP_AUTO, 1);
    dropped(r, NCCL_EP_LAYOUT_FLAT);
    dropped(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    for (unsigned seed = 0; seed < 4; seed++) {
        dropped_rows(r, seed);
    }
    trapped(r, NCCL_EP_LAYOUT_FLAT);
    trapped(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    too_short(r, NCCL_EP_LAYOUT_FLAT);
    too_short(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    spare_rows(r, NCCL_EP_LAYOUT_FLAT, 0);
    spare_rows(r, NCCL_EP_LAYOUT_FLAT, 1);
    spare_rows(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, 0);
    spare_rows(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, 1);
    in_one_group(r);
    r->tokens = r->rank == r->ranks - 1 ? 0 : r->tokens; /* a rank without any, or nobody has one */
    in_one_group(r);
}

int main(int argc, char **argv)
{
    return run_ranks(argc, argv, all);
}

/* Goal: what HT counts when the routing changes is right, in counters of either type, with room to spare, and in groups
 * that drop rows; ranks that receive nothing, in buffers of no rows, hold nobody up.
 *
 * Method: as steps.c; the counts are made from all ranks' choices, which follow from a seed. Usage: counters RANKS. */
#include <stdio.h>
#include <string.h>

#include "faces/nccl_ep/step.h"

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
    dispatch(r, &s, handle);
    backward(r, &s, handle);
    OK(ncclEpHandleDestroy(handle));
}

/* How many rows come to this rank, if all do. */
static int wanted_rows(const rig *r, ncclEpLayout_t layout, unsigned seed)
{
    int rows = 0;
    for (int source = 0; source < r->ranks; source++) {
        for (unsigned t = 0; t < MOST - (unsigned)source; t++) {
            int64_t first = choice_of(r, seed, source, t, 0);
            int64_t second = choice_of(r, seed, source, t, 1);
            int here = (first / LOCAL == r->rank) + (second >= 0 && second / LOCAL == r->rank);
            rows += layout == NCCL_EP_LAYOUT_FLAT ? here != 0 : here;
        }
    }
    return rows;
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

/* The choices of local expert `expert` of all ranks. */
static int64_t wanted_choices(const rig *r, unsigned seed, int expert)
{
    int64_t all = 0;
    for (int source = 0; source < r->ranks; source++) {
        for (unsigned t = 0; t < MOST - (unsigned)source; t++) {
            for (int k = 0; k < TOPK; k++) {
                all += choice_of(r, seed, source, t, k) == r->rank * LOCAL + expert;
            }
        }
    }
    return all;
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
    if (r->total != wanted || (layout == NCCL_EP_LAYOUT_EXPERT_MAJOR && (kept > MOST || kept < MOST - 1))) {
        (void)fprintf(stderr, "rank %d: total %d, not %d; %d rows of experts are kept\n", r->rank, (int)r->total,
                      wanted, kept);
        r->failures++;
    }
    dispatch(r, &s, handle);
    combine(r, &s, handle);
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

static void in_one_group(rig *r)
{
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    config.max_recv_tokens_per_rank = NCCL_EP_AUTO;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    nothing_received(r, NCCL_EP_LAYOUT_FLAT);
    nothing_received(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    spare_room(r, NCCL_EP_LAYOUT_FLAT);
    spare_room(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    OK(ncclEpGroupDestroy(r->group));
}

static void all(rig *r)
{
    counted(r, NCCL_EP_LAYOUT_FLAT, ncclInt32, ncclInt32);
    counted(r, NCCL_EP_LAYOUT_FLAT, ncclInt32, ncclInt64);
    counted(r, NCCL_EP_LAYOUT_FLAT, ncclInt64, ncclInt64);
    counted(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, ncclInt32, ncclInt32);
    counted(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, ncclInt64, ncclInt64);
    dropped(r, NCCL_EP_LAYOUT_FLAT);
    dropped(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    in_one_group(r);
    r->tokens = r->rank == r->ranks - 1 ? 0 : r->tokens; /* a rank without any, or nobody has one */
    in_one_group(r);
}

int main(int argc, char **argv)
{
    return run_ranks(argc, argv, all);
}

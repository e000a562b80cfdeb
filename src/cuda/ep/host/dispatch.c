/* cuda/ep/host/dispatch.c: the calls that route, and those that move rows to the owners of experts: from the caller's
 * arguments to a launch. Nothing here waits or allocates. */
#include "cuda/ep/host/calls.h"
#include "cuda/ep/host/describe.h"
#include "ep/check.h"

static wefti_cuda_ep_experts experts_of(const weft_ep_route *route)
{
    int has_slots = route->plan.layout == WEFT_EP_SLOTS_EXPERT;
    return (wefti_cuda_ep_experts){
        .slots = has_slots ? (wefti_u32)(route->ep->ranks * route->plan.slot_tokens) : 0,
        .alignment = (wefti_u32)route->plan.alignment,
        .zeroes = !has_slots && (route->plan.flags & WEFT_EP_ZERO_PADDING) != 0,
    };
}

static wefti_cuda_ep_dispatch_args dispatch_args(const weft_ep_route *route)
{
    wefti_cuda_ep_dispatch_args args = {
        .group = *wefti_cuda_ep_group_of(route->ep),
        .tables = wefti_cuda_ep_tables_of(route),
        .topk = route->plan.topk,
        .experts = experts_of(route),
        .slots = route->plan.layout == WEFT_EP_SLOTS_SOURCE ? (wefti_u32)route->plan.slot_tokens : 0};
    if (wefti_ep_plan_is_by_rank(&route->plan)) {
        int32_t itself[WEFTI_CUDA_EP_MANY_MAX + 1]; /* a rank stands for its one expert */
        for (int rank = 0; rank <= route->ep->ranks; rank++) {
            itself[rank] = rank;
        }
        route->ep->device->kind->set_experts(&args.group, itself);
    }
    return args;
}

int wefti_cuda_ep_begin_choices(const weft_ep_route *route, const weft_ep_choices *fresh)
{
    wefti_ep_device_route *of = route->device;
    const int before = of->by_position;
    of->by_position = fresh != NULL ? fresh->positions != NULL : before;
    return before;
}

static wefti_cuda_ep_choices choices_of(const weft_ep_route *route, const weft_ep_choices *choices)
{
    const int by_rank = wefti_ep_plan_is_by_rank(&route->plan);
    return (wefti_cuda_ep_choices){
        .ids = by_rank ? route->device->tables.ids : choices->ids,
        .weights = choices->weights,
        .tokens_at = choices->tokens_at,
        .destinations = !by_rank                     ? NULL
                        : choices->positions != NULL ? (const unsigned char *)choices->positions
                                                     : choices->destinations,
        .tokens = choices->tokens,
        .wide = !by_rank && choices->id_type == WEFT_EP_INT64,
        .all_weights = (route->plan.flags & WEFT_EP_ALL_WEIGHTS) != 0,
    };
}

wefti_cuda_ep_told wefti_cuda_ep_told_of(const weft_ep_route *route, wefti_u64 *counted)
{
    const weft_ep_count_arrays *to = &route->counts_to;
    const int are_rows_told = to->with_dropped && wefti_ep_drops_rows(route->ep, &route->plan); /* by find_kept */
    return (wefti_cuda_ep_told){
        .generation = (wefti_u64 *)to->generation,
        .counted = counted,
        .rows = are_rows_told ? NULL : to->rows,
        .rows_of_expert = to->rows_of_expert,
        .rows_of_expert_aligned = to->rows_of_expert_aligned,
        .rows_of_source = to->rows_of_source,
        .offset_of_expert = to->offset_of_expert,
        .tells = to->generation != NULL || to->on_stream,
        .wide = to->type == WEFT_EP_INT64,
        .experts = wefti_ep_local_experts(route->ep),
        .has_no_experts = wefti_ep_plan_is_by_rank(&route->plan),
        .with_dropped = to->with_dropped,
    };
}

/* The fewest tokens that the call may have: 0 where the kernel reads T when it runs. */
static int tokens_least(const weft_ep_choices *choices)
{
    return choices->tokens_at == NULL ? choices->tokens : 0;
}

weft_status wefti_cuda_ep_chosen(weft_ep_route *route, const weft_ep_choices *choices, int before, weft_status status)
{
    if (status != WEFT_OK) {
        route->device->by_position = before;
    } else if (choices != NULL) {
        route->is_routed = 1;
        route->device->is_unseen = 1;
        route->device->tokens_least = tokens_least(choices);
    }
    return status;
}

wefti_cuda_ep_scales wefti_cuda_ep_scales_of(const weft_ep_rows *rows)
{
    int is_packed = rows->scale_row_stride == 0 && rows->scale_word_stride == 0;
    return (wefti_cuda_ep_scales){
        .words = rows->scales,
        .row_stride = is_packed ? wefti_ep_scale_words(rows) : rows->scale_row_stride,
        .word_stride = is_packed ? 1 : rows->scale_word_stride,
    };
}

wefti_cuda_ep_made_scales wefti_cuda_ep_made_scales_of(weft_ep_scale_type type)
{
    return wefti_ep_has_byte_scales(type)    ? WEFTI_CUDA_EP_MADE_UE8M0
           : wefti_ep_rounds_scales_up(type) ? WEFTI_CUDA_EP_MADE_F32_POW2
                                             : WEFTI_CUDA_EP_MADE_F32;
}

static int is_quantised(const weft_ep_rows *in, const weft_ep_rows *out)
{
    return in->dtype != out->dtype;
}

static wefti_cuda_ep_work work_of(const weft_ep_rows *in, const weft_ep_rows *out)
{
    return !is_quantised(in, out)                      ? WEFTI_CUDA_EP_WORK_DISPATCH
           : out->scale_type == WEFT_EP_SCALE_UE8M0_32 ? WEFTI_CUDA_EP_WORK_QUANTISE_MX
                                                       : WEFTI_CUDA_EP_WORK_QUANTISE;
}

static void add_scales(wefti_cuda_ep_dispatch_args *args, const weft_ep_rows *in, const weft_ep_rows *out)
{
    args->scale_words = (wefti_u32)wefti_ep_scale_words(out);
    args->out_scales = wefti_cuda_ep_scales_of(out);
    if (!is_quantised(in, out)) {
        args->given_words = args->scale_words;
        args->in_scales = wefti_cuda_ep_scales_of(in);
        return;
    }
    args->wide = (wefti_cuda_ep_wide){.row_bytes = (wefti_u32)wefti_cuda_ep_row_bytes(in),
                                      .element_bytes = (wefti_u32)wefti_ep_element_bytes(in->dtype),
                                      .dtype = in->dtype,
                                      .scales = wefti_cuda_ep_made_scales_of(out->scale_type)};
}

/* Where the rows of `out` are for all ranks, if they are. */
typedef struct target {
    int is_common;
    wefti_u64 place;
    uint64_t held; /* bytes from there on */
} target;

/* `capacity`: how many rows `out` holds; UINT32_MAX: any number. */
static target find_target(const weft_ep_route *route, const weft_ep_rows *out, size_t capacity)
{
    const weft_ep *ep = route->ep;
    const uint64_t row_bytes = wefti_cuda_ep_row_bytes(out);
    const uint64_t slots = (uint64_t)wefti_ep_slot_rows(&route->plan, ep->ranks, wefti_ep_local_experts(ep));
    const uint64_t least = capacity < UINT32_MAX ? capacity : slots;
    const uint64_t bytes = least > 0 ? (least - 1) * wefti_cuda_ep_pitch(out) + row_bytes : row_bytes;
    target to = {.is_common = 0};
    to.is_common = wefti_cuda_ep_find_place(ep, out->data, bytes, capacity >= UINT32_MAX, &to.place, &to.held);
    return to;
}

static const char *staging_of(const target *to)
{
    return to->is_common ? NULL : "its rows do not arrive in symmetric memory";
}

/* Add the rows that move and where they go. */
static void add_rows(wefti_cuda_ep_dispatch_args *args, const weft_ep_route *route, const weft_ep_rows *in,
                     const weft_ep_rows *out, const target *to, size_t capacity)
{
    const weft_ep *ep = route->ep;
    args->flags |= WEFTI_CUDA_EP_MOVE;
    args->in = in->data;
    args->in_pitch = wefti_cuda_ep_pitch(in);
    args->out = out->data;
    args->out_pitch = wefti_cuda_ep_pitch(out);
    args->pitch = args->out_pitch;
    args->row_bytes = (wefti_u32)wefti_cuda_ep_row_bytes(out);
    args->capacity = capacity < UINT32_MAX ? (wefti_u32)capacity : UINT32_MAX;
    if (out->scale_type != WEFT_EP_SCALE_NONE) {
        add_scales(args, in, out);
    }
    if (to->is_common) {
        const uint64_t rows =
            (to->held - args->row_bytes) / args->out_pitch + 1; /* no rank may write behind the memory that is found */
        args->place = to->place;
        args->capacity = rows < args->capacity ? (wefti_u32)rows : args->capacity;
    } else {
        args->flags |= WEFTI_CUDA_EP_STAGE;
        args->place = wefti_cuda_ep_area_rows(ep) | (wefti_cuda_ep_is_by_expert(route) ? WEFTI_CUDA_EP_STAGED : 0);
        args->pitch = args->row_bytes;
    }
}

/* Bits of the signature, in the same word as H. */
static unsigned hidden_bits(const weft_ep_route *route)
{
    return (wefti_ep_plan_is_by_rank(&route->plan) ? WEFTI_CUDA_EP_TO_RANKS : 0) |
           (route->device->by_position ? WEFTI_CUDA_EP_BY_POSITION : 0);
}

static uint64_t signature_of(const wefti_cuda_ep_dispatch_args *args, const weft_ep_route *route,
                             wefti_cuda_ep_call call, const weft_ep_rows *in, const weft_ep_rows *out)
{
    /* WEFT_EP_SCALE_BYTES is in the width; of fp8 WEFT_EP_SCALE_F32_POW2 is what has no bit set. */
    unsigned type = out->scale_type != WEFT_EP_SCALE_F32_POW2 ? (unsigned)out->scale_type : 0;
    unsigned scales = (type & WEFTI_CUDA_EP_SCALES_MASK) << WEFTI_CUDA_EP_SCALES_SHIFT;
    unsigned flags = args->flags & ~(unsigned)(WEFTI_CUDA_EP_STAGE | WEFTI_CUDA_EP_NEW_WEIGHTS);
    flags |= (args->flags & WEFTI_CUDA_EP_NEW_WEIGHTS) != 0 ? WEFTI_CUDA_EP_WITH_NEW_WEIGHTS : 0;
    flags |= scales | wefti_cuda_ep_layout_flags(route);
    return wefti_cuda_ep_signature(call, flags,
                                   (unsigned)in->dtype | (is_quantised(in, out) ? WEFTI_CUDA_EP_TO_FP8 : 0),
                                   wefti_ep_width(in) | hidden_bits(route), (unsigned)args->topk);
}

static weft_status update(weft_ep_route *route, const weft_ep_choices *choices, weft_stream *stream, const char *call)
{
    const wefti_cuda_ep_kernel kernel = {.work = WEFTI_CUDA_EP_WORK_DISPATCH, .is_fresh = 1};
    WEFT_TRY(wefti_cuda_ep_begin(
        &(wefti_cuda_ep_beginning){.route = route, .kernel = kernel, .fresh = choices, .kind = WEFTI_EP_UPDATE}, stream,
        call));
    wefti_cuda_ep_dispatch_args args = dispatch_args(route);
    args.flags = WEFTI_CUDA_EP_FRESH;
    args.choices = choices_of(route, choices);
    args.told = wefti_cuda_ep_told_of(route, route->device->tables.counted);
    args.signature = wefti_cuda_ep_signature(WEFTI_CUDA_EP_DISPATCH, args.flags | wefti_cuda_ep_layout_flags(route), 0,
                                             hidden_bits(route), (unsigned)args.topk);
    const wefti_cuda_ep_launch_plan plan = wefti_cuda_ep_plan_launch(route, kernel);
    wefti_cuda_ep_dispatch_take_plan(&args, &plan);
    WEFT_TRY(wefti_cuda_ep_launch_destinations(route, &args, stream, call));
    return wefti_cuda_ep_launch(route, &plan, &args, stream, call);
}

/* ---- rows that are dropped by themselves ---- */

/* Ranks count, with room for no more than there is memory for: the tables then tell where all rows would lie, whether
 * they have room or not. */
static weft_status count_rows(weft_ep_route *route, const weft_ep_choices *choices, weft_stream *stream,
                              const char *call)
{
    const wefti_cuda_ep_kernel kernel = {.work = WEFTI_CUDA_EP_WORK_DISPATCH, .is_fresh = 1};
    WEFT_TRY(wefti_cuda_ep_begin(
        &(wefti_cuda_ep_beginning){.route = route, .kernel = kernel, .fresh = choices, .kind = WEFTI_EP_UPDATE}, stream,
        call));
    wefti_cuda_ep_dispatch_args args = dispatch_args(route);
    args.group.drops = 0;
    args.tables.goes = args.tables.bits;
    args.tables.asked = NULL;
    args.flags = WEFTI_CUDA_EP_FRESH | WEFTI_CUDA_EP_COUNTS;
    args.choices = choices_of(route, choices);
    args.signature =
        wefti_cuda_ep_signature(WEFTI_CUDA_EP_DISPATCH, WEFTI_CUDA_EP_FRESH | wefti_cuda_ep_layout_flags(route), 0,
                                hidden_bits(route) | WEFTI_CUDA_EP_COUNTING, (unsigned)args.topk);
    const wefti_cuda_ep_launch_plan plan = wefti_cuda_ep_plan_launch(route, kernel);
    wefti_cuda_ep_dispatch_take_plan(&args, &plan);
    return wefti_cuda_ep_launch(route, &plan, &args, stream, call);
}

static weft_status find_kept(const weft_ep_route *route, const weft_ep_choices *choices, weft_stream *stream,
                             const char *call)
{
    const weft_ep *ep = route->ep;
    const uint32_t rows_limit = (uint32_t)ep->rows_limit;
    wefti_cuda_ep_drop_args args = {
        .tables = wefti_cuda_ep_tables_of(route),
        .choices = choices_of(route, choices),
        .told = wefti_cuda_ep_told_of(route, route->device->tables.counted),
        .ranks = ep->ranks,
        .experts = ep->config.experts,
        .topk = route->plan.topk,
        .wide_owners = ep->device->kind->owner_bytes > 1,
        .tokens_limit = rows_limit,
        .rows_limit = rows_limit - rows_limit % (uint32_t)route->plan.alignment,
    };
    args.told.rows = route->counts_to.rows;
    return wefti_cuda_ep_launch_dropping(route, &args, stream, call);
}

weft_status wefti_cuda_ep_drop_rows(weft_ep_route *route, const weft_ep_choices *choices, int is_counted,
                                    weft_ep_choices *kept, weft_stream *stream)
{
    static const char call[] = "weft_ep_route_update";
    *kept = *choices;
    kept->ids = route->device->tables.kept;
    kept->id_type = WEFT_EP_INT32;
    if (is_counted) {
        return WEFT_OK;
    }
    WEFT_TRY(count_rows(route, choices, stream, call));
    route->is_routed = 0;
    return find_kept(route, choices, stream, call);
}

weft_status wefti_cuda_ep_update(weft_ep_route *route, const weft_ep_choices *choices, weft_stream *stream)
{
    static const char call[] = "weft_ep_route_update";
    const int before = wefti_cuda_ep_begin_choices(route, choices);
    return wefti_cuda_ep_chosen(route, choices, before, update(route, choices, stream, call));
}

static weft_status check_dispatch(const weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                  const weft_ep_received *out, const char *call)
{
    int64_t capacity = out->rows_capacity < INT32_MAX ? (int64_t)out->rows_capacity : INT32_MAX;
    WEFT_TRY(wefti_ep_rows_held(in, fresh != NULL ? tokens_least(fresh) : route->device->tokens_least, call, "in"));
    const int64_t of_expert = (int64_t)route->ep->ranks * route->plan.slot_tokens;
    const int is_grouped = out->scale_group_stride != 0 && capacity > of_expert;
    WEFT_TRY(wefti_ep_rows_held(&out->rows, is_grouped ? of_expert : capacity, call, "out.rows"));
    uint64_t slots = (uint64_t)wefti_ep_slot_rows(&route->plan, route->ep->ranks, wefti_ep_local_experts(route->ep));
    if (out->rows_capacity < slots) {
        return wefti_error(WEFT_ERR_RANGE, "%s: out.rows holds %zu rows; slots take %llu", call, out->rows_capacity,
                           (unsigned long long)slots);
    }
    return WEFT_OK;
}

weft_status wefti_cuda_ep_dispatch_prepare(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                           const weft_ep_received *out, wefti_cuda_ep_call call,
                                           wefti_cuda_ep_dispatch_args *args, wefti_cuda_ep_work *work,
                                           weft_stream *stream)
{
    static const char name[] = "weft_ep_dispatch";
    const int brings_weights = fresh == NULL && route->is_weighed;
    WEFT_TRY(check_dispatch(route, fresh, in, out, name));
    const target to = find_target(route, &out->rows, out->rows_capacity);
    *work = work_of(in, &out->rows);
    WEFT_TRY(wefti_cuda_ep_begin(
        &(wefti_cuda_ep_beginning){
            .route = route,
            .kernel = {.work = *work,
                       .phase = call == WEFTI_CUDA_EP_DISPATCH_HALVES ? WEFTI_CUDA_EP_SEND : WEFTI_CUDA_EP_FUSED,
                       .may_be_low_latency = !brings_weights,
                       .may_leave = 1,
                       .is_fresh = fresh != NULL},
            .staging = staging_of(&to),
            .fresh = fresh,
            .kind = WEFTI_EP_DISPATCH,
            .flags = fresh != NULL    ? WEFTI_EP_FRESH
                     : brings_weights ? WEFTI_EP_NEW_WEIGHTS
                                      : 0,
            .in = in,
            .out = &out->rows},
        stream, name));
    *args = dispatch_args(route);
    add_rows(args, route, in, &out->rows, &to, out->rows_capacity);
    args->arrays =
        (wefti_cuda_ep_arrays){.weights = out->weights,
                               .experts = out->experts,
                               .source_rank = out->source_rank,
                               .source_token = out->source_token,
                               .wide_experts = out->expert_type == WEFT_EP_INT64,
                               .first_expert = out->experts_are_global ? route->ep->owners.first[route->ep->rank] : 0};
    if (fresh != NULL) {
        args->flags |= WEFTI_CUDA_EP_FRESH;
        args->choices = choices_of(route, fresh);
        args->told = wefti_cuda_ep_told_of(route, route->device->tables.counted);
    } else if (brings_weights) {
        args->flags |= WEFTI_CUDA_EP_NEW_WEIGHTS;
        args->choices.weights = route->weights;
        args->choices.all_weights = (route->plan.flags & WEFT_EP_ALL_WEIGHTS) != 0;
    }
    if (out->scale_group_stride != 0) {
        args->scale_group_step = out->scale_group_stride - (uint64_t)args->experts.slots * args->out_scales.row_stride;
    }
    args->signature = signature_of(args, route, call, in, &out->rows);
    return WEFT_OK;
}

wefti_cuda_ep_launch_plan wefti_cuda_ep_dispatch_plan(const weft_ep_route *route, wefti_cuda_ep_work work,
                                                      wefti_cuda_ep_phase phase, wefti_cuda_ep_dispatch_args *args)
{
    const size_t row_bytes = wefti_cuda_ep_quantises(work) ? args->wide.row_bytes : args->row_bytes;
    const int has_new_weights = (args->flags & WEFTI_CUDA_EP_NEW_WEIGHTS) != 0; /* which low-latency kernels lack */
    const wefti_cuda_ep_launch_plan plan = wefti_cuda_ep_plan_launch(
        route, (wefti_cuda_ep_kernel){.work = work,
                                      .phase = phase,
                                      .row_bytes = phase != WEFTI_CUDA_EP_SEND ? row_bytes : 0,
                                      .may_be_low_latency = !has_new_weights,
                                      .may_leave = 1,
                                      .counted = WEFTI_CUDA_EP_COUNTED_DISPATCH,
                                      .is_fresh = (args->flags & WEFTI_CUDA_EP_FRESH) != 0});
    wefti_cuda_ep_dispatch_take_plan(args, &plan);
    return plan;
}

static weft_status dispatch(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                            const weft_ep_received *out, weft_stream *stream, const char *call)
{
    wefti_cuda_ep_dispatch_args args;
    wefti_cuda_ep_work work;
    WEFT_TRY(wefti_cuda_ep_dispatch_prepare(route, fresh, in, out, WEFTI_CUDA_EP_DISPATCH, &args, &work, stream));
    const wefti_cuda_ep_launch_plan plan = wefti_cuda_ep_dispatch_plan(route, work, WEFTI_CUDA_EP_FUSED, &args);
    WEFT_TRY(wefti_cuda_ep_launch_destinations(route, &args, stream, call));
    return wefti_cuda_ep_launch(route, &plan, &args, stream, call);
}

weft_status wefti_cuda_ep_dispatch(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                   const weft_ep_received *out, weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch";
    const int before = wefti_cuda_ep_begin_choices(route, fresh);
    return wefti_cuda_ep_chosen(route, fresh, before, dispatch(route, fresh, in, out, stream, call));
}

/* Without weights, and where each choice has a row of its own, the backward of combine is a dispatch on a cached
 * route. */
weft_status wefti_cuda_ep_combine_bwd(weft_ep_route *route, const weft_ep_rows *grad_out, const weft_ep_rows *rows,
                                      const weft_ep_rows *grad_rows, float *grad_weights, unsigned flags,
                                      weft_stream *stream)
{
    static const char call[] = "weft_ep_combine_bwd";
    int computes = flags != 0 || route->plan.layout == WEFT_EP_SLOTS_EXPERT;
    wefti_cuda_ep_work work = computes ? WEFTI_CUDA_EP_WORK_COMBINE_BWD : WEFTI_CUDA_EP_WORK_DISPATCH;
    WEFT_TRY(wefti_ep_rows_held(grad_out, route->device->tokens_least, call, "grad_out"));
    const target to = find_target(route, grad_rows, UINT32_MAX);
    WEFT_TRY(
        wefti_cuda_ep_begin(&(wefti_cuda_ep_beginning){.route = route,
                                                       .kernel = {.work = work},
                                                       .staging = staging_of(&to),
                                                       .kind = WEFTI_EP_COMBINE_BWD,
                                                       .flags = flags | (grad_weights != NULL ? WEFTI_EP_VALUES : 0),
                                                       .in = grad_out,
                                                       .out = grad_rows},
                            stream, call));
    wefti_cuda_ep_dispatch_args args = dispatch_args(route);
    add_rows(&args, route, grad_out, grad_rows, &to, UINT32_MAX);
    args.backward.dtype = grad_out->dtype;
    args.flags |= (flags & WEFT_EP_WEIGHTED) != 0 ? WEFTI_CUDA_EP_WEIGHTED : 0;
    if (grad_weights != NULL) {
        args.flags |= WEFTI_CUDA_EP_VALUES;
        args.backward.grad_weights = grad_weights;
        args.backward.rows = rows->data;
        args.backward.rows_pitch = wefti_cuda_ep_pitch(rows);
    }
    args.signature = signature_of(&args, route, WEFTI_CUDA_EP_COMBINE_BWD, grad_out, grad_rows);
    const wefti_cuda_ep_launch_plan plan =
        wefti_cuda_ep_plan_launch(route, (wefti_cuda_ep_kernel){.work = work, .row_bytes = args.row_bytes});
    wefti_cuda_ep_dispatch_take_plan(&args, &plan);
    return wefti_cuda_ep_launch(route, &plan, &args, stream, call);
}

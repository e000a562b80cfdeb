/* cuda/ep/host/domains_calls.c: the calls of groups of several domains: kernels of this rank's, the inner group's calls
 * between them, all on the caller's stream. Nothing here waits. */
#include "common/mix.h"
#include "cuda/ep/host/domains.h"
#include "ep/check.h"
#include "weft.h"
#include "weft/protocol/fp8.h"

/* ---- launches ---- */

static weft_status launch(const weft_ep *ep, wefti_ep_between_kernel kernel, int blocks,
                          const wefti_cuda_ep_domains_args *args, weft_stream *stream, const char *call)
{
    wefti_cuda *cuda = ep->between->cuda;
    void *arguments[] = {(void *)(uintptr_t)args};
    WEFT_TRY(wefti_cuda_enter(cuda));
    CUresult result =
        cuda->driver.cuLaunchKernel(ep->between->kernel[kernel], (unsigned)blocks, 1, 1, WEFTI_CUDA_EP_THREADS, 1, 1, 0,
                                    (CUstream)(void *)stream, arguments, NULL);
    wefti_cuda_leave(cuda);
    return wefti_cuda_check(&cuda->driver, result, call);
}

static int ends_of(const wefti_ep_between *between)
{
    return (between->group.lines + between->group.domains) * (int)between->channels;
}

/* The most ends of a call of such a route. */
static int ends_of_route(const weft_ep_route *route)
{
    return wefti_ep_between_goes_directly(route) ? 2 * route->ep->ranks : ends_of(route->ep->between);
}

/* Find how many multiprocessors a call takes, of those that weft_ep_route_sms says no fewer than its rings need; fewer
 * than these are an error. */
static weft_status find_sms(const weft_ep_route *route, const char *call, int *sms)
{
    const int least = (ends_of_route(route) + WEFTI_CUDA_EP_DOMAINS_ENDS - 1) / WEFTI_CUDA_EP_DOMAINS_ENDS;
    weft_ep_route *inner = route->between->inner;
    inner->sms = route->sms > 0 && route->sms < least ? least : route->sms;
    *sms = wefti_cuda_ep_sms_of(inner, WEFTI_CUDA_EP_FUSED);
    if (*sms < least) {
        return wefti_error(WEFT_ERR_STATE,
                           "%s: others have claimed %s multiprocessors of the GPU for kernels that wait; call it again "
                           "when they have given some back, or create the route with a larger plan.sms",
                           call, *sms == 0 ? "all" : "too many");
    }
    return WEFT_OK;
}

static int cross_blocks(const weft_ep *ep, int sms)
{
    const int ends = ends_of(ep->between);
    return sms < ends ? sms : ends;
}

#define DIRECT_BLOCKS_MAX 32 /* beyond its ends: all of them meet, several times */

/* Of a call that goes directly: a block an end, or a tile of received rows, if there are more. */
static int direct_blocks(const weft_ep_route *route, int sms)
{
    const int ends = ends_of_route(route);
    const int tokens = wefti_ep_plan_is_slots(&route->plan) ? route->plan.slot_tokens : route->ep->config.tokens_max;
    const int tiles = (route->ep->ranks * tokens + WEFTI_CUDA_EP_DOMAINS_TILE - 1) / WEFTI_CUDA_EP_DOMAINS_TILE;
    const int most = tiles < DIRECT_BLOCKS_MAX ? tiles : DIRECT_BLOCKS_MAX;
    const int wanted = ends > most ? ends : most;
    return sms < wanted ? sms : wanted;
}

/* ---- two pairs ---- */

/* Calls have the group's memory in common, so beside a pair that is outstanding the stream orders them. */
static weft_status check_pairs(const weft_ep *ep, const weft_stream *stream, const char *call)
{
    for (int bank = 0; bank < wefti_ep_banks(ep); bank++) {
        if (ep->half[bank] != WEFTI_EP_HALF_NONE && ep->half_stream[bank] != stream) {
            return wefti_error(WEFT_ERR_UNSUPPORTED,
                               "%s: a pair of halves is outstanding on another stream; beside it a group of several "
                               "domains on GPUs has calls on its stream only. Give that stream, or call its recv first",
                               call);
        }
    }
    return WEFT_OK;
}

/* Whether the send of a pair of halves sends rows. Of two pairs the recvs may come in another order than the sends, and
 * in the order of these rows come. */
static int leaves_with_send(const weft_ep_route *route)
{
    return wefti_ep_between_goes_directly(route) && wefti_ep_banks(route->ep) == 1;
}

/* What is left of a pair of halves for its recv. */
static wefti_cuda_ep_phase phase_of_recv(const wefti_ep_between_half *half)
{
    return half->has_left ? WEFTI_CUDA_EP_RECV : WEFTI_CUDA_EP_FUSED;
}

/* A call but a recv has been made: the next one is on the other bank, if there are two. */
static weft_status made(const weft_ep *ep, weft_status status)
{
    *ep->started += status == WEFT_OK;
    return status;
}

/* ---- what is called ---- */

/* 32 bits, equal on all ranks. */
static uint32_t fold(uint64_t signature)
{
    return (uint32_t)(wefti_mix(signature) >> 32) | 1u;
}

static wefti_cuda_ep_domains_args args_of(const weft_ep_route *route, unsigned kind, unsigned flags,
                                          const weft_ep_rows *rows)
{
    const weft_ep_plan *plan = &route->plan;
    const int by_expert = wefti_cuda_ep_is_by_expert(route);
    const int has_slots = wefti_ep_plan_is_slots(plan);
    const int is_direct = wefti_ep_between_goes_directly(route);
    wefti_cuda_ep_domains_args args = {
        .group = route->ep->between->group,
        .tables = route->between->tables,
        .direct = route->ep->between->direct,
        .inner_rows = is_direct ? route->between->tables.inner_tokens : route->between->inner_rows,
        .flags = flags,
        .topk = plan->topk,
        .by_expert = by_expert,
        .slots = !has_slots  ? 0
                 : by_expert ? (uint32_t)(route->ep->ranks * plan->slot_tokens)
                             : (uint32_t)plan->slot_tokens,
        .alignment = (uint32_t)plan->alignment,
        .zeroes = (plan->flags & WEFT_EP_ZERO_PADDING) != 0,
        .row_bytes = rows == NULL ? 0 : (uint32_t)wefti_cuda_ep_row_bytes(rows),
    };
    args.by_rank = wefti_ep_plan_is_by_rank(plan);
    args.inner_ranks = route->ep->between->inner->ranks;
    args.direct.by_choice = plan->order == WEFT_EP_ORDER_CHOICE;
    args.data_bytes = args.row_bytes;
    args.wide_bytes = wefti_cuda_ep_domains_row_bytes(args.data_bytes, plan->topk);
    args.choices.all_weights = (plan->flags & WEFT_EP_ALL_WEIGHTS) != 0;
    args.call =
        fold(wefti_cuda_ep_signature((wefti_cuda_ep_call)kind, flags | wefti_cuda_ep_layout_flags(route),
                                     rows == NULL ? 0 : (unsigned)rows->dtype, rows == NULL ? 0 : wefti_ep_width(rows),
                                     (unsigned)plan->topk) ^
             (uint64_t)args.by_rank << 56 ^ (uint64_t)plan->alignment << 40 ^ (uint64_t)plan->slot_tokens << 20);
    return args;
}

/* A failure between the kernels of a call leaves ranks apart. */
static weft_status ended(weft_ep *ep, weft_status status)
{
    if (status != WEFT_OK) {
        ep->dead = status;
    }
    return status;
}

/* ---- dispatch ---- */

static void add_choices(wefti_cuda_ep_domains_args *args, weft_ep_route *route, const weft_ep_choices *fresh)
{
    if (fresh != NULL) {
        args->choices.ids = fresh->ids;
        args->choices.destinations = fresh->destinations;
        args->positions = fresh->positions;
        args->choices.weights = fresh->weights;
        args->choices.tokens_at = fresh->tokens_at;
        args->choices.tokens = fresh->tokens;
        args->choices.wide = fresh->id_type == WEFT_EP_INT64;
        args->told = wefti_cuda_ep_told_of(route, route->between->tables.counted);
        route->is_routed = 1;
        route->between->tokens_least = fresh->tokens_at == NULL ? fresh->tokens : 0;
    }
}

/* What the forwarders of the domain have, to the owners of experts there. */
static weft_status dispatch_inside(const weft_ep_route *route, const wefti_cuda_ep_domains_args *args,
                                   weft_stream *stream)
{
    const wefti_ep_between *between = route->ep->between;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    if (args->by_rank) {
        choices.destinations = (const unsigned char *)args->tables.inner_ids;
    } else {
        choices.ids = args->tables.inner_ids;
    }
    choices.tokens = (int)wefti_ep_between_tokens_max(route->ep);
    choices.tokens_at = args->tables.inner_tokens;
    const weft_ep_rows in = {
        .size = sizeof in, .data = between->group.rows, .dtype = WEFT_EP_BF16, .hidden = (int)(args->wide_bytes / 2)};
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    received.rows = in;
    received.rows.data = between->received;
    received.rows_capacity = (size_t)wefti_ep_between_received_max(route->ep);
    if (!args->is_kept) {
        WEFT_TRY(route->ep->calls->route_choose(route->between->inner, &choices));
    }
    return route->ep->calls->dispatch(route->between->inner, &in, &received, stream);
}

static weft_status run_dispatch(weft_ep_route *route, const wefti_cuda_ep_domains_args *args, weft_stream *stream,
                                const char *call)
{
    weft_ep *ep = route->ep;
    int sms;
    WEFT_TRY(find_sms(route, call, &sms));
    wefti_ep_between_route *of = route->between;
    WEFT_TRY(wefti_cuda_ep_clear_dirty(ep->between->cuda, of->tables.route_header, &of->dirty_bytes, stream));
    if (wefti_ep_between_goes_directly(route)) {
        return launch(ep, WEFTI_EP_BETWEEN_DISPATCH_DIRECT, direct_blocks(route, sms), args, stream, call);
    }
    WEFT_TRY(launch(ep, WEFTI_EP_BETWEEN_BEGIN, sms, args, stream, call));
    if (args->positions != NULL) {
        WEFT_TRY(ended(ep, launch(ep, WEFTI_EP_BETWEEN_NUMBER, sms, args, stream, call)));
    }
    WEFT_TRY(ended(ep, launch(ep, WEFTI_EP_BETWEEN_PACK, sms, args, stream, call)));
    WEFT_TRY(ended(ep, launch(ep, WEFTI_EP_BETWEEN_CROSS, cross_blocks(ep, sms), args, stream, call)));
    WEFT_TRY(ended(ep, dispatch_inside(route, args, stream)));
    WEFT_TRY(ended(ep, launch(ep, WEFTI_EP_BETWEEN_INDEX, sms, args, stream, call)));
    WEFT_TRY(ended(ep, launch(ep, WEFTI_EP_BETWEEN_COUNT, sms, args, stream, call)));
    WEFT_TRY(ended(ep, launch(ep, WEFTI_EP_BETWEEN_SCAN, 1, args, stream, call)));
    return ended(ep, launch(ep, WEFTI_EP_BETWEEN_PLACE, sms, args, stream, call));
}

weft_status wefti_ep_between_update(weft_ep_route *route, const weft_ep_choices *choices, weft_stream *stream)
{
    static const char call[] = "weft_ep_route_update";
    WEFT_TRY(check_pairs(route->ep, stream, call));
    WEFT_TRY(wefti_ep_between_status(route->ep, call));
    wefti_cuda_ep_domains_args args = args_of(route, WEFTI_CUDA_EP_DISPATCH, WEFTI_CUDA_EP_FRESH, NULL);
    add_choices(&args, route, choices);
    WEFT_TRY(run_dispatch(route, &args, stream, call));
    return made(route->ep, wefti_ep_between_count(route, WEFTI_CUDA_EP_COUNTED_NOT, stream, call));
}

/* Add the scales of fp8 rows, which were given or are made on the way, and those of rows of bytes. */
static void add_scales(wefti_cuda_ep_domains_args *args, const weft_ep_route *route, const weft_ep_rows *in,
                       const weft_ep_received *out)
{
    args->scale_words = (uint32_t)wefti_ep_scale_words(&out->rows);
    args->data_bytes = args->row_bytes + wefti_cuda_ep_domains_scale_bytes(args->scale_words);
    args->wide_bytes = wefti_cuda_ep_domains_row_bytes(args->data_bytes, route->plan.topk);
    args->out_scales = wefti_cuda_ep_scales_of(&out->rows);
    if (out->scale_group_stride != 0) {
        args->scale_group_step = out->scale_group_stride - (uint64_t)args->slots * args->out_scales.row_stride;
    }
    if (in->dtype == out->rows.dtype) {
        args->in_scales = wefti_cuda_ep_scales_of(in);
    } else {
        args->wide = (wefti_cuda_ep_wide){.row_bytes = (wefti_u32)wefti_cuda_ep_row_bytes(in),
                                          .dtype = in->dtype,
                                          .scales = wefti_cuda_ep_made_scales_of(out->rows.scale_type)};
        args->scale_group = out->rows.scale_type == WEFT_EP_SCALE_UE8M0_32 ? WEFTI_FP8_GROUP_MX : WEFTI_FP8_GROUP;
    }
}

/* What kind of dispatch a call is. */
typedef struct move {
    unsigned kind; /* a wefti_cuda_ep_call */
    unsigned flags; /* of WEFTI_CUDA_EP_WEIGHTED, and WEFTI_CUDA_EP_VALUES: with gradients of weights */
    weft_ep_dtype dtype; /* of a backward of a combine; else 0 */
    int brings_weights; /* `weights`, of a routing that is there */
    const float *weights;
    wefti_cuda_ep_phase phase; /* of a direct one */
} move;

static wefti_cuda_ep_domains_args dispatch_args(weft_ep_route *route, const weft_ep_choices *fresh,
                                                const weft_ep_rows *in, const weft_ep_received *out, const move *of)
{
    const unsigned flags = WEFTI_CUDA_EP_MOVE | of->flags | (fresh != NULL ? WEFTI_CUDA_EP_FRESH : 0);
    wefti_cuda_ep_domains_args args = args_of(route, of->kind, flags, &out->rows);
    if (out->rows.scale_type != WEFT_EP_SCALE_NONE) {
        add_scales(&args, route, in, out);
        args.call ^= (uint32_t)in->dtype << 8 | (uint32_t)out->rows.scale_type << 4;
    }
    args.dtype = (int)of->dtype;
    args.direct.phase = (wefti_i32)of->phase;
    add_choices(&args, route, fresh);
    if (of->brings_weights) {
        args.flags |= WEFTI_CUDA_EP_NEW_WEIGHTS;
        args.choices.weights = of->weights;
        args.call ^= (uint32_t)WEFTI_CUDA_EP_NEW_WEIGHTS << 16;
    }
    args.arrays =
        (wefti_cuda_ep_arrays){.weights = out->weights,
                               .experts = out->experts,
                               .source_rank = out->source_rank,
                               .source_token = out->source_token,
                               .wide_experts = out->expert_type == WEFT_EP_INT64,
                               .first_expert = out->experts_are_global ? route->ep->owners.first[route->ep->rank] : 0};
    args.in = in->data;
    args.in_pitch = wefti_cuda_ep_pitch(in);
    args.out = out->rows.data;
    args.out_pitch = wefti_cuda_ep_pitch(&out->rows);
    args.capacity = out->rows_capacity;
    return args;
}

static weft_status dispatch(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                            const weft_ep_received *out, const move *of, weft_stream *stream, const char *call)
{
    WEFT_TRY(wefti_ep_between_status(route->ep, call));
    const wefti_cuda_ep_domains_args args = dispatch_args(route, fresh, in, out, of);
    WEFT_TRY(run_dispatch(route, &args, stream, call));
    return of->phase == WEFTI_CUDA_EP_SEND
               ? WEFT_OK
               : wefti_ep_between_count(route, WEFTI_CUDA_EP_COUNTED_DISPATCH, stream, call);
}

static weft_status check_dispatch(const weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                  const weft_ep_received *out, const char *call)
{
    const int least = fresh == NULL ? route->between->tokens_least : fresh->tokens_at == NULL ? fresh->tokens : 0;
    const int64_t capacity = out->rows_capacity < INT32_MAX ? (int64_t)out->rows_capacity : INT32_MAX;
    const int64_t slots = wefti_ep_slot_rows(&route->plan, route->ep->ranks, wefti_ep_local_experts(route->ep));
    WEFT_TRY(wefti_ep_rows_held(in, least, call, "in"));
    const int64_t of_expert = (int64_t)route->ep->ranks * route->plan.slot_tokens;
    const int is_grouped = out->scale_group_stride != 0 && capacity > of_expert;
    WEFT_TRY(wefti_ep_rows_held(&out->rows, is_grouped ? of_expert : capacity, call, "out.rows"));
    if (capacity < slots) {
        return wefti_error(WEFT_ERR_RANGE, "%s: out.rows holds %zu rows; slots take %lld", call, out->rows_capacity,
                           (long long)slots);
    }
    return WEFT_OK;
}

weft_status wefti_ep_between_dispatch(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                      const weft_ep_received *out, weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch";
    WEFT_TRY(check_pairs(route->ep, stream, call));
    WEFT_TRY(check_dispatch(route, fresh, in, out, call));
    const move of = {.kind = WEFTI_CUDA_EP_DISPATCH,
                     .brings_weights = fresh == NULL && route->is_weighed,
                     .weights = route->weights};
    return made(route->ep, dispatch(route, fresh, in, out, &of, stream, call));
}

weft_status wefti_ep_between_dispatch_send(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                           const weft_ep_received *out, weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch_send";
    wefti_ep_between_half *half = &route->between->half[route->ep->bank];
    WEFT_TRY(check_pairs(route->ep, stream, call));
    WEFT_TRY(check_dispatch(route, fresh, in, out, call));
    WEFT_TRY(wefti_ep_between_status(route->ep, call));
    half->is_fresh = fresh != NULL;
    half->is_weighed = fresh == NULL && route->is_weighed;
    half->choices.weights = route->weights;
    if (fresh != NULL) {
        half->choices = *fresh;
    }
    half->in = *in;
    half->received = *out;
    half->has_left = fresh != NULL && leaves_with_send(route); /* else counts would be gone until recv */
    const move of = {.kind = WEFTI_CUDA_EP_DISPATCH_HALVES,
                     .brings_weights = half->is_weighed,
                     .weights = half->choices.weights,
                     .phase = WEFTI_CUDA_EP_SEND};
    return made(route->ep, half->has_left ? dispatch(route, fresh, in, out, &of, stream, call) : WEFT_OK);
}

/* Recv takes what the send's stream has. */
static weft_status check_recv_stream(const weft_ep_route *route, const weft_stream *stream, const char *call)
{
    const weft_ep *ep = route->ep;
    return stream == ep->half_stream[ep->bank]
               ? WEFT_OK
               : wefti_error(WEFT_ERR_UNSUPPORTED,
                             "%s: the stream is not that of the send; a group of several domains on GPUs receives on "
                             "that",
                             call);
}

weft_status wefti_ep_between_dispatch_recv(weft_ep_route *route, weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch_recv";
    const wefti_ep_between_half *half = &route->between->half[route->ep->bank];
    WEFT_TRY(check_recv_stream(route, stream, call));
    const move of = {.kind = WEFTI_CUDA_EP_DISPATCH_HALVES,
                     .brings_weights = half->is_weighed,
                     .weights = half->choices.weights,
                     .phase = phase_of_recv(half)};
    return dispatch(route, half->is_fresh ? &half->choices : NULL, &half->in, &half->received, &of, stream, call);
}

/* ---- combine ---- */

static weft_status combine_inside(const weft_ep_route *route, const wefti_cuda_ep_domains_args *args,
                                  const weft_ep_rows *rows, weft_stream *stream)
{
    const wefti_ep_between *between = route->ep->between;
    const weft_ep_rows in = {
        .size = sizeof in, .data = between->group.results, .dtype = rows->dtype, .hidden = rows->hidden};
    weft_ep_rows out = in;
    out.data = between->group.sums;
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    if ((args->flags & WEFTI_CUDA_EP_COMBINE_IDS) != 0 && wefti_ep_between_orders_inside(&route->plan)) {
        options.ids = args->tables.own_ids;
    }
    return route->ep->calls->combine_with(route->between->inner, &in, &out, &options, stream);
}

/* Rows of `results` back to their sources, and added up there. */
static weft_status run_back(const weft_ep_route *route, int sms, const wefti_cuda_ep_domains_args *args,
                            const weft_ep_rows *in, weft_stream *stream, const char *call)
{
    weft_ep *ep = route->ep;
    if (wefti_ep_between_goes_directly(route)) {
        wefti_cuda_ep_domains_args only_back = *args;
        only_back.direct.only_back = 1;
        return ended(ep,
                     launch(ep, WEFTI_EP_BETWEEN_COMBINE_DIRECT, direct_blocks(route, sms), &only_back, stream, call));
    }
    WEFT_TRY(ended(ep, combine_inside(route, args, in, stream)));
    WEFT_TRY(ended(ep, launch(ep, WEFTI_EP_BETWEEN_CROSS_BACK, cross_blocks(ep, sms), args, stream, call)));
    return ended(ep, launch(ep, WEFTI_EP_BETWEEN_TOTALS, sms, args, stream, call));
}

/* A combine's own weights and choices to the owners of experts. */
static weft_status run_choices(const weft_ep_route *route, int sms, const wefti_cuda_ep_domains_args *args,
                               weft_stream *stream, const char *call)
{
    weft_ep *ep = route->ep;
    wefti_cuda_ep_domains_args rows = *args;
    rows.is_kept = 1;
    rows.wide_bytes = args->own.row_bytes;
    if (wefti_ep_between_goes_directly(route)) {
        return launch(ep, WEFTI_EP_BETWEEN_DISPATCH_DIRECT, direct_blocks(route, sms), &rows, stream, call);
    }
    WEFT_TRY(launch(ep, WEFTI_EP_BETWEEN_CHOOSE, sms, &rows, stream, call));
    WEFT_TRY(ended(ep, launch(ep, WEFTI_EP_BETWEEN_CROSS, cross_blocks(ep, sms), &rows, stream, call)));
    return ended(ep, dispatch_inside(route, &rows, stream));
}

static weft_status run_combine(weft_ep_route *route, const wefti_cuda_ep_domains_args *args, const weft_ep_rows *in,
                               weft_stream *stream, const char *call)
{
    int sms;
    WEFT_TRY(find_sms(route, call, &sms));
    if (args->own.row_bytes != 0) {
        WEFT_TRY(run_choices(route, sms, args, stream, call));
    }
    const int is_direct = wefti_ep_between_goes_directly(route);
    weft_status status = launch(route->ep, is_direct ? WEFTI_EP_BETWEEN_COMBINE_DIRECT : WEFTI_EP_BETWEEN_RESULTS,
                                is_direct ? direct_blocks(route, sms) : sms, args, stream, call);
    WEFT_TRY(args->own.row_bytes != 0 ? ended(route->ep, status) : status);
    return is_direct ? WEFT_OK : run_back(route, sms, args, in, stream, call);
}

/* What goes back beside rows, to each choice. */
typedef struct values {
    const float *in; /* of received rows; NULL with `dots` */
    float *out;
    int of_owners; /* by source: only those of choices of this rank */
    const wefti_cuda_ep_domains_args *dots; /* the dispatch that brought gradients, with `rows` beside */
} values;

/* A sum of rows of K floats, after the rest of the call. */
static weft_status run_values(const weft_ep_route *route, unsigned kind, const values *of, weft_stream *stream,
                              const char *call)
{
    weft_ep *ep = route->ep;
    const weft_ep_rows rows = {
        .size = sizeof rows, .dtype = WEFT_EP_F32, .hidden = (int)wefti_ep_between_places(route->plan.topk)};
    wefti_cuda_ep_domains_args args = args_of(route, kind, WEFTI_CUDA_EP_VALUES, &rows);
    int sms;
    WEFT_TRY(ended(ep, find_sms(route, call, &sms)));
    args.dtype = args.out_dtype = WEFT_EP_F32;
    args.places = (uint32_t)rows.hidden;
    args.of_owners = of->of_owners;
    args.values_in = of->in;
    args.values_out = of->out;
    args.out = ep->between->group.rows;
    args.out_pitch = args.row_bytes;
    if (of->dots != NULL) {
        wefti_cuda_ep_domains_args dots = *of->dots;
        dots.places = args.places;
        WEFT_TRY(ended(ep, launch(ep, WEFTI_EP_BETWEEN_DOTS, sms, &dots, stream, call)));
    } else {
        WEFT_TRY(ended(ep, launch(ep, WEFTI_EP_BETWEEN_SPREAD, sms, &args, stream, call)));
    }
    WEFT_TRY(run_back(route, sms, &args, &rows, stream, call));
    return ended(ep, launch(ep, WEFTI_EP_BETWEEN_GATHER, sms, &args, stream, call));
}

static weft_status check_combine(const weft_ep_route *route, const weft_ep_rows *out,
                                 const wefti_ep_combining *combining, const char *call)
{
    for (int i = 0; i < combining->biases; i++) {
        WEFT_TRY(wefti_ep_rows_held(&combining->bias[i], route->between->tokens_least, call, "options.bias"));
    }
    return wefti_ep_rows_held(out, route->between->tokens_least, call, "out");
}

/* By source values are added over ranks, in an order that only a combine's rows have inside a domain. */
static weft_status check_values(const weft_ep_route *route, const wefti_ep_combining *combining, const char *call)
{
    const int are_odd = combining->ids != NULL && combining->values_in != NULL &&
                        wefti_ep_between_orders_inside(&route->plan) && wefti_ep_plan_is_by_source(&route->plan);
    return !are_odd ? WEFT_OK
                    : wefti_error(WEFT_ERR_UNSUPPORTED,
                                  "%s: options.ids and options.values_in, by source, and the plan's order is "
                                  "WEFT_EP_ORDER_CHOICE; a group of several domains on GPUs does not have that. Give "
                                  "them in two calls, or order ranks by WEFT_EP_ORDER_RANK",
                                  call);
}

/* What kind of combine a call is. */
typedef struct sum {
    unsigned kind; /* a wefti_cuda_ep_call */
    wefti_cuda_ep_phase phase; /* of a direct one */
    values of; /* what goes back beside; its `out` NULL: nothing */
} sum;

static weft_status combine(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                           const wefti_ep_combining *combining, const sum *what, weft_stream *stream, const char *call)
{
    const unsigned kind = what->kind;
    const values *of = &what->of;
    WEFT_TRY(wefti_ep_between_status(route->ep, call));
    const unsigned flags = ((combining->flags & WEFT_EP_WEIGHTED) != 0 ? WEFTI_CUDA_EP_WEIGHTED : 0) |
                           (combining->weights != NULL ? WEFTI_CUDA_EP_COMBINE_WEIGHTS : 0) |
                           (combining->ids != NULL ? WEFTI_CUDA_EP_COMBINE_IDS : 0) |
                           (route->plan.order == WEFT_EP_ORDER_CHOICE ? WEFTI_CUDA_EP_BY_CHOICE : 0) |
                           (of->out != NULL ? WEFTI_CUDA_EP_VALUES : 0);
    const int is_once = kind == WEFTI_CUDA_EP_DISPATCH_BWD && route->plan.layout == WEFT_EP_SLOTS_EXPERT;
    wefti_cuda_ep_domains_args args = args_of(route, kind, flags | (is_once ? WEFTI_CUDA_EP_ONCE : 0), in);
    args.dtype = in->dtype;
    args.out_dtype = out->dtype;
    args.direct.phase = (wefti_i32)what->phase;
    if (wefti_ep_combining_has_choices(combining)) {
        args.own = (wefti_cuda_ep_domains_own){.row_bytes = wefti_cuda_ep_domains_own_bytes(route->plan.topk),
                                               .weights = combining->weights,
                                               .ids = combining->ids,
                                               .wide = combining->ids_are_wide};
    }
    args.in = in->data;
    args.in_pitch = wefti_cuda_ep_pitch(in);
    args.out = out->data;
    args.out_pitch = wefti_cuda_ep_pitch(out);
    for (int i = 0; i < combining->biases; i++) {
        args.bias[i] = combining->bias[i].data;
        args.bias_pitch[i] = wefti_cuda_ep_pitch(&combining->bias[i]);
    }
    WEFT_TRY(run_combine(route, &args, in, stream, call));
    if (what->phase == WEFTI_CUDA_EP_SEND) {
        return WEFT_OK;
    }
    WEFT_TRY(of->out != NULL ? run_values(route, kind, of, stream, call) : WEFT_OK);
    return wefti_ep_between_count(
        route, kind == WEFTI_CUDA_EP_DISPATCH_BWD ? WEFTI_CUDA_EP_COUNTED_NOT : WEFTI_CUDA_EP_COUNTED_COMBINE, stream,
        call);
}

static values values_of(const wefti_ep_combining *combining)
{
    return (values){.in = combining->values_in, .out = combining->values_in != NULL ? combining->values_out : NULL};
}

weft_status wefti_ep_between_combine(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                     const wefti_ep_combining *combining, weft_stream *stream)
{
    static const char call[] = "weft_ep_combine";
    const sum what = {.kind = WEFTI_CUDA_EP_COMBINE, .of = values_of(combining)};
    WEFT_TRY(check_pairs(route->ep, stream, call));
    WEFT_TRY(check_combine(route, out, combining, call));
    WEFT_TRY(check_values(route, combining, call));
    return made(route->ep, combine(route, in, out, combining, &what, stream, call));
}

weft_status wefti_ep_between_combine_send(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                          const wefti_ep_combining *combining, weft_stream *stream)
{
    static const char call[] = "weft_ep_combine_send";
    wefti_ep_between_half *half = &route->between->half[route->ep->bank];
    WEFT_TRY(check_pairs(route->ep, stream, call));
    WEFT_TRY(check_combine(route, out, combining, call));
    WEFT_TRY(check_values(route, combining, call));
    WEFT_TRY(wefti_ep_between_status(route->ep, call));
    half->in = *in;
    half->out = *out;
    half->combining = *combining;
    half->has_left =
        leaves_with_send(route) && !wefti_ep_combining_has_choices(combining) && combining->values_in == NULL;
    const sum what = {.kind = WEFTI_CUDA_EP_COMBINE_HALVES, .phase = WEFTI_CUDA_EP_SEND};
    return made(route->ep, half->has_left ? combine(route, in, out, combining, &what, stream, call) : WEFT_OK);
}

weft_status wefti_ep_between_combine_recv(weft_ep_route *route, weft_stream *stream)
{
    static const char call[] = "weft_ep_combine_recv";
    const wefti_ep_between_half *half = &route->between->half[route->ep->bank];
    const sum what = {
        .kind = WEFTI_CUDA_EP_COMBINE_HALVES, .phase = phase_of_recv(half), .of = values_of(&half->combining)};
    WEFT_TRY(check_recv_stream(route, stream, call));
    return combine(route, &half->in, &half->out, &half->combining, &what, stream, call);
}

weft_status wefti_ep_between_dispatch_bwd(weft_ep_route *route, const weft_ep_rows *grad_received,
                                          const float *grad_weights_received, const weft_ep_rows *grad_in,
                                          float *grad_weights, weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch_bwd";
    const wefti_ep_combining none = {0};
    const sum what = {.kind = WEFTI_CUDA_EP_DISPATCH_BWD,
                      .of = {.in = grad_weights_received, .out = grad_weights, .of_owners = 1}};
    WEFT_TRY(check_pairs(route->ep, stream, call));
    WEFT_TRY(check_combine(route, grad_in, &none, call));
    return made(route->ep, combine(route, grad_received, grad_in, &none, &what, stream, call));
}

/* A dispatch on a cached route, whose rows their receiver multiplies. */
weft_status wefti_ep_between_combine_bwd(weft_ep_route *route, const weft_ep_rows *grad_out, const weft_ep_rows *rows,
                                         const weft_ep_rows *grad_rows, float *grad_weights, unsigned flags,
                                         weft_stream *stream)
{
    static const char call[] = "weft_ep_combine_bwd";
    const weft_ep_received received = {.size = sizeof received, .rows = *grad_rows, .rows_capacity = INT32_MAX};
    WEFT_TRY(check_pairs(route->ep, stream, call));
    WEFT_TRY(wefti_ep_rows_held(grad_out, route->between->tokens_least, call, "grad_out"));
    WEFT_TRY(wefti_ep_between_status(route->ep, call));
    const move of = {.kind = WEFTI_CUDA_EP_COMBINE_BWD,
                     .flags = ((flags & WEFT_EP_WEIGHTED) != 0 ? WEFTI_CUDA_EP_WEIGHTED : 0) |
                              (grad_weights != NULL ? WEFTI_CUDA_EP_VALUES : 0),
                     .dtype = grad_out->dtype};
    wefti_cuda_ep_domains_args args = dispatch_args(route, NULL, grad_out, &received, &of);
    WEFT_TRY(run_dispatch(route, &args, stream, call));
    if (grad_weights == NULL) {
        return made(route->ep, wefti_ep_between_count(route, WEFTI_CUDA_EP_COUNTED_NOT, stream, call));
    }
    args.rows = rows->data;
    args.rows_pitch = wefti_cuda_ep_pitch(rows);
    const values dots = {.out = grad_weights, .dots = &args};
    WEFT_TRY(run_values(route, WEFTI_CUDA_EP_COMBINE_BWD, &dots, stream, call));
    return made(route->ep, wefti_ep_between_count(route, WEFTI_CUDA_EP_COUNTED_NOT, stream, call));
}

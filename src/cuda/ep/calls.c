/* cuda/ep/calls.c: the calls: from the caller's arguments to a launch. Nothing here waits or allocates. */
#include "cuda/ep/group.h"
#include "cuda/ep/kernels.h"
#include "ep/check.h"
#include "protocol/timeline.h"

/* Warps of a block that move rows, their stages, and the rest between two looks of the others. */
#define MOVERS 4
#define SUMMERS 8 /* that add up rows by expert and move the sums */
#define STAGE_BYTES_MAX 4096
#define GROUPS_GRAIN 512 /* bytes: a group of fp8, of the widest elements */
#define REST_NS 100
#define BLOCKS_MIN 16 /* counts are added up by all blocks, also of few tokens */

static int at_most(int value, int limit)
{
    return value < limit ? value : limit;
}

/* Blocks of a call: no more than there are units. */
static int blocks_of(const weft_ep_route *route)
{
    int tokens = route->ep->config.tokens_max; /* other ranks may have more tokens than this one */
    int sms = route->plan.sms > 0 ? at_most(route->plan.sms, route->ep->device->sms) : route->ep->device->sms;
    int units = wefti_cuda_ep_units(tokens);
    return at_most(sms, units > BLOCKS_MIN ? units : BLOCKS_MIN);
}

/* Warps of a block that move rows. Few where there are many blocks: rows that are under way at the same time get in each
 * other's way on the links. */
static int dispatch_movers(int blocks)
{
    return blocks >= 96 ? MOVERS / 2 : MOVERS;
}

static unsigned pipes_bytes(const wefti_cuda_ep_blocks *parts)
{
    return (unsigned)parts->movers * (WEFTI_CUDA_EP_STAGES * parts->stage_bytes + WEFTI_CUDA_EP_PIPE_HEAD);
}

/* Pipes, and, first in their place, [E + 1] counts; by expert also behind them. */
static weft_status launch(const weft_ep *ep, CUfunction kernel, int blocks, const wefti_cuda_ep_blocks *parts,
                          const void *args, weft_stream *stream, const char *call)
{
    WEFTI_SPAN_OF_BLOCK(ep->world, call);
    wefti_cuda *cuda = ep->device->cuda;
    void *arguments[] = {(void *)(uintptr_t)args};
    unsigned counts = ((unsigned)ep->config.experts + 1) * (unsigned)sizeof(uint32_t);
    unsigned shared = pipes_bytes(parts) + counts;
    WEFT_TRY(wefti_cuda_enter(cuda));
    CUresult result = cuda->driver.cuLaunchKernel(kernel, (unsigned)blocks, 1, 1, WEFTI_CUDA_EP_THREADS, 1, 1, shared,
                                                  (CUstream)(void *)stream, arguments, NULL);
    wefti_cuda_leave(cuda);
    return wefti_cuda_check(&cuda->driver, result, call);
}

/* How the blocks of a call that moves rows of this size are divided. */
static wefti_cuda_ep_blocks blocks_for(size_t row_bytes, int movers)
{
    size_t pieces = (row_bytes + STAGE_BYTES_MAX - 1) / STAGE_BYTES_MAX;
    size_t piece = (row_bytes + pieces - 1) / pieces;
    return (wefti_cuda_ep_blocks){
        .movers = movers,
        .settlers = WEFTI_CUDA_EP_THREADS / 32 - (movers > MOVERS ? movers : MOVERS),
        .rest_ns = REST_NS,
        .stage_bytes = (wefti_u32)((piece + 127) / 128 * 128),
    };
}

static size_t row_bytes_of(const weft_ep_rows *rows)
{
    return (size_t)rows->hidden * wefti_ep_element_bytes(rows->dtype);
}

static uint64_t pitch_of(const weft_ep_rows *rows)
{
    return rows->stride_bytes != 0 ? rows->stride_bytes : row_bytes_of(rows);
}

static uint64_t place_in_heap(const wefti_cuda *cuda, const void *address)
{
    return wefti_cuda_ep_place(0, (uint64_t)((uintptr_t)address - (uintptr_t)cuda->base.heap));
}

/* Where `bytes` bytes at `address` are for all ranks. 0 when they are not symmetric, all of them. */
static int find_place(const wefti_cuda *cuda, const void *address, uint64_t bytes, wefti_u64 *place)
{
    uint64_t offset = (uint64_t)((uintptr_t)address - (uintptr_t)cuda->base.heap);
    if (offset < cuda->base.heap_bytes && bytes <= cuda->base.heap_bytes - offset) {
        *place = wefti_cuda_ep_place(0, offset);
        return 1;
    }
    for (unsigned i = 0; i < WEFTI_DEV_REGIONS_MAX; i++) {
        const wefti_cuda_region *region = &cuda->regions[i];
        offset = (uint64_t)((uintptr_t)address - (uintptr_t)region->address);
        if (region->address != NULL && offset < region->bytes && bytes <= region->bytes - offset) {
            *place = wefti_cuda_ep_place(i + 1, offset);
            return 1;
        }
    }
    return 0;
}

/* ---- dispatch and update ---- */

/* The layout's part in what is called. */
static unsigned layout_flags(const weft_ep_route *route)
{
    return (unsigned)route->plan.layout << 6;
}

static int is_by_expert(const weft_ep_route *route)
{
    return !wefti_ep_plan_is_by_source(&route->plan);
}

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
    return (wefti_cuda_ep_dispatch_args){
        .group = route->ep->device->group,
        .sheet = route->device->sheet,
        .topk = route->plan.topk,
        .experts = experts_of(route),
        .slots = route->plan.layout == WEFT_EP_SLOTS_SOURCE ? (wefti_u32)route->plan.slot_tokens : 0};
}

static wefti_cuda_ep_choices choices_of(const weft_ep_choices *choices)
{
    return (wefti_cuda_ep_choices){
        .ids = choices->ids,
        .weights = choices->weights,
        .tokens_at = choices->tokens_at,
        .tokens = choices->tokens,
        .wide = choices->id_type == WEFT_EP_INT64,
    };
}

static size_t scale_words_of(const weft_ep_rows *rows)
{
    size_t groups = ((size_t)rows->hidden + 127) / 128;
    return rows->scale_type == WEFT_EP_SCALE_UE8M0 ? (groups + 3) / 4 : groups;
}

static wefti_cuda_ep_scales scales_of(const weft_ep_rows *rows)
{
    int is_packed = rows->scale_row_stride == 0 && rows->scale_word_stride == 0;
    return (wefti_cuda_ep_scales){
        .words = rows->scales,
        .row_stride = is_packed ? scale_words_of(rows) : rows->scale_row_stride,
        .word_stride = is_packed ? 1 : rows->scale_word_stride,
    };
}

static int is_quantised(const weft_ep_rows *in, const weft_ep_received *out)
{
    return in->dtype != out->rows.dtype;
}

static void add_rows(wefti_cuda_ep_dispatch_args *args, const weft_ep *ep, const weft_ep_rows *in,
                     const weft_ep_received *out, int movers, int by_expert)
{
    const wefti_cuda *cuda = ep->device->cuda;
    args->flags |= WEFTI_CUDA_EP_MOVE;
    args->blocks = blocks_for(row_bytes_of(in), movers);
    if (is_quantised(in, out)) {
        args->blocks.stage_bytes = (args->blocks.stage_bytes + GROUPS_GRAIN - 1) / GROUPS_GRAIN * GROUPS_GRAIN;
        args->wide = (wefti_cuda_ep_wide){.row_bytes = (wefti_u32)row_bytes_of(in),
                                          .element_bytes = (wefti_u32)wefti_ep_element_bytes(in->dtype),
                                          .dtype = in->dtype,
                                          .is_ue8m0 = out->rows.scale_type == WEFT_EP_SCALE_UE8M0};
    }
    args->in = in->data;
    args->in_pitch = pitch_of(in);
    args->out = out->rows.data;
    args->out_pitch = pitch_of(&out->rows);
    args->pitch = args->out_pitch;
    args->row_bytes = (wefti_u32)row_bytes_of(&out->rows);
    args->capacity = out->rows_capacity < UINT32_MAX ? (wefti_u32)out->rows_capacity : UINT32_MAX;
    if (out->rows.scale_type != WEFT_EP_SCALE_NONE) {
        args->scale_words = (wefti_u32)scale_words_of(&out->rows);
        args->given_words = is_quantised(in, out) ? 0 : args->scale_words;
        args->in_scales = scales_of(in);
        args->out_scales = scales_of(&out->rows);
    }
    args->arrays = (wefti_cuda_ep_arrays){.weights = out->weights,
                                          .experts = out->experts,
                                          .source_rank = out->source_rank,
                                          .source_token = out->source_token};
    if (!find_place(cuda, args->out, out->rows_capacity * args->out_pitch, &args->place)) {
        args->flags |= WEFTI_CUDA_EP_LAND;
        args->place =
            place_in_heap(cuda, (char *)ep->device->area + args->group.at.rows) | (by_expert ? WEFTI_CUDA_EP_LANDS : 0);
        args->pitch = args->row_bytes;
    }
    args->experts.starts_at = pipes_bytes(&args->blocks);
}

weft_status wefti_cuda_ep_update(weft_ep_route *route, const weft_ep_choices *choices, weft_stream *stream)
{
    static const char call[] = "weft_ep_route_update";
    weft_ep *ep = route->ep;
    WEFT_TRY(wefti_cuda_ep_news(ep, call));
    wefti_cuda_ep_dispatch_args args = dispatch_args(route);
    args.flags = WEFTI_CUDA_EP_FRESH;
    args.choices = choices_of(choices);
    args.blocks = (wefti_cuda_ep_blocks){.settlers = WEFTI_CUDA_EP_THREADS / 32, .rest_ns = REST_NS};
    args.shape =
        wefti_cuda_ep_shape(WEFTI_CUDA_EP_DISPATCH, args.flags | layout_flags(route), 0, 0, (unsigned)args.topk);
    WEFT_TRY(
        launch(ep, ep->device->dispatch[is_by_expert(route)][0], blocks_of(route), &args.blocks, &args, stream, call));
    route->is_routed = 1;
    return WEFT_OK;
}

static weft_status check_dispatch(const weft_ep_route *route, const weft_ep_received *out, const char *call)
{
    uint64_t slots = (uint64_t)wefti_ep_slot_rows(&route->plan, route->ep->ranks, wefti_ep_local_experts(route->ep));
    if (out->rows_capacity < slots) {
        return wefti_error(WEFT_ERR_RANGE, "%s: out.rows holds %zu rows; slots take %llu", call, out->rows_capacity,
                           (unsigned long long)slots);
    }
    return WEFT_OK;
}

weft_status wefti_cuda_ep_dispatch(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                   const weft_ep_received *out, weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch";
    weft_ep *ep = route->ep;
    WEFT_TRY(check_dispatch(route, out, call));
    WEFT_TRY(wefti_cuda_ep_news(ep, call));
    wefti_cuda_ep_dispatch_args args = dispatch_args(route);
    add_rows(&args, ep, in, out, dispatch_movers(blocks_of(route)), is_by_expert(route));
    if (fresh != NULL) {
        args.flags |= WEFTI_CUDA_EP_FRESH;
        args.choices = choices_of(fresh);
        route->is_routed = 1;
    }
    args.shape = wefti_cuda_ep_shape(
        WEFTI_CUDA_EP_DISPATCH,
        (args.flags & ~(unsigned)WEFTI_CUDA_EP_LAND) | (unsigned)out->rows.scale_type << 4 | layout_flags(route),
        (unsigned)in->dtype | (unsigned)is_quantised(in, out) << 3, (unsigned)in->hidden, (unsigned)args.topk);
    return launch(ep, ep->device->dispatch[is_by_expert(route)][is_quantised(in, out)], blocks_of(route), &args.blocks,
                  &args, stream, call);
}

/* ---- combine ---- */

weft_status wefti_cuda_ep_combine(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out, unsigned flags,
                                  weft_stream *stream)
{
    static const char call[] = "weft_ep_combine";
    weft_ep *ep = route->ep;
    WEFT_TRY(wefti_cuda_ep_news(ep, call));
    size_t row_bytes = row_bytes_of(in);
    wefti_cuda_ep_combine_args args = {
        .group = ep->device->group,
        .sheet = route->device->sheet,
        .blocks = blocks_for(row_bytes, is_by_expert(route) ? SUMMERS : MOVERS),
        .in = in->data,
        .in_pitch = pitch_of(in),
        .out = out->data,
        .out_pitch = pitch_of(out),
        .place = place_in_heap(ep->device->cuda, (char *)ep->device->area + ep->device->group.at.rows),
        .row_bytes = (wefti_u32)row_bytes,
        .dtype = in->dtype,
        .flags = (flags & WEFT_EP_WEIGHTED) != 0 ? WEFTI_CUDA_EP_WEIGHTED : 0,
        .topk = route->plan.topk,
    };
    args.shape = wefti_cuda_ep_shape(WEFTI_CUDA_EP_COMBINE, args.flags | layout_flags(route), in->dtype,
                                     (unsigned)in->hidden, (unsigned)route->plan.topk);
    return launch(ep, ep->device->combine[is_by_expert(route)], blocks_of(route), &args.blocks, &args, stream, call);
}

/* ---- halves: send launches the whole call, which its stream completes ---- */

static weft_status check_recv(const weft_ep_route *route, const weft_stream *stream, const char *call)
{
    if (route->device->sent_on != stream) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, "%s: on GPUs recv is given the stream of its send", call);
    }
    return WEFT_OK;
}

weft_status wefti_cuda_ep_dispatch_send(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                        const weft_ep_received *out, weft_stream *stream)
{
    route->device->sent_on = stream;
    return wefti_cuda_ep_dispatch(route, fresh, in, out, stream);
}

weft_status wefti_cuda_ep_dispatch_recv(weft_ep_route *route, weft_stream *stream)
{
    return check_recv(route, stream, "weft_ep_dispatch_recv");
}

weft_status wefti_cuda_ep_combine_send(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                       unsigned flags, weft_stream *stream)
{
    route->device->sent_on = stream;
    return wefti_cuda_ep_combine(route, in, out, flags, stream);
}

weft_status wefti_cuda_ep_combine_recv(weft_ep_route *route, weft_stream *stream)
{
    return check_recv(route, stream, "weft_ep_combine_recv");
}

/* cuda/ep/host/launch.c: how a call's grid is divided, and its launch. Nothing here waits or allocates. */
#include "common/timeline.h"
#include "cuda/ep/host/calls.h"

/* Warps of a block that move rows, their stages, and the rest between two looks of the others. */
#define SENDER_WARPS 4
/* Of warps that make rows fp8 and send them, where SENDER_WARPS would have several units each and as many fit. */
#define QUANTISING_SENDER_WARPS 8
#define SUMMING_SENDER_WARPS 8 /* that add up rows by expert and move the sums */
#define STAGE_BYTES_MAX 4096
#define GROUPS_GRAIN 512 /* bytes: a group of fp8, of the widest elements */
#define REST_NS 100
#define BLOCKS_MANY 96
#define BLOCKS_FEW 32
#define PUSHES_AT_ONCE                                                                                                 \
    4 /* by few blocks: a warp posts the words of so many units with one fence, which takes as long as half a unit */
#define BLOCKS_MIN 16 /* counts are added up by all blocks, also of few tokens */
#define SUMMING_BLOCKS_MIN 32 /* few sums have many parts, */
#define SUMMING_BLOCKS_A_UNIT 4 /* each a warp's */

static int at_most(int value, int limit)
{
    return value < limit ? value : limit;
}

/* Multiprocessors that a call may take, none of which another waiting kernel may; 0: there are none. */
static int sms_of(const weft_ep_route *route)
{
    const wefti_ep_device *device = route->ep->device;
    if (route->plan.sms > 0) {
        return wefti_cuda_ep_sms_asked(route->ep, &route->plan);
    }
    int share = at_most(wefti_cuda_budget_share(&device->cuda->budget), device->sms);
    return share > device->claimed ? share : device->claimed;
}

#define LOW_LATENCY_TOKENS_MAX 256 /* of a source: more would copy longer than the call headers take */
#define LOW_LATENCY_WORDS_A_BLOCK 2
#define LOW_LATENCY_SENDER_WARPS 12

static wefti_cuda_ep_shared_table shared_table_of(const weft_ep_route *route)
{
    const weft_ep *ep = route->ep;
    return wefti_cuda_ep_shared_table_of(route->plan.slot_tokens, ep->ranks, wefti_cuda_ep_experts_of(ep, &route->plan),
                                         wefti_cuda_ep_is_by_expert(route));
}

wefti_u32 wefti_cuda_ep_low_latency_slots(const weft_ep_route *route, wefti_cuda_ep_part part)
{
    const wefti_ep_device *device = route->ep->device;
    if (!wefti_ep_plan_is_slots(&route->plan) || device->group[0].at.low_latency_words == 0 ||
        shared_table_of(route).end * sizeof(uint32_t) > WEFTI_CUDA_EP_SHARED_TABLE_BYTES_MAX ||
        (part == WEFTI_CUDA_EP_WHOLE && route->plan.slot_tokens > LOW_LATENCY_TOKENS_MAX)) {
        return 0;
    }
    return (wefti_u32)route->plan.slot_tokens;
}

wefti_cuda_ep_blocks wefti_cuda_ep_low_latency_blocks(void)
{
    return (wefti_cuda_ep_blocks){.sender_warps = LOW_LATENCY_SENDER_WARPS,
                                  .receiver_warps = WEFTI_CUDA_EP_THREADS / 32 - LOW_LATENCY_SENDER_WARPS};
}

/* Blocks of a low-latency call: a few words of this rank's rows for each. */
static int low_latency_blocks_of(const weft_ep_route *route)
{
    const int tokens = route->plan.slot_tokens;
    const wefti_cuda_ep_slices slices = wefti_cuda_ep_slices_of(tokens, (wefti_u32)route->ep->config.row_bytes_max,
                                                                route->ep->device->group[0].at.low_latency_words);
    const int blocks = tokens * (1 + slices.count) / LOW_LATENCY_WORDS_A_BLOCK;
    return at_most(blocks > BLOCKS_MIN ? blocks : BLOCKS_MIN, sms_of(route));
}

/* Blocks of a call: no more than there are units. */
static int blocks_of(const weft_ep_route *route, wefti_cuda_ep_work work)
{
    int is_summed = work >= WEFTI_CUDA_EP_WORK_COMBINE && wefti_cuda_ep_is_by_expert(route);
    int least = is_summed ? SUMMING_BLOCKS_MIN : BLOCKS_MIN;
    int tokens = route->ep->config.tokens_max; /* other ranks may have more tokens than this one */
    int units = wefti_cuda_ep_units(tokens) * (is_summed ? SUMMING_BLOCKS_A_UNIT : 1);
    return at_most(units > least ? units : least, sms_of(route));
}

/* Warps of a block that move rows. Few where there are many blocks, as rows that are under way at the same time get in
 * each other's way on the links, and by expert in that of the copies; unless by source no warp has more than one
 * token. */
static int dispatch_sender_warps(const weft_ep_route *route, int blocks)
{
    const int is_many = wefti_cuda_ep_is_by_expert(route) || route->ep->config.tokens_max > blocks * SENDER_WARPS;
    return blocks >= BLOCKS_MANY && is_many ? SENDER_WARPS / 2 : SENDER_WARPS;
}

static unsigned pipes_bytes(const wefti_cuda_ep_blocks *parts)
{
    return (unsigned)parts->sender_warps * (WEFTI_CUDA_EP_STAGES * parts->stage_bytes + WEFTI_CUDA_EP_PIPE_HEAD);
}

/* Behind the pipes [E + 1] counts, which by expert are needed beside them. */
static unsigned meta_stages_at(const weft_ep_route *route, const wefti_cuda_ep_blocks *parts)
{
    unsigned counts = ((unsigned)wefti_cuda_ep_experts_of(route->ep, &route->plan) + 1) * (unsigned)sizeof(uint32_t);
    return (pipes_bytes(parts) + counts + 127) / 128 * 128;
}

void wefti_cuda_ep_share_memory(wefti_cuda_ep_dispatch_args *args, const weft_ep_route *route)
{
    args->experts.starts_at = pipes_bytes(&args->blocks);
    args->meta_stages_at = meta_stages_at(route, &args->blocks);
}

static unsigned shared_bytes(const weft_ep_route *route, wefti_cuda_ep_kernel kernel, const wefti_cuda_ep_blocks *parts)
{
    int meta_warps = kernel.work < WEFTI_CUDA_EP_WORK_COMBINE ? WEFTI_CUDA_EP_THREADS / 32 - parts->sender_warps : 0;
    return kernel.is_low_latency ? shared_table_of(route).end * (unsigned)sizeof(uint32_t)
                                 : meta_stages_at(route, parts) + (unsigned)meta_warps * WEFTI_CUDA_EP_META_STAGE_BYTES;
}

static int sender_warps_of(const weft_ep_route *route, wefti_cuda_ep_work work)
{
    if (work == WEFTI_CUDA_EP_WORK_QUANTISE) {
        return blocks_of(route, work) * SENDER_WARPS >= WEFTI_CUDA_EP_UNITS_MAX ? SENDER_WARPS
                                                                                : QUANTISING_SENDER_WARPS;
    }
    if (work < WEFTI_CUDA_EP_WORK_COMBINE) {
        return dispatch_sender_warps(route, blocks_of(route, work));
    }
    return wefti_cuda_ep_is_by_expert(route) ? SUMMING_SENDER_WARPS : SENDER_WARPS;
}

wefti_cuda_ep_blocks wefti_cuda_ep_divide(const weft_ep_route *route, wefti_cuda_ep_work work, size_t row_bytes)
{
    size_t pieces = (row_bytes + STAGE_BYTES_MAX - 1) / STAGE_BYTES_MAX;
    size_t piece = pieces > 0 ? (row_bytes + pieces - 1) / pieces : 0;
    size_t grain = work == WEFTI_CUDA_EP_WORK_QUANTISE ? GROUPS_GRAIN : 128;
    wefti_cuda_ep_blocks parts = {
        .sender_warps = row_bytes > 0 ? sender_warps_of(route, work) : 0,
        .rest_ns = REST_NS,
        .stage_bytes = (wefti_u32)((piece + grain - 1) / grain * grain),
        .pushes_at_once = blocks_of(route, work) <= BLOCKS_FEW ? PUSHES_AT_ONCE : 1,
    };
    while (parts.sender_warps > SENDER_WARPS &&
           shared_bytes(route, (wefti_cuda_ep_kernel){.work = work}, &parts) > WEFTI_CUDA_EP_SHARED_MAX) {
        parts.sender_warps--;
    }
    int others = parts.sender_warps > SENDER_WARPS ? parts.sender_warps : row_bytes > 0 ? SENDER_WARPS : 0;
    parts.receiver_warps = WEFTI_CUDA_EP_THREADS / 32 - others;
    return parts;
}

/* Whether this recv finds counts that its send's blocks made, each its part. */
static int adds_up_parts(const weft_ep_route *route, wefti_cuda_ep_kernel kernel)
{
    return kernel.part == WEFTI_CUDA_EP_RECV && !kernel.is_low_latency && kernel.work < WEFTI_CUDA_EP_WORK_COMBINE &&
           (route->device->sent.dispatch.flags & WEFTI_CUDA_EP_FRESH) != 0;
}

/* As many as its send had; 0: others have claimed some of them since. */
static int blocks_of_recv(const weft_ep_route *route)
{
    const wefti_ep_device *device = route->ep->device;
    const int unclaimed = wefti_cuda_budget_free(&device->cuda->budget);
    const int room = unclaimed > device->claimed ? unclaimed : device->claimed;
    return route->plan.sms > 0 || route->device->sent_blocks <= room ? route->device->sent_blocks : 0;
}

static int blocks_of_launch(const weft_ep_route *route, wefti_cuda_ep_kernel kernel)
{
    if (adds_up_parts(route, kernel)) {
        return blocks_of_recv(route);
    }
    return kernel.is_low_latency ? low_latency_blocks_of(route) : blocks_of(route, kernel.work);
}

/* A call beside an outstanding pair on another stream may run at the same time: both have to fit on the GPU. */
static weft_status check_streams(const weft_ep_route *route, const weft_stream *stream, const char *call)
{
    const weft_ep *ep = route->ep;
    const int other = wefti_ep_channels(ep) - 1 - ep->channel;
    const weft_ep_route *beside = wefti_ep_channels(ep) == 2 ? ep->half_route[other] : NULL;
    if (beside != NULL && ep->half_stream[other] != stream && (route->plan.sms == 0 || beside->plan.sms == 0)) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "%s: a pair of the group is outstanding on another stream; call on that stream, or create "
                           "both routes with plan.sms, so that both calls fit on the GPU",
                           call);
    }
    return WEFT_OK;
}

weft_status wefti_cuda_ep_launch(const weft_ep_route *route, wefti_cuda_ep_kernel kernel,
                                 const wefti_cuda_ep_blocks *parts, const void *args, weft_stream *stream,
                                 const char *call)
{
    const weft_ep *ep = route->ep;
    WEFTI_SPAN_OF_BLOCK(ep->world, call);
    wefti_cuda *cuda = ep->device->cuda;
    void *arguments[] = {(void *)(uintptr_t)args};
    unsigned shared = shared_bytes(route, kernel, parts);
    CUfunction function =
        ep->device->kernel[kernel.is_low_latency][kernel.part][kernel.work][wefti_cuda_ep_is_by_expert(route)];
    int blocks = blocks_of_launch(route, kernel);
    if (blocks == 0) {
        return wefti_error(WEFT_ERR_STATE,
                           "%s: others have claimed %s multiprocessors of the GPU for kernels that wait; call it again "
                           "when they have given some back, or create the route with plan.sms before they claim them",
                           call, adds_up_parts(route, kernel) ? "some of the send's" : "all");
    }
    WEFT_TRY(kernel.part != WEFTI_CUDA_EP_RECV ? check_streams(route, stream, call) : WEFT_OK);
    WEFT_TRY(wefti_cuda_enter(cuda));
    CUresult result = cuda->driver.cuLaunchKernel(function, (unsigned)blocks, 1, 1, WEFTI_CUDA_EP_THREADS, 1, 1, shared,
                                                  (CUstream)(void *)stream, arguments, NULL);
    wefti_cuda_leave(cuda);
    WEFT_TRY(wefti_cuda_check(&cuda->driver, result, call));
    if (kernel.part == WEFTI_CUDA_EP_SEND) {
        route->device->sent_blocks = blocks;
    }
    if (kernel.part != WEFTI_CUDA_EP_RECV && kernel.work < WEFTI_CUDA_EP_WORK_COMBINE_ORDER) {
        ++*ep->started;
    }
    return WEFT_OK;
}

/* A kernel that waits for nobody. */
static weft_status launch_before(const weft_ep_route *route, wefti_cuda_ep_work work, const void *args,
                                 weft_stream *stream, const char *call)
{
    const wefti_cuda_ep_blocks parts = {0};
    return wefti_cuda_ep_launch(route, (wefti_cuda_ep_kernel){.work = work}, &parts, args, stream, call);
}

weft_status wefti_cuda_ep_launch_destinations(const weft_ep_route *route, const wefti_cuda_ep_dispatch_args *args,
                                              weft_stream *stream, const char *call)
{
    return (args->flags & WEFTI_CUDA_EP_FRESH) != 0 && wefti_ep_plan_is_by_rank(&route->plan)
               ? launch_before(route, WEFTI_CUDA_EP_WORK_DESTINATIONS, args, stream, call)
               : WEFT_OK;
}

weft_status wefti_cuda_ep_launch_order(const weft_ep_route *route, wefti_cuda_ep_work work,
                                       const wefti_cuda_ep_combine_args *args, weft_stream *stream, const char *call)
{
    return work == WEFTI_CUDA_EP_WORK_COMBINE_WITH
               ? launch_before(route, WEFTI_CUDA_EP_WORK_COMBINE_ORDER, args, stream, call)
               : WEFT_OK;
}

/* cuda/ep/host/plan.c: how many blocks a kernel has, what their warps do, and what lies where in shared memory. */
#include "cuda/ep/host/plan.h"

#include "cuda/ep/host/calls.h"

#define SENDER_WARPS 4 /* of a block */
/* Sender warps of kernels that make rows fp8, where SENDER_WARPS would have several units each. */
#define QUANTISING_SENDER_WARPS 8
#define SUMMING_SENDER_WARPS 8 /* of kernels that add up rows by expert and send the sums */
#define STAGE_BYTES_MAX 4096
#define GROUPS_GRAIN 512 /* bytes: a group of fp8, of the widest elements */
#define REST_NS 100 /* a warp pauses so long between two polls */
#define BLOCKS_MANY 96
#define BLOCKS_FEW 32
/* With few blocks a warp posts the words of so many units with one fence, which takes as long as half a unit. */
#define PUSHES_AT_ONCE 4
#define BLOCKS_MIN 16 /* also for few tokens: all blocks add up counts */
#define PIPED_CHOICES_MAX 32 /* each known to a lane */
#define PIPED_ROWS_A_WARP 2
/* Few sums are divided into many parts, of which a warp adds up one. */
#define SUMMING_BLOCKS_MIN 32
#define SUMMING_BLOCKS_A_UNIT 4

static int at_most(int value, int limit)
{
    return value < limit ? value : limit;
}

/* The multiprocessors of a call by its plan, and in *most how many weft_ep_route_sms may say instead. A plan that asks
 * for some has its bank's part of the group's claim, else a call may have this PE's share of the GPU. */
static int sms_of_plan(const weft_ep_route *route, int *most)
{
    const wefti_ep_device *device = route->ep->device;
    if (route->plan.sms > 0) {
        *most = device->claim->sms / wefti_ep_banks(route->ep);
        return wefti_cuda_ep_sms_asked(route->ep, &route->plan);
    }
    const int share = at_most(wefti_cuda_budget_share(&device->cuda->budget), device->sms);
    *most = share > device->claim->sms ? share : device->claim->sms;
    return *most;
}

int wefti_cuda_ep_sms_of(const weft_ep_route *route, wefti_cuda_ep_phase phase)
{
    const int is_sent = phase == WEFTI_CUDA_EP_ROWS || phase == WEFTI_CUDA_EP_RECV;
    const int asked = is_sent ? wefti_cuda_ep_sent_of(route)->sms : route->sms;
    int most;
    const int of_plan = sms_of_plan(route, &most);
    return asked > 0 ? at_most(asked, most) : of_plan;
}

#define LOW_LATENCY_TOKENS_MAX 256 /* of a source: the second copy of more rows takes longer than call headers */
#define LOW_LATENCY_WORDS_A_BLOCK 2
/* Fewer in a dispatch: by expert the other warps then find the places of rows sooner, and sender warps are still more
 * than there are slices of rows to send. */
#define LOW_LATENCY_DISPATCH_SENDER_WARPS 6
#define LOW_LATENCY_COMBINE_SENDER_WARPS 12

static wefti_cuda_ep_shared_table shared_table_of(const weft_ep_route *route)
{
    const weft_ep *ep = route->ep;
    return wefti_cuda_ep_shared_table_of(route->plan.slot_tokens, ep->ranks, wefti_cuda_ep_experts_of(ep, &route->plan),
                                         wefti_cuda_ep_is_by_expert(route));
}

/* Slots of each source if the call is a low-latency one (rows leave before the receivers' call headers are here);
 * else 0. */
static wefti_u32 low_latency_slots_of(const weft_ep_route *route, const wefti_cuda_ep_kernel *kernel)
{
    const wefti_ep_device *device = route->ep->device;
    if (device->kind->all_in_one || !kernel->may_be_low_latency ||
        (route->device != NULL && route->device->by_position) || !wefti_ep_plan_is_slots(&route->plan) ||
        device->group[0].at.low_latency_words == 0 ||
        shared_table_of(route).end * sizeof(uint32_t) > WEFTI_CUDA_EP_SHARED_TABLE_BYTES_MAX ||
        (kernel->phase == WEFTI_CUDA_EP_FUSED && route->plan.slot_tokens > LOW_LATENCY_TOKENS_MAX)) {
        return 0;
    }
    return (wefti_u32)route->plan.slot_tokens;
}

/* How many blocks a low-latency call has work for: each sends a few records or slices. */
static int low_latency_blocks_wanted(const weft_ep_route *route)
{
    const int tokens = route->plan.slot_tokens;
    const wefti_cuda_ep_slices slices = wefti_cuda_ep_slices_of(tokens, (wefti_u32)route->ep->config.row_bytes_max,
                                                                route->ep->device->group[0].at.low_latency_words);
    const int blocks = tokens * (1 + slices.count) / LOW_LATENCY_WORDS_A_BLOCK;
    return blocks > BLOCKS_MIN ? blocks : BLOCKS_MIN;
}

/* How many blocks a throughput call has work for: no more than there are units. */
static int blocks_wanted(const weft_ep_route *route, wefti_cuda_ep_work work)
{
    int is_summed = work >= WEFTI_CUDA_EP_WORK_COMBINE && wefti_cuda_ep_is_by_expert(route);
    int least = is_summed ? SUMMING_BLOCKS_MIN : BLOCKS_MIN;
    int tokens = route->ep->config.tokens_max; /* other ranks may have more tokens than this one */
    int units = wefti_cuda_ep_units(tokens) * (is_summed ? SUMMING_BLOCKS_A_UNIT : 1);
    return units > least ? units : least;
}

static int blocks_of(const weft_ep_route *route, const wefti_cuda_ep_kernel *kernel)
{
    return at_most(blocks_wanted(route, kernel->work), wefti_cuda_ep_sms_of(route, kernel->phase));
}

int wefti_cuda_ep_sms_hint(const weft_ep *ep, const weft_ep_plan *plan)
{
    static const wefti_cuda_ep_kernel fused = {.may_be_low_latency = 1};
    const weft_ep_route route = {.ep = (weft_ep *)(uintptr_t)ep, .plan = *plan};
    const int to_owners = blocks_wanted(&route, WEFTI_CUDA_EP_WORK_DISPATCH);
    const int back = blocks_wanted(&route, WEFTI_CUDA_EP_WORK_COMBINE);
    const int is_low_latency = low_latency_slots_of(&route, &fused) != 0;
    const int wanted = is_low_latency ? low_latency_blocks_wanted(&route) : to_owners > back ? to_owners : back;
    const int most = ep->device->sms * 3 / 4 / wefti_ep_banks(ep);
    return at_most(wanted, most > 1 ? most : 1);
}

/* Warps of a block that move rows. Few where there are many blocks, as rows that are under way at the same time get in
 * each other's way on the links, and by expert in that of the copies; unless by source no warp has more than one
 * token. */
static int dispatch_sender_warps(const weft_ep_route *route, int blocks)
{
    const int are_many = wefti_cuda_ep_is_by_expert(route) || route->ep->config.tokens_max > blocks * SENDER_WARPS;
    return blocks >= BLOCKS_MANY && are_many ? SENDER_WARPS / 2 : SENDER_WARPS;
}

static unsigned pipes_bytes(const wefti_cuda_ep_blocks *roles)
{
    return (unsigned)roles->sender_warps * (WEFTI_CUDA_EP_STAGES * roles->stage_bytes + WEFTI_CUDA_EP_PIPE_HEAD);
}

/* What lies where in the shared memory of a throughput kernel, and how much it is. */
static void share_memory(const weft_ep_route *route, wefti_cuda_ep_launch_plan *plan)
{
    const unsigned counts = (unsigned)wefti_cuda_ep_experts_of(route->ep, &route->plan) + 1;
    const int is_dispatch = plan->kernel.work < WEFTI_CUDA_EP_WORK_COMBINE;
    const int meta_warps = is_dispatch ? WEFTI_CUDA_EP_THREADS / 32 - plan->roles.sender_warps : 0;
    plan->counts_at = pipes_bytes(&plan->roles);
    plan->meta_stages_at = (plan->counts_at + counts * (unsigned)sizeof(uint32_t) + 127) / 128 * 128;
    plan->shared_bytes = plan->meta_stages_at + (unsigned)meta_warps * WEFTI_CUDA_EP_META_STAGE_BYTES;
}

static int sender_warps_of(const weft_ep_route *route, wefti_cuda_ep_work work, int blocks)
{
    if (wefti_cuda_ep_quantises(work)) {
        return blocks * SENDER_WARPS >= WEFTI_CUDA_EP_UNITS_MAX ? SENDER_WARPS : QUANTISING_SENDER_WARPS;
    }
    if (work < WEFTI_CUDA_EP_WORK_COMBINE) {
        return dispatch_sender_warps(route, blocks);
    }
    return wefti_cuda_ep_is_by_expert(route) ? SUMMING_SENDER_WARPS : SENDER_WARPS;
}

/* What the warps of a throughput kernel's blocks do: fewer sender warps where their pipes do not fit. */
static void give_roles(const weft_ep_route *route, wefti_cuda_ep_launch_plan *plan)
{
    const wefti_cuda_ep_work work = plan->kernel.work;
    const size_t row_bytes = plan->kernel.row_bytes;
    size_t pieces = (row_bytes + STAGE_BYTES_MAX - 1) / STAGE_BYTES_MAX;
    size_t piece = pieces > 0 ? (row_bytes + pieces - 1) / pieces : 0;
    size_t grain = wefti_cuda_ep_quantises(work) ? GROUPS_GRAIN : 128;
    plan->roles = (wefti_cuda_ep_blocks){
        .sender_warps = row_bytes > 0 ? sender_warps_of(route, work, plan->blocks) : 0,
        .rest_ns = REST_NS,
        .stage_bytes = (wefti_u32)((piece + grain - 1) / grain * grain),
        .pushes_at_once = plan->blocks <= BLOCKS_FEW ? PUSHES_AT_ONCE : 1,
    };
    share_memory(route, plan);
    while (plan->roles.sender_warps > SENDER_WARPS && plan->shared_bytes > WEFTI_CUDA_EP_SHARED_MAX) {
        plan->roles.sender_warps--;
        share_memory(route, plan);
    }
    const int least = row_bytes > 0 ? SENDER_WARPS
                                    : 0; /* a block has no receiver warps in their place even if it has fewer senders */
    const int aside = plan->roles.sender_warps > least ? plan->roles.sender_warps : least;
    plan->roles.receiver_warps = WEFTI_CUDA_EP_THREADS / 32 - aside;
}

/* Whether a recv finds counts that its send's blocks made, each its part, so that it needs as many blocks. */
static int adds_up_parts(const wefti_cuda_ep_launch_plan *plan)
{
    return plan->kernel.phase == WEFTI_CUDA_EP_RECV && plan->low_latency_slots == 0 &&
           plan->kernel.work < WEFTI_CUDA_EP_WORK_COMBINE && plan->kernel.is_fresh;
}

/* The blocks of a recv: as many as its send had. 0: other kernels have claimed some of those multiprocessors since. */
static int blocks_of_recv(const weft_ep_route *route)
{
    const wefti_ep_device *device = route->ep->device;
    const int unclaimed = wefti_cuda_budget_free(&device->cuda->budget);
    const int room = unclaimed > device->claim->sms ? unclaimed : device->claim->sms;
    const int blocks = wefti_cuda_ep_sent_of(route)->blocks;
    return route->plan.sms > 0 || blocks <= room ? blocks : 0;
}

/* Slots of each source if a call of many ranks passes by those that do not come; else 0. */
static wefti_u32 passing_slots_of(const weft_ep_route *route, const wefti_cuda_ep_kernel *kernel)
{
    const int passes = route->ep->device->group[0].at.low_latency_words != 0 && kernel->may_be_low_latency &&
                       wefti_ep_plan_is_slots(&route->plan) && !route->device->by_position;
    return passes ? (wefti_u32)route->plan.slot_tokens : 0;
}

/* The plan of a group of many ranks: all warps of a block do the same, each with shared memory of its own. */
void wefti_cuda_ep_plan_many(const weft_ep_route *route, wefti_cuda_ep_launch_plan *plan)
{
    const unsigned warps = WEFTI_CUDA_EP_THREADS / 32;
    const int is_dispatch = plan->kernel.work < WEFTI_CUDA_EP_WORK_COMBINE;
    plan->blocks = adds_up_parts(plan) ? blocks_of_recv(route) : blocks_of(route, &plan->kernel);
    plan->shared_bytes = warps * (is_dispatch ? WEFTI_CUDA_EP_MANY_PIECE_BYTES
                                              : (unsigned)route->ep->ranks * WEFTI_CUDA_EP_MANY_RESULT_BYTES);
    plan->low_latency_slots = passing_slots_of(route, &plan->kernel);
}

/* Whether rows leave with send, decided alike on all ranks, and by send and recv. */
static int is_eager(const weft_ep_route *route, const wefti_cuda_ep_launch_plan *plan)
{
    return plan->kernel.phase != WEFTI_CUDA_EP_FUSED && plan->kernel.may_leave && plan->low_latency_slots == 0 &&
           wefti_cuda_ep_has_eager(route->ep) && !route->device->by_position;
}

/* Of eager halves only what comes behind send moves rows, with as many blocks. */
static void plan_eager(const weft_ep_route *route, wefti_cuda_ep_launch_plan *plan)
{
    const int moves = plan->kernel.phase == WEFTI_CUDA_EP_ROWS;
    plan->kernel.row_bytes = moves ? plan->kernel.row_bytes : 0;
    plan->blocks = moves ? wefti_cuda_ep_sent_of(route)->blocks : plan->blocks;
}

/* Whether there are so many rows to add up, whole ones, that a sender warp gains by loading ahead; else its first one
 * comes later. By what this rank sends: what it receives is as much or so, and results are the same. */
static int is_piped(const weft_ep_route *route, const wefti_cuda_ep_launch_plan *plan)
{
    const wefti_cuda_ep_kernel *kernel = &plan->kernel;
    const int tokens = route->device->tokens_least;
    const int ranks = route->ep->ranks;
    return (kernel->work == WEFTI_CUDA_EP_WORK_COMBINE || kernel->work == WEFTI_CUDA_EP_WORK_DISPATCH_BWD) &&
           (kernel->phase == WEFTI_CUDA_EP_FUSED || kernel->phase == WEFTI_CUDA_EP_RECV) && !plan->is_eager &&
           wefti_cuda_ep_is_by_expert(route) && !route->device->by_position && route->plan.topk <= PIPED_CHOICES_MAX &&
           (int64_t)tokens * ranks >= (int64_t)PIPED_ROWS_A_WARP * plan->roles.sender_warps * plan->blocks &&
           wefti_cuda_ep_push_parts(tokens, ranks, (wefti_u32)kernel->row_bytes) == 1;
}

void wefti_cuda_ep_plan_few(const weft_ep_route *route, wefti_cuda_ep_launch_plan *plan)
{
    plan->low_latency_slots = low_latency_slots_of(route, &plan->kernel);
    plan->is_eager = is_eager(route, plan);
    if (plan->low_latency_slots != 0) {
        plan->roles.sender_warps = plan->kernel.work < WEFTI_CUDA_EP_WORK_COMBINE ? LOW_LATENCY_DISPATCH_SENDER_WARPS
                                                                                  : LOW_LATENCY_COMBINE_SENDER_WARPS;
        plan->roles.receiver_warps = WEFTI_CUDA_EP_THREADS / 32 - plan->roles.sender_warps;
        plan->shared_bytes = shared_table_of(route).end * (unsigned)sizeof(uint32_t);
        plan->blocks = at_most(low_latency_blocks_wanted(route), wefti_cuda_ep_sms_of(route, plan->kernel.phase));
    } else {
        plan->blocks = adds_up_parts(plan) ? blocks_of_recv(route) : blocks_of(route, &plan->kernel);
        if (plan->is_eager) {
            plan_eager(route, plan);
        }
        give_roles(route, plan);
        plan->is_piped = is_piped(route, plan);
    }
}

wefti_cuda_ep_launch_plan wefti_cuda_ep_plan_launch(const weft_ep_route *route, wefti_cuda_ep_kernel kernel)
{
    wefti_cuda_ep_launch_plan plan = {.kernel = kernel};
    route->ep->device->kind->plan(route, &plan);
    plan.roles.phase = (wefti_i32)kernel.phase;
    return plan;
}

void wefti_cuda_ep_dispatch_take_plan(wefti_cuda_ep_dispatch_args *args, const wefti_cuda_ep_launch_plan *plan)
{
    args->blocks = plan->roles;
    args->low_latency_slots = plan->low_latency_slots;
    args->experts.starts_at = plan->counts_at;
    args->meta_stages_at = plan->meta_stages_at;
}

void wefti_cuda_ep_combine_take_plan(wefti_cuda_ep_combine_args *args, const wefti_cuda_ep_launch_plan *plan)
{
    args->blocks = plan->roles;
    args->low_latency_slots = plan->low_latency_slots;
}

/* ---- whether it can be launched now ---- */

/* A call beside an outstanding pair on another stream may run at the same time: both have to fit on the GPU. */
static weft_status check_streams(const weft_ep_route *route, const weft_stream *stream, const char *call)
{
    const weft_ep *ep = route->ep;
    const int other = wefti_ep_banks(ep) - 1 - ep->bank;
    const weft_ep_route *beside = wefti_ep_banks(ep) == 2 ? ep->half_route[other] : NULL;
    if (beside != NULL && ep->half_stream[other] != stream && (route->plan.sms == 0 || beside->plan.sms == 0)) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "%s: a pair of the group is outstanding on another stream; call on that stream, or create "
                           "both routes with plan.sms, so that both calls fit on the GPU",
                           call);
    }
    return WEFT_OK;
}

weft_status wefti_cuda_ep_check_plan(const weft_ep_route *route, const wefti_cuda_ep_launch_plan *plan,
                                     const weft_stream *stream, const char *call)
{
    const wefti_cuda_ep_phase phase = plan->kernel.phase;
    if (plan->blocks == 0) {
        return wefti_error(WEFT_ERR_STATE,
                           "%s: others have claimed %s multiprocessors of the GPU for kernels that wait; call it again "
                           "when they have given some back, or create the route with plan.sms before they claim them",
                           call, adds_up_parts(plan) ? "some of the send's" : "all");
    }
    return phase != WEFTI_CUDA_EP_RECV || wefti_cuda_ep_is_apart(route, stream, phase)
               ? check_streams(route, stream, call)
               : WEFT_OK;
}

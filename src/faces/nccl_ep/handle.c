/* faces/nccl_ep/handle.c: handles: a route of weft_ep each, and a copy of its routing. */
#include <pthread.h>
#include <stdlib.h>

#include "faces/nccl_ep/face.h"

#define ALIGNMENT 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ncclEpHandle *handles; /* that live */

ncclResult_t nep_check_handle(const char *call, const struct ncclEpHandle *handle)
{
    (void)pthread_mutex_lock(&lock);
    const struct ncclEpHandle *at = handles;
    while (at != NULL && at != handle) {
        at = at->next;
    }
    void *context = at != NULL && at->group != NULL ? at->group->context : NULL;
    int is_left = at != NULL && at->group == NULL;
    (void)pthread_mutex_unlock(&lock);
    if (at == NULL) {
        return nep_fail(ncclInvalidArgument, "%s: the handle is %s", call,
                        handle == NULL ? "NULL" : "none, or was destroyed");
    }
    if (is_left) {
        return nep_fail(ncclInvalidUsage, "%s: the handle's group was destroyed; destroy the handle, too", call);
    }
    nep_have_gpu(call, context);
    return ncclSuccess;
}

/* ---- plans ---- */

static ncclResult_t layout_of(const char *call, const struct ncclEpGroup *group, ncclEpLayout_t layout,
                              weft_ep_layout *out)
{
    int is_ll = nep_is_ll(group);
    if (layout == NCCL_EP_LAYOUT_EXPERT_MAJOR) {
        *out = is_ll ? WEFT_EP_SLOTS_EXPERT : WEFT_EP_EXPERT_MAJOR;
    } else if (layout == NCCL_EP_LAYOUT_RANK_MAJOR && is_ll) {
        *out = WEFT_EP_SLOTS_SOURCE;
    } else if (layout == NCCL_EP_LAYOUT_FLAT && !is_ll) {
        *out = WEFT_EP_RANK_MAJOR;
    } else {
        return nep_fail(ncclInvalidArgument, "%s: layout is %d; a group of %s has %s", call, (int)layout,
                        is_ll ? "LL" : "HT", is_ll ? "EXPERT_MAJOR and RANK_MAJOR" : "FLAT and EXPERT_MAJOR");
    }
    return ncclSuccess;
}

static ncclResult_t plan_of(const char *call, const struct ncclEpGroup *group, ncclEpLayout_t layout,
                            const ncclEpHandleConfig_t *config, int topk, weft_ep_plan *out)
{
    ncclEpHandleConfig_t copy = {0};
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    NEP_TRY(layout_of(call, group, layout, &plan.layout));
    if (config != NULL) {
        NEP_TRY(nep_read(call, "config", config, NCCL_EP_HANDLE_CONFIG_V1_SIZE, &copy, sizeof copy));
    }
    size_t alignment = copy.dispatch_output_per_expert_alignment;
    if ((alignment & (alignment - 1)) != 0 || alignment > 1024) {
        return nep_fail(ncclInvalidArgument,
                        "%s: dispatch_output_per_expert_alignment is %zu; give a power of two up to "
                        "1024",
                        call, alignment);
    }
    if (topk > group->topk_max || (topk < 1 && nep_is_ll(group))) {
        return nep_fail(ncclInvalidArgument, "%s: num_topk is %d; give 1 .. %d, the group's most", call, topk,
                        group->topk_max);
    }
    plan.topk = topk < 1 ? 0 : topk;
    if (plan.layout == WEFT_EP_EXPERT_MAJOR && alignment > 1) {
        plan.alignment = (int)alignment;
        plan.flags = WEFT_EP_ZERO_PADDING;
    }
    if (plan.layout == WEFT_EP_SLOTS_SOURCE) {
        plan.flags = WEFT_EP_ALL_WEIGHTS;
    }
    plan.sms = nep_sms_most(group);
    *out = plan;
    return ncclSuccess;
}

/* The bytes of the route, rounded up, and of the ids behind it. */
static ncclResult_t bytes_of(const struct ncclEpGroup *group, const weft_ep_plan *plan, size_t *route_bytes,
                             size_t *bytes)
{
    weft_ep_plan widest = *plan;
    widest.topk = plan->topk != 0 ? plan->topk : group->topk_max;
    NEP_TRY(nep_result_of(weft_ep_route_bytes(group->ep, &widest, route_bytes)));
    *route_bytes = (*route_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *bytes = *route_bytes + (size_t)group->config.max_dispatch_tokens_per_rank * (size_t)widest.topk * sizeof(int64_t);
    return ncclSuccess;
}

ncclResult_t ncclEpHandleMemSize(ncclEpGroup_t ep_group, ncclEpLayout_t layout, const ncclEpHandleConfig_t *config,
                                 size_t *size_out, int num_topk)
{
    static const char call[] = "ncclEpHandleMemSize";
    weft_ep_plan plan;
    size_t route_bytes = 0;
    NEP_TRY(nep_check_group(call, ep_group));
    if (size_out == NULL) {
        return nep_fail(ncclInvalidArgument, "%s: argument 'size_out' is NULL", call);
    }
    NEP_TRY(plan_of(call, ep_group, layout, config, num_topk, &plan));
    return bytes_of(ep_group, &plan, &route_bytes, size_out);
}

/* ---- their memory ---- */

static ncclResult_t take_memory(const char *call, struct ncclEpHandle *handle, const ncclEpTensor_t *given,
                                size_t bytes)
{
    const struct ncclEpGroup *group = handle->group;
    ncclEpTensor_t tensor;
    NEP_TRY(nep_read_tensor(call, "handle_mem", given, &tensor));
    if (given != NULL) {
        if (tensor.ndim != 1 || tensor.datatype != ncclUint8 || tensor.sizes[0] < bytes) {
            return nep_fail(ncclInvalidArgument,
                            "%s: handle_mem has %u dimensions, type %d and %zu elements; give one of at least %zu "
                            "ncclUint8",
                            call, tensor.ndim, (int)tensor.datatype, tensor.sizes[0], bytes);
        }
        NEP_TRY(nep_data_of(call, "handle_mem", group, &tensor, &handle->memory));
        if ((uintptr_t)handle->memory % 64 != 0) {
            return nep_fail(ncclInvalidArgument, "%s: handle_mem is not aligned to 64 bytes", call);
        }
        return ncclSuccess;
    }
    int error = 0;
    uint64_t at = 0;
    if (group->config.alloc.alloc_fn != NULL) {
        error = (int)group->config.alloc.alloc_fn(&handle->memory, bytes, group->config.alloc.context);
    } else {
        error = nep_load_cuda(call)->mem_alloc(&at, bytes);
        handle->memory = (void *)(uintptr_t)at;
    }
    if (error != 0 || handle->memory == NULL) {
        handle->memory = NULL;
        return nep_fail(ncclUnhandledCudaError, "%s: no device memory for %zu bytes: CUDA error %d", call, bytes,
                        error);
    }
    handle->is_own_memory = 1;
    return ncclSuccess;
}

/* What a handle has of its group. */
static void release(struct ncclEpHandle *handle, const ncclEpAllocConfig_t *alloc)
{
    (void)weft_ep_route_destroy(handle->route);
    if (handle->is_own_memory && alloc->free_fn != NULL) {
        (void)alloc->free_fn(handle->memory, alloc->context);
    } else if (handle->is_own_memory) {
        (void)nep_load_cuda("ncclEpHandleDestroy")->mem_free((uintptr_t)handle->memory);
    }
}

static void free_handle(struct ncclEpHandle *handle)
{
    release(handle, &handle->group->config.alloc);
    free(handle);
}

/* Take one of the group's handles from it, which stays on the list: of none; NULL: there is none, or one that has an
 * open half, *is_open. */
static struct ncclEpHandle *leave(const struct ncclEpGroup *group, int *is_open)
{
    (void)pthread_mutex_lock(&lock);
    struct ncclEpHandle *found = NULL;
    *is_open = 0;
    for (struct ncclEpHandle *at = handles; at != NULL; at = at->next) {
        found = at->group == group ? at : found;
        *is_open |= at->group == group && at->has_sent;
    }
    found = *is_open ? NULL : found;
    if (found != NULL) {
        found->group = NULL;
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

ncclResult_t nep_leave_handles(const struct ncclEpGroup *group)
{
    int is_open = 0;
    for (struct ncclEpHandle *handle = leave(group, &is_open); handle != NULL; handle = leave(group, &is_open)) {
        release(handle, &group->config.alloc);
        (void)pthread_mutex_lock(&lock);
        handle->is_left = 1;
        (void)pthread_mutex_unlock(&lock);
    }
    return is_open ? nep_fail(ncclInvalidUsage, "ncclEpGroupDestroy: ncclEpComplete of a handle is still to come")
                   : ncclSuccess;
}

void nep_agreed(struct ncclEpHandle *handle)
{
    nep_routed *routed = handle->routed;
    handle->is_agreed = 1;
    handle->agreed_at = __atomic_load_n(&handle->group->mask_changes, __ATOMIC_RELAXED);
    if (routed != NULL) {
        (void)pthread_mutex_lock(&lock);
        routed->id_type = handle->choices.id_type;
        routed->agreed_at = handle->agreed_at;
        routed->tokens[handle->choices.tokens / 8] |= (unsigned char)(1u << (handle->choices.tokens % 8));
        (void)pthread_mutex_unlock(&lock);
    }
}

/* Where a route is made that is to lie in memory of the caller's, which may hold a routing: making one clears. The
 * stream of a call that was captured is no concern of it. */
static ncclResult_t have_scratch(struct ncclEpGroup *group, size_t bytes)
{
    const nep_cuda *cuda = nep_load_cuda("ncclEpInitHandle");
    int mode = 2; /* CU_STREAM_CAPTURE_MODE_RELAXED */
    uint64_t at = 0;
    if (bytes <= group->scratch_bytes) {
        return ncclSuccess;
    }
    (void)cuda->exchange_capture_mode(&mode);
    int error = cuda->mem_alloc(&at, bytes);
    if (error == 0 && group->scratch != 0) {
        (void)cuda->mem_free(group->scratch); /* no call has it */
    }
    (void)cuda->exchange_capture_mode(&mode);
    if (error != 0) {
        return nep_fail(ncclUnhandledCudaError, "ncclEpInitHandle: no device memory for %zu bytes: CUDA error %d",
                        bytes, error);
    }
    group->scratch = at;
    group->scratch_bytes = bytes;
    return ncclSuccess;
}

/* The routings of a plan in memory of callers. */
static ncclResult_t have_routed(struct ncclEpGroup *group, const weft_ep_plan *plan, nep_routed **out)
{
    nep_routed *at = group->routed;
    while (at != NULL && (at->plan.layout != plan->layout || at->plan.topk != plan->topk ||
                          at->plan.alignment != plan->alignment || at->plan.flags != plan->flags)) {
        at = at->next;
    }
    if (at == NULL) {
        at = calloc(1, sizeof *at + (size_t)group->config.max_dispatch_tokens_per_rank / 8 + 1);
        if (at == NULL) {
            return nep_fail(ncclSystemError, "ncclEpInitHandle: no memory for a handle");
        }
        at->plan = *plan;
        at->next = group->routed;
        group->routed = at;
    }
    *out = at;
    return ncclSuccess;
}

/* HT: a route that the caller's memory is to be attached to. */
static ncclResult_t make_route_aside(struct ncclEpHandle *handle, const weft_ep_plan *plan)
{
    struct ncclEpGroup *group = handle->group;
    (void)pthread_mutex_lock(&lock);
    ncclResult_t result = have_routed(group, plan, &handle->routed);
    (void)pthread_mutex_unlock(&lock);
    (void)pthread_mutex_lock(&group->scratch_lock);
    result = result == ncclSuccess ? have_scratch(group, handle->route_bytes) : result;
    if (result == ncclSuccess) {
        void *scratch = (void *)(uintptr_t)group->scratch;
        result = nep_result_of(weft_ep_route_create(group->ep, plan, scratch, &handle->route));
    }
    (void)pthread_mutex_unlock(&group->scratch_lock);
    handle->is_attached = 0;
    return result;
}

static ncclResult_t attach(struct ncclEpHandle *handle, weft_ep_contents contents, cudaStream_t stream)
{
    if (handle->is_attached) {
        return ncclSuccess;
    }
    NEP_TRY(nep_result_of(weft_ep_route_attach(handle->route, handle->memory, handle->route_bytes, contents, stream)));
    handle->is_attached = 1;
    return ncclSuccess;
}

ncclResult_t nep_have_routing(const char *call, struct ncclEpHandle *handle, size_t tokens)
{
    if (handle->is_routed) {
        return ncclSuccess;
    }
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    (void)pthread_mutex_lock(&lock);
    const nep_routed *routed = handle->routed;
    int is = routed != NULL && tokens <= handle->group->config.max_dispatch_tokens_per_rank &&
             (routed->tokens[tokens / 8] >> (tokens % 8) & 1) != 0;
    choices.id_type = is ? routed->id_type : WEFT_EP_INT64;
    handle->agreed_at = is ? routed->agreed_at : 0;
    (void)pthread_mutex_unlock(&lock);
    if (!is) {
        return nep_fail(ncclInvalidUsage, "%s: the handle has no routing of %zu tokens; call ncclEpUpdateHandle first",
                        call, tokens);
    }
    NEP_TRY(attach(handle, WEFT_EP_CONTENTS_ROUTING, NULL));
    choices.tokens = (int)tokens;
    choices.ids = (char *)handle->memory + handle->route_bytes;
    handle->choices = choices;
    handle->is_routed = 1;
    handle->is_agreed = 1; /* as on ranks whose memory stayed where it was */
    return ncclSuccess;
}

/* Have a route for K choices. */
static ncclResult_t have_route(struct ncclEpHandle *handle, int topk)
{
    weft_ep_plan plan = handle->plan;
    plan.topk = topk;
    if (handle->route != NULL) {
        (void)weft_ep_route_destroy(handle->route);
        handle->route = NULL;
        handle->is_routed = 0;
        handle->is_agreed = 0;
    }
    if (handle->is_own_memory || nep_is_ll(handle->group)) {
        NEP_TRY(nep_result_of(weft_ep_route_create(handle->group->ep, &plan, handle->memory, &handle->route)));
        handle->is_attached = 1;
    } else {
        NEP_TRY(make_route_aside(handle, &plan));
    }
    handle->plan = plan;
    return ncclSuccess;
}

static ncclResult_t make_handle(const char *call, ncclEpHandle_t *out, struct ncclEpGroup *group,
                                const weft_ep_plan *plan, const ncclEpTensor_t *handle_mem)
{
    size_t bytes = 0;
    struct ncclEpHandle *handle = calloc(1, sizeof *handle);
    if (handle == NULL) {
        return nep_fail(ncclSystemError, "%s: no memory for a handle", call);
    }
    handle->group = group;
    handle->plan = *plan;
    handle->topk_most = plan->topk != 0 ? plan->topk : group->topk_max;
    ncclResult_t result = bytes_of(group, plan, &handle->route_bytes, &bytes);
    result = result != ncclSuccess ? result : take_memory(call, handle, handle_mem, bytes);
    if (result == ncclSuccess && plan->topk != 0) {
        result = have_route(handle, plan->topk);
    }
    if (result != ncclSuccess) {
        free_handle(handle);
        return result;
    }
    (void)pthread_mutex_lock(&lock);
    handle->next = handles;
    handles = handle;
    (void)pthread_mutex_unlock(&lock);
    *out = handle;
    return ncclSuccess;
}

ncclResult_t ncclEpInitHandle(ncclEpHandle_t *handle, ncclEpGroup_t ep_group, ncclEpLayout_t layout,
                              const ncclEpHandleConfig_t *config, int num_topk, const ncclEpTensor_t *handle_mem)
{
    static const char call[] = "ncclEpInitHandle";
    weft_ep_plan plan;
    NEP_TRY(nep_check_group(call, ep_group));
    if (handle == NULL) {
        return nep_fail(ncclInvalidArgument, "%s: argument 'handle' is NULL", call);
    }
    NEP_TRY(plan_of(call, ep_group, layout, config, num_topk, &plan));
    return make_handle(call, handle, ep_group, &plan, handle_mem);
}

/* One whose group is gone, or one whose group is there: of two threads that destroy it, or its group, one does. */
static int unlist(const struct ncclEpHandle *handle, int is_left)
{
    (void)pthread_mutex_lock(&lock);
    struct ncclEpHandle **at = &handles;
    while (*at != NULL && *at != handle) {
        at = &(*at)->next;
    }
    int is_there = *at != NULL && (is_left ? handle->is_left : handle->group != NULL);
    if (is_there) {
        *at = handle->next;
    }
    (void)pthread_mutex_unlock(&lock);
    return is_there;
}

ncclResult_t ncclEpHandleDestroy(ncclEpHandle_t handle)
{
    int is_mine = handle == NULL || unlist(handle, 1);
    if (is_mine) {
        free(handle);
        return ncclSuccess;
    }
    NEP_TRY(nep_check_handle("ncclEpHandleDestroy", handle));
    if (handle->has_sent) {
        return nep_fail(ncclInvalidUsage, "ncclEpHandleDestroy: ncclEpComplete of the handle is still to come");
    }
    is_mine = unlist(handle, 0);
    if (is_mine) {
        free_handle(handle);
    }
    return is_mine ? ncclSuccess : nep_check_handle("ncclEpHandleDestroy", handle);
}

/* ---- routings ---- */

/* HT: counters may have room for more than is counted, which stays as it was. */
static ncclResult_t check_room(const char *call, const char *name, const ncclEpTensor_t *tensor, size_t count)
{
    size_t room = tensor->magic != 0 && tensor->ndim == 1 && tensor->sizes[0] > count ? tensor->sizes[0] : count;
    return nep_check_counts(call, name, tensor, room);
}

ncclResult_t nep_read_counters(const char *call, const struct ncclEpHandle *handle, const ncclEpLayoutInfo_t *info,
                               nep_counters *out)
{
    const struct ncclEpGroup *group = handle->group;
    ncclEpLayoutInfo_t copy = {0};
    size_t local = (size_t)group->local_experts;
    *out = (nep_counters){0};
    if (info == NULL) {
        return ncclSuccess;
    }
    if (nep_is_ll(group)) {
        return nep_fail(ncclInvalidArgument, "%s: layout_info is given; in LL it comes with the dispatch", call);
    }
    NEP_TRY(nep_read(call, "layout_info", info, NCCL_EP_LAYOUT_INFO_V1_SIZE, &copy, sizeof copy));
    NEP_TRY(nep_read_tensor(call, "expert_counters", copy.expert_counters, &out->experts));
    if (handle->plan.layout == WEFT_EP_EXPERT_MAJOR) { /* in flat they are not looked at, nor are src_rank_counters */
        NEP_TRY(nep_read_tensor(call, "expert_offsets", copy.expert_offsets, &out->offsets));
    }
    NEP_TRY(nep_read_tensor(call, "recv_total_counter", copy.recv_total_counter, &out->total));
    if ((unsigned)copy.recv_topk_idx_kind > NCCL_EP_EXPERT_ID_GLOBAL) {
        return nep_fail(ncclInvalidArgument, "%s: layout_info.recv_topk_idx_kind is %d", call,
                        (int)copy.recv_topk_idx_kind);
    }
    NEP_TRY(check_room(call, "expert_counters", &out->experts, local));
    NEP_TRY(check_room(call, "expert_offsets", &out->offsets, local));
    return check_room(call, "recv_total_counter", &out->total, 1);
}

static ncclResult_t check_routing(const char *call, const struct ncclEpHandle *handle, const ncclEpTensor_t *idx)
{
    const struct ncclEpGroup *group = handle->group;
    if (idx->magic == 0 || idx->ndim != 2) {
        return nep_fail(ncclInvalidArgument, "%s: topk_idx is %s", call,
                        idx->magic == 0 ? "NULL" : "not of two dimensions");
    }
    if (idx->datatype != ncclInt32 && idx->datatype != ncclInt64) {
        return nep_fail(ncclInvalidArgument, "%s: topk_idx has type %d; give ncclInt32 or ncclInt64", call,
                        (int)idx->datatype);
    }
    if (idx->sizes[0] > group->config.max_dispatch_tokens_per_rank) {
        return nep_fail(ncclInvalidArgument, "%s: topk_idx has %zu tokens; the group's most is %u", call, idx->sizes[0],
                        group->config.max_dispatch_tokens_per_rank);
    }
    if (idx->sizes[1] == 0 || idx->sizes[1] > (size_t)handle->topk_most ||
        (nep_is_ll(group) && idx->sizes[1] != (size_t)handle->plan.topk)) {
        return nep_fail(ncclInvalidArgument, "%s: topk_idx has %zu choices a token; the handle has %s%d", call,
                        idx->sizes[1], nep_is_ll(group) ? "" : "at most ", handle->topk_most);
    }
    return ncclSuccess;
}

/* An int64 total beside int32 counters of experts, as HT flat has them: its low half is counted, the other cleared. No
 * count is negative. */
static ncclResult_t widen_total(const char *call, const struct ncclEpGroup *group, ncclEpTensor_t *total,
                                cudaStream_t stream)
{
    void *at = NULL;
    NEP_TRY(nep_data_of(call, "recv_total_counter", group, total, &at));
    int error = nep_load_cuda(call)->memset_async((uintptr_t)at, 0, sizeof(int64_t), stream);
    if (error != 0) {
        return nep_fail(ncclUnhandledCudaError, "%s: recv_total_counter cannot be written on the stream: CUDA error %d",
                        call, error);
    }
    total->datatype = ncclInt32;
    return ncclSuccess;
}

/* Tensor `from`, if there is one, into one of the arrays of counts. */
static ncclResult_t array_of(const char *call, const struct ncclEpGroup *group, const ncclEpTensor_t *from,
                             weft_ep_count_arrays *arrays, void **array)
{
    weft_ep_id_type type = from->datatype == ncclInt64 ? WEFT_EP_INT64 : WEFT_EP_INT32;
    if (from->magic == 0) {
        return ncclSuccess;
    }
    if (arrays->on_stream && arrays->type != type) {
        return nep_fail(ncclInvalidArgument,
                        "%s: layout_info has counters of two types; give all ncclInt32, or all "
                        "ncclInt64",
                        call);
    }
    arrays->on_stream = 1;
    arrays->type = type;
    return nep_data_of(call, "counters", group, from, array);
}

ncclResult_t nep_count_to(const char *call, struct ncclEpHandle *handle, const nep_counters *to)
{
    const struct ncclEpGroup *group = handle->group;
    weft_ep_count_arrays arrays = WEFT_EP_COUNT_ARRAYS_INIT;
    int is_ll = nep_is_ll(group);
    arrays.with_dropped = 1;
    NEP_TRY(
        array_of(call, group, &to->experts, &arrays, is_ll ? &arrays.rows_of_expert : &arrays.rows_of_expert_aligned));
    NEP_TRY(array_of(call, group, &to->offsets, &arrays, &arrays.offset_of_expert));
    NEP_TRY(array_of(call, group, &to->total, &arrays, &arrays.rows));
    NEP_TRY(array_of(call, group, &to->sources, &arrays, &arrays.rows_of_source));
    return nep_result_of(weft_ep_route_counts_to(handle->route, arrays.on_stream ? &arrays : NULL));
}

ncclResult_t nep_count_routing_to(const char *call, struct ncclEpHandle *handle, const nep_counters *to,
                                  cudaStream_t stream)
{
    nep_counters counted = *to;
    if (to->total.datatype == ncclInt64 && to->experts.magic != 0 && to->experts.datatype == ncclInt32) {
        NEP_TRY(widen_total(call, handle->group, &counted.total, stream));
    }
    return nep_count_to(call, handle, &counted);
}

int nep_asks_counts(const nep_counters *of)
{
    return of->experts.magic != 0 || of->offsets.magic != 0 || of->total.magic != 0 || of->sources.magic != 0;
}

/* HT: the ranks agree on the handle's choices, and the counters are written. */
static ncclResult_t agree(const char *call, struct ncclEpHandle *handle, const nep_counters *to, cudaStream_t stream)
{
    const nep_counters nowhere = {0};
    struct ncclEpGroup *group = handle->group;
    NEP_TRY(nep_count_routing_to(call, handle, to, stream));
    ncclResult_t result = nep_group_result(group, weft_ep_route_update(handle->route, &handle->choices, stream));
    handle->is_routed = result == ncclSuccess;
    if (result == ncclSuccess) {
        nep_agreed(handle);
    }
    NEP_TRY(nep_count_to(call, handle, &nowhere)); /* the tensors are this call's */
    return result;
}

static ncclResult_t route(const char *call, struct ncclEpHandle *handle, const ncclEpTensor_t *idx,
                          const nep_counters *to, cudaStream_t stream)
{
    struct ncclEpGroup *group = handle->group;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    void *ids = NULL;
    size_t bytes = idx->sizes[0] * idx->sizes[1] * (idx->datatype == ncclInt64 ? 8 : 4);
    NEP_TRY(nep_data_of(call, "topk_idx", group, idx, &ids));
    if (handle->route == NULL || handle->plan.topk != (int)idx->sizes[1]) {
        if (handle->route_bytes == 0) {
            return nep_fail(ncclInternalError, "%s: the handle has no memory", call);
        }
        NEP_TRY(have_route(handle, (int)idx->sizes[1]));
    }
    NEP_TRY(attach(handle, WEFT_EP_CONTENTS_NONE, stream));
    choices.tokens = (int)idx->sizes[0];
    choices.id_type = idx->datatype == ncclInt64 ? WEFT_EP_INT64 : WEFT_EP_INT32;
    choices.ids = (char *)handle->memory + handle->route_bytes;
    if (bytes != 0 && nep_load_cuda(call)->memcpy_async((uintptr_t)choices.ids, (uintptr_t)ids, bytes, stream) != 0) {
        return nep_fail(ncclUnhandledCudaError, "%s: topk_idx cannot be copied on the stream", call);
    }
    handle->choices = choices;
    handle->is_agreed = 0;
    if (!nep_is_ll(group) && nep_asks_counts(to)) {
        return agree(call, handle, to, stream);
    }
    if (!nep_is_ll(group)) {
        NEP_TRY(nep_group_result(group, weft_ep_route_choose(handle->route, &choices)));
    }
    handle->is_routed = 1; /* agreed on by the dispatch, on its way: in LL by each */
    return ncclSuccess;
}

ncclResult_t ncclEpUpdateHandle(ncclEpHandle_t handle, const ncclEpTensor_t *topk_idx,
                                const ncclEpLayoutInfo_t *layout_info, cudaStream_t stream)
{
    static const char call[] = "ncclEpUpdateHandle";
    ncclEpTensor_t idx;
    nep_counters to;
    NEP_TRY(nep_check_handle(call, handle));
    if (handle->has_sent) {
        return nep_fail(ncclInvalidUsage, "%s: ncclEpComplete of the handle is still to come", call);
    }
    NEP_TRY(nep_read_tensor(call, "topk_idx", topk_idx, &idx));
    NEP_TRY(check_routing(call, handle, &idx));
    NEP_TRY(nep_read_counters(call, handle, layout_info, &to));
    return route(call, handle, &idx, &to, stream);
}

ncclResult_t ncclEpCreateHandle(ncclEpHandle_t *handle, ncclEpGroup_t ep_group, ncclEpLayout_t layout,
                                const ncclEpTensor_t *topk_idx, const ncclEpLayoutInfo_t *layout_info,
                                const ncclEpHandleConfig_t *config, cudaStream_t stream)
{
    static const char call[] = "ncclEpCreateHandle";
    ncclEpTensor_t idx;
    ncclEpHandle_t made = NULL;
    NEP_TRY(nep_check_group(call, ep_group));
    if (handle == NULL) {
        return nep_fail(ncclInvalidArgument, "%s: argument 'handle' is NULL", call);
    }
    NEP_TRY(nep_read_tensor(call, "topk_idx", topk_idx, &idx));
    if (idx.magic == 0 || idx.ndim != 2 || idx.sizes[1] > INT32_MAX) {
        return nep_fail(ncclInvalidArgument, "%s: topk_idx is %s", call,
                        idx.magic == 0 ? "NULL" : "not of two dimensions");
    }
    NEP_TRY(ncclEpInitHandle(&made, ep_group, layout, config, (int)idx.sizes[1], NULL));
    ncclResult_t result = ncclEpUpdateHandle(made, topk_idx, layout_info, stream);
    if (result != ncclSuccess) {
        (void)ncclEpHandleDestroy(made);
        return result;
    }
    *handle = made;
    return ncclSuccess;
}

/* faces/nccl_ep/group.c: groups: a world and a weft_ep each. */
#include <pthread.h>
#include <stdlib.h>

#include "common/milliseconds.h"
#include "faces/nccl_ep/face.h"

/* Groups that live, so that a call on one that was destroyed is an error and not a crash. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ncclEpGroup *groups;

ncclResult_t ncclEpGetVersion(int *version)
{
    if (version == NULL) {
        return nep_fail(ncclInvalidArgument, "ncclEpGetVersion: argument 'version' is NULL");
    }
    *version = NCCL_EP_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t nep_check_group(const char *call, const struct ncclEpGroup *group)
{
    (void)pthread_mutex_lock(&lock);
    const struct ncclEpGroup *at = groups;
    while (at != NULL && at != group) {
        at = at->next;
    }
    void *context = at != NULL ? at->context : NULL;
    (void)pthread_mutex_unlock(&lock);
    if (at == NULL) {
        return nep_fail(ncclInvalidArgument, "%s: the group is %s", call,
                        group == NULL ? "NULL" : "none, or was destroyed");
    }
    nep_have_gpu(call, context);
    return ncclSuccess;
}

struct ncclEpGroup *nep_only_group(void)
{
    (void)pthread_mutex_lock(&lock);
    struct ncclEpGroup *only = groups != NULL && groups->next == NULL ? groups : NULL;
    (void)pthread_mutex_unlock(&lock);
    return only;
}

void nep_have_gpu(const char *call, void *context)
{
    const nep_cuda *cuda = nep_load_cuda(call);
    void *current = NULL;
    if (cuda->ctx_get_current(&current) == 0 && current == NULL) {
        (void)cuda->ctx_set_current(context);
    }
}

int nep_is_ll(const struct ncclEpGroup *group)
{
    return group->config.algorithm == NCCL_EP_ALGO_LOW_LATENCY;
}

ncclResult_t nep_group_result(struct ncclEpGroup *group, weft_status status)
{
    if (status == WEFT_ERR_TIMEOUT) {
        __atomic_store_n(&group->has_timed_out, 1, __ATOMIC_RELEASE);
    }
    return nep_result_of(status);
}

/* ---- creation ---- */

#define CALL "ncclEpCreateGroup"
#define CAPABILITY_MAJOR 75 /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */

static ncclResult_t check_config(const ncclEpGroupConfig_t *config, int ranks)
{
    if (config->algorithm != NCCL_EP_ALGO_LOW_LATENCY && config->algorithm != NCCL_EP_ALGO_HIGH_THROUGHPUT) {
        return nep_fail(ncclInvalidArgument, CALL ": config.algorithm is %d", (int)config->algorithm);
    }
    if (config->num_experts == 0 || config->num_experts > INT32_MAX || config->num_experts % (unsigned)ranks != 0) {
        return nep_fail(ncclInvalidArgument, CALL ": config.num_experts is %u; give a multiple of the %d ranks",
                        config->num_experts, ranks);
    }
    if (config->max_dispatch_tokens_per_rank == 0 ||
        config->max_dispatch_tokens_per_rank > (unsigned)(INT32_MAX / ranks)) {
        return nep_fail(ncclInvalidArgument, CALL ": config.max_dispatch_tokens_per_rank is %u",
                        config->max_dispatch_tokens_per_rank);
    }
    if (config->max_token_bytes == 0 || config->max_token_bytes > INT32_MAX ||
        (config->max_token_bytes % 16 != 0 && config->algorithm == NCCL_EP_ALGO_HIGH_THROUGHPUT)) {
        return nep_fail(ncclInvalidArgument, CALL ": config.max_token_bytes is %u; give a multiple of 16",
                        config->max_token_bytes);
    }
    if (config->max_recv_tokens_per_rank != NCCL_EP_AUTO && config->algorithm == NCCL_EP_ALGO_HIGH_THROUGHPUT &&
        config->max_recv_tokens_per_rank < config->max_dispatch_tokens_per_rank) {
        return nep_fail(ncclInvalidArgument,
                        CALL ": config.max_recv_tokens_per_rank is %u, less than max_dispatch_tokens_per_rank %u",
                        config->max_recv_tokens_per_rank, config->max_dispatch_tokens_per_rank);
    }
    if ((unsigned)config->zero_copy > NCCL_EP_ZERO_COPY_ON ||
        (unsigned)config->overflow_policy > NCCL_EP_OVERFLOW_DROP) {
        return nep_fail(ncclInvalidArgument, CALL ": config.zero_copy is %d, config.overflow_policy %d",
                        (int)config->zero_copy, (int)config->overflow_policy);
    }
    if (config->overflow_policy == NCCL_EP_OVERFLOW_DROP && config->max_recv_tokens_per_rank == NCCL_EP_AUTO &&
        config->algorithm == NCCL_EP_ALGO_HIGH_THROUGHPUT) {
        return nep_fail(ncclInvalidUsage, CALL ": NCCL_EP_OVERFLOW_DROP needs config.max_recv_tokens_per_rank");
    }
    if (config->num_topk > INT32_MAX || config->max_num_sms > INT32_MAX || config->dispatch_num_sms > INT32_MAX ||
        config->combine_num_sms > INT32_MAX) {
        return nep_fail(ncclInvalidArgument,
                        CALL ": config.num_topk is %u, config.max_num_sms %u, config.dispatch_num_sms %u, "
                             "config.combine_num_sms %u",
                        config->num_topk, config->max_num_sms, config->dispatch_num_sms, config->combine_num_sms);
    }
    if ((config->alloc.alloc_fn == NULL) != (config->alloc.free_fn == NULL)) {
        return nep_fail(ncclInvalidUsage, CALL ": config.alloc has one function; give both or neither");
    }
    return ncclSuccess;
}

int nep_allgather(void *meeting, const void *mine, void *all, size_t bytes)
{
    const nep_meeting *at = meeting;
    uint64_t send = 0;
    if (bytes == 0) {
        return 0;
    }
    if (at->cuda->mem_alloc(&send, bytes * (size_t)(at->ranks + 1)) != 0) {
        return 1;
    }
    uint64_t received = send + bytes;
    int failed = at->cuda->memcpy_async(send, (uintptr_t)mine, bytes, at->stream) != 0 ||
                 at->nccl->all_gather((const void *)(uintptr_t)send, (void *)(uintptr_t)received, bytes, ncclUint8,
                                      at->comm, at->stream) != ncclSuccess ||
                 at->cuda->memcpy_async((uintptr_t)all, received, bytes * (size_t)at->ranks, at->stream) != 0;
    failed |= at->cuda->stream_synchronize(at->stream) != 0;
    (void)at->cuda->mem_free(send);
    return failed;
}

/* What NCCL_EP_TIMEOUT_MS says, 0 where it is not set. */
static ncclResult_t read_timeout(uint64_t *ns)
{
    const char *text = getenv("NCCL_EP_TIMEOUT_MS");
    *ns = 0;
    if (text != NULL && text[0] != '\0' && !wefti_milliseconds_parse(text, ns)) {
        return nep_fail(ncclInvalidArgument,
                        CALL ": NCCL_EP_TIMEOUT_MS is \"%.100s\"; give a whole number of milliseconds", text);
    }
    return ncclSuccess;
}

static uint64_t timeout_of(const ncclEpGroupConfig_t *config, uint64_t told_ns)
{
    return told_ns != 0 ? told_ns : config->timeout_ns != 0 ? config->timeout_ns : TIMEOUT_DEFAULT_NS;
}

static weft_status make_world(struct ncclEpGroup *group, nep_meeting *at, uint64_t told_ns)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    const weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    weft_callback_ops ops = {.size = sizeof ops, .context = at, .allgather = nep_allgather};
    config.bootstrap = WEFT_BOOTSTRAP_CALLBACK;
    config.callback = &ops;
    config.pe = group->rank;
    config.pes = group->ranks;
    config.device = &device;
    config.deadline_ns = timeout_of(&group->config, told_ns);
    return weft_world_create(&config, &group->world);
}

static int most_rows(const struct ncclEpGroup *group)
{
    const ncclEpGroupConfig_t *config = &group->config;
    if (nep_is_ll(group)) {
        return 1; /* rows of slots have other memory */
    }
    if (config->max_recv_tokens_per_rank != NCCL_EP_AUTO) {
        return config->max_recv_tokens_per_rank < INT32_MAX ? (int)config->max_recv_tokens_per_rank : INT32_MAX;
    }
    int copies = group->topk_max < group->local_experts ? group->topk_max : group->local_experts;
    int64_t rows = (int64_t)group->ranks * config->max_dispatch_tokens_per_rank * copies;
    rows += (int64_t)group->local_experts * 1024; /* padding */
    return rows < INT32_MAX ? (int)rows : INT32_MAX;
}

/* max_token_bytes holds rows and their scales, of which NVFP4 has the most: a byte for 8 of the row. */
static int scale_bytes_of(size_t max_token_bytes)
{
    const size_t most = 4092; /* of weft */
    const size_t bytes = (max_token_bytes / 9 + 3) / 4 * 4;
    return (int)(bytes < most ? bytes : most);
}

static weft_status make_ep(struct ncclEpGroup *group)
{
    const ncclEpGroupConfig_t *config = &group->config;
    weft_ep_config ep = WEFT_EP_CONFIG_INIT;
    ep.experts = (int)config->num_experts;
    ep.tokens_max = (int)config->max_dispatch_tokens_per_rank;
    ep.topk_max = group->topk_max;
    ep.row_bytes_max = (config->max_token_bytes + 15) / 16 * 16; /* an upper bound, in LL of any number */
    ep.rows_max = (size_t)most_rows(group);
    ep.slot_tokens_max = nep_is_ll(group) ? ep.tokens_max : 0;
    ep.overflow =
        config->overflow_policy == NCCL_EP_OVERFLOW_DROP ? WEFT_EP_OVERFLOW_DROP_ROWS : WEFT_EP_OVERFLOW_ERROR;
    ep.scale_bytes_max = scale_bytes_of(config->max_token_bytes);
    ep.on_device = 1;
    ep.flags = nep_is_ll(group) && config->enable_mask ? WEFT_EP_MASK_ON_TIMEOUT : 0;
    weft_status status = weft_ep_create(weft_team_world(group->world), &ep, &group->ep);
    if (status == WEFT_ERR_UNSUPPORTED && ep.flags != 0) { /* the same on all ranks: then only the caller masks */
        ep.flags = 0;
        status = weft_ep_create(weft_team_world(group->world), &ep, &group->ep);
    }
    status = status == WEFT_OK ? weft_ep_limits(group->ep, &ep) : status;
    group->scale_bytes_max = ep.scale_bytes_max;
    return status;
}

static void free_group(struct ncclEpGroup *group)
{
    if (group != NULL) {
        (void)weft_world_destroy(group->world);
        for (nep_routed *at = group->routed, *next; at != NULL; at = next) {
            next = at->next;
            free(at);
        }
        if (group->scratch != 0) {
            (void)nep_load_cuda("ncclEpGroupDestroy")->mem_free(group->scratch);
        }
        (void)pthread_mutex_destroy(&group->mask_lock);
        (void)pthread_mutex_destroy(&group->scratch_lock);
        free(group->mask);
        free(group->known);
        free(group);
    }
}

/* The most choices a token. The worst case of rows, which is memory of the group, grows with it. */
static unsigned topk_of(const ncclEpGroupConfig_t *config)
{
    int is_bounded = config->algorithm == NCCL_EP_ALGO_LOW_LATENCY || config->max_recv_tokens_per_rank != NCCL_EP_AUTO;
    if (config->num_topk != 0) {
        return config->num_topk;
    }
    return is_bounded ? TOPK_DEFAULT : TOPK_DEFAULT_WORST;
}

unsigned nep_sms_of_dispatch(const struct ncclEpGroup *group)
{
    const ncclEpGroupConfig_t *config = &group->config;
    return config->dispatch_num_sms != NCCL_EP_AUTO ? config->dispatch_num_sms : config->max_num_sms;
}

unsigned nep_sms_of_combine(const struct ncclEpGroup *group)
{
    const ncclEpGroupConfig_t *config = &group->config;
    return config->combine_num_sms != NCCL_EP_AUTO ? config->combine_num_sms : config->max_num_sms;
}

int nep_sms_most(const struct ncclEpGroup *group)
{
    const unsigned dispatch = nep_sms_of_dispatch(group);
    const unsigned combine = nep_sms_of_combine(group);
    return dispatch == 0 || combine == 0 ? 0 : (int)(dispatch > combine ? dispatch : combine);
}

ncclResult_t nep_take_gpu(const char *call, const nep_cuda *cuda, const nep_nccl *nccl, ncclComm_t comm, int *device)
{
    int told = -1;
    void *context = NULL;
    int has_one = cuda->ctx_get_device(device) == 0;
    int is_told = nccl->comm_device != NULL && nccl->comm_device(comm, &told) == ncclSuccess;
    if (!is_told && !has_one) {
        return nep_fail(ncclUnhandledCudaError, "%s: no device is current in this thread; call cudaSetDevice first",
                        call);
    }
    if (is_told && (!has_one || *device != told) &&
        (cuda->primary_ctx_retain(&context, told) != 0 || cuda->ctx_set_current(context) != 0)) {
        return nep_fail(ncclUnhandledCudaError, "%s: device %d, the communicator's, cannot be made current", call,
                        told);
    }
    *device = is_told ? told : *device;
    return ncclSuccess;
}

static ncclResult_t take_gpu(struct ncclEpGroup *group, const nep_cuda *cuda, const nep_nccl *nccl)
{
    int device = 0;
    NEP_TRY(nep_take_gpu(CALL, cuda, nccl, group->comm, &device));
    if (cuda->ctx_get_current(&group->context) != 0 ||
        cuda->device_get_attribute(&group->capability_major, CAPABILITY_MAJOR, device) != 0) {
        return nep_fail(ncclUnhandledCudaError, CALL ": device %d does not tell its compute capability", device);
    }
    return ncclSuccess;
}

static ncclResult_t fill_group(struct ncclEpGroup *group, const nep_cuda *cuda, const nep_nccl *nccl)
{
    nep_meeting at = {.cuda = cuda, .nccl = nccl, .comm = group->comm, .ranks = group->ranks};
    unsigned experts = group->config.num_experts;
    unsigned topk = topk_of(&group->config);
    group->topk_max = (int)(group->config.num_topk != 0 || topk < experts ? topk : experts);
    group->local_experts = (int)experts / group->ranks;
    uint64_t told_ns;
    ncclResult_t result = read_timeout(&told_ns);
    if (result != ncclSuccess) {
        return result;
    }
    NEP_TRY(take_gpu(group, cuda, nccl));
    if (cuda->stream_create(&at.stream, 1, 0) != 0) { /* 1: CU_STREAM_NON_BLOCKING */
        return nep_fail(ncclUnhandledCudaError, CALL ": no stream can be made on the group's GPU");
    }
    weft_status status = make_world(group, &at, told_ns);
    status = status == WEFT_OK ? nep_windows_open(group, &at) : status;
    (void)cuda->stream_destroy(at.stream);
    status = status == WEFT_OK && group->config.enable_mask ? nep_clean_open(group) : status;
    status = status == WEFT_OK ? make_ep(group) : status;
    return nep_result_of(status);
}

ncclResult_t ncclEpCreateGroup(ncclEpGroup_t *ep_group, ncclComm_t comm, const ncclEpGroupConfig_t *config)
{
    ncclEpGroupConfig_t copy;
    int ranks = 0;
    int rank = 0;
    if (ep_group == NULL || comm == NULL) {
        return nep_fail(ncclInvalidArgument, CALL ": argument '%s' is NULL", ep_group == NULL ? "ep_group" : "comm");
    }
    NEP_TRY(nep_read(CALL, "config", config, NCCL_EP_GROUP_CONFIG_V1_SIZE, &copy, sizeof copy));
    const nep_cuda *cuda = nep_load_cuda(CALL);
    const nep_nccl *nccl = cuda != NULL ? nep_load_nccl(CALL) : NULL;
    if (nccl == NULL) {
        return ncclSystemError;
    }
    if (nccl->comm_count(comm, &ranks) != ncclSuccess || nccl->comm_rank(comm, &rank) != ncclSuccess || ranks < 1) {
        return nep_fail(ncclInvalidArgument, CALL ": NCCL does not know the communicator");
    }
    NEP_TRY(check_config(&copy, ranks));
    struct ncclEpGroup *group = calloc(1, sizeof *group);
    int *mask = calloc((size_t)ranks, sizeof *mask);
    uint64_t *known = calloc(((size_t)ranks + 63) / 64, sizeof *known);
    if (group == NULL || mask == NULL || known == NULL) {
        free(group);
        free(mask);
        free(known);
        return nep_fail(ncclSystemError, CALL ": no memory for a group");
    }
    (void)pthread_mutex_init(&group->mask_lock, NULL);
    (void)pthread_mutex_init(&group->scratch_lock, NULL);
    group->mask = mask;
    group->known = known;
    group->comm = comm;
    group->config = copy;
    group->rank = rank;
    group->ranks = ranks;
    ncclResult_t result = fill_group(group, cuda, nccl);
    if (result != ncclSuccess) {
        free_group(group);
        return result;
    }
    (void)pthread_mutex_lock(&lock);
    group->next = groups;
    groups = group;
    (void)pthread_mutex_unlock(&lock);
    *ep_group = group;
    return ncclSuccess;
}

/* Take a group out of the list; if two threads destroy it, one succeeds. */
static ncclResult_t unlist(const struct ncclEpGroup *group)
{
    (void)pthread_mutex_lock(&lock);
    struct ncclEpGroup **at = &groups;
    while (*at != NULL && *at != group) {
        at = &(*at)->next;
    }
    int is_there = *at != NULL;
    if (is_there) {
        *at = group->next;
    }
    (void)pthread_mutex_unlock(&lock);
    return is_there ? ncclSuccess : nep_check_group("ncclEpGroupDestroy", group);
}

/* Calls that run have memory of the group's, which ends without waiting for them. */
static void wait_for_gpu(const struct ncclEpGroup *group)
{
    const nep_cuda *cuda = nep_load_cuda("ncclEpGroupDestroy");
    void *current = NULL;
    (void)cuda->ctx_get_current(&current);
    (void)cuda->ctx_set_current(group->context);
    (void)cuda->ctx_synchronize();
    (void)cuda->ctx_set_current(current);
}

ncclResult_t ncclEpGroupDestroy(ncclEpGroup_t ep_group)
{
    if (ep_group == NULL) {
        return ncclSuccess;
    }
    NEP_TRY(nep_check_group("ncclEpGroupDestroy", ep_group));
    wait_for_gpu(ep_group);
    NEP_TRY(nep_leave_handles(ep_group));
    NEP_TRY(unlist(ep_group));
    ncclResult_t result = nep_result_of(weft_ep_destroy(ep_group->ep));
    free_group(ep_group);
    return result;
}

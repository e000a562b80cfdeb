/* faces/nvte/groups.c: groups of each device, by number, and the plans of their layers. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "faces/nvte/face.h"

#define DEVICES 64
#define CONFIG_MIN (offsetof(NVTEEpGroupConfig, zero_copy) + sizeof(int))
#define LAYER_MIN (offsetof(NVTEEpLayerConfig, dispatch_output_per_expert_alignment) + sizeof(size_t))

/* The groups of one device. Numbers are given in turn, so that the memory of a layer, which names its group, names no
 * other one soon after that group has ended. */
typedef struct device_groups {
    pthread_mutex_t lock;
    weft_nvte_group *of_number[NVTE_NUMBERS];
    weft_nvte_group *standard; /* nvte_ep_initialize's */
    int last; /* number given */
} device_groups;

static device_groups devices[DEVICES] = {[0 ... DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};
static _Thread_local weft_nvte_group *selected; /* may be gone */

/* The device that has all groups of the process; -1: none or several have some. */
static int only_device(void)
{
    int only = -1;
    int devices_with = 0;
    for (int device = 0; device < DEVICES; device++) {
        int has_some = 0;
        (void)pthread_mutex_lock(&devices[device].lock);
        for (int number = 1; number < NVTE_NUMBERS; number++) {
            has_some |= devices[device].of_number[number] != NULL;
        }
        (void)pthread_mutex_unlock(&devices[device].lock);
        only = has_some ? device : only;
        devices_with += has_some;
    }
    return devices_with == 1 ? only : -1;
}

static weft_status check_device(const char *call, int device)
{
    return device >= 0 && device < DEVICES
               ? WEFT_OK
               : nvte_fail(WEFT_ERR_STATE, "%s: no device is current in this thread; call cudaSetDevice first", call);
}

/* Of a thread that has none: the one that the groups are of. */
static weft_status current_device(const char *call, int *device)
{
    const nep_cuda *cuda = nep_load_cuda(call);
    if (cuda == NULL) {
        return WEFT_ERR_SYSTEM;
    }
    if (cuda->ctx_get_device(device) != 0) {
        *device = only_device();
    }
    return check_device(call, *device);
}

/* ---- who has the names ---- */

/* TransformerEngine's library has the same names. Whoever comes first in the order of symbols has all callers. */
static weft_status check_names(const char *call)
{
    static const char *const names[] = {"nvte_ep_initialize",   "nvte_ep_shutdown",    "nvte_ep_handle_mem_size",
                                        "nvte_ep_prepare",      "nvte_ep_dispatch",    "nvte_ep_combine",
                                        "nvte_ep_dispatch_bwd", "nvte_ep_combine_bwd", "nvte_ep_prepare_and_dispatch"};
    Dl_info self;
    Dl_info theirs;
    if (dladdr((void *)(uintptr_t)nvte_ep_initialize, &self) == 0) {
        return WEFT_OK; /* a static program: there is nothing to mix */
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *symbol = dlsym(RTLD_DEFAULT, names[i]);
        if (symbol != NULL && dladdr(symbol, &theirs) != 0 && theirs.dli_fbase != self.dli_fbase) {
            return nvte_fail(WEFT_ERR_STATE,
                             "%s: %s of %s comes before that of libweft_nvte_ep, so that calls of both would be mixed; "
                             "link -lweft_nvte_ep before -ltransformer_engine, or preload libweft_nvte_ep.so",
                             call, names[i], theirs.dli_fname);
        }
    }
    return WEFT_OK;
}

/* ---- configs ---- */

static weft_status read_struct(const char *call, const char *name, const void *theirs, size_t least, void *copy,
                               size_t copy_bytes)
{
    size_t size = 0;
    if (theirs == NULL) {
        return nvte_fail(WEFT_ERR_ARGUMENT, "%s: argument '%s' is NULL", call, name);
    }
    memcpy(&size, theirs, sizeof size);
    size = size == 0 ? least : size;
    if (size < least) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: %s.struct_size is %zu; its first version has %zu bytes, start from its _INIT", call, name,
                         size, least);
    }
    memset(copy, 0, copy_bytes);
    memcpy(copy, theirs, size < copy_bytes ? size : copy_bytes);
    return WEFT_OK;
}

weft_status nvte_read_layer(const char *call, const NVTEEpLayerConfig *theirs, NVTEEpLayerConfig *copy)
{
    WEFT_TRY(read_struct(call, "layer_cfg", theirs, LAYER_MIN, copy, sizeof *copy));
    size_t alignment = copy->dispatch_output_per_expert_alignment;
    if (copy->top_k < 1 || copy->top_k > NVTE_TOPK_MAX) {
        return nvte_fail(WEFT_ERR_ARGUMENT, "%s: layer_cfg.top_k is %d; give 1 .. %d", call, copy->top_k,
                         NVTE_TOPK_MAX);
    }
    if ((alignment & (alignment - 1)) != 0 || alignment > (size_t)1 << (NVTE_ALIGNMENTS - 1)) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: layer_cfg.dispatch_output_per_expert_alignment is %zu; give a power of two up to %d",
                         call, alignment, 1 << (NVTE_ALIGNMENTS - 1));
    }
    return WEFT_OK;
}

static weft_status read_config(const char *call, const NVTEEpGroupConfig *theirs, ncclEpGroupConfig_t *copy,
                               NVTEEpGroupConfig *config)
{
    WEFT_TRY(read_struct(call, "group_config", theirs, CONFIG_MIN, config, sizeof *config));
    int is_fp8 = config->max_token_dtype == kNVTEFloat8E4M3 || config->max_token_dtype == kNVTEFloat8E5M2;
    size_t bytes = is_fp8 ? 1 : nvte_element_bytes(config->max_token_dtype);
    if (config->ep_size < 1 || config->num_experts < 1 || config->max_tokens_per_rank < 1 ||
        config->max_recv_tokens_per_rank < 0 || config->num_comm_sms < 0 || config->num_topk < 0 ||
        config->num_topk > NVTE_TOPK_MAX) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: group_config has ep_size %d, num_experts %d, max_tokens_per_rank %d, "
                         "max_recv_tokens_per_rank %d, num_comm_sms %d and num_topk %d; the first three are at least "
                         "1, the others not negative, num_topk at most %d",
                         call, config->ep_size, config->num_experts, config->max_tokens_per_rank,
                         config->max_recv_tokens_per_rank, config->num_comm_sms, config->num_topk, NVTE_TOPK_MAX);
    }
    if (bytes == 0) {
        return nvte_fail(
            WEFT_ERR_UNSUPPORTED,
            "%s: group_config.max_token_dtype is %d; give kNVTEBFloat16, kNVTEFloat16, kNVTEFloat32 or fp8", call,
            (int)config->max_token_dtype);
    }
    if (config->hidden_dim < 1 || (size_t)config->hidden_dim * bytes % 16 != 0) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: group_config.hidden_dim is %d elements of %zu bytes; give a multiple of 16 bytes", call,
                         config->hidden_dim, bytes);
    }
    *copy = NCCL_EP_GROUP_CONFIG_INIT;
    copy->algorithm = NCCL_EP_ALGO_HIGH_THROUGHPUT;
    copy->num_experts = (unsigned)config->num_experts;
    copy->max_dispatch_tokens_per_rank = (unsigned)config->max_tokens_per_rank;
    copy->max_recv_tokens_per_rank = (unsigned)config->max_recv_tokens_per_rank;
    copy->max_token_bytes = (unsigned)((size_t)config->hidden_dim * bytes);
    copy->max_num_sms = (unsigned)config->num_comm_sms;
    copy->num_topk = (unsigned)config->num_topk;
    copy->overflow_policy = config->drop_on_overflow ? NCCL_EP_OVERFLOW_DROP : NCCL_EP_OVERFLOW_TRAP;
    copy->zero_copy = config->zero_copy ? NCCL_EP_ZERO_COPY_AUTO : NCCL_EP_ZERO_COPY_OFF;
    return WEFT_OK;
}

/* ---- creation and end ---- */

/* Also the device of its groups, which becomes current. */
static weft_status check_comm(const char *call, void *ep_comm, int ep_size, int *device)
{
    const nep_cuda *cuda = nep_load_cuda(call);
    const nep_nccl *nccl = cuda != NULL ? nep_load_nccl(call) : NULL;
    int ranks = 0;
    if (nccl == NULL) {
        return WEFT_ERR_SYSTEM;
    }
    if (ep_comm == NULL || nccl->comm_count(ep_comm, &ranks) != ncclSuccess) {
        return nvte_fail(WEFT_ERR_ARGUMENT, "%s: %s", call,
                         ep_comm == NULL ? "argument 'ep_comm' is NULL" : "NCCL does not know the communicator");
    }
    if (ranks != ep_size) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: group_config.ep_size is %d and the communicator has %d ranks; give that of the group",
                         call, ep_size, ranks);
    }
    return nep_take_gpu(call, cuda, nccl, ep_comm, device) == ncclSuccess ? check_device(call, *device)
                                                                          : WEFT_ERR_STATE;
}

/* The next free number: ranks that make the same groups take the same. */
static int take_number(device_groups *of)
{
    for (int i = 0; i < NVTE_NUMBERS - 1; i++) {
        int number = (of->last + i) % (NVTE_NUMBERS - 1) + 1;
        if (of->of_number[number] == NULL) {
            return number;
        }
    }
    return 0;
}

/* Give a finished group its number; NULL: only check whether another one can have one. */
static weft_status list_group(const char *call, int device, weft_nvte_group *group, int is_default)
{
    device_groups *of = &devices[device];
    (void)pthread_mutex_lock(&of->lock);
    int number = take_number(of);
    int is_twice = is_default && of->standard != NULL;
    if (group != NULL && number != 0 && !is_twice) {
        of->last = number;
        group->number = number;
        of->of_number[number] = group;
        of->standard = is_default ? group : of->standard;
    }
    (void)pthread_mutex_unlock(&of->lock);
    if (is_twice) {
        return nvte_fail(WEFT_ERR_STATE,
                         "%s: device %d has its default group; call nvte_ep_shutdown first, or weft_nvte_group_create "
                         "for another",
                         call, device);
    }
    return number != 0
               ? WEFT_OK
               : nvte_fail(WEFT_ERR_STATE, "%s: device %d has %d groups; destroy one", call, device, NVTE_NUMBERS - 1);
}

static void unlist_group(weft_nvte_group *group)
{
    device_groups *of = &devices[group->device];
    (void)pthread_mutex_lock(&of->lock);
    of->of_number[group->number] = NULL; /* number 0: it was never listed */
    of->standard = of->standard == group ? NULL : of->standard;
    (void)pthread_mutex_unlock(&of->lock);
}

static weft_status end_group(weft_nvte_group *group)
{
    weft_status status = WEFT_OK;
    unlist_group(group);
    (void)pthread_mutex_lock(&group->lock); /* a call that runs ends first */
    for (int topk = 0; topk < NVTE_TOPK_MAX; topk++) {
        for (int i = 0; i < NVTE_ALIGNMENTS; i++) {
            nvte_plan *plan = group->plans[topk][i];
            if (plan != NULL) {
                (void)weft_ep_route_destroy(plan->route);
                free(plan);
            }
        }
    }
    if (group->nccl != NULL) {
        status = nep_status_of(ncclEpGroupDestroy(group->nccl));
    }
    (void)pthread_mutex_unlock(&group->lock);
    (void)pthread_mutex_destroy(&group->lock);
    free(group);
    return status;
}

static weft_status create(const char *call, void *ep_comm, const NVTEEpGroupConfig *theirs, int is_default,
                          weft_nvte_group **out)
{
    ncclEpGroupConfig_t config;
    NVTEEpGroupConfig copy;
    int device = 0;
    WEFT_TRY(read_config(call, theirs, &config, &copy));
    WEFT_TRY(check_names(call));
    WEFT_TRY(check_comm(call, ep_comm, copy.ep_size, &device));
    WEFT_TRY(list_group(call, device, NULL, is_default));
    nvte_find_accessors();
    weft_nvte_group *group = calloc(1, sizeof *group);
    if (group == NULL || pthread_mutex_init(&group->lock, NULL) != 0) {
        free(group);
        return nvte_fail(WEFT_ERR_MEMORY, "%s: no memory for a group", call);
    }
    group->device = device;
    weft_status status = nep_status_of(ncclEpCreateGroup(&group->nccl, ep_comm, &config));
    status = status != WEFT_OK ? status : list_group(call, device, group, is_default);
    if (status != WEFT_OK) {
        (void)end_group(group);
        return status;
    }
    *out = group;
    return WEFT_OK;
}

void nvte_ep_initialize(void *ep_comm, const NVTEEpGroupConfig *group_config)
{
    weft_nvte_group *group = NULL;
    (void)nvte_end(create("nvte_ep_initialize", ep_comm, group_config, 1, &group));
}

weft_status weft_nvte_group_create(void *ep_comm, const NVTEEpGroupConfig *config, weft_nvte_group **group)
{
    static const char call[] = "weft_nvte_group_create";
    if (group == NULL) {
        return nvte_end(nvte_fail(WEFT_ERR_ARGUMENT, "%s: argument 'group' is NULL", call));
    }
    return nvte_end(create(call, ep_comm, config, 0, group));
}

/* Is it a group that lives, on whichever device? */
static int is_alive(const weft_nvte_group *group)
{
    int is = 0;
    for (int device = 0; device < DEVICES && !is; device++) {
        (void)pthread_mutex_lock(&devices[device].lock);
        for (int number = 1; number < NVTE_NUMBERS; number++) {
            is |= devices[device].of_number[number] == group;
        }
        (void)pthread_mutex_unlock(&devices[device].lock);
    }
    return is;
}

static weft_status check_alive(const char *call, const weft_nvte_group *group)
{
    return is_alive(group) ? WEFT_OK
                           : nvte_fail(WEFT_ERR_ARGUMENT, "%s: argument 'group' is no group, or was destroyed", call);
}

static weft_status destroy(weft_nvte_group *group)
{
    WEFT_TRY(group != NULL ? check_alive("weft_nvte_group_destroy", group) : WEFT_OK);
    return group != NULL ? end_group(group) : WEFT_OK;
}

weft_status weft_nvte_group_destroy(weft_nvte_group *group)
{
    return nvte_end(destroy(group));
}

weft_status weft_nvte_group_select(weft_nvte_group *group)
{
    weft_status status = group != NULL ? check_alive("weft_nvte_group_select", group) : WEFT_OK;
    if (status == WEFT_OK) {
        selected = group;
    }
    return nvte_end(status);
}

static weft_status shut_down(void)
{
    int device = 0;
    WEFT_TRY(current_device("nvte_ep_shutdown", &device));
    (void)pthread_mutex_lock(&devices[device].lock);
    weft_nvte_group *group = devices[device].standard;
    (void)pthread_mutex_unlock(&devices[device].lock);
    return group != NULL ? end_group(group) : WEFT_OK;
}

void nvte_ep_shutdown(void)
{
    (void)nvte_end(shut_down());
}

/* ---- layers ---- */

/* The group of a number on the current device, or the selected one: locked. */
static weft_status lock_group(const char *call, int number, weft_nvte_group **out)
{
    int device = 0;
    WEFT_TRY(current_device(call, &device));
    if (number == 0 && selected != NULL && is_alive(selected)) {
        device = selected->device;
        number = selected->number;
    }
    (void)pthread_mutex_lock(&devices[device].lock);
    weft_nvte_group *group = number == 0 ? devices[device].standard : devices[device].of_number[number];
    if (group != NULL) {
        (void)pthread_mutex_lock(&group->lock);
    }
    (void)pthread_mutex_unlock(&devices[device].lock);
    if (group == NULL) {
        return nvte_fail(WEFT_ERR_STATE, "%s: %s on device %d; %s", call,
                         number == 0 ? "there is no group" : "handle_mem is of a group that has ended, or is not",
                         device, number == 0 ? "call nvte_ep_initialize first" : "ask nvte_ep_handle_mem_size again");
    }
    nep_have_gpu(call, group->nccl->context);
    *out = group;
    return WEFT_OK;
}

void nvte_leave(weft_nvte_group *group)
{
    (void)pthread_mutex_unlock(&group->lock);
}

static weft_status make_plan(const char *call, const weft_nvte_group *group, const nvte_layer *layer, nvte_plan *out)
{
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    if (layer->topk > group->nccl->topk_max) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: top_k is %d; give 1 .. %d, the most of the group, or make that with another num_topk",
                         call, layer->topk, group->nccl->topk_max);
    }
    plan.layout = WEFT_EP_EXPERT_MAJOR;
    plan.topk = layer->topk;
    plan.sms = nep_sms_most(group->nccl);
    if (layer->alignment > 0) {
        plan.alignment = 1 << layer->alignment;
        plan.flags = WEFT_EP_ZERO_PADDING;
    }
    WEFT_TRY(weft_ep_route_bytes(group->nccl->ep, &plan, &out->bytes));
    out->size = nvte_size_of(layer, out->bytes);
    return weft_ep_route_create(group->nccl->ep, &plan, NULL, &out->route);
}

static weft_status have_plan(const char *call, weft_nvte_group *group, const nvte_layer *layer, nvte_plan **out)
{
    nvte_plan **place = &group->plans[layer->topk - 1][layer->alignment];
    if (*place == NULL) {
        size_t most = group->nccl->config.max_dispatch_tokens_per_rank;
        nvte_plan *made = calloc(1, sizeof *made + most / 8 + 1);
        weft_status status = made != NULL ? make_plan(call, group, layer, made)
                                          : nvte_fail(WEFT_ERR_MEMORY, "%s: no memory for a layer", call);
        if (status != WEFT_OK) {
            free(made);
            return status;
        }
        *place = made;
    }
    *out = *place;
    return WEFT_OK;
}

static weft_status handle_mem_size(const NVTEEpLayerConfig *layer_cfg, size_t *size)
{
    static const char call[] = "nvte_ep_handle_mem_size";
    NVTEEpLayerConfig copy;
    weft_nvte_group *group = NULL;
    nvte_plan *plan = NULL;
    WEFT_TRY(nvte_read_layer(call, layer_cfg, &copy));
    WEFT_TRY(lock_group(call, 0, &group));
    size_t alignment = copy.dispatch_output_per_expert_alignment;
    nvte_layer layer = {.number = group->number, .topk = copy.top_k};
    while ((size_t)1 << layer.alignment < alignment) {
        layer.alignment++;
    }
    weft_status status = have_plan(call, group, &layer, &plan);
    nvte_leave(group);
    *size = status == WEFT_OK ? plan->size : 0;
    return status;
}

size_t nvte_ep_handle_mem_size(const NVTEEpLayerConfig *layer_cfg)
{
    size_t size = 0;
    (void)nvte_end(handle_mem_size(layer_cfg, &size));
    return size;
}

static weft_status find_plan(const char *call, weft_nvte_group *group, const nvte_layer *layer, size_t size,
                             nvte_plan **plan)
{
    WEFT_TRY(have_plan(call, group, layer, plan));
    if (size != (*plan)->size) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: handle_mem has %zu bytes; a layer of its group with top_k %d and alignment %d has %zu",
                         call, size, layer->topk, 1 << layer->alignment, (*plan)->size);
    }
    return WEFT_OK;
}

weft_status nvte_enter(const char *call, const NVTETensor handle_mem, weft_nvte_group **group, nvte_plan **plan,
                       void **memory)
{
    nvte_tensor copy;
    nvte_layer layer;
    WEFT_TRY(nvte_read_tensor(call, "handle_mem", handle_mem, NULL, NULL, &copy));
    if (copy.type != kNVTEByte || copy.ndim != 1 || !nvte_layer_of(copy.elements, &layer)) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: handle_mem has %zu dimensions and %zu elements of type %d; give one, of as many "
                         "kNVTEByte as nvte_ep_handle_mem_size says, which name the layer",
                         call, copy.ndim, copy.elements, (int)copy.type);
    }
    if ((uintptr_t)copy.data % 64 != 0) {
        return nvte_fail(WEFT_ERR_ARGUMENT, "%s: handle_mem is at %p; align it to 64 bytes", call, copy.data);
    }
    WEFT_TRY(lock_group(call, layer.number, group));
    weft_status status = find_plan(call, *group, &layer, copy.elements, plan);
    if (status != WEFT_OK) {
        nvte_leave(*group);
    }
    *memory = copy.data;
    return status;
}

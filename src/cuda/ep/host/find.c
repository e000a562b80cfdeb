/* cuda/ep/host/find.c: the kernels that a group may launch: which module each is in, and its name there. */
#include <stdio.h>
#include <string.h>

#include "cuda/driver/modules.h"
#include "cuda/ep/host/kind.h"

#define CALL "weft_ep_create"

static weft_status find_kernel(const wefti_cuda *cuda, wefti_cuda_ep_module module, const char *name,
                               CUfunction *function)
{
    const wefti_cuda_driver *driver = &cuda->driver;
    int shared = 0;
    int own = 0;
    WEFT_TRY(wefti_cuda_check(driver, driver->cuModuleGetFunction(function, cuda->ep_modules[module], name),
                              "cuModuleGetFunction"));
    WEFT_TRY(wefti_cuda_check(driver, driver->cuFuncLoad(*function), "cuFuncLoad"));
    WEFT_TRY(wefti_cuda_check(
        driver,
        driver->cuDeviceGetAttribute(&shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, cuda->ordinal),
        "cuDeviceGetAttribute"));
    WEFT_TRY(wefti_cuda_check(driver, driver->cuFuncGetAttribute(&own, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, *function),
                              "cuFuncGetAttribute"));
    if (shared - own < WEFTI_CUDA_EP_SHARED_MAX) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           CALL
                           ": the GPU gives a block %d KiB of shared memory; expert parallelism needs %d, as compute "
                           "capabilities 9.0 and 10.0 have. Route on the host (config.on_device 0)",
                           shared >> 10, (WEFTI_CUDA_EP_SHARED_MAX + own + 1023) >> 10);
    }
    return wefti_cuda_check(
        driver, driver->cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared - own),
        "cuFuncSetAttribute");
}

weft_status wefti_cuda_ep_load_modules(wefti_cuda *cuda, unsigned wanted)
{
    static const wefti_cuda_ep_family families[] = {
#define FAMILY(NAME, family) [WEFTI_CUDA_EP_MODULE_##NAME] = family,
        WEFTI_CUDA_EP_MODULES(FAMILY)
#undef FAMILY
    };
    for (int i = 0; i < WEFTI_CUDA_EP_MODULE_COUNT; i++) {
        if (cuda->ep_modules[i] == NULL && (wanted >> families[i] & 1) != 0) {
            WEFT_TRY(wefti_cuda_module_load(cuda, wefti_cuda_ep_image(i), &cuda->ep_modules[i]));
        }
    }
    return WEFT_OK;
}

/* Of a work, by source and by expert: the names of its kernels (EP_KERNEL_NAME) without what says their set, before
 * and behind, and the module of each set that has them. */
#define NO_MODULE WEFTI_CUDA_EP_MODULE_COUNT
#define APART(SOURCE, EXPERT) WEFTI_CUDA_EP_MODULE_##SOURCE, WEFTI_CUDA_EP_MODULE_##EXPERT
#define BOTH(NAME) APART(NAME, NAME)
#define NEITHER NO_MODULE, NO_MODULE
#define BY_SOURCE(NAME) WEFTI_CUDA_EP_MODULE_##NAME, NO_MODULE
#define BY_EXPERT(NAME) NO_MODULE, WEFTI_CUDA_EP_MODULE_##NAME
static const struct kernels_of {
    const char *name[2];
    int has_halves;
    wefti_cuda_ep_module module[WEFTI_CUDA_EP_SETS][2];
} kernels_of_work[] = {
    [WEFTI_CUDA_EP_WORK_DISPATCH] = {{"dispatch_kernel", "dispatch_kernel_expert"},
                                     1,
                                     {{APART(throughput_dispatch, throughput_dispatch_expert)},
                                      {APART(low_latency_dispatch, low_latency_dispatch_expert)},
                                      {APART(low_latency_dispatch_passing, low_latency_dispatch_expert_passing)},
                                      {BOTH(many_dispatch)},
                                      {BY_SOURCE(throughput_dispatch_positions)},
                                      {BY_SOURCE(many_dispatch_positions)},
                                      {BOTH(many_dispatch_passing)}}},
    [WEFTI_CUDA_EP_WORK_QUANTISE] = {{"dispatch_kernel_quantised", "dispatch_kernel_expert_quantised"},
                                     1,
                                     {{APART(throughput_dispatch_quantised, throughput_dispatch_expert_quantised)},
                                      {APART(low_latency_dispatch, low_latency_dispatch_expert)},
                                      {APART(low_latency_dispatch_passing, low_latency_dispatch_expert_passing)},
                                      {BOTH(many_dispatch_quantised)},
                                      {BY_SOURCE(throughput_dispatch_positions)},
                                      {BY_SOURCE(many_dispatch_positions)},
                                      {BOTH(many_dispatch_passing)}}},
    [WEFTI_CUDA_EP_WORK_QUANTISE_MX] = {{"dispatch_kernel_quantised_mx", "dispatch_kernel_expert_quantised_mx"},
                                        1,
                                        {{BOTH(throughput_dispatch_mx)},
                                         {BOTH(low_latency_dispatch_mx)},
                                         {BOTH(low_latency_dispatch_mx_passing)},
                                         {BOTH(many_dispatch_mx)},
                                         {BY_SOURCE(throughput_dispatch_positions)},
                                         {BY_SOURCE(many_dispatch_positions)},
                                         {BOTH(many_dispatch_passing)}}},
    [WEFTI_CUDA_EP_WORK_COMBINE_BWD] = {{"combine_kernel_bwd", "combine_kernel_expert_bwd"},
                                        0,
                                        {{BOTH(backward_combine_bwd)},
                                         {NEITHER},
                                         {NEITHER},
                                         {BOTH(many_dispatch)},
                                         {BY_SOURCE(backward_positions)},
                                         {BY_SOURCE(many_dispatch_positions)},
                                         {NEITHER}}},
    [WEFTI_CUDA_EP_WORK_COMBINE] = {{"combine_kernel", "combine_kernel_expert"},
                                    1,
                                    {{BOTH(throughput_combine)},
                                     {BOTH(low_latency_combine)},
                                     {BOTH(low_latency_combine_passing)},
                                     {BOTH(many_combine)},
                                     {BY_SOURCE(throughput_combine_positions)},
                                     {BY_SOURCE(many_combine_positions)},
                                     {BOTH(many_combine_passing)}}},
    [WEFTI_CUDA_EP_WORK_DISPATCH_BWD] =
        {{NULL, "combine_kernel_expert_gradients"},
         0,
         {{BY_EXPERT(backward_dispatch_bwd)}, {NEITHER}, {NEITHER}, {NEITHER}, {NEITHER}, {NEITHER}, {NEITHER}}},
    [WEFTI_CUDA_EP_WORK_COMBINE_WITH] = {{"combine_kernel", "combine_kernel_expert"},
                                         1,
                                         {{BOTH(throughput_combine_options)},
                                          {BOTH(low_latency_combine_options)},
                                          {BOTH(low_latency_combine_options_passing)},
                                          {BOTH(many_combine)},
                                          {BY_SOURCE(throughput_combine_positions)},
                                          {BY_SOURCE(many_combine_positions)},
                                          {BOTH(many_combine_passing)}}},
};

/* Works, as bits, of which one kernel of a set does whole, send and recv, as the launch tells it (blocks.phase), or
 * whole and recv where sends are those of another work. The others that have halves have a kernel for each: of
 * those, dispatches of 128 tokens whose rows become fp8 took up to 1.037 by one kernel (bench/gpu/ep.md). */
static const unsigned in_one[WEFTI_CUDA_EP_SETS] = {
    [WEFTI_CUDA_EP_SET_THROUGHPUT] = 1u << WEFTI_CUDA_EP_WORK_COMBINE_WITH,
    [WEFTI_CUDA_EP_SET_PASSING] = ~0u,
    [WEFTI_CUDA_EP_SET_MANY] = ~0u,
    [WEFTI_CUDA_EP_SET_POSITIONS] = ~0u,
    [WEFTI_CUDA_EP_SET_MANY_POSITIONS] = ~0u,
    [WEFTI_CUDA_EP_SET_MANY_PASSING] = ~0u,
};

static const char *const prefixes_of_sets[WEFTI_CUDA_EP_SETS] = {"ht_", "", "", "ht_", "", "", ""};
static const char *const names_of_sets[WEFTI_CUDA_EP_SETS] = {
    "", "_low_latency", "_low_latency_passing", "_many", "_positions", "_many_positions", "_many_passing"};

/* A combine without options is variant 1 to 3, one with some that are in kernels of their own 4 and 5. */
static int variant_of(wefti_cuda_ep_phase phase, int with)
{
    return phase == WEFTI_CUDA_EP_SEND   ? WEFTI_CUDA_EP_VARIANT_SEND
           : phase == WEFTI_CUDA_EP_RECV ? (with ? WEFTI_CUDA_EP_VARIANT_RECV_WITH : WEFTI_CUDA_EP_VARIANT_RECV)
           : with                        ? WEFTI_CUDA_EP_VARIANT_FUSED_WITH
                                         : WEFTI_CUDA_EP_VARIANT_FUSED;
}

/* Kernels of one set, phase and work, by source and by expert. A send of a combine with options is that of one
 * without. */
static weft_status find_pair(weft_ep *ep, wefti_cuda_ep_set set, wefti_cuda_ep_phase phase, wefti_cuda_ep_work work,
                             CUfunction function[2])
{
    work = work == WEFTI_CUDA_EP_WORK_COMBINE_WITH && phase == WEFTI_CUDA_EP_SEND ? WEFTI_CUDA_EP_WORK_COMBINE : work;
    const struct kernels_of *kernels = &kernels_of_work[work];
    const int with = work == WEFTI_CUDA_EP_WORK_COMBINE_WITH && !ep->device->kind->all_in_one;
    const int variant = variant_of((in_one[set] >> work & 1) != 0 ? WEFTI_CUDA_EP_FUSED : phase, with);
    for (int by_expert = 0; by_expert < 2; by_expert++) {
        if (kernels->module[set][by_expert] == NO_MODULE) {
            continue;
        }
        const char *stem = kernels->name[by_expert];
        const char *prefix = prefixes_of_sets[set];
        const size_t length = strlen(prefix) + strlen(stem) + strlen(names_of_sets[set]);
        char name[80];
        (void)snprintf(name, sizeof name, "_ZN4weft%zu%s%s%sC%dEv", length, prefix, stem, names_of_sets[set], variant);
        WEFT_TRY(find_kernel(ep->device->cuda, kernels->module[set][by_expert], name, &function[by_expert]));
    }
    return WEFT_OK;
}

static weft_status find_set(weft_ep *ep, wefti_cuda_ep_way way, wefti_cuda_ep_set set)
{
    for (int work = 0; work <= WEFTI_CUDA_EP_WORK_COMBINE_WITH; work++) {
        const int phases = kernels_of_work[work].has_halves ? WEFTI_CUDA_EP_RECV + 1 : WEFTI_CUDA_EP_FUSED + 1;
        for (int phase = 0; phase < phases; phase++) {
            WEFT_TRY(find_pair(ep, set, phase, work, ep->device->kernel[way][phase][work]));
        }
    }
    return WEFT_OK;
}

/* Those that come before a call, or after it. */
static weft_status find_beside(weft_ep *ep)
{
    wefti_ep_device *device = ep->device;
    CUfunction(*fused)[2] = device->kernel[WEFTI_CUDA_EP_WAY_THROUGHPUT][WEFTI_CUDA_EP_FUSED];
    CUfunction *order = fused[WEFTI_CUDA_EP_WORK_COMBINE_ORDER];
    const wefti_cuda_ep_module before = WEFTI_CUDA_EP_MODULE_routing_before;
    WEFT_TRY(find_kernel(device->cuda, before, "_ZN4weft12destinationsC1Ev", fused[WEFTI_CUDA_EP_WORK_DESTINATIONS]));
    WEFT_TRY(find_kernel(device->cuda, before, "_ZN4weft9positionsC1Ev", fused[WEFTI_CUDA_EP_WORK_POSITIONS]));
    WEFT_TRY(find_kernel(device->cuda, before, "_ZN4weft8droppingC1Ev", fused[WEFTI_CUDA_EP_WORK_DROPPING]));
    if (!device->kind->all_in_one) {
        WEFT_TRY(find_kernel(device->cuda, before, "_ZN4weft5orderC1Ev", &order[0]));
        WEFT_TRY(find_kernel(device->cuda, before, "_ZN4weft12order_expertC1Ev", &order[1]));
    }
    WEFT_TRY(find_kernel(device->cuda, WEFTI_CUDA_EP_MODULE_routing_after, "_ZN4weft3padC1Ev", &device->pad));
    if (ep->stats != NULL) {
        WEFT_TRY(find_kernel(device->cuda, WEFTI_CUDA_EP_MODULE_routing_after, "_ZN4weft10statisticsC1Ev",
                             &device->statistics));
    }
    return !wefti_cuda_ep_joins_masks(ep)
               ? WEFT_OK
               : find_kernel(device->cuda, WEFTI_CUDA_EP_MODULE_routing_after, "_ZN4weft5masksC1Ev", &device->masks);
}

/* Those by expert that add up rows which come through shared memory. */
static weft_status find_piped(weft_ep *ep)
{
    const wefti_cuda_ep_module module = WEFTI_CUDA_EP_MODULE_throughput_combine_piped;
    CUfunction(*found)[WEFTI_CUDA_EP_WORKS][2] = ep->device->kernel[WEFTI_CUDA_EP_WAY_PIPED];
    WEFT_TRY(find_kernel(ep->device->cuda, module, "_ZN4weft30ht_combine_kernel_expert_pipedC1Ev",
                         &found[WEFTI_CUDA_EP_FUSED][WEFTI_CUDA_EP_WORK_COMBINE][1]));
    WEFT_TRY(find_kernel(ep->device->cuda, module, "_ZN4weft30ht_combine_kernel_expert_pipedC3Ev",
                         &found[WEFTI_CUDA_EP_RECV][WEFTI_CUDA_EP_WORK_COMBINE][1]));
    return find_kernel(ep->device->cuda, module, "_ZN4weft40ht_combine_kernel_expert_gradients_pipedC1Ev",
                       &found[WEFTI_CUDA_EP_FUSED][WEFTI_CUDA_EP_WORK_DISPATCH_BWD][1]);
}

/* Those of rows that leave with send: behind send, and recv. Works share them: rows leave by token in all layouts, and
 * those that became fp8 arrive as others do. */
static weft_status find_eager(weft_ep *ep)
{
    static const struct eager_kernel {
        wefti_cuda_ep_phase phase;
        wefti_cuda_ep_work work;
        wefti_cuda_ep_module module;
        const char *name[2];
    } kernels[] = {
#define EAGER(PHASE, WORK, MODULE, SOURCE, EXPERT)                                                                     \
    {                                                                                                                  \
        WEFTI_CUDA_EP_##PHASE, WEFTI_CUDA_EP_WORK_##WORK, WEFTI_CUDA_EP_MODULE_throughput_##MODULE##_eager,            \
        {                                                                                                              \
            "_ZN4weft" SOURCE "Ev", "_ZN4weft" EXPERT "Ev"                                                             \
        }                                                                                                              \
    }
#define OF_ALL(PHASE, WORK, NAME) EAGER(PHASE, WORK, dispatch, NAME, NAME)
#define ARRIVES(WORK) EAGER(RECV, WORK, dispatch, "21dispatch_kernel_eagerC3", "28dispatch_kernel_expert_eagerC3")
#define COMBINES(PHASE, WORK, VARIANT)                                                                                 \
    EAGER(PHASE, WORK, combine, "20combine_kernel_eager" VARIANT, "27combine_kernel_expert_eager" VARIANT)
        OF_ALL(ROWS, DISPATCH, "21dispatch_kernel_eagerC2"),
        OF_ALL(ROWS, QUANTISE, "31dispatch_kernel_quantised_eagerC2"),
        OF_ALL(ROWS, QUANTISE_MX, "34dispatch_kernel_quantised_mx_eagerC2"),
        ARRIVES(DISPATCH),
        ARRIVES(QUANTISE),
        ARRIVES(QUANTISE_MX),
        COMBINES(ROWS, COMBINE, "C2"),
        COMBINES(ROWS, COMBINE_WITH, "C2"),
        COMBINES(RECV, COMBINE, "C3"),
        COMBINES(RECV, COMBINE_WITH, "C5"),
    };
    CUfunction(*found)[WEFTI_CUDA_EP_WORKS][2] = ep->device->kernel[WEFTI_CUDA_EP_WAY_EAGER];
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        const struct eager_kernel *kernel = &kernels[i];
        for (int by_expert = 0; by_expert < 2; by_expert++) {
            WEFT_TRY(find_kernel(ep->device->cuda, kernel->module, kernel->name[by_expert],
                                 &found[kernel->phase][kernel->work][by_expert]));
        }
    }
    return WEFT_OK;
}

weft_status wefti_cuda_ep_find_kernels(weft_ep *ep)
{
    const wefti_cuda_ep_kind *kind = ep->device->kind;
    const int has_low_latency = wefti_cuda_ep_has_low_latency(ep);
    const int has_eager = wefti_cuda_ep_has_eager(ep);
    const int has_positions = ep->config.topk_max >= ep->ranks;
    WEFT_TRY(wefti_cuda_ep_load_modules(
        ep->device->cuda, kind->families | (has_low_latency ? kind->low_latency_families : 0) |
                              (has_eager ? kind->eager_families : 0) | (has_positions ? kind->positions_families : 0)));
    WEFT_TRY(find_set(ep, WEFTI_CUDA_EP_WAY_THROUGHPUT, kind->set));
    WEFT_TRY(kind->all_in_one ? WEFT_OK : find_piped(ep));
    WEFT_TRY(has_low_latency ? find_set(ep, WEFTI_CUDA_EP_WAY_LOW_LATENCY, kind->low_latency) : WEFT_OK);
    WEFT_TRY(has_positions ? find_set(ep, WEFTI_CUDA_EP_WAY_POSITIONS, kind->positions) : WEFT_OK);
    WEFT_TRY(has_eager ? find_eager(ep) : WEFT_OK);
    return find_beside(ep);
}

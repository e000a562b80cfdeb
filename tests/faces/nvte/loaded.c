/* Goal: where TransformerEngine is loaded its tensors are read by its own accessors, and payloads may lie in windows of
 * NCCL's; where its library has the names of the calls before ours, no group is made.
 *
 * Method: this program stands in for TransformerEngine: it exports accessors, of tensors that are small numbers, as
 * there, and NCCL's function that tells where a window lies. One rank on the fake driver makes a step whose expert does
 * nothing. With the path of a library that has TransformerEngine's names (transformer_engine.c), and nothing exported
 * here, a group is refused. Usage: loaded [LIBRARY]. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faces/nccl_ep/libnccl.h"
#include "weft.h"

/* TransformerEngine's header would declare them so; ours has them inline. */
#define TRANSFORMER_ENGINE_TRANSFORMER_ENGINE_H_
typedef struct CUstream_st *cudaStream_t;
typedef enum NVTEDType { kNVTEByte = 0, kNVTEInt32 = 2, kNVTEInt64 = 3, kNVTEFloat32 = 4 } NVTEDType;
typedef void *NVTETensor;
#include <weft_nvte.h>

#define TOKENS 4
#define HIDDEN 8
#define ROWS 16

#define EXPORT __attribute__((visibility("default")))

typedef struct described {
    void *data;
    NVTEDType type;
    size_t ndim;
    size_t sizes[2];
    int scaling_mode;
} described;

static described tensors[16];
static int asked; /* how often */

static const described *at(NVTETensor tensor)
{
    asked++;
    return &tensors[(uintptr_t)tensor];
}

EXPORT void *nvte_tensor_data(NVTETensor tensor);
EXPORT void *nvte_tensor_data(NVTETensor tensor)
{
    return at(tensor)->data;
}

EXPORT NVTEDType nvte_tensor_type(NVTETensor tensor);
EXPORT NVTEDType nvte_tensor_type(NVTETensor tensor)
{
    return at(tensor)->type;
}

EXPORT size_t nvte_tensor_ndims(NVTETensor tensor);
EXPORT size_t nvte_tensor_ndims(NVTETensor tensor)
{
    return at(tensor)->ndim;
}

EXPORT size_t nvte_tensor_size(NVTETensor tensor, size_t dimension);
EXPORT size_t nvte_tensor_size(NVTETensor tensor, size_t dimension)
{
    return at(tensor)->sizes[dimension];
}

EXPORT int nvte_tensor_scaling_mode(NVTETensor tensor);
EXPORT int nvte_tensor_scaling_mode(NVTETensor tensor)
{
    return at(tensor)->scaling_mode;
}

static char window_memory[4096] __attribute__((aligned(64)));
static int windows;

EXPORT ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **pointer);
EXPORT ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **pointer)
{
    windows++;
    *pointer = comm != NULL && window == (ncclWindow_t)(void *)&windows ? window_memory : NULL;
    return ncclSuccess;
}

static NVTETensor tensor(int number, void *data, NVTEDType type, size_t rows, size_t columns)
{
    tensors[number] = (described){data, type, columns == 0 ? 1 : 2, {rows, columns}, 0};
    return (NVTETensor)(uintptr_t)number;
}

static int failures;

static void expect(int line, weft_status wanted, const char *word)
{
    if (weft_nvte_status() != wanted || (word != NULL && strstr(weft_last_error(), word) == NULL)) {
        (void)fprintf(stderr, "line %d: status %s, wanted %s with \"%s\"; text \"%s\"\n", line,
                      weft_status_name(weft_nvte_status()), weft_status_name(wanted), word != NULL ? word : "",
                      weft_last_error());
        failures++;
    }
}

#define OK(call) ((call), expect(__LINE__, WEFT_OK, NULL))
#define EXPECT(call, wanted, word) ((call), expect(__LINE__, wanted, word))

static NVTEEpGroupConfig group_config(void)
{
    NVTEEpGroupConfig config = {.struct_size = sizeof config};
    config.ep_size = 1;
    config.num_experts = 1;
    config.max_tokens_per_rank = TOKENS;
    config.max_recv_tokens_per_rank = ROWS;
    config.hidden_dim = HIDDEN;
    config.max_token_dtype = kNVTEFloat32;
    return config;
}

static void step(ncclComm_t comm)
{
    static const NVTECommWindow none;
    static float y[TOKENS][HIDDEN] __attribute__((aligned(16)));
    static float rows[ROWS][HIDDEN] __attribute__((aligned(16)));
    static float weights[TOKENS] = {1, 1, 1, 1};
    static float row_weights[ROWS];
    static int32_t ids[TOKENS];
    NVTEEpGroupConfig config = group_config();
    NVTEEpLayerConfig layer = {.struct_size = sizeof layer, .top_k = 1};
    NVTECommWindow window = {.window = (ncclWindow_t)(void *)&windows, .offset = 128};
    float *x = (float *)(void *)(window_memory + 128);
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        x[i] = (float)(1 + i);
    }
    OK(nvte_ep_initialize(comm, &config));
    size_t bytes = nvte_ep_handle_mem_size(&layer);
    NVTETensor handle_mem = tensor(1, aligned_alloc(64, (bytes + 63) / 64 * 64), kNVTEByte, bytes, 0);
    NVTETensor idx = tensor(2, ids, kNVTEInt32, TOKENS, 1);
    NVTETensor in = tensor(3, NULL, kNVTEFloat32, TOKENS, HIDDEN); /* in a window only */
    NVTETensor in_weights = tensor(4, weights, kNVTEFloat32, TOKENS, 1);
    NVTETensor out = tensor(5, rows, kNVTEFloat32, ROWS, HIDDEN);
    NVTETensor out_weights = tensor(6, row_weights, kNVTEFloat32, ROWS, 0);
    NVTETensor sums = tensor(7, y, kNVTEFloat32, TOKENS, HIDDEN);
    OK(nvte_ep_prepare(handle_mem, idx, NULL, NULL, &layer, NULL));
    EXPECT(nvte_ep_dispatch(handle_mem, idx, in, none, in_weights, none, out, none, out_weights, none, NULL),
           WEFT_ERR_ARGUMENT, "neither data nor a window");
    OK(nvte_ep_dispatch(handle_mem, idx, in, window, in_weights, none, out, none, out_weights, none, NULL));
    window.window = (ncclWindow_t)(void *)&asked;
    EXPECT(nvte_ep_combine(handle_mem, out, window, sums, NULL), WEFT_ERR_ARGUMENT, "does not know the window");
    tensors[5].scaling_mode = 1;
    EXPECT(nvte_ep_combine(handle_mem, out, none, sums, NULL), WEFT_ERR_UNSUPPORTED, "scaling mode 1");
    tensors[5].scaling_mode = 0;
    OK(nvte_ep_combine(handle_mem, out, none, sums, NULL));
    if (memcmp(y, x, sizeof y) != 0 || asked == 0 || windows == 0) {
        (void)fprintf(stderr, "sums are wrong, or nobody asked: y[1][1] is %g\n", (double)y[1][1]);
        failures++;
    }
    free(tensors[1].data);
    OK(nvte_ep_shutdown());
}

int main(int argc, char **argv)
{
    static ncclComm_t comm; /* to the end: nobody frees what stands in for one */
    if (!standin_choose_gpu(0)) {
        (void)fprintf(stderr, "no fake driver\n");
        return 1;
    }
    standin_comms(1, &comm);
    if (argc == 1) {
        step(comm);
        return failures != 0;
    }
    NVTEEpGroupConfig config = group_config();
    if (dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    EXPECT(nvte_ep_initialize(comm, &config), WEFT_ERR_STATE, "link -lweft_nvte_ep before");
    return failures != 0;
}

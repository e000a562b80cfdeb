/* Goal: on a machine without a GPU the face says why there is no group, and every call is a status with a text.
 *
 * Method: each call without a group, with NULLs, with the stand-in for NCCL; LD_LIBRARY_PATH of the test has no
 * driver. */
#include <stdio.h>
#include <string.h>

#include "faces/nccl_ep/libnccl.h"
#include "weft.h"
#include <weft_nvte.h>

static int failures;

/* With a driver, other texts come first. */
static void expect(int line, const char *word, const char *with_driver)
{
    if (weft_nvte_status() == WEFT_OK ||
        (strstr(weft_last_error(), word) == NULL && strstr(weft_last_error(), with_driver) == NULL)) {
        (void)fprintf(stderr, "line %d: status %s, text \"%s\", without \"%s\"\n", line,
                      weft_status_name(weft_nvte_status()), weft_last_error(), word);
        failures++;
    }
}

#define EXPECT(call, word, with_driver) ((call), expect(__LINE__, word, with_driver))

int main(void)
{
    static const NVTECommWindow none;
    static ncclComm_t comm; /* to the end: nobody frees what stands in for one */
    weft_nvte_group *group = NULL;
    NVTEEpGroupConfig config = NVTE_EP_GROUP_CONFIG_INIT;
    NVTEEpLayerConfig layer = NVTE_EP_LAYER_CONFIG_INIT;
    weft_nvte_tensor memory = {.magic = WEFT_NVTE_TENSOR_MAGIC};
    _Alignas(64) static char bytes[1024 + 65];
    memory.data.data_ptr = bytes;
    memory.data.shape.ndim = 1;
    memory.data.shape.data[0] = sizeof bytes; /* names group 1 */
    config.ep_size = config.num_experts = config.max_tokens_per_rank = 1;
    config.hidden_dim = 16;
    config.max_token_dtype = kNVTEFloat32;
    layer.top_k = 2;
    standin_comms(1, &comm);
    if (weft_nvte_status() != WEFT_OK) {
        failures++;
    }
    EXPECT(nvte_ep_initialize(comm, NULL), "'group_config' is NULL", "'group_config' is NULL");
    EXPECT(nvte_ep_initialize(comm, &config), "libcuda.so.1", "current");
    if (weft_nvte_group_create(comm, &config, &group) == WEFT_OK || group != NULL) {
        failures++;
    }
    expect(__LINE__, "libcuda.so.1", "current");
    EXPECT((void)nvte_ep_handle_mem_size(NULL), "'layer_cfg' is NULL", "'layer_cfg' is NULL");
    EXPECT((void)nvte_ep_handle_mem_size(&layer), "libcuda.so.1", "current");
    EXPECT(nvte_ep_prepare(NULL, NULL, NULL, NULL, &layer, NULL), "'handle_mem' is NULL", "'handle_mem' is NULL");
    EXPECT(nvte_ep_prepare(&memory, NULL, NULL, NULL, &layer, NULL), "libcuda.so.1", "current");
    EXPECT(nvte_ep_dispatch(&memory, NULL, NULL, none, NULL, none, NULL, none, NULL, none, NULL), "libcuda.so.1",
           "current");
    EXPECT(nvte_ep_prepare_and_dispatch(&memory, NULL, NULL, none, NULL, none, NULL, none, NULL, none, NULL, NULL,
                                        &layer, NULL),
           "libcuda.so.1", "current");
    EXPECT(nvte_ep_combine(&memory, NULL, none, NULL, NULL), "libcuda.so.1", "current");
    EXPECT(nvte_ep_dispatch_bwd(&memory, NULL, none, NULL, none, NULL, NULL, NULL), "libcuda.so.1", "current");
    EXPECT(nvte_ep_combine_bwd(&memory, NULL, none, NULL, none, NULL), "libcuda.so.1", "current");
    EXPECT((void)weft_nvte_group_select((weft_nvte_group *)(void *)&memory), "argument 'group' is no group",
           "argument 'group' is no group");
    EXPECT((void)weft_nvte_group_destroy((weft_nvte_group *)(void *)&memory), "argument 'group' is no group",
           "argument 'group' is no group");
    return failures != 0;
}

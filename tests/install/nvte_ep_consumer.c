/* A program that knows of TransformerEngine's calls of expert parallelism only, in C and in C++: a tensor, and a group
 * that cannot be made. Exits with 0 if all is as documented; prints why there is no group. */
#include <stdio.h>

#include <transformer_engine/ep.h>
#include <weft_nvte.h>

int main(void)
{
    const size_t sizes[2] = {3, 4};
    float data[12];
    NVTEEpGroupConfig config = NVTE_EP_GROUP_CONFIG_INIT;
    NVTEEpLayerConfig layer = NVTE_EP_LAYER_CONFIG_INIT;
    NVTETensor tensor = nvte_create_tensor(NVTE_DELAYED_TENSOR_SCALING);
    NVTEBasicTensor basic;
    basic.data_ptr = data;
    basic.dtype = kNVTEFloat32;
    basic.shape = nvte_make_shape(sizes, 2);
    nvte_set_tensor_param(&tensor, kNVTERowwiseData, &basic);
    if (nvte_tensor_data(tensor) != data || nvte_tensor_size(tensor, 1) != 4) {
        return 1;
    }
    nvte_destroy_tensor(tensor);
    config.ep_size = 1;
    config.num_experts = 2;
    config.max_tokens_per_rank = 8;
    config.hidden_dim = 16;
    config.max_token_dtype = kNVTEBFloat16;
    nvte_ep_initialize(NULL, &config);
    printf("%s: %s\n", weft_status_name(weft_nvte_status()), weft_last_error());
    if (weft_nvte_status() == WEFT_OK) {
        return 2;
    }
    layer.top_k = 1;
    if (nvte_ep_handle_mem_size(&layer) != 0 || weft_nvte_status() == WEFT_OK) {
        return 3;
    }
    return 0;
}

#include "cuda/driver/modules.h"

#include <string.h>

#include "cuda/driver/process_lock.h"

#define LOADED_MAX 512 /* 32 each of 16 contexts */

/* By context and image. A context that has been destroyed took its modules along, and its number does not come again:
 * its entries are dead, and overwritten in their turn. What a fork has copied means nothing. */
static struct loaded {
    int holder; /* the process of which a thread changes this; atomic */
    int owner; /* the process whose modules these are */
    unsigned next; /* entry to be taken */
    struct {
        unsigned long long context; /* counted from 1 */
        const void *image;
        CUmodule module;
    } entries[LOADED_MAX];
} loaded;

static CUmodule find(unsigned long long context, const void *image)
{
    for (size_t i = 0; i < LOADED_MAX; i++) {
        if (loaded.entries[i].context == context && loaded.entries[i].image == image) {
            return loaded.entries[i].module;
        }
    }
    return NULL;
}

static weft_status find_or_load(const wefti_cuda *cuda, unsigned long long context, const void *image, CUmodule *module)
{
    *module = find(context, image);
    if (*module != NULL) {
        return WEFT_OK;
    }
    WEFT_TRY(wefti_cuda_check(&cuda->driver, cuda->driver.cuModuleLoadData(module, image), "cuModuleLoadData"));
    const unsigned entry = loaded.next++ % LOADED_MAX;
    loaded.entries[entry].context = context;
    loaded.entries[entry].image = image;
    loaded.entries[entry].module = *module;
    return WEFT_OK;
}

weft_status wefti_cuda_module_load(const wefti_cuda *cuda, const void *image, CUmodule *module)
{
    unsigned long long context = 0;
    WEFT_TRY(wefti_cuda_check(&cuda->driver, cuda->driver.cuCtxGetId(cuda->context, &context), "cuCtxGetId"));
    wefti_cuda_process_lock(&loaded.holder);
    const int mine = wefti_os_owner_number();
    if (loaded.owner != mine) {
        memset(loaded.entries, 0, sizeof loaded.entries);
        loaded.owner = mine;
    }
    const weft_status status = find_or_load(cuda, context, image, module);
    wefti_cuda_process_unlock(&loaded.holder);
    return status;
}

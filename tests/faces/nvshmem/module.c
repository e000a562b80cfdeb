/* faces/nvshmem/module.c: a library on NVSHMEM, of which modules.c loads two. With MODULE_OLD it is one that was
 * built with headers whose init attributes were of version 1, without a GPU's number. */
#define NVSHMEM_HOSTLIB_ONLY
#include <nvshmem.h>
#include <string.h>

#include "faces/nvshmem/module.h"

#ifdef MODULE_OLD
#define MODULE_VERSION 1
#else
#define MODULE_VERSION 2
#endif

int module_begin(const module_meeting *meeting)
{
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    if (meeting->id == NULL) {
        nvshmem_init();
        return nvshmemx_init_status() >= NVSHMEM_STATUS_IS_INITIALIZED ? 0 : 1;
    }
    attributes.version = WEFT_NVSHMEM_VERSIONED(MODULE_VERSION, attributes);
    attributes.args.version = WEFT_NVSHMEM_VERSIONED(MODULE_VERSION, attributes.args);
    if (MODULE_VERSION == 1) {
        attributes.args.cuda_device_id = 12345; /* no field then */
    }
    int result = nvshmemx_set_attr_uniqueid_args(meeting->rank, meeting->ranks, meeting->id, &attributes);
    return result != 0 ? result : nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);
}

/* Each PE adds to the next one's word, and all of them together. */
int module_exchange(void)
{
    const int me = nvshmem_my_pe();
    const int pes = nvshmem_n_pes();
    long *const words = nvshmem_calloc(3, sizeof *words);
    if (words == NULL) {
        return 1;
    }
    nvshmem_long_atomic_add(&words[0], me + 1, (me + 1) % pes);
    nvshmem_barrier_all();
    const int is_there = words[0] == (me + pes - 1) % pes + 1;
    const int status = nvshmem_long_sum_reduce(NVSHMEM_TEAM_WORLD, &words[2], &words[0], 1);
    const int is_sum = status == 0 && words[2] == (long)pes * (pes + 1) / 2;
    nvshmem_free(words);
    return is_there && is_sum ? 0 : 1;
}

void module_end(void)
{
    nvshmem_finalize();
}

/* cuda/device.h: a PE's device: what hangs on a world that has attached one. */
#ifndef WEFTI_CUDA_DEVICE_H
#define WEFTI_CUDA_DEVICE_H

#include "cuda/driver/driver.h"
#include "cuda/ep/host/kernels.h"
#include "cuda/heap/window.h"
#include "cuda/kernels.h"
#include "device/device.h"
#include "team/team.h"
#include "topo/domain.h"
#include "weft/device/dev.h"

/* A slot of the device window:  control block | tables of deltas | (page) heap ...  The tables are those of the heap
 * and of the host heap, each with an entry a PE of the world. */
#define WEFTI_CUDA_TABLE_HEAP 0
#define WEFTI_CUDA_TABLE_HOST 1
#define WEFTI_CUDA_TABLES 2

static inline uint64_t wefti_cuda_table(uint32_t pes, unsigned table)
{
    return sizeof(wefti_dev_control) + (uint64_t)table * pes * sizeof(wefti_i64);
}

static inline uint64_t wefti_cuda_head_bytes(uint32_t pes)
{
    return (wefti_cuda_table(pes, WEFTI_CUDA_TABLES) + 4095) / 4096 * 4096;
}

/* How parts of the heap are shared between processes. */
typedef enum wefti_cuda_sharing { WEFTI_CUDA_POSIX, WEFTI_CUDA_FABRIC, WEFTI_CUDA_IPC } wefti_cuda_sharing;

/* What every PE tells all others of its GPU; link domains follow from it. */
typedef struct wefti_cuda_gpu_of_pe {
    wefti_topo_gpu_of_pe topo;
    CUmemFabricHandle trial; /* of memory that PEs of other hosts try to import, where the fabric counts */
} wefti_cuda_gpu_of_pe;

/* What a PE tells those near it: in symmetric host memory, one each, written before a vote and read after it. */
typedef struct wefti_cuda_record {
    wefti_cuda_gpu_of_pe gpu;
    uint64_t process[2]; /* the key of its window: equal for PEs of one process */
    uint64_t nonce[2]; /* to be read back in its device memory */
    uint64_t memory_bytes; /* of its device; of the allocation that it shares now */
    CUuuid uuid;
    int32_t ordinal; /* in its process */
    int32_t sharing; /* of its heap: a wefti_cuda_sharing */
    uint64_t context; /* its context, for PEs of its process */
    uint64_t address; /* of the memory it shares now, in its process */
    uint64_t offset; /* of that in its allocation */
    int32_t is_vmm;
    CUipcMemHandle ipc;
    CUmemFabricHandle fabric;
    char text[256]; /* why it failed; last: of PEs of other nodes it is not fetched */
} wefti_cuda_record;

/* User memory that is symmetric now. Records stay until detach, since other threads look through them. */
typedef struct wefti_cuda_region {
    struct wefti_cuda_region *next; /* atomic; in the order of their numbers */
    uint32_t number;
    unsigned char *address; /* NULL: free; atomic */
    uint64_t bytes;
    const weft_team *team; /* over which it is registered */
    int64_t *delta; /* an entry a near PE; WEFTI_DEV_FAR: is far, or has no part in it */
    CUdeviceptr *mapped; /* an entry a near PE: what to undo; 0 for none */
    uint64_t *mapped_bytes; /* 0: opened by cudaIpc */
} wefti_cuda_region;

typedef struct wefti_cuda {
    wefti_device base; /* first */
    weft_world *world;
    wefti_cuda_driver driver;

    CUdevice ordinal;
    CUcontext context;
    int retained; /* the primary context, until detach */
    int sms;
    int can_be_early; /* kernels wait by themselves for the one before: see kernel.cuh */
    wefti_cuda_budget budget;
    int host_atomics;
    CUstream stream; /* WEFTI_CUDA_STREAM_HOST */
    wefti_os_monitor *stream_lock;
    CUmodule module;
    CUmemoryPool ep_pool; /* NULL until the first group of expert parallelism */
    CUmodule ep_modules[WEFTI_CUDA_EP_MODULE_COUNT]; /* NULL until a group needs it */
    CUfunction kernels[WEFTI_CUDA_KERNEL_COUNT];
    uint64_t *amo_old; /* pinned host memory */
    uint64_t copies_begun; /* by wefti_cuda_copy_nbi; atomic, as the next */
    uint64_t copies_settled; /* of these, known to be complete */

    uint64_t copy_bytes; /* blocks of at least so many go by copy engines, equal on all PEs; 0: none */

    wefti_cuda_window *window; /* NULL: not joined */
    wefti_cuda_sharing sharing;
    wefti_cuda_record *record; /* this PE's; those of others lie at the same symmetric address */

    /* The link domain: PEs whose device memory this PE's kernels load and store, of this node and perhaps of others.
     * They are near; index p - near_first. */
    uint32_t near_first;
    uint32_t near_count;
    int *group; /* the lowest near index of its process; -1: not near */
    int64_t *delta; /* the byte at `a` of this heap is at a + delta[i]; WEFTI_DEV_FAR */
    uint64_t *reach; /* of this PE's slot, the bytes from its start that the process of near PE i has mapped; atomic */
    int64_t *host_delta; /* of the host heap; NULL: all are of this node, whose slots follow one another */
    size_t *slots; /* theirs of the window */
    size_t slot_count; /* of the window: the PEs in the link domains of this node's PEs, in order */
    wefti_cuda_record *records_fetched; /* of the near PEs, as fetched last; NULL: all are of this node */
    wefti_cuda_record *records_shared; /* symmetric, where members put theirs; NULL: no domain spans nodes */
    int32_t *domain_of; /* [PEs] of each the lowest PE of its link domain */
    int has_strangers; /* the world has PEs of different link domains */

    unsigned char *slot; /* this PE's slot of the window: control block, tables, heap */
    uint64_t granularity;
    CUdeviceptr ipc_own; /* WEFTI_CUDA_IPC: the allocation, which the window keeps, and those of others */
    CUdeviceptr *ipc_opened;

    wefti_cuda_region *regions; /* atomic: the first */
    uint64_t region_version; /* as wefti_dev_control has it */
    CUdeviceptr region_tables[2]; /* as well; and the bytes of each */
    uint64_t region_table_bytes[2];
    CUdeviceptr *region_old_tables; /* what a kernel may still look at */
    size_t region_old_count;
    struct wefti_cuda_far *far; /* NULL when no PE is far: see cuda/proxy/far.h */
    struct wefti_cuda_watch *watch; /* NULL where waits have a deadline */
} wefti_cuda;

/* ---- watch.c: in a world without a deadline, whoever has ended is told to this PE's kernels, by a thread ---- */

typedef struct wefti_cuda_watch wefti_cuda_watch;
weft_status wefti_cuda_watch_open(wefti_cuda *cuda);
void wefti_cuda_watch_close(wefti_cuda *cuda); /* safe before it was opened */

static inline wefti_cuda *wefti_cuda_of(const wefti_device *device)
{
    return (wefti_cuda *)(uintptr_t)device;
}

static inline uint32_t wefti_cuda_own_index(const wefti_cuda *cuda)
{
    return cuda->world->view.pe - cuda->near_first;
}

/* The slot of the window of a near PE; of this one. */
static inline size_t wefti_cuda_slot_of(const wefti_cuda *cuda, uint32_t index)
{
    return cuda->slots[index];
}

static inline size_t wefti_cuda_own_slot(const wefti_cuda *cuda)
{
    return cuda->slots[wefti_cuda_own_index(cuda)];
}

static inline int wefti_cuda_is_near(const wefti_cuda *cuda, int pe)
{
    const uint32_t index = (uint32_t)pe - cuda->near_first;
    return index < cuda->near_count && cuda->group[index] >= 0;
}

/* A near PE of another node: its host heap is reached by a transport. */
static inline int wefti_cuda_is_abroad(const wefti_cuda *cuda, uint32_t index)
{
    return cuda->group[index] >= 0 && !wefti_pe_is_near(&cuda->world->view, (int)(cuda->near_first + index));
}

/* ---- the tables ---- */

extern const wefti_device_memory_ops wefti_cuda_memory; /* heap/memory.c */
extern const wefti_device_stream_ops wefti_cuda_stream; /* stream/stream.c */
extern const wefti_device_launch_ops wefti_cuda_launches; /* stream/launch.c */
extern const wefti_device_budget_ops wefti_cuda_budget_table; /* driver/claims.c */

/* ---- driver/context.c ---- */

/* The context of this PE is current between the two. */
weft_status wefti_cuda_enter(const wefti_cuda *cuda);
void wefti_cuda_leave(const wefti_cuda *cuda);
/* The same where it most often is current already, which is cheaper to ask than to push and to pop. */
weft_status wefti_cuda_enter_other(const wefti_cuda *cuda, int *has_entered);
void wefti_cuda_leave_other(const wefti_cuda *cuda, int has_entered);

/* Streams of the library's own: of the greatest priority, so that host calls do not wait behind a busy GPU, and a proxy
 * not in one hardware queue with a kernel that waits for it; users' streams keep the priority that they were made with.
 * The PEs of a process on a GPU share them, as a GPU has 32 queues at most for a process, and a stream beyond these
 * stands behind another's kernels: nothing that waits for a PE is put there. */
typedef enum wefti_cuda_stream_use {
    WEFTI_CUDA_STREAM_HOST, /* the host's copies and atomics */
    WEFTI_CUDA_STREAM_PROXY, /* what proxies do on the device for other PEs */
    WEFTI_CUDA_STREAM_ASKING, /* their copies for what this PE asks of others */
    WEFTI_CUDA_STREAM_USES,
} wefti_cuda_stream_use;

/* The context is current. */
weft_status wefti_cuda_stream_join(const wefti_cuda *cuda, wefti_cuda_stream_use use, CUstream *stream);
void wefti_cuda_stream_leave(const wefti_cuda *cuda, wefti_cuda_stream_use use, CUstream stream);

/* ---- heap/slot.c ---- */

/* wefti_team_agree, whose error names the PE that failed and its text. */
weft_status wefti_cuda_agree(wefti_cuda *cuda, weft_team *team, const char *call, wefti_vote *vote);
/* Agree so that all went well in a step that ended with `mine`. */
weft_status wefti_cuda_verdict(wefti_cuda *cuda, weft_team *team, const char *call, uint64_t step, weft_status mine);

/* The record of a near PE; of one of another node, as it was fetched last. */
const wefti_cuda_record *wefti_cuda_record_of(const wefti_cuda *cuda, uint32_t index);
/* Fetch the records of this team's members of other nodes. Collective; does nothing where no link domain spans
 * nodes. */
weft_status wefti_cuda_fetch_records(wefti_cuda *cuda, weft_team *team);

/* Of the heap of a near PE, the bytes that this process has mapped. Any thread. */
uint64_t wefti_cuda_heap_bytes_of(const wefti_cuda *cuda, uint32_t index);
/* Of this PE's heap, the bytes that the process of a near PE has mapped: what that one was no member of a growth for it
 * may lack. Any thread. */
uint64_t wefti_cuda_heap_reach(const wefti_cuda *cuda, uint32_t index);
/* This PE's own is as long as that says now. */
void wefti_cuda_place_heap(wefti_cuda *cuda);
/* Let kernels reach the host memory that the near PEs have reserved by now. The context is current. */
weft_status wefti_cuda_reach_host(wefti_cuda *cuda);
/* The same for that of any PE of this host. */
weft_status wefti_cuda_reach_host_of(wefti_cuda *cuda, int pe);

/* ---- heap/find.c: this PE's device ---- */

weft_status wefti_cuda_find(wefti_cuda *cuda, const weft_device_config *config);
int wefti_cuda_attribute(const wefti_cuda *cuda, CUdevice_attribute which);
/* The properties of an allocation on this PE's device that is shared in this way. */
CUmemAllocationProp wefti_cuda_properties(const wefti_cuda *cuda, wefti_cuda_sharing sharing);
/* Once the sharing is known: the granules of such memory. */
weft_status wefti_cuda_find_granularity(wefti_cuda *cuda);

/* ---- heap/domain.c: who is near ---- */

/* Find this PE's link domain: `pes` PEs of the node in order at most, 0: all that reach each other (WEFT_CUDA_DOMAIN).
 * Collective over the world's team; every PE has filled in its record. The context is current. */
weft_status wefti_cuda_find_domain(wefti_cuda *cuda, weft_team *team, const char *call, uint64_t pes);
void wefti_cuda_domain_fini(wefti_cuda *cuda); /* safe before it was found */
/* Which near PEs are of one process, and that all share memory alike. Records have been fetched. */
weft_status wefti_cuda_study_peers(wefti_cuda *cuda);
/* The devices of this process's near PEs: they may access what it maps. */
int wefti_cuda_near_devices(const wefti_cuda *cuda, CUdevice devices[WEFTI_CUDA_DEVICES_MAX]);

/* ---- heap/trial.c: whether fabric handles work ---- */

typedef struct wefti_cuda_trial {
    CUmemGenericAllocationHandle handle; /* 0: none */
} wefti_cuda_trial;

/* What the fabric of this PE's GPU is; where it counts, its handle for others, of memory that lives until the end. */
void wefti_cuda_trial_open(wefti_cuda *cuda, wefti_cuda_trial *trial, wefti_cuda_gpu_of_pe *gpu);
/* Whether this PE can import and map that memory of another. */
int wefti_cuda_trial_take(const wefti_cuda *cuda, const wefti_cuda_gpu_of_pe *gpu);
void wefti_cuda_trial_close(wefti_cuda *cuda, wefti_cuda_trial *trial); /* safe on zeroed memory */

/* ---- heap/exchange.c: handing an allocation to the other processes of the link domain ---- */

typedef struct wefti_cuda_offer {
    uint64_t number[2]; /* equal on all members, and of no other exchange */
    int takers;
    wefti_os_pass pass;
    int descriptor;
} wefti_cuda_offer;

/* Of one exchange, which goes on until the offer is closed; between the same votes of the team on all members. */
wefti_cuda_offer wefti_cuda_offer_init(const weft_team *team, int takers);
/* Make this PE's allocation ready to be taken: before a vote. Unless it is called this PE offers nothing. */
weft_status wefti_cuda_offer_open(wefti_cuda *cuda, CUmemGenericAllocationHandle handle, wefti_cuda_offer *offer);
void wefti_cuda_offer_close(wefti_cuda_offer *offer); /* safe after a failed open */
/* Hand it out, and take those of others that `wants` says, passing each to `take`, which owns the handle. All members,
 * so many of which want what an owner offers as it counts takers. Goes through all owners even after a failure, and
 * returns the first. */
typedef struct wefti_cuda_taking {
    wefti_cuda_offer *offer;
    int (*wants)(wefti_cuda *cuda, uint32_t index, void *context);
    weft_status (*take)(wefti_cuda *cuda, uint32_t index, CUmemGenericAllocationHandle handle, void *context);
    void *context;
} wefti_cuda_taking;
weft_status wefti_cuda_exchange(wefti_cuda *cuda, const wefti_cuda_taking *taking);

/* ---- heap/grow.c ---- */

/* Have `needed` bytes of the slot of every member mapped by the processes of all; who adds to its own does so up to
 * `wanted`. On failure nothing has changed, unless the team is dead. */
weft_status wefti_cuda_grow_slot(wefti_cuda *cuda, weft_team *team, const char *call, uint64_t needed, uint64_t wanted);
weft_status wefti_cuda_share_by_ipc(wefti_cuda *cuda, weft_team *team, const char *call, uint64_t slot_bytes);

/* ---- heap/region.c ---- */

/* The one after `region`, NULL: the first. */
static inline const wefti_cuda_region *wefti_cuda_region_after(const wefti_cuda *cuda, const wefti_cuda_region *region)
{
    return __atomic_load_n(region == NULL ? &cuda->regions : &region->next, __ATOMIC_ACQUIRE);
}

/* The region that has `bytes` bytes at `address`, *offset from its start; or NULL. Any thread. */
const wefti_cuda_region *wefti_cuda_region_find(const wefti_cuda *cuda, const void *address, uint64_t bytes,
                                                uint64_t *offset);
weft_status wefti_cuda_register(wefti_device *device, weft_team *team, const wefti_registration *what);
weft_status wefti_cuda_deregister(wefti_device *device, weft_team *team, void *address);
void wefti_cuda_regions_fini(wefti_cuda *cuda);

/* ---- stream/launch.c ---- */

/* Find every kernel, and load those that any world may need. The context is current. */
weft_status wefti_cuda_kernels_load(wefti_cuda *cuda);
/* Those that worlds with far PEs need. */
weft_status wefti_cuda_far_kernels_load(const wefti_cuda *cuda);
/* Those that the first collective on a stream brings. */
weft_status wefti_cuda_stream_ready(wefti_device *device);
/* Put a kernel of `blocks` blocks on a stream. `args` is its struct. is_early: its blocks may take their place on the
 * GPU while the kernel before runs, for which they wait then. Any thread. */
weft_status wefti_cuda_launch(const wefti_cuda *cuda, wefti_cuda_kernel kernel, int blocks, int is_early,
                              const void *args, CUstream stream);

/* ---- stream/stream.c ---- */

weft_status wefti_cuda_stream_copy(wefti_device *device, void *to, const void *from, size_t bytes, weft_stream *stream);
weft_status wefti_cuda_stream_sync(wefti_device *device, const weft_dev_team *team, weft_stream *stream);

/* ---- stream/coll_copy.c ---- */

/* Whether copy engines carry this collective: equal on all members. */
int wefti_cuda_copies(const wefti_cuda *cuda, const weft_dev_team *team, const wefti_device_coll *coll);
weft_status wefti_cuda_stream_coll_copy(wefti_device *device, const weft_dev_team *team, const wefti_device_coll *coll,
                                        weft_stream *stream);

/* ---- heap/copy.c ---- */

/* Put a copy between any memory on a stream. The context is current. */
weft_status wefti_cuda_enqueue_copy(const wefti_cuda *cuda, void *to, const void *from, size_t bytes, CUstream stream);
weft_status wefti_cuda_copy(wefti_device *device, void *to, const void *from, size_t bytes);
weft_status wefti_cuda_copy_nbi(wefti_device *device, void *to, const void *from, size_t bytes);
weft_status wefti_cuda_settle(wefti_device *device);
weft_status wefti_cuda_clear(wefti_device *device, void *address, size_t bytes);
weft_status wefti_cuda_amo(wefti_device *device, wefti_amo_op op, int bits, void *word, uint64_t value, uint64_t cond,
                           uint64_t *old);
uintptr_t wefti_cuda_locate(const wefti_device *device, const void *address, int pe, uint64_t *left);

#endif

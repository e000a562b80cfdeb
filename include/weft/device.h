/* weft/device.h: symmetric memory on GPUs, from the host.
 *
 * A world begins with a heap in host memory. weft_device_attach gives it a second one on the PEs' GPUs: each PE's part
 * lies on the GPU that this PE uses, and every PE of the link domain maps all parts at a constant stride; those beyond
 * it are reached through a thread of the library. A link domain is what GPUs reach by load and store: on a host by peer
 * access, between hosts by an NVLink fabric (docs/topology.md; WEFT_CUDA_DOMAIN and WEFT_CUDA_FABRIC limit it). Kernels
 * have a weft_dev (include "weft_device.cuh" in the kernel's source); the host has weft_device_malloc, and weft_putmem,
 * weft_getmem, p, g, put_signal, the atomics, and the wait and test families, which take device addresses where they
 * take symmetric addresses. Several PEs may use one GPU, and one process several GPUs.
 *
 * In those calls the symmetric address is the device one; the other buffer may be host or device memory. A symmetric
 * address of the host heap needs a host buffer (weft_putmem_on_stream takes either). Each look of the host at a device
 * word is a copy of some microseconds.
 *
 * This header needs no CUDA. A build or a machine without CUDA returns WEFT_ERR_UNSUPPORTED and says what is missing;
 * the driver (libcuda.so.1) is loaded when it is first needed. */
#ifndef WEFT_DEVICE_H
#define WEFT_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "weft/device/dev.h"
#include "weft/status.h"
#include "weft/stream_type.h"
#include "weft/team.h"
#include "weft/world.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weft_device_choice {
    WEFT_DEVICE_CURRENT = 0, /* the device of the CUDA context that is current in the calling thread */
    WEFT_DEVICE_ORDINAL = 1 /* the device of this number in this process, through its primary context */
} weft_device_choice;

/* What a team does whose first collective on a stream finds no multiprocessor to claim (weft/stream.h). */
typedef enum weft_device_claims {
    WEFT_DEVICE_CLAIMS_OWN = 0, /* WEFT_ERR_STATE: what is enqueued ends, whatever else waits on the GPU */
    /* It runs its collectives in one block each, which has no claim: so any number of teams have collectives, and
     * kernels that wait for each other may be more than run together, if a program has that many under way at once.
     * A team leaves the last multiprocessors to kernels that want a claim. */
    WEFT_DEVICE_CLAIMS_SHARED = 1
} weft_device_claims;

/* How to attach. Zero is the default of every field but `size`. All but the choice of the device must be equal on all
 * PEs. */
typedef struct weft_device_config {
    size_t size; /* sizeof(weft_device_config) */
    weft_device_choice choice;
    int ordinal; /* WEFT_DEVICE_ORDINAL */
    /* The most the device heap of one PE can grow to: address space, not memory. 0: WEFT_DEVICE_HEAP_MAX, else the
     * memory of the smallest GPU in use. With WEFT_CUDA_VMM=0 the heap cannot grow: it has heap_bytes, or 64 MiB. */
    size_t heap_max_bytes;
    /* Backed by memory at once. 0: WEFT_DEVICE_HEAP, else one granule (2 MiB); the heap grows as it is used. */
    size_t heap_bytes;
    weft_device_claims claims;
} weft_device_config;

#define WEFT_DEVICE_CONFIG_INIT WEFTI_SIZED(weft_device_config)

/* Give the world a device heap. Collective over the world, once; weft_world_create does it at its end when
 * config.device is set. `config` may be NULL. The device lives as long as the world: weft_world_destroy, which is
 * local, ends it; this PE's kernels have ended then, and its CUDA context still lives. (With WEFT_CUDA_VMM=0, whose
 * memory ends with its process's last PE, have a barrier before it.) What every kernel and call may need is loaded
 * here, so that nothing later synchronises the device by itself. Errors are the same on all PEs: WEFT_ERR_UNSUPPORTED
 * (no CUDA in this build, no driver, no GPU, one that cannot do it), WEFT_ERR_ARGUMENT (config, or the number of a GPU
 * that is not there), WEFT_ERR_STATE (no current context; attached already; no multiprocessor free for a proxy),
 * WEFT_ERR_UNREACHABLE (what a PE has mapped is not the other's memory), WEFT_ERR_MEMORY, WEFT_ERR_MISMATCH,
 * WEFT_ERR_TIMEOUT; the text names the PE that lacks something. Nothing is left behind by a failure, and the call may
 * be repeated. */
WEFT_API weft_status weft_device_attach(weft_world *world, const weft_device_config *config) WEFT_MUST_CHECK;

/* What a PE has. */
typedef struct weft_device_info {
    int ordinal; /* of this PE's GPU in this process */
    void *heap; /* this PE's device heap */
    size_t heap_bytes; /* backed by memory now */
    size_t heap_max_bytes;
    const char *memory; /* how parts are shared: "vmm", "ipc", or "vmm-fabric" (a link domain of several hosts; not yet
                         * run on any hardware); static text */
    int host_heap; /* not 0: kernels reach the host heap too */
} weft_device_info;

/* Local; any thread. WEFT_ERR_STATE when the world has no device. */
WEFT_API weft_status weft_device_query(const weft_world *world, weft_device_info *info);

/* Allocate `bytes` bytes of device memory at the same offset on every PE, aligned to 256. Collective over the world
 * (weft_device_team_malloc: over the team), equal arguments everywhere. Contents: undefined. Memory that the heap lacks
 * is added on the PEs that take part and mapped by them, on all or on none; others have no part in it, and nothing of
 * theirs lies there: host calls that name one of them at such an address return WEFT_ERR_RANGE, and kernels must not.
 * Several threads of a PE may allocate over different teams at once. Must not be called while a stream of the thread is
 * being captured. Errors as weft_malloc's. */
WEFT_API weft_status weft_device_malloc(weft_world *world, size_t bytes, void **block) WEFT_MUST_CHECK;
WEFT_API weft_status weft_device_team_malloc(weft_team *team, size_t bytes, void **block) WEFT_MUST_CHECK;

/* Free a block on every PE that took part; collective like the allocation. Kernels that use it have ended on this
 * PE. */
WEFT_API weft_status weft_device_free(weft_world *world, void *block) WEFT_MUST_CHECK;
WEFT_API weft_status weft_device_team_free(weft_team *team, void *block) WEFT_MUST_CHECK;

/* Make memory of the user's symmetric: `bytes` bytes at `address` on every PE, from cudaMalloc or from CUDA VMM with
 * POSIX descriptor handles (inside one allocation). From here on the address is a symmetric one on this PE: weft_ptr,
 * host calls and kernels translate it to the buffer that another PE registered in the same call. The memory stays the
 * caller's and must outlive the registration. Collective over the world (weft_device_team_register: over the team);
 * equal sizes everywhere. PEs that are not in the team have no part in it: host calls that name one of them at such an
 * address return WEFT_ERR_RANGE, kernels must not, and weft_ptr is NULL. A team that is not of all PEs is
 * WEFT_ERR_UNSUPPORTED where the world's GPUs are in several link domains.
 * Up to 65535 buffers at a time (WEFT_ERR_OVERFLOW beyond), which may not overlap (WEFT_ERR_ARGUMENT); kernels that run
 * meanwhile find the others. weft_device_unregister, weft_device_team_unregister: collective over the same, with the
 * same address (WEFT_ERR_ARGUMENT, also of another team), before that team's end; NULL is allowed on all PEs. */
WEFT_API weft_status weft_device_register(weft_world *world, void *address, size_t bytes) WEFT_MUST_CHECK;
WEFT_API weft_status weft_device_team_register(weft_team *team, void *address, size_t bytes) WEFT_MUST_CHECK;
WEFT_API weft_status weft_device_unregister(weft_world *world, void *address) WEFT_MUST_CHECK;
WEFT_API weft_status weft_device_team_unregister(weft_team *team, void *address) WEFT_MUST_CHECK;

/* The same for memory whose parts on all PEs are mapped in this process already, as those of NCCL's windows
 * (ncclGetLsaDevicePointer) or of another library's symmetric memory: `peers` has pes entries, of each PE the address
 * at which its `bytes` bytes begin here, this PE's own being `address`. Nothing is mapped or looked at, so the range
 * may be one of addresses, with memory in places: only what the PE that is named has memory for may be used. The
 * mappings are the caller's and outlive the registration. Collective over the world, equal sizes below 2^46 everywhere;
 * PEs may give different addresses. Ended by weft_device_unregister. WEFT_ERR_UNSUPPORTED where the world's GPUs are in
 * several link domains; else as weft_device_register. */
WEFT_API weft_status weft_device_register_mapped(weft_world *world, void *address, size_t bytes,
                                                 void *const *peers) WEFT_MUST_CHECK;

/* What a kernel needs to know of a world, to be passed to it by value. Local. It stays valid until the world is
 * destroyed, also in a captured graph: the heap may grow. Kernels are compiled with the device headers of the library
 * in use: WEFT_ERR_UNSUPPORTED when the caller was not, and in the waits of a kernel that was not. */
WEFT_INLINE weft_status weft_world_dev(weft_world *world, weft_dev *dev) WEFT_MUST_CHECK;

/* Likewise of a team. Collective over the team the first time (its flags are allocated, cleared and agreed on), local
 * after that; local from the start for the world's team. Never while a stream is being captured. */
WEFT_INLINE weft_status weft_team_dev(weft_team *team, weft_dev_team *dev) WEFT_MUST_CHECK;

/* Set the deadline of this PE's waits inside kernels, also of kernels that run now. It begins as the world's. Local. */
WEFT_API weft_status weft_device_deadline(weft_world *world, uint64_t deadline_ns) WEFT_MUST_CHECK;

/* Kernels that wait for other PEs must be able to run together: those of all PEs of this process on one GPU count here,
 * whatever their world. A PE with far PEs has claimed one for their atomics. take: claim `sms` multiprocessors for a
 * kernel that is about to be launched; WEFT_ERR_STATE when the sum would exceed what the device has. give: return them
 * once it has ended, at most what this PE has claimed. Any thread. */
WEFT_API weft_status weft_device_sms_take(weft_world *world, int sms) WEFT_MUST_CHECK;
WEFT_API weft_status weft_device_sms_give(weft_world *world, int sms);

/* A kernel as CUDA's driver knows it, a CUfunction: from cuModuleGetFunction (NVRTC), or of a __global__ function by
 * cudaGetFuncBySymbol. It is one of this PE's GPU. */
typedef struct weft_kernel weft_kernel;

/* The shape of a launch. Start from WEFT_LAUNCH_INIT. */
typedef struct weft_launch {
    size_t size; /* sizeof(weft_launch) */
    int blocks; /* 0: as many as weft_device_launch_query says */
    int threads; /* of a block, at least 1 */
    size_t shared_bytes; /* dynamic shared memory of a block */
} weft_launch;

#define WEFT_LAUNCH_INIT WEFTI_SIZED(weft_launch)

/* How many blocks of this shape run at the same time on the multiprocessors that nothing claims now, and how many
 * multiprocessors those are: what weft_device_sms_take wants for them. launch->blocks is not read. *blocks is 0 when
 * no multiprocessor is free or has room for one. Local; any thread. (As nvshmemx_collective_launch_query_gridsize.)
 * WEFT_ERR_ARGUMENT (a NULL, no thread), WEFT_ERR_STATE (no device), WEFT_ERR_SYSTEM (what CUDA says of the kernel). */
WEFT_API weft_status weft_device_launch_query(weft_world *world, const weft_kernel *kernel, const weft_launch *launch,
                                              int *blocks, int *sms) WEFT_MUST_CHECK;

/* Launch a kernel whose blocks wait for each other, or for other PEs' kernels: all its blocks run at the same time, or
 * nothing is launched (a cooperative launch, in which grid barriers work too). `arguments` has a pointer to each
 * parameter, as for cuLaunchKernel, read before the call returns; NULL: none. Enqueued on `stream`, and captured when
 * that is. Call it on every PE for whose kernel another one waits. Multiprocessors are claimed by the caller, with
 * weft_device_sms_take. (As nvshmemx_collective_launch.) Errors of weft_device_launch_query; WEFT_ERR_RANGE: more
 * blocks than the whole GPU runs at the same time, or, with launch->blocks 0, none. */
WEFT_API weft_status weft_device_launch(weft_world *world, const weft_kernel *kernel, const weft_launch *launch,
                                        void *const *arguments, weft_stream *stream) WEFT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#include "weft/inline/device.h"

#endif

/* faces/nvshmem/variables.h: the one table of NVSHMEM's environment variables. docs/nvshmem.md shows it; a test
 * compares. */
#ifndef WEFTI_NVSHMEM_VARIABLES_H
#define WEFTI_NVSHMEM_VARIABLES_H

/* What becomes of a variable: it does what it says; something of weft's does that, which one line names when it is
 * set; or there is nothing that it could change, and it may be set. */
typedef enum wefti_nv_kind { WEFTI_NV_TAKEN, WEFTI_NV_INSTEAD, WEFTI_NV_NEEDLESS } wefti_nv_kind;

/* X(NAME behind NVSHMEM_, kind, what it does; what of weft's does that; why it is needless) */
#define WEFTI_NV_VARIABLES(X)                                                                                          \
    X(SYMMETRIC_SIZE, TAKEN, "most bytes of a PE's symmetric heap; k, m, g or t behind, as in 20m or 3.1G")            \
    X(HEAP_KIND, TAKEN, "SYSMEM: the heap is in the host's memory; DEVICE, VIDMEM: in that of the GPUs, if there are") \
    X(VERSION, TAKEN, "1: print the library's version at start-up")                                                    \
    X(INFO, TAKEN, "1: print these variables at start-up")                                                             \
    X(DEBUG, TAKEN, "VERSION as that variable; WARN, INFO, TRACE: weft's log up to its level warn, info, debug")       \
    X(BOOTSTRAP, TAKEN,                                                                                                \
      "PMI: what the launcher offers; MPI: MPI_COMM_WORLD of the MPI that the program has; SHMEM: the PEs of its "     \
      "OpenSHMEM")                                                                                                     \
    X(BOOTSTRAP_UID_SOCK_IFNAME, TAKEN, "interface or address at which unique ids listen")                             \
    X(BOOTSTRAP_PMI, INSTEAD, "WEFT_BOOTSTRAP: pmix, pmi2 or pmi1")                                                    \
    X(BOOTSTRAP_PLUGIN, INSTEAD, "WEFT_BOOTSTRAP=plugin and WEFT_BOOTSTRAP_PLUGIN")                                    \
    X(BOOTSTRAP_UID_SESSION_ID, INSTEAD, "nvshmemx_get_uniqueid, and an init with the id")                             \
    X(BOOTSTRAP_UID_SOCK_FAMILY, INSTEAD, "WEFT_UID_INTERFACE: an address of the family")                              \
    X(REMOTE_TRANSPORT, INSTEAD, "WEFT_TRANSPORT")                                                                     \
    X(HCA_LIST, INSTEAD, "WEFT_NIC_LIST")                                                                              \
    X(HCA_PE_MAPPING, INSTEAD, "WEFT_NIC_MAPPING")                                                                     \
    X(ENABLE_NIC_PE_MAPPING, INSTEAD, "WEFT_NIC_ROUND_ROBIN")                                                          \
    X(IB_GID_INDEX, INSTEAD, "libfabric's own variables, such as FI_VERBS_GID_INDEX")                                  \
    X(IB_ENABLE_IBGDA, INSTEAD, "WEFT_TRANSPORT; kernels reach other nodes through a proxy")                           \
    X(DISABLE_CUDA_VMM, INSTEAD, "WEFT_CUDA_VMM=0")                                                                    \
    X(DISABLE_P2P, INSTEAD, "WEFT_CUDA_DOMAIN=1")                                                                      \
    X(DEBUG_FILE, INSTEAD, "weft's log is on standard error; WEFT_LOG says how much")                                  \
    X(DEBUG_SUBSYS, INSTEAD, "WEFT_LOG")                                                                               \
    X(CUDA_LIMIT_STACK_SIZE, INSTEAD, "cudaDeviceSetLimit(cudaLimitStackSize, ...) in the program")                    \
    X(MAX_CTAS, INSTEAD, "WEFT_COLL, and the claim of multiprocessors that a team makes")                              \
    X(MAX_TEAMS, NEEDLESS, "there can be 1017 teams beside the predefined ones")                                       \
    X(CUMEM_GRANULARITY, NEEDLESS, "the heap grows by what the driver maps at once")                                   \
    X(MAX_MEMORY_PER_GPU, NEEDLESS, "address space is taken for what the heap may grow to")                            \
    X(DISABLE_NCCL, NEEDLESS, "NCCL is not used")                                                                      \
    X(DISABLE_NVLS, NEEDLESS, "multicast memory is not used")                                                          \
    X(DISABLE_MNNVL, INSTEAD, "WEFT_CUDA_FABRIC=0")                                                                    \
    X(REDUCE_SCRATCH_SIZE, NEEDLESS, "scratch of a team is made when it is needed")                                    \
    X(BARRIER_DISSEM_KVAL, NEEDLESS, "barriers have no radix")                                                         \
    X(BARRIER_TG_DISSEM_KVAL, NEEDLESS, "barriers have no radix")                                                      \
    X(PROXY_REQUEST_BATCH_MAX, NEEDLESS, "the proxy takes what is there")                                              \
    X(IGNORE_CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, NEEDLESS, "claims of multiprocessors are counted instead")             \
    X(TMA_POLICY, NEEDLESS, "shared memory that kernels lend is not used")                                             \
    X(CPU_AFFINITY, NEEDLESS, "no thread is pinned")

#endif

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
    X(DEBUG_ATTACH_DELAY, TAKEN, "seconds to sleep in the first init, for a debugger to attach")                       \
    X(BOOTSTRAP_TWO_STAGE, TAKEN, "1: init takes no GPU; the first allocation, barrier or sync of all PEs does")       \
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
    X(CONF_FILE, INSTEAD, "the environment; files are not read")                                                       \
    X(CUDA_PATH, INSTEAD, "LD_LIBRARY_PATH with the directory of libcuda.so.1")                                        \
    X(CUMEM_HANDLE_TYPE, INSTEAD, "WEFT_CUDA_FABRIC")                                                                  \
    X(DISABLE_CE_COLLECTIVES, INSTEAD, "WEFT_CUDA_COPY")                                                               \
    X(HCA_PREFIX, INSTEAD, "WEFT_NIC_LIST")                                                                            \
    X(NETDEVS_POLICY, INSTEAD, "WEFT_NIC_LIST, WEFT_NIC_MAPPING and WEFT_NIC_ROUND_ROBIN")                             \
    X(LIBFABRIC_PROVIDER, INSTEAD, "FI_PROVIDER, libfabric's own")                                                     \
    X(NVTX, INSTEAD, "WEFT_NVTX=1")                                                                                    \
    X(IB_TRAFFIC_CLASS, INSTEAD, "variables of libfabric or UCX, such as UCX_IB_TRAFFIC_CLASS")                        \
    X(IB_SL, INSTEAD, "variables of libfabric or UCX, such as UCX_IB_SL")                                              \
    X(BCAST_ALGO, INSTEAD, "WEFT_COLL")                                                                                \
    X(FCOLLECT_ALGO, INSTEAD, "WEFT_COLL")                                                                             \
    X(REDUCE_ALGO, INSTEAD, "WEFT_COLL")                                                                               \
    X(REDUCESCATTER_ALGO, INSTEAD, "WEFT_COLL")                                                                        \
    X(REDMAXLOC_ALGO, INSTEAD, "WEFT_COLL")                                                                            \
    X(MAX_TEAMS, NEEDLESS, "there can be 1017 teams beside the predefined ones")                                       \
    X(CUMEM_GRANULARITY, NEEDLESS, "the heap grows by what the driver maps at once")                                   \
    X(MAX_MEMORY_PER_GPU, NEEDLESS, "address space is taken for what the heap may grow to")                            \
    X(DISABLE_NCCL, NEEDLESS, "NCCL is not used")                                                                      \
    X(DISABLE_NVLS, NEEDLESS, "multicast memory is not used")                                                          \
    X(DISABLE_MNNVL, INSTEAD, "WEFT_CUDA_FABRIC=0")                                                                    \
    X(LIMIT_PTR_P2P_ACCESS, INSTEAD, "WEFT_CUDA_DOMAIN")                                                               \
    X(REDUCE_SCRATCH_SIZE, NEEDLESS, "scratch of a team is made when it is needed")                                    \
    X(BARRIER_DISSEM_KVAL, NEEDLESS, "barriers have no radix")                                                         \
    X(BARRIER_TG_DISSEM_KVAL, NEEDLESS, "barriers have no radix")                                                      \
    X(PROXY_REQUEST_BATCH_MAX, NEEDLESS, "the proxy takes what is there")                                              \
    X(IGNORE_CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, NEEDLESS, "claims of multiprocessors are counted instead")             \
    X(TMA_POLICY, NEEDLESS, "shared memory that kernels lend is not used")                                             \
    X(TMA_MAX_BLOCKS, NEEDLESS, "shared memory that kernels lend is not used")                                         \
    X(REGION_MAX_SLOTS, NEEDLESS, "regions of blocks are kept in their shared memory")                                 \
    X(CPU_AFFINITY, NEEDLESS, "no thread is pinned")                                                                   \
    X(INFO_HIDDEN, NEEDLESS, "NVSHMEM_INFO prints all")                                                                \
    X(BOOTSTRAP_MPI_PLUGIN, TAKEN, "a name without mpi: an init with a communicator is refused; it is not loaded")     \
    X(BOOTSTRAP_SHMEM_PLUGIN, NEEDLESS, "the bootstraps are part of the library")                                      \
    X(BOOTSTRAP_PMI_PLUGIN, NEEDLESS, "the bootstraps are part of the library")                                        \
    X(BOOTSTRAP_PMI2_PLUGIN, NEEDLESS, "the bootstraps are part of the library")                                       \
    X(BOOTSTRAP_PMIX_PLUGIN, NEEDLESS, "the bootstraps are part of the library")                                       \
    X(BOOTSTRAP_UID_PLUGIN, NEEDLESS, "the bootstraps are part of the library")                                        \
    X(BOOTSTRAP_SHMEM_MODE, NEEDLESS, "the PEs of an OpenSHMEM meet in one way")                                       \
    X(ENABLE_ERROR_CHECKS, NEEDLESS, "calls of the host check their arguments always")                                 \
    X(BYPASS_ACCESSIBILITY_CHECK, NEEDLESS, "peers are reached as their driver says")                                  \
    X(ENABLE_LOGICAL_ENDPOINT, NEEDLESS, "there are no logical endpoints")                                             \
    X(ENABLE_RAIL_OPT, NEEDLESS, "a PE's NIC is near its GPU wherever the heap is")                                    \
    X(DISABLE_NVLS_SHARING, NEEDLESS, "multicast memory is not used")                                                  \
    X(G_BUF_SIZE, NEEDLESS, "gets of one value share no buffer")                                                       \
    X(G_COALESCING_BUF_SIZE, NEEDLESS, "gets of one value share no buffer")                                            \
    X(MAX_PEER_STREAMS, NEEDLESS, "copies are on the caller's stream")                                                 \
    X(DISABLE_LOCAL_ONLY_PROXY, NEEDLESS, "the proxy is there where device memory is not mapped")                      \
    X(FCOLLECT_LL_THRESHOLD, NEEDLESS, "WEFT_COLL or the size chooses")                                                \
    X(FCOLLECT_LL128_THRESHOLD, NEEDLESS, "WEFT_COLL or the size chooses")                                             \
    X(FCOLLECT_NVLS_THRESHOLD, NEEDLESS, "WEFT_COLL or the size chooses")                                              \
    X(REDUCE_NVLS_THRESHOLD, NEEDLESS, "WEFT_COLL or the size chooses")                                                \
    X(REDUCESCATTER_NVLS_THRESHOLD, NEEDLESS, "WEFT_COLL or the size chooses")                                         \
    X(REDUCE_RECEXCH_KVAL, NEEDLESS, "WEFT_COLL or the size chooses")                                                  \
    X(BCAST_TREE_KVAL, NEEDLESS, "WEFT_COLL or the size chooses")                                                      \
    X(FCOLLECT_NTHREADS, NEEDLESS, "kernels of collectives have a size of their own")                                  \
    X(REDUCE_NTHREADS, NEEDLESS, "kernels of collectives have a size of their own")                                    \
    X(REDUCESCATTER_NTHREADS, NEEDLESS, "kernels of collectives have a size of their own")                             \
    X(DISABLE_IB_NATIVE_ATOMICS, NEEDLESS, "atomics of other nodes are done by the PE they go to")                     \
    X(DISABLE_GDRCOPY, NEEDLESS, "GDRCopy is not used")                                                                \
    X(QP_DEPTH, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                                        \
    X(SRQ_DEPTH, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                                       \
    X(TRANSPORT_BATCH_MAX_OPS, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                         \
    X(IB_ADDR_FAMILY, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                                  \
    X(IB_ADDR_RANGE, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                                   \
    X(IB_ROCE_VERSION_NUM, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                             \
    X(IB_TIMEOUT, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                                      \
    X(IB_RETRY_CNT, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                                    \
    X(IB_PKEY_INDEX, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                                   \
    X(IB_ENABLE_RELAXED_ORDERING, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                      \
    X(IB_NUM_RC_PER_DEVICE, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                            \
    X(IB_DISABLE_DMABUF, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                               \
    X(DISABLE_DATA_DIRECT, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                             \
    X(ENABLE_MULTI_PORT, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                               \
    X(LIBFABRIC_PERSONA, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                               \
    X(LIBFABRIC_MAX_NIC_PER_PE, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                        \
    X(LIBFABRIC_PROXY_REQUEST_BATCH_MAX, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")               \
    X(LIBFABRIC_DISABLE_BATCH_RMA, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                     \
    X(LIBFABRIC_SIGNAL_WAIT_SPIN_COUNT, NEEDLESS, "queues and memory of NICs are libfabric's or UCX's")                \
    X(IBGDA_NUM_DCT, NEEDLESS, "kernels reach other nodes through a proxy")                                            \
    X(IBGDA_NUM_DCI, NEEDLESS, "kernels reach other nodes through a proxy")                                            \
    X(IBGDA_NUM_SHARED_DCI, NEEDLESS, "kernels reach other nodes through a proxy")                                     \
    X(IBGDA_DCI_MAP_BY, NEEDLESS, "kernels reach other nodes through a proxy")                                         \
    X(IBGDA_NUM_RC_PER_PE, NEEDLESS, "kernels reach other nodes through a proxy")                                      \
    X(IBGDA_RC_MAP_BY, NEEDLESS, "kernels reach other nodes through a proxy")                                          \
    X(IBGDA_FORCE_NIC_BUF_MEMTYPE, NEEDLESS, "kernels reach other nodes through a proxy")                              \
    X(IBGDA_NUM_REQUESTS_IN_BATCH, NEEDLESS, "kernels reach other nodes through a proxy")                              \
    X(IBGDA_NUM_FETCH_SLOTS_PER_DCI, NEEDLESS, "kernels reach other nodes through a proxy")                            \
    X(IBGDA_NUM_FETCH_SLOTS_PER_RC, NEEDLESS, "kernels reach other nodes through a proxy")                             \
    X(IBGDA_NIC_HANDLER, NEEDLESS, "kernels reach other nodes through a proxy")                                        \
    X(IBGDA_ENABLE_MULTI_PORT, NEEDLESS, "kernels reach other nodes through a proxy")                                  \
    X(GPUNETIO_ENABLE_GDAKI, NEEDLESS, "kernels reach other nodes through a proxy")                                    \
    X(GPUNETIO_NIC_HANDLER, NEEDLESS, "kernels reach other nodes through a proxy")                                     \
    X(GPUNETIO_NUM_RC_PER_PE_GPU, NEEDLESS, "kernels reach other nodes through a proxy")                               \
    X(GPUNETIO_NUM_RC_PER_PE_CPU, NEEDLESS, "kernels reach other nodes through a proxy")                               \
    X(GPUNETIO_NUM_REQUESTS_IN_BATCH, NEEDLESS, "kernels reach other nodes through a proxy")                           \
    X(GPUNETIO_NUM_FETCH_SLOTS_PER_RC, NEEDLESS, "kernels reach other nodes through a proxy")                          \
    X(GPUNETIO_ENABLE_ORDERING_SEMANTIC, NEEDLESS, "kernels reach other nodes through a proxy")

#endif

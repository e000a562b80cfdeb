/* faces/nccl_ep/libnccl.h: a stand-in for NCCL: communicators of threads of one process, which know their size and rank
 * and gather; their device memory is this machine's. */
#ifndef WEFT_TESTS_LIBNCCL_H
#define WEFT_TESTS_LIBNCCL_H

#include <nccl.h>
#include <stddef.h>

/* `ranks` communicators that gather with each other. They live until the process ends. */
void standin_comms(int ranks, ncclComm_t *comms);

/* How often ncclAllGather was called on it. */
int standin_gathers(ncclComm_t comm);

/* From now on ncclCommCuDevice tells this GPU of it; before, it fails. */
void standin_tell_gpu(ncclComm_t comm, int device);

/* The GPU that is current on this thread; -1: none. */
int standin_current_gpu(void);

/* Make a GPU of the fake driver current on this thread, for good. 0: there is none. */
int standin_choose_gpu(int device);

/* A stream of the current GPU, for good; NULL: there is none. */
cudaStream_t standin_stream(void);

ncclResult_t ncclCommCount(ncclComm_t comm, int *count);
ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank);
ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device);
ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream);

#endif

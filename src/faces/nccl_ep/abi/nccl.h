/* nccl.h: what the faces and their examples use of NCCL's interface and of the CUDA runtime's types, so that they build
 * where neither is installed. Programs include the real one. */
#ifndef WEFTI_NCCL_EP_ABI_NCCL_H
#define WEFTI_NCCL_EP_ABI_NCCL_H

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef struct CUstream_st *cudaStream_t;
typedef int cudaError_t;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7
} ncclResult_t;

typedef enum {
    ncclInt8 = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclFloat32 = 7,
    ncclFloat64 = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10,
    ncclFloat8e5m2 = 11
} ncclDataType_t;

#ifdef __cplusplus
extern "C" {
#endif
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int devices, const int *device_list);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
#ifdef __cplusplus
}
#endif

#endif

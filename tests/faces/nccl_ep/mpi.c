/* Goal: a program that MPI starts, as NCCL EP's own test and benchmark are, links libnccl_ep and runs a step: a token
 * of each rank goes to every rank, which doubles it, and comes back as their sum.
 *
 * Method: mpi.sh compiles this by mpicc and runs it by mpirun on the fake driver. NCCL's calls stand here, on MPI's,
 * and are found in the program. Usage: mpi RANKS, of which there must be as many. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "faces/nccl_ep/check.h"

enum { HIDDEN = 32, RANKS_MAX = 8 };

struct ncclComm {
    MPI_Comm comm;
};

ncclResult_t ncclCommCount(ncclComm_t comm, int *count);
ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank);
ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream);

static ncclResult_t result_of(int error)
{
    return error == MPI_SUCCESS ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count)
{
    return result_of(MPI_Comm_size(comm->comm, count));
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank)
{
    return result_of(MPI_Comm_rank(comm->comm, rank));
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    (void)stream;
    if (type != ncclUint8) {
        return ncclInvalidArgument;
    }
    return result_of(MPI_Allgather(send, (int)count, MPI_BYTE, receive, (int)count, MPI_BYTE, comm->comm));
}

static void check(ncclResult_t result, const char *call)
{
    if (result != ncclSuccess) {
        (void)fprintf(stderr, "%s: result %d: %s\n", call, (int)result, weft_last_error());
        (void)MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

#undef OK
#define OK(call) check(call, #call)

/* The first GPU of the fake driver, whose memory is this process's. */
static void choose_gpu(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int (*retain)(void **context, int device) = NULL;
    int (*push)(void *context) = NULL;
    void *context = NULL;
    if (library != NULL) {
        *(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
        *(void **)&push = dlsym(library, "cuCtxPushCurrent_v2");
    }
    if (retain == NULL || push == NULL || retain(&context, 0) != 0 || push(context) != 0) {
        (void)fprintf(stderr, "no fake driver\n");
        (void)MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* One token, with a choice of each rank's only expert. Returns how many elements are wrong. */
static int step(ncclEpGroup_t group, int rank, int ranks)
{
    static _Alignas(16) float x[HIDDEN], y[HIDDEN], rows[RANKS_MAX][HIDDEN];
    static float weights[RANKS_MAX], row_weights[RANKS_MAX];
    static int64_t ids[RANKS_MAX], total;
    size_t one[2] = {1, HIDDEN};
    size_t choices[2] = {1, (size_t)ranks};
    size_t received[2] = {(size_t)ranks, HIDDEN};
    size_t single = 1;
    ncclEpTensor_t idx = tensor(ids, ncclInt64, 2, choices), in_weights = tensor(weights, ncclFloat32, 2, choices);
    ncclEpTensor_t in = tensor(x, ncclFloat32, 2, one), out = tensor(y, ncclFloat32, 2, one);
    ncclEpTensor_t there = tensor(rows, ncclFloat32, 2, received);
    ncclEpTensor_t there_weights = tensor(row_weights, ncclFloat32, 1, received);
    ncclEpTensor_t count = tensor(&total, ncclInt64, 1, &single);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpCombineInputs_t back = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t sums = NCCL_EP_COMBINE_OUTPUTS_INIT;
    ncclEpHandle_t handle = NULL;
    int wrong = 0;
    for (int i = 0; i < ranks; i++) {
        ids[i] = i;
        weights[i] = 1;
    }
    for (int h = 0; h < HIDDEN; h++) {
        x[h] = (float)(rank + h);
    }
    info.recv_total_counter = &count;
    inputs.tokens = &in;
    inputs.topk_weights = &in_weights;
    outputs.tokens = back.tokens = &there;
    outputs.topk_weights = &there_weights;
    sums.tokens = &out;
    OK(ncclEpCreateHandle(&handle, group, NCCL_EP_LAYOUT_EXPERT_MAJOR, &idx, &info, NULL, NULL));
    OK(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL));
    for (int source = 0; source < ranks; source++) {
        for (int h = 0; h < HIDDEN; h++) {
            wrong += rows[source][h] != (float)(source + h);
            rows[source][h] *= 2;
        }
    }
    OK(ncclEpCombine(handle, &back, &sums, NULL, NULL));
    for (int h = 0; h < HIDDEN; h++) {
        wrong += y[h] != 2 * (float)ranks * x[h];
    }
    OK(ncclEpHandleDestroy(handle));
    return wrong + (total != ranks);
}

int main(int argc, char **argv)
{
    struct ncclComm comm = {.comm = MPI_COMM_WORLD};
    ncclEpGroupConfig_t config = NCCL_EP_GROUP_CONFIG_INIT;
    ncclEpGroup_t group = NULL;
    int rank = 0;
    int ranks = 0;
    (void)MPI_Init(&argc, &argv);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2 || ranks != atoi(argv[1]) || ranks > RANKS_MAX) {
        (void)fprintf(stderr, "%d ranks; usage: mpi RANKS, at most %d\n", ranks, (int)RANKS_MAX);
        (void)MPI_Abort(MPI_COMM_WORLD, 1);
    }
    choose_gpu();
    config.algorithm = NCCL_EP_ALGO_HIGH_THROUGHPUT;
    config.num_experts = (unsigned)ranks;
    config.max_dispatch_tokens_per_rank = 1;
    config.max_recv_tokens_per_rank = (unsigned)ranks;
    config.max_token_bytes = HIDDEN * sizeof(float);
    config.num_topk = (unsigned)ranks;
    OK(ncclEpCreateGroup(&group, &comm, &config));
    int wrong = step(group, rank, ranks);
    OK(ncclEpGroupDestroy(group));
    (void)MPI_Finalize();
    if (wrong != 0) {
        (void)fprintf(stderr, "rank %d: %d elements are wrong\n", rank, wrong);
    }
    return wrong != 0;
}

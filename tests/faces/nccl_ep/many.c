/* Goal: masks of a group of more ranks than fit in a word: all are told alive, one is masked and told so, and taken
 * back; and a rank cannot mask itself.
 *
 * Method: 70 PEs as threads on the fake driver, which make a group and no step; each masks for itself, since masks are
 * local. Under AddressSanitizer, too, since a list of so many ranks has outgrown its place before. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "faces/nccl_ep/libnccl.h"
#include "weft.h"
#include <nccl_ep.h>

#define RANKS 70

static int failures;
static pthread_barrier_t meeting;
static ncclComm_t comms[RANKS];

#define IS(value, wanted) expect(__LINE__, (int)(value), (int)(wanted))

static void expect(int line, int got, int wanted)
{
    if (got != wanted && __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED) < 20) {
        (void)fprintf(stderr, "line %d: %d, wanted %d; text \"%s\"\n", line, got, wanted, weft_last_error());
    }
}

/* Every rank is alive but `gone`. */
static void check_all(ncclEpGroup_t group, int gone)
{
    int mask[RANKS];
    IS(ncclEpMaskQuery(group, mask, NULL), ncclSuccess);
    for (int rank = 0; rank < RANKS; rank++) {
        IS(mask[rank], rank != gone);
    }
}

static void mask_one(ncclEpGroup_t group, int self, int gone)
{
    int mask[RANKS];
    for (int rank = 0; rank < RANKS; rank++) {
        mask[rank] = rank != gone;
    }
    IS(ncclEpMaskUpdate(group, mask, NULL), gone == self ? ncclInvalidArgument : ncclSuccess);
    check_all(group, gone == self ? -1 : gone);
    IS(ncclEpMaskClean(group, NULL), ncclSuccess);
    check_all(group, -1);
}

static void choose_gpu(int device)
{
    if (!standin_choose_gpu(device)) {
        (void)fprintf(stderr, "no GPU of the fake driver\n");
        exit(1);
    }
}

static void *run(void *argument)
{
    const int rank = (int)((ncclComm_t *)argument - comms);
    const int gone[] = {0, 31, 32, 63, 64, RANKS - 1};
    ncclEpGroup_t group = NULL;
    ncclEpGroupConfig_t config = NCCL_EP_GROUP_CONFIG_INIT;
    choose_gpu(rank % 2);
    config.algorithm = NCCL_EP_ALGO_LOW_LATENCY;
    config.num_experts = RANKS;
    config.max_dispatch_tokens_per_rank = 1;
    config.max_token_bytes = 16;
    config.num_topk = 1;
    config.enable_mask = 1;
    IS(ncclEpCreateGroup(&group, comms[rank], &config), ncclSuccess);
    if (group == NULL) {
        exit(1);
    }
    check_all(group, -1);
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
        mask_one(group, rank, gone[i]);
    }
    (void)pthread_barrier_wait(&meeting);
    IS(ncclEpGroupDestroy(group), ncclSuccess);
    return NULL;
}

int main(void)
{
    pthread_t threads[RANKS];
    standin_comms(RANKS, comms);
    if (pthread_barrier_init(&meeting, NULL, RANKS) != 0) {
        return 1;
    }
    for (int rank = 0; rank < RANKS; rank++) {
        if (pthread_create(&threads[rank], NULL, run, &comms[rank]) != 0) {
            return 1;
        }
    }
    for (int rank = 0; rank < RANKS; rank++) {
        (void)pthread_join(threads[rank], NULL);
    }
    return failures != 0;
}

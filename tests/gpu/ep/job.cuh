/* ep/job.cuh: what the tests of expert parallelism on GPUs have of a PE. */
#ifndef EP_JOB_CUH
#define EP_JOB_CUH

#include "support/arena.h"
#include "support/early_memory.h"

extern "C" {
#include "support/ep_combining.h"
#include "support/ep_coverage.h"
#include "support/ep_group.h"
#include "support/ep_step.h"
}

#define FEW_PES 16 /* more have small cases without a GPU, whose threads are as many as it has */
#define DEADLINE_NS UINT64_C(4000000000)

typedef struct job {
    test_pe *pe;
    weft_world *world;
    ep_memory memory;
    uint64_t own;
    unsigned salt;
    int sms; /* that nobody had claimed at first */
    double made_s; /* spent on making and destroying groups and routes */
    char what[160];
} job;

[[maybe_unused]] static weft_ep_config small_config(int experts)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = experts;
    config.tokens_max = 8;
    config.topk_max = 2;
    config.row_bytes_max = 64;
    config.on_device = 1;
    return config;
}

#endif

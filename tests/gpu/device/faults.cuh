/* device/faults.cuh: waits that cannot succeed, and what does not exist. */
#ifndef DEVICE_FAULTS_CUH
#define DEVICE_FAULTS_CUH

#include "device/barriers.cuh"
#include "device/signals.cuh"
#include "device/strided.cuh"
#include "device/words.cuh"

/* Waits that cannot succeed: each in a world of its own, since the fault stays. */
static void test_deadline(test_pe *pe, int way)
{
    static const char *const stages[] = {
        "a sync that one PE does not enter", "a signal that never comes", "an abort",
        "a PE that does not exist",          "elements beyond the heap",  "a stride of 0",
        "a kernel of other headers"};
    bench all;
    weft_dev_team team;
    int culprit = -2;
    pe->stage = stages[way];
    bench_open(pe, &all, test_world(pe, "deadline", 0, 0));
    OK(pe, weft_device_deadline(all.world, way == 2                ? UINT64_C(15000000000)
                                           : all.dev.far_count > 0 ? UINT64_C(600000000)
                                                                   : UINT64_C(200000000)));
    OK(pe, weft_team_dev(weft_team_world(all.world), &team));
    OK(pe, weft_barrier(all.world));
    double start = now_s();
    weft_status expected = WEFT_ERR_TIMEOUT;
    int expected_culprit = pe->pes - 1;
    int status = WEFT_OK;
    if (way == 0) {
        if (pe->pe != pe->pes - 1 && pe->pes > 1) {
            LAUNCH_KIND(sync_kernel, pe->pe % KINDS, pe, 0, team, all.status);
            status = read_status(pe, all.world, all.status);
        } else {
            expected = WEFT_OK;
            usleep(all.dev.far_count > 0 ? 1500000 : 0); /* who leaves is missed sooner */
        }
    } else if (way == 1) {
        LAUNCH(wait_kernel, 1, 1, 0, pe, all.dev, all.words, pe->pes - 1, all.status);
        status = read_status(pe, all.world, all.status);
    } else if (way == 2) {
        expected = WEFT_ERR_ABORTED;
        expected_culprit = 0;
#if ON_GPU
        LAUNCH(wait_kernel, 1, 1, 0, pe, all.dev, all.words, -1, all.status);
#endif
        if (pe->pe == 0) {
            usleep(100000);
            OK(pe, weft_world_abort(all.world, 7));
        }
#if !ON_GPU
        LAUNCH(wait_kernel, 1, 1, 0, pe, all.dev, all.words, -1, all.status);
#endif
        status = read_status(pe, all.world, all.status);
    } else if (way == 6) {
        weft_dev other = all.dev;
        other.abi++;
        expected = WEFT_ERR_UNSUPPORTED;
        expected_culprit = pe->pe;
        LAUNCH(wait_kernel, 1, 1, 0, pe, other, all.words, pe->pes - 1, all.status);
        status = read_status(pe, all.world, all.status);
    } else if (way >= 4) {
        const int is_range = way == 4;
        expected = is_range ? WEFT_ERR_RANGE : WEFT_ERR_ARGUMENT;
        expected_culprit = is_range ? (pe->pe + 1) % pe->pes : pe->pe;
        LAUNCH((strided_kernel<WEFTI_SCOPE_THREAD, uint64_t>), 1, 1, 0, pe, all.dev, all.words, all.words, all.words,
               is_range ? 1 << 30 : 0, 1, (wefti_u64)1 << 60, (pe->pe + 1) % pe->pes, all.status);
        status = read_status(pe, all.world, all.status);
    } else {
        expected = WEFT_ERR_RANGE;
        expected_culprit = pe->pes;
        LAUNCH(p_kernel<uint64_t>, 1, 1, 0, pe, all.dev, all.words, (uint64_t)1, pe->pes, all.status);
        status = read_status(pe, all.world, all.status);
    }
    CHECK_SAY(pe, status == expected, "%s", weft_status_name((weft_status)status));
    CHECK_SAY(pe, now_s() - start < 10, "%.1f s", now_s() - start);
    CHECK_SAY(pe,
              weft_world_fault(all.world, &culprit) == expected && (expected == WEFT_OK || culprit == expected_culprit),
              "culprit %d", culprit);
    if (expected != WEFT_OK) {
        CHECK(pe, weft_barrier(all.world) == expected);
    }
    OK(pe, weft_world_destroy(all.world));
}

#endif

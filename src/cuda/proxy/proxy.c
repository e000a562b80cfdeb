/* cuda/proxy/proxy.c: the thread. It never waits for one PE: whatever can be done for any of them is done. */
#include "cuda/proxy/far.h"

void wefti_far_latch(wefti_cuda_far *far, weft_status status, int culprit)
{
    const wefti_cuda *cuda = far->cuda;
    const wefti_dev_control *control = (const wefti_dev_control *)(const void *)cuda->slot;
    const wefti_cuda_word_args args = {
        .what = WEFTI_CUDA_AMO,
        .op = WEFTI_AMO_COMPARE_SWAP,
        .bits = 64,
        .at = (uintptr_t)&control->fault,
        .value = WEFTI_DEV_FAULT_SET | (uint64_t)(uint32_t)(culprit + 1) << 32 | (uint32_t)-status,
    };
    wefti_world_latch(cuda->world, status, culprit);
    if (wefti_cuda_launch(cuda, WEFTI_CUDA_KERNEL_word, 1, 0, &args, far->stream) == WEFT_OK) {
        (void)cuda->driver.cuStreamSynchronize(far->stream);
    }
}

/* Take the requests of a ring in order: one that cannot be taken yet holds up those behind it. */
static int drain(wefti_cuda_far *far, wefti_far_ring *ring)
{
    int worked = 0;
    for (wefti_dev_entry *entry = wefti_far_ring_peek(ring); entry != NULL; entry = wefti_far_ring_peek(ring)) {
        wefti_far_lane *lane = &far->lanes[far->lane_of[entry->pe]];
        int taken;
        if (wefti_far_is_direct(&entry->request)) {
            taken = wefti_far_do_direct(far, lane, ring, entry);
        } else {
            (void)wefti_far_flush(far); /* before a message that comes after it */
            taken = wefti_far_send(far, lane, ring, entry);
        }
        if (!taken) {
            break;
        }
        worked = 1;
    }
    return worked;
}

static int look_round(wefti_cuda_far *far)
{
    int worked = 0;
    for (uint32_t i = 0; i < far->lane_count; i++) {
        if (far->lanes[i].has_mail) {
            worked |= wefti_far_serve(far, &far->lanes[i]);
            worked |= wefti_far_collect(far, &far->lanes[i]);
        }
    }
    for (size_t i = 0; i < WEFTI_FAR_RINGS; i++) {
        worked |= drain(far, &far->rings[i]);
    }
    worked |= wefti_far_flush(far);
    for (size_t i = 0; i < WEFTI_FAR_RINGS; i++) {
        worked |= wefti_far_ring_advance(&far->rings[i]);
    }
    return worked;
}

static int is_idle(const wefti_cuda_far *far)
{
    int idle = 1;
    for (size_t i = 0; i < WEFTI_FAR_RINGS; i++) {
        idle &= far->rings[i].done == far->rings[i].next && wefti_far_ring_peek(&far->rings[i]) == NULL;
    }
    return idle;
}

void wefti_far_run(void *argument)
{
    wefti_cuda_far *far = argument;
    const weft_world *world = far->cuda->world;
    uint64_t rest_ns = wefti_os_now_ns(); /* since when there has been nothing to do */
    uint64_t end_ns = 0;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (wefti_cuda_enter(far->cuda) != WEFT_OK) {
        return; /* who asks for something finds out at the deadline */
    }
    (void)far->cuda->driver.cuThreadExchangeStreamCaptureMode(
        &mode); /* a capture by another thread is no concern of this */
    for (;;) {
        const int is_ending = __atomic_load_n(&far->is_ending, __ATOMIC_ACQUIRE);
        if (look_round(far)) {
            rest_ns = wefti_os_now_ns();
            continue;
        }
        const uint64_t now = wefti_os_now_ns();
        end_ns = is_ending && end_ns == 0 ? now : end_ns;
        if (is_ending && (is_idle(far) || now - end_ns > world->deadline_ns ||
                          __atomic_load_n(&world->fault, __ATOMIC_ACQUIRE) != 0)) {
            break;
        }
        wefti_os_pause(far->rings[0].shared, "requests", now - rest_ns, UINT64_MAX, 1);
    }
    wefti_cuda_leave(far->cuda);
}

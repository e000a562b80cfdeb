/* cuda/proxy/proxy.c: the thread. It never waits for one PE: whatever can be done for any of them is done. */
#include "cuda/proxy/far.h"

/* Take the requests of a ring in order, each into its PE's lane: what has to wait there holds up no other PE's. */
static int drain(wefti_cuda_far *far, wefti_far_ring *ring)
{
    int worked = 0;
    for (const wefti_dev_entry *entry = wefti_far_ring_peek(ring); entry != NULL; entry = wefti_far_ring_peek(ring)) {
        wefti_far_lane *lane = &far->lanes[far->lane_of[entry->pe]];
        wefti_far_task *task = wefti_far_ring_take(ring);
        if (lane->first == NULL) {
            lane->first = task;
        } else {
            lane->last->next = task;
        }
        lane->last = task;
        worked = 1;
    }
    return worked;
}

/* Begin the lane's requests in order: one that has to wait holds up those behind it. */
static int begin(wefti_cuda_far *far, wefti_far_lane *lane)
{
    int worked = 0;
    while (lane->first != NULL) {
        wefti_far_task *task = lane->first;
        wefti_far_task *next = task->next; /* once it is done its entry may be filled again */
        int is_begun;
        if (wefti_far_is_direct(&wefti_far_ring_entry(task->ring, task->ticket)->request)) {
            is_begun = wefti_far_do_direct(far, lane, task);
        } else {
            (void)wefti_far_flush(far); /* before a message that comes after it */
            is_begun = wefti_far_make(far, lane, task);
        }
        if (!is_begun) {
            break;
        }
        lane->first = next;
        worked = 1;
    }
    return worked | (lane->has_mail ? wefti_far_send(far, lane) : 0);
}

static int look_round(wefti_cuda_far *far)
{
    int worked = 0;
    for (uint32_t i = 0; i < far->lane_count; i++) {
        worked |= far->lanes[i].has_mail ? wefti_far_serve(far, &far->lanes[i]) : 0;
    }
    worked |= wefti_far_reply(far);
    for (size_t i = 0; i < WEFTI_FAR_RINGS; i++) {
        worked |= drain(far, &far->rings[i]);
    }
    for (uint32_t i = 0; i < far->lane_count; i++) {
        worked |= far->lanes[i].has_mail ? wefti_far_collect(far, &far->lanes[i]) : 0;
        worked |= begin(far, &far->lanes[i]);
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

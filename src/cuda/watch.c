/* cuda/watch.c: kernels that wait without a deadline. A kernel cannot see that a PE has ended, and the host may be
 * inside a call of CUDA. So a thread looks now and then, and latches what it finds as the kernels' own fault, at which
 * they look. */
#include "base/alloc.h"
#include "base/error.h"
#include "cuda/device.h"

#define LOOK_NS 200000000u
#define REST_NS 20000000u /* how long an end may have to wait for the thread */

struct wefti_cuda_watch {
    wefti_cuda *cuda;
    wefti_os_thread *thread;
    int is_ending; /* atomic */
};

/* Latch it in device memory, and where the host looks; both spell it alike. A fault that is there already stays. */
static void tell_kernels(wefti_cuda *cuda, int pe)
{
    wefti_dev_control *control = (wefti_dev_control *)(void *)cuda->slot;
    const uint64_t fault = WEFTI_DEV_FAULT_SET | (uint64_t)(uint32_t)(pe + 1) << 32 | (uint32_t)-WEFT_ERR_PEER;
    uint64_t before = 0;
    (void)wefti_cas64(&cuda->world->control->device_fault, 0, fault);
    if (wefti_cuda_copy(&cuda->base, &before, &control->fault, sizeof before) == WEFT_OK && before == 0) {
        (void)wefti_cuda_copy(&cuda->base, &control->fault, &fault, sizeof fault);
    }
}

static int find_lost(const weft_world *world)
{
    int pe = (int)world->view.pes - 1;
    while (pe >= 0 && !wefti_world_is_lost(world, pe)) {
        pe--;
    }
    return pe;
}

static void watch(void *argument)
{
    wefti_cuda_watch *w = argument;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    uint64_t looked_ns = wefti_os_now_ns();
    (void)w->cuda->driver.cuThreadExchangeStreamCaptureMode(
        &mode); /* a capture by another thread is no concern of this */
    while (!__atomic_load_n(&w->is_ending, __ATOMIC_ACQUIRE)) {
        wefti_os_sleep_ns(REST_NS);
        if (wefti_os_now_ns() - looked_ns < LOOK_NS) {
            continue;
        }
        int pe = find_lost(w->cuda->world);
        if (pe >= 0) {
            tell_kernels(w->cuda, pe);
            return;
        }
        looked_ns = wefti_os_now_ns();
    }
}

weft_status wefti_cuda_watch_open(wefti_cuda *cuda)
{
    if (cuda->world->deadline_ns != WEFT_FOREVER) {
        return WEFT_OK;
    }
    cuda->watch = wefti_alloc_zeroed(1, sizeof *cuda->watch);
    if (cuda->watch == NULL) {
        return wefti_error(WEFT_ERR_MEMORY,
                           "weft_device_attach: no memory for a thread that looks for PEs that have ended");
    }
    cuda->watch->cuda = cuda;
    return wefti_os_thread_start(&cuda->watch->thread, watch, cuda->watch);
}

void wefti_cuda_watch_close(wefti_cuda *cuda)
{
    if (cuda->watch != NULL && cuda->watch->thread != NULL) {
        __atomic_store_n(&cuda->watch->is_ending, 1, __ATOMIC_RELEASE);
        wefti_os_thread_join(cuda->watch->thread);
    }
    wefti_free(cuda->watch);
    cuda->watch = NULL;
}

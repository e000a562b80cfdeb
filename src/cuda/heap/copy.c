/* cuda/heap/copy.c: the host's accesses to device memory: copies on the device's own stream, atomics by a kernel of one
 * thread. Each but those of wefti_cuda_copy_nbi is complete on return. */
#include <string.h>

#include "cuda/device.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Memory of GPUs, this PE's or a near one's. */
static int is_in_window(const wefti_cuda *cuda, const void *address, size_t bytes)
{
    const uint64_t offset = (uint64_t)(uintptr_t)address - cuda->window->base;
    return offset < cuda->window->bytes && bytes <= cuda->window->bytes - offset;
}

#define PAGE_BYTES ((size_t)4096)

static size_t to_page_end(const void *address)
{
    return PAGE_BYTES - (uintptr_t)address % PAGE_BYTES;
}

/* The driver copies no memory of the host of which a part is locked and a part is not, as where a program registered a
 * few words of a page: such memory is copied page by page. */
static CUresult issue(const wefti_cuda *cuda, const unsigned char *to, const unsigned char *from, size_t bytes,
                      CUstream stream)
{
    CUresult issued =
        cuda->driver.cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes, stream);
    if (issued != CUDA_ERROR_INVALID_VALUE) {
        return issued;
    }
    issued = CUDA_SUCCESS;
    for (size_t done = 0; done < bytes && issued == CUDA_SUCCESS;) {
        const size_t page = least(to_page_end(to + done), to_page_end(from + done));
        const size_t span = least(page, bytes - done);
        issued = cuda->driver.cuMemcpyAsync((CUdeviceptr)(uintptr_t)(to + done), (CUdeviceptr)(uintptr_t)(from + done),
                                            span, stream);
        done += span;
    }
    return issued;
}

/* Between memory of GPUs the driver need not find out what the addresses are. */
weft_status wefti_cuda_enqueue_copy(const wefti_cuda *cuda, void *to, const void *from, size_t bytes, CUstream stream)
{
    CUresult issued = CUDA_SUCCESS;
    if (is_in_window(cuda, to, bytes) && is_in_window(cuda, from, bytes)) {
        issued =
            cuda->driver.cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes, stream);
        return wefti_cuda_check(&cuda->driver, issued, "cuMemcpyDtoDAsync");
    }
    for (size_t done = 0; done < bytes && issued == CUDA_SUCCESS;) {
        unsigned char *dest = (unsigned char *)to + done;
        const unsigned char *source = (const unsigned char *)from + done;
        const size_t span = least(wefti_cuda_window_host_span(cuda->window, dest, bytes - done),
                                  wefti_cuda_window_host_span(cuda->window, source, bytes - done));
        issued = issue(cuda, dest, source, span, stream);
        done += span;
    }
    return wefti_cuda_check(&cuda->driver, issued, "cuMemcpyAsync");
}

static weft_status synchronise(wefti_cuda *cuda, CUresult issued, const char *call)
{
    WEFT_TRY(wefti_cuda_check(&cuda->driver, issued, call));
    return wefti_cuda_check(&cuda->driver, cuda->driver.cuStreamSynchronize(cuda->stream), "cuStreamSynchronize");
}

weft_status wefti_cuda_copy(wefti_device *device, void *to, const void *from, size_t bytes)
{
    wefti_cuda *cuda = wefti_cuda_of(device);
    int has_entered;
    WEFT_TRY(wefti_cuda_enter_other(cuda, &has_entered));
    weft_status status = wefti_cuda_enqueue_copy(cuda, to, from, bytes, cuda->stream);
    if (status == WEFT_OK) {
        status = synchronise(cuda, CUDA_SUCCESS, "cuMemcpyAsync");
    }
    wefti_cuda_leave_other(cuda, has_entered);
    return status;
}

weft_status wefti_cuda_copy_nbi(wefti_device *device, void *to, const void *from, size_t bytes)
{
    wefti_cuda *cuda = wefti_cuda_of(device);
    int has_entered;
    WEFT_TRY(wefti_cuda_enter_other(cuda, &has_entered));
    weft_status status = wefti_cuda_enqueue_copy(cuda, to, from, bytes, cuda->stream);
    /* counted once it is on the stream, where a settle that has seen the count waits for it */
    (void)__atomic_add_fetch(&cuda->copies_begun, 1, __ATOMIC_RELEASE);
    wefti_cuda_leave_other(cuda, has_entered);
    return status;
}

weft_status wefti_cuda_settle(wefti_device *device)
{
    wefti_cuda *cuda = wefti_cuda_of(device);
    const uint64_t begun = __atomic_load_n(&cuda->copies_begun, __ATOMIC_ACQUIRE);
    uint64_t settled = __atomic_load_n(&cuda->copies_settled, __ATOMIC_ACQUIRE);
    int has_entered;
    if (settled >= begun) {
        return WEFT_OK;
    }
    WEFT_TRY(wefti_cuda_enter_other(cuda, &has_entered));
    weft_status status = synchronise(cuda, CUDA_SUCCESS, "cuStreamSynchronize");
    while (
        status == WEFT_OK && settled < begun &&
        !__atomic_compare_exchange_n(&cuda->copies_settled, &settled, begun, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
    wefti_cuda_leave_other(cuda, has_entered);
    return status;
}

weft_status wefti_cuda_clear(wefti_device *device, void *address, size_t bytes)
{
    wefti_cuda *cuda = wefti_cuda_of(device);
    WEFT_TRY(wefti_cuda_enter(cuda));
    CUresult issued = cuda->driver.cuMemsetD8Async((CUdeviceptr)(uintptr_t)address, 0, bytes, cuda->stream);
    weft_status status = synchronise(cuda, issued, "cuMemsetD8Async");
    wefti_cuda_leave(cuda);
    return status;
}

weft_status wefti_cuda_amo(wefti_device *device, wefti_amo_op op, int bits, void *word, uint64_t value, uint64_t cond,
                           uint64_t *old)
{
    wefti_cuda *cuda = wefti_cuda_of(device);
    WEFT_TRY(wefti_cuda_enter(cuda));
    wefti_os_monitor_enter(cuda->stream_lock); /* amo_old is the one place for results */
    *(volatile uint64_t *)cuda->amo_old = 0;
    const wefti_cuda_word_args args = {
        .what = WEFTI_CUDA_AMO,
        .op = (int)op,
        .bits = bits,
        .at = (uintptr_t)word,
        .value = value,
        .cond = cond,
        .old = (uintptr_t)cuda->amo_old,
    };
    weft_status status = wefti_cuda_launch(cuda, WEFTI_CUDA_KERNEL_word, 1, 0, &args, cuda->stream);
    if (status == WEFT_OK) {
        status = synchronise(cuda, CUDA_SUCCESS, "cuLaunchKernel");
    }
    if (status == WEFT_OK) {
        *old = *(volatile uint64_t *)cuda->amo_old;
    }
    wefti_os_monitor_leave(cuda->stream_lock);
    wefti_cuda_leave(cuda);
    return status;
}

static uintptr_t shift(const void *address, int64_t delta)
{
    return delta == WEFTI_DEV_FAR ? 0 : (uintptr_t)address + (uintptr_t)delta;
}

uintptr_t wefti_cuda_locate(const wefti_device *device, const void *address, int pe, uint64_t *left)
{
    const wefti_cuda *cuda = wefti_cuda_of(device);
    uint32_t index = (uint32_t)pe - cuda->near_first;
    uint64_t offset = (uint64_t)((uintptr_t)address - (uintptr_t)device->heap);
    const uint64_t own = __atomic_load_n(&device->heap_bytes, __ATOMIC_ACQUIRE);
    if (index >= cuda->near_count) {
        return 0;
    }
    if (offset < own) {
        const uint64_t theirs = cuda->group[index] < 0 ? own : wefti_cuda_heap_bytes_of(cuda, index);
        *left =
            offset < theirs ? (theirs < own ? theirs : own) - offset : 0; /* what a team's growth passed them over */
        return *left == 0 ? 0 : shift(address, cuda->delta[index]);
    }
    const wefti_cuda_region *region = wefti_cuda_region_find(cuda, address, 1, &offset);
    if (region == NULL) {
        return 0;
    }
    *left = cuda->group[index] >= 0 && region->delta[index] == WEFTI_DEV_FAR ? 0 : region->bytes - offset;
    return shift(address, region->delta[index]);
}

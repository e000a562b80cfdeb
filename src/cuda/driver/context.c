/* cuda/driver/context.c: the context of a PE's device, and the library's own streams in it. */
#include "cuda/device.h"
#include "cuda/driver/process_lock.h"
#include "os/os.h"

weft_status wefti_cuda_enter(const wefti_cuda *cuda)
{
    return wefti_cuda_check(&cuda->driver, cuda->driver.cuCtxPushCurrent(cuda->context), "cuCtxPushCurrent");
}

void wefti_cuda_leave(const wefti_cuda *cuda)
{
    CUcontext gone;
    (void)cuda->driver.cuCtxPopCurrent(&gone);
}

weft_status wefti_cuda_enter_other(const wefti_cuda *cuda, int *has_entered)
{
    CUcontext current = NULL;
    *has_entered = cuda->driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != cuda->context;
    return *has_entered ? wefti_cuda_enter(cuda) : WEFT_OK;
}

void wefti_cuda_leave_other(const wefti_cuda *cuda, int has_entered)
{
    if (has_entered) {
        wefti_cuda_leave(cuda);
    }
}

/* ---- streams ---- */

/* A GPU's, with the PEs of this process that use it. What a fork has copied means nothing. */
static struct shared_stream {
    int holder; /* the process of which a thread changes this; atomic */
    int owner; /* the process whose stream this is */
    int users;
    CUcontext context;
    CUstream stream;
} shared_streams[WEFTI_CUDA_DEVICES_MAX][WEFTI_CUDA_STREAM_USES];

static struct shared_stream *lock_stream(const wefti_cuda *cuda, wefti_cuda_stream_use use)
{
    struct shared_stream *shared = &shared_streams[cuda->ordinal][use];
    const int mine = wefti_os_owner_number();
    wefti_cuda_process_lock(&shared->holder);
    if (shared->owner != mine) {
        shared->owner = mine;
        shared->users = 0;
    }
    return shared;
}

static weft_status create_stream(const wefti_cuda *cuda, CUstream *stream)
{
    const wefti_cuda_driver *driver = &cuda->driver;
    int least = 0;
    int greatest = 0;
    WEFT_TRY(wefti_cuda_check(driver, driver->cuCtxGetStreamPriorityRange(&least, &greatest),
                              "cuCtxGetStreamPriorityRange"));
    return wefti_cuda_check(driver, driver->cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, greatest),
                            "cuStreamCreateWithPriority");
}

weft_status wefti_cuda_stream_join(const wefti_cuda *cuda, wefti_cuda_stream_use use, CUstream *stream)
{
    struct shared_stream *shared = lock_stream(cuda, use);
    const int is_other = shared->users > 0 && shared->context != cuda->context;
    weft_status status = WEFT_OK;
    if (is_other || shared->users == 0) {
        status = create_stream(cuda, stream);
    } else {
        *stream = shared->stream;
    }
    if (status == WEFT_OK && !is_other) {
        shared->users++;
        shared->context = cuda->context;
        shared->stream = *stream;
    }
    wefti_cuda_process_unlock(&shared->holder);
    return status;
}

void wefti_cuda_stream_leave(const wefti_cuda *cuda, wefti_cuda_stream_use use, CUstream stream)
{
    struct shared_stream *shared = lock_stream(cuda, use);
    const int is_shared = shared->users > 0 && shared->stream == stream;
    if (is_shared) {
        shared->users--;
    }
    if (!is_shared || shared->users == 0) {
        (void)cuda->driver.cuStreamDestroy(stream);
    }
    wefti_cuda_process_unlock(&shared->holder);
}

/* cuda/proxy/marks.c: how far a stream is, without waiting for it: an event behind what was put there. */
#include "cuda/proxy/far.h"

weft_status wefti_far_stream_open(wefti_cuda_far *far, wefti_cuda_stream_use use, wefti_far_stream *stream)
{
    const wefti_cuda_driver *driver = &far->cuda->driver;
    WEFT_TRY(wefti_cuda_stream_join(far->cuda, use, &stream->stream));
    for (size_t i = 0; i < WEFTI_FAR_MARKS; i++) {
        WEFT_TRY(wefti_cuda_check(driver, driver->cuEventCreate(&stream->events[i], CU_EVENT_DISABLE_TIMING),
                                  "cuEventCreate"));
    }
    return WEFT_OK;
}

void wefti_far_stream_close(wefti_cuda_far *far, wefti_cuda_stream_use use, wefti_far_stream *stream)
{
    const wefti_cuda_driver *driver = &far->cuda->driver;
    if (stream->stream == NULL) {
        return;
    }
    (void)driver->cuStreamSynchronize(stream->stream);
    for (size_t i = 0; i < WEFTI_FAR_MARKS; i++) {
        if (stream->events[i] != NULL) {
            (void)driver->cuEventDestroy(stream->events[i]);
        }
    }
    wefti_cuda_stream_leave(far->cuda, use, stream->stream);
}

/* A failure of the stream's work stays: its order has no meaning any more. */
static void fail(wefti_cuda_far *far, wefti_far_stream *stream, CUresult result, const char *call)
{
    const weft_status status = wefti_cuda_check(&far->cuda->driver, result, call);
    stream->status = stream->status == WEFT_OK ? status : stream->status;
}

int wefti_far_can_mark(const wefti_far_stream *stream)
{
    return stream->set - stream->passed < WEFTI_FAR_MARKS;
}

uint64_t wefti_far_mark(wefti_cuda_far *far, wefti_far_stream *stream)
{
    fail(far, stream, far->cuda->driver.cuEventRecord(stream->events[stream->set % WEFTI_FAR_MARKS], stream->stream),
         "cuEventRecord");
    return ++stream->set;
}

uint64_t wefti_far_mark_now(wefti_cuda_far *far, wefti_far_stream *stream)
{
    fail(far, stream, far->cuda->driver.cuStreamSynchronize(stream->stream), "cuStreamSynchronize");
    stream->passed = stream->set;
    return stream->passed;
}

int wefti_far_has_passed(wefti_cuda_far *far, wefti_far_stream *stream, uint64_t mark)
{
    while (stream->passed < mark) {
        const CUresult result = far->cuda->driver.cuEventQuery(stream->events[stream->passed % WEFTI_FAR_MARKS]);
        if (result == CUDA_ERROR_NOT_READY) {
            return 0;
        }
        fail(far, stream, result, "cuEventQuery");
        stream->passed++;
    }
    return 1;
}

/* testing/fake_driver/streams.c: copies, streams and events: all is done at once, but for copies that are late. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "testing/fake_driver/libcuda.h"
#include "weft/protocol/wait.h"

static __thread unsigned long copies;
static __thread unsigned long long copies_ns;

/* How many streams the process has made and not destroyed. */
static int streams; /* atomic */
FAKE int fakeStreams(void);
FAKE int fakeStreams(void)
{
    return __atomic_load_n(&streams, __ATOMIC_RELAXED);
}

/* How often the calling thread has copied and filled, and the time of that. */
FAKE unsigned long fakeCopies(unsigned long long *ns);
FAKE unsigned long fakeCopies(unsigned long long *ns)
{
    *ns = copies_ns;
    return copies;
}

static unsigned long long now_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (unsigned long long)time.tv_sec * 1000000000u + (unsigned long long)time.tv_nsec;
}

/* ---- copies ---- */

/* A GPU that spoils data, for tests of what finds it: with WEFT_FAKE_LOSES long copies lack their last byte. */
static int loses_bytes(void)
{
    return getenv("WEFT_FAKE_LOSES") != NULL;
}

/* A GPU that is as slow beside its CPU as a real one: with WEFT_FAKE_DELAY_US launches and copies begin so much later.
 * So a wait that is missing shows, and a read and a write by different PEs do not fall into one moment. */
void fake_be_slow(void)
{
    const char *text = getenv("WEFT_FAKE_DELAY_US");
    if (text != NULL) {
        usleep((useconds_t)atoi(text));
    }
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    fake_be_slow();
    if (!fake_is_one_registration(to, bytes) || !fake_is_one_registration(from, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* A word is copied by atomics, as in memory of a link domain, so that ThreadSanitizer sees its order. */
    if (bytes == 8 && to % 8 == 0 && from % 8 == 0) {
        wefti_st64((void *)(uintptr_t)to, wefti_ld64((const void *)(uintptr_t)from, WEFTI_ACQUIRE), WEFTI_RELEASE);
    } else if (bytes == 4 && to % 4 == 0 && from % 4 == 0) {
        wefti_st32((void *)(uintptr_t)to, wefti_ld32((const void *)(uintptr_t)from, WEFTI_ACQUIRE), WEFTI_RELEASE);
    } else {
        memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes - (loses_bytes() && bytes >= 4096));
    }
    return CUDA_SUCCESS;
}

/* Copies that wait for the next call that names their stream: with WEFT_FAKE_LATE all do, so that what nobody waits for
 * has not been done. */
typedef struct late_copy {
    struct late_copy *next;
    CUstream stream;
    CUdeviceptr to;
    CUdeviceptr from;
    size_t bytes;
} late_copy;

static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;
static late_copy *late; /* oldest first */

static void catch_up(CUstream stream, int of_all)
{
    pthread_mutex_lock(&late_lock);
    for (late_copy **place = &late; *place != NULL;) {
        late_copy *next = *place;
        if (!of_all && next->stream != stream) {
            place = &next->next;
            continue;
        }
        (void)copy(next->to, next->from, next->bytes);
        *place = next->next;
        free(next);
    }
    pthread_mutex_unlock(&late_lock);
}

void fake_catch_up(CUstream stream)
{
    catch_up(stream, 0);
}

static CUresult be_late(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    late_copy *made = malloc(sizeof *made);
    late_copy **place = &late;
    if (made == NULL || !fake_is_one_registration(to, bytes) || !fake_is_one_registration(from, bytes)) {
        free(made);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *made = (late_copy){NULL, stream, to, from, bytes};
    pthread_mutex_lock(&late_lock);
    while (*place != NULL) {
        place = &(*place)->next;
    }
    *place = made;
    pthread_mutex_unlock(&late_lock);
    return CUDA_SUCCESS;
}

FAKE CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    if (!fake_has_context()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    fake_wait_for_freeing();
    unsigned long long start = now_ns();
    CUresult result = getenv("WEFT_FAKE_LATE") != NULL ? be_late(to, from, bytes, stream) : copy(to, from, bytes);
    copies++;
    copies_ns += now_ns() - start;
    return result;
}

FAKE CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    CUdeviceptr base;
    size_t length;
    const int are_of_devices = cuMemGetAddressRange(&base, &length, to) == CUDA_SUCCESS &&
                               cuMemGetAddressRange(&base, &length, from) == CUDA_SUCCESS;
    return are_of_devices ? cuMemcpyAsync(to, from, bytes, stream) : CUDA_ERROR_INVALID_VALUE;
}

/* Of a graph. */
typedef struct filling {
    CUdeviceptr at;
    size_t bytes;
    unsigned char value;
} filling;

static void fill_again(const void *args)
{
    const filling *of = args;
    memset((void *)(uintptr_t)of->at, of->value, of->bytes);
}

FAKE CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream)
{
    if (!fake_has_context()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    fake_catch_up(stream);
    if (fake_is_recorded()) {
        *(filling *)fake_record(fill_again, sizeof(filling)) = (filling){at, bytes, value};
    }
    unsigned long long start = now_ns();
    memset((void *)(uintptr_t)at, value, bytes);
    copies++;
    copies_ns += now_ns() - start;
    return CUDA_SUCCESS;
}

/* ---- streams and events ---- */

#define GREATEST_PRIORITY (-5)

FAKE CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = GREATEST_PRIORITY;
    return CUDA_SUCCESS;
}

FAKE CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    (void)flags;
    if (priority > 0 || priority < GREATEST_PRIORITY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *stream = (CUstream)malloc(1);
    __atomic_fetch_add(&streams, 1, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

FAKE CUresult cuStreamDestroy(CUstream stream)
{
    fake_catch_up(stream);
    free(stream);
    __atomic_fetch_sub(&streams, 1, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

FAKE CUresult cuStreamSynchronize(CUstream stream)
{
    fake_catch_up(stream);
    fake_count_wait_or_take();
    return CUDA_SUCCESS;
}

FAKE CUresult cuCtxSynchronize(void)
{
    if (!fake_has_context()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    catch_up(NULL, 1);
    fake_count_wait_or_take();
    return CUDA_SUCCESS;
}

/* Events are times of the host. Behind copies that are late an event is so, too: it has come at the second look. */
typedef struct fake_event {
    struct timespec time; /* first */
    CUstream stream;
    int looks; /* that find it late */
} fake_event;

FAKE CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = (CUevent)calloc(1, sizeof(fake_event));
    return *event == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

FAKE CUresult cuEventDestroy(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}

FAKE CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    fake_event *made = (fake_event *)(void *)event;
    const int is_late = getenv("WEFT_FAKE_LATE") != NULL;
    if (!is_late) {
        fake_catch_up(stream);
    }
    (void)flags;
    made->stream = stream;
    made->looks = is_late;
    clock_gettime(CLOCK_MONOTONIC, &made->time);
    return CUDA_SUCCESS;
}

/* A GPU that does nothing any more: while WEFT_FAKE_STUCK is set, which a test may do when it likes, whoever asks is
 * told that work has not ended. */
static int is_stuck(void)
{
    return getenv("WEFT_FAKE_STUCK") != NULL;
}

FAKE CUresult cuEventQuery(CUevent event)
{
    fake_event *made = (fake_event *)(void *)event;
    if (is_stuck()) {
        return CUDA_ERROR_NOT_READY;
    }
    if (made->looks > 0) {
        made->looks--;
        return CUDA_ERROR_NOT_READY;
    }
    fake_catch_up(made->stream);
    return CUDA_SUCCESS;
}

FAKE CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return cuEventRecordWithFlags(event, stream, 0);
}

/* Work of a stream has ended when its call returns, so that this is only counted: waits for events that were
 * recorded. */
static __thread unsigned long stream_waits;
FAKE unsigned long fakeStreamWaits(void);
FAKE unsigned long fakeStreamWaits(void)
{
    return stream_waits;
}

FAKE CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)stream;
    (void)flags;
    fake_catch_up(((const fake_event *)(const void *)event)->stream);
    stream_waits += ((const struct timespec *)(const void *)event)->tv_sec != 0;
    return CUDA_SUCCESS;
}

FAKE CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    const struct timespec *from = (const struct timespec *)(const void *)start;
    const struct timespec *to = (const struct timespec *)(const void *)end;
    *ms = (float)(to->tv_sec - from->tv_sec) * 1e3f + (float)(to->tv_nsec - from->tv_nsec) * 1e-6f;
    return CUDA_SUCCESS;
}

/* cuda/proxy/apply.c: doing what a far PE asks on this PE's memory: device memory by copies and kernels on a stream,
 * where they take effect in order, host memory by the CPU at once. */
#include "cuda/proxy/far.h"

typedef struct target {
    unsigned char *at;
    int is_device;
} target;

static weft_status inside(unsigned char *base, uint64_t held, uint64_t offset, uint64_t bytes, target *out)
{
    if (base == NULL || offset > held || bytes > held - offset) {
        return WEFT_ERR_RANGE; /* told to the PE that asked, which has the text */
    }
    out->at = base + offset;
    return WEFT_OK;
}

static weft_status find(const wefti_cuda *cuda, uint64_t place, uint64_t bytes, target *out)
{
    const uint64_t offset = WEFTI_DEV_PLACE_OFFSET(place);
    const int space = WEFTI_DEV_PLACE_SPACE(place);
    out->is_device = space != WEFTI_DEV_SPACE_HOST;
    if (space == WEFTI_DEV_SPACE_DEVICE) {
        const uint64_t held = __atomic_load_n(&cuda->base.heap_bytes, __ATOMIC_ACQUIRE);
        return inside(cuda->base.heap, held, offset, bytes, out);
    }
    if (space == WEFTI_DEV_SPACE_HOST) {
        const uint64_t held = wefti_ld64(&cuda->world->view.heap_bytes, WEFTI_RELAXED);
        return inside(cuda->world->heap, held, offset, bytes, out);
    }
    const wefti_cuda_region *region = wefti_cuda_region_after(cuda, NULL);
    while (region != NULL && WEFTI_DEV_SPACE_REGION + (int)region->number != space) {
        region = wefti_cuda_region_after(cuda, region);
    }
    return region == NULL
               ? WEFT_ERR_RANGE
               : inside(__atomic_load_n(&region->address, __ATOMIC_ACQUIRE), region->bytes, offset, bytes, out);
}

/* ---- device memory ---- */

/* By a kernel of one thread on the GPU that owns the word: the same instructions, at system scope, as those of the PEs
 * that load and store reach, so that all are atomic with each other. A copy would not be. */
static weft_status word(wefti_cuda_far *far, int what, const wefti_dev_request *request, void *at, uint64_t *old)
{
    const wefti_cuda_word_args args = {
        .what = what,
        .op = request->op,
        .bits = request->bits,
        .at = (uintptr_t)at,
        .value = request->value,
        .cond = request->cond,
        .old = (uintptr_t)old,
    };
    return wefti_cuda_launch(far->cuda, WEFTI_CUDA_KERNEL_word, 1, 0, &args, far->asked.stream);
}

static weft_status on_device(wefti_cuda_far *far, const wefti_dev_request *request, void *at, void *data,
                             wefti_far_answer *answer)
{
    switch (request->kind) {
    case WEFTI_DEV_REQUEST_PUT:
    case WEFTI_DEV_REQUEST_LONG_PUT:
        return wefti_cuda_enqueue_copy(far->cuda, at, data, request->bytes, far->asked.stream);
    case WEFTI_DEV_REQUEST_GET:
    case WEFTI_DEV_REQUEST_LONG_GET:
        return wefti_cuda_enqueue_copy(far->cuda, data, at, request->bytes, far->asked.stream);
    case WEFTI_DEV_REQUEST_SIGNAL:
        return word(far, WEFTI_CUDA_SIGNAL, request, at, &answer->old);
    default:
        return word(far, WEFTI_CUDA_AMO, request, at, &answer->old);
    }
}

/* ---- host memory ---- */

static weft_status on_host(const wefti_dev_request *request, unsigned char *at, void *data)
{
    switch (request->kind) {
    case WEFTI_DEV_REQUEST_PUT:
        wefti_copy(at, data, request->bytes);
        return WEFT_OK;
    case WEFTI_DEV_REQUEST_GET:
        wefti_copy(data, at, request->bytes);
        return WEFT_OK;
    case WEFTI_DEV_REQUEST_SIGNAL:
        if (request->op == WEFT_SIGNAL_SET) {
            wefti_st64(at, request->value, WEFTI_RELEASE);
        } else {
            (void)wefti_add64(at, request->value);
        }
        return WEFT_OK;
    default:
        return WEFT_ERR_UNSUPPORTED; /* goes by the transport: see direct.c */
    }
}

static uint64_t bytes_of(const wefti_dev_request *request)
{
    return request->kind == WEFTI_DEV_REQUEST_AMO      ? (uint64_t)request->bits / 8
           : request->kind == WEFTI_DEV_REQUEST_SIGNAL ? sizeof(uint64_t)
                                                       : request->bytes;
}

/* Of data, as much as a message or a chunk carries; words are whole and aligned. */
static int is_sound(const wefti_cuda_far *far, const wefti_dev_request *request)
{
    switch (request->kind) {
    case WEFTI_DEV_REQUEST_PUT:
    case WEFTI_DEV_REQUEST_GET:
        return request->bytes <= WEFTI_DEV_REQUEST_BYTES;
    case WEFTI_DEV_REQUEST_LONG_PUT:
    case WEFTI_DEV_REQUEST_LONG_GET:
        return request->bytes <= far->chunk_bytes;
    case WEFTI_DEV_REQUEST_SIGNAL:
        return 1;
    default:
        return request->kind == WEFTI_DEV_REQUEST_AMO && (request->bits == 32 || request->bits == 64);
    }
}

weft_status wefti_far_apply(wefti_cuda_far *far, const wefti_dev_request *request, void *data, wefti_far_answer *answer)
{
    target to;
    if (request->kind == WEFTI_FAR_REQUEST_NOTHING) {
        return WEFT_OK;
    }
    if (!is_sound(far, request)) {
        return WEFT_ERR_RANGE;
    }
    WEFT_TRY(find(far->cuda, request->place, bytes_of(request), &to));
    return to.is_device ? on_device(far, request, to.at, data, answer) : on_host(request, to.at, data);
}

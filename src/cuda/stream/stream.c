/* cuda/stream/stream.c: operations on streams: copies by the copy engines, all else by the library's kernels. */
#include <string.h>

#include "cuda/device.h"
#include "cuda/stream/tuning.h"

/* Up to here a kernel copies and signals in one launch; beyond, a copy engine copies first. */
#define PUT_SIGNAL_KERNEL_BYTES ((size_t)32 << 10)

static weft_status stream_is_capturing(wefti_device *device, weft_stream *stream, int *is_capturing)
{
    const wefti_cuda *cuda = wefti_cuda_of(device);
    CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
    WEFT_TRY(wefti_cuda_enter(cuda));
    weft_status status =
        wefti_cuda_check(&cuda->driver, cuda->driver.cuStreamIsCapturing(stream, &state), "cuStreamIsCapturing");
    wefti_cuda_leave(cuda);
    *is_capturing = state != CU_STREAM_CAPTURE_STATUS_NONE;
    return status;
}

weft_status wefti_cuda_stream_copy(wefti_device *device, void *to, const void *from, size_t bytes, weft_stream *stream)
{
    const wefti_cuda *cuda = wefti_cuda_of(device);
    int has_entered;
    WEFT_TRY(wefti_cuda_enter_other(cuda, &has_entered));
    weft_status status = wefti_cuda_enqueue_copy(cuda, to, from, bytes, stream);
    wefti_cuda_leave_other(cuda, has_entered);
    return status;
}

/* `room`: how many blocks of this stream's kernels may wait on the GPU at the same time. */
static weft_status launch_in(wefti_device *device, wefti_cuda_kernel kernel, int blocks, int room, const void *args,
                             weft_stream *stream)
{
    const wefti_cuda *cuda = wefti_cuda_of(device);
    WEFT_TRY(wefti_cuda_enter(cuda));
    weft_status status = wefti_cuda_launch(cuda, kernel, blocks, 2 * blocks <= room, args, stream);
    wefti_cuda_leave(cuda);
    return status;
}

static weft_status launch(wefti_device *device, wefti_cuda_kernel kernel, int blocks, const void *args,
                          weft_stream *stream)
{
    return launch_in(device, kernel, blocks, 2, args, stream);
}

static weft_status stream_store(wefti_device *device, void *at, uint64_t value, int bits, weft_stream *stream)
{
    const wefti_cuda_word_args args = {.what = WEFTI_CUDA_STORE, .bits = bits, .at = (uintptr_t)at, .value = value};
    return launch(device, WEFTI_CUDA_KERNEL_word, 1, &args, stream);
}

static weft_status stream_amo(wefti_device *device, wefti_amo_op op, int bits, void *at, uint64_t value, uint64_t cond,
                              void *old, weft_stream *stream)
{
    const wefti_cuda_word_args args = {
        .what = WEFTI_CUDA_AMO,
        .op = (int)op,
        .bits = bits,
        .at = (uintptr_t)at,
        .value = value,
        .cond = cond,
        .old = (uintptr_t)old,
    };
    return launch(device, WEFTI_CUDA_KERNEL_word, 1, &args, stream);
}

static weft_status stream_wait(wefti_device *device, const void *variable, wefti_word_kind kind, weft_cmp cmp,
                               uint64_t value, weft_stream *stream)
{
    wefti_cuda_word_args args = {
        .what = WEFTI_CUDA_WAIT,
        .op = (int)cmp,
        .kind = (int)kind,
        .at = (uintptr_t)variable,
        .value = value,
    };
    device->ops->fill_dev(device, &args.dev);
    return launch(device, WEFTI_CUDA_KERNEL_word, 1, &args, stream);
}

static weft_status stream_signal(wefti_device *device, const wefti_device_signal *signal, void *dest_at,
                                 weft_stream *stream)
{
    wefti_cuda_put_signal_args args = {
        .dest = (uintptr_t)signal->dest,
        .source = (uintptr_t)signal->source,
        .bytes = signal->bytes,
        .signal = (uintptr_t)signal->signal,
        .value = signal->value,
        .op = (int)signal->op,
        .pe = signal->pe,
    };
    if (signal->bytes > PUT_SIGNAL_KERNEL_BYTES && dest_at != NULL) {
        WEFT_TRY(wefti_cuda_stream_copy(device, dest_at, signal->source, signal->bytes, stream));
        args.bytes = 0;
    }
    device->ops->fill_dev(device, &args.dev);
    return launch(device, WEFTI_CUDA_KERNEL_put_signal, 1, &args, stream);
}

#define STRIDED_WORDS_A_BLOCK 1024
#define STRIDED_BLOCKS_MAX 32

static weft_status stream_strided(wefti_device *device, const wefti_device_strided *strided, weft_stream *stream)
{
    const uintptr_t together = (uintptr_t)strided->dest | (uintptr_t)strided->source | strided->dest_step |
                               strided->source_step | strided->element;
    const size_t width = together & 1 ? 1 : together & 2 ? 2 : together & 4 ? 4 : 8;
    wefti_cuda_strided_args args = {
        .is_get = strided->is_get,
        .is_far = strided->is_far,
        .pe = strided->pe,
        .width = (wefti_u32)width,
        .words = (wefti_u32)(strided->element / width),
        .to = (uintptr_t)strided->dest,
        .to_step = strided->dest_step,
        .from = (uintptr_t)strided->source,
        .from_step = strided->source_step,
        .count = strided->count,
    };
    const size_t blocks = strided->count / STRIDED_WORDS_A_BLOCK + 1;
    device->ops->fill_dev(device, &args.dev);
    return launch(device, WEFTI_CUDA_KERNEL_strided, (int)(blocks < STRIDED_BLOCKS_MAX ? blocks : STRIDED_BLOCKS_MAX),
                  &args, stream);
}

static weft_status stream_far(wefti_device *device, const wefti_device_request *request, weft_stream *stream)
{
    static const int whats[] = {
        [WEFTI_DEVICE_PUT] = WEFTI_CUDA_FAR_PUT,
        [WEFTI_DEVICE_GET] = WEFTI_CUDA_FAR_GET,
        [WEFTI_DEVICE_AMO] = WEFTI_CUDA_FAR_AMO,
        [WEFTI_DEVICE_STORE] = WEFTI_CUDA_FAR_STORE,
    };
    wefti_cuda_far_args args = {
        .what = whats[request->kind],
        .op = (int)request->op,
        .bits = request->bits,
        .pe = request->pe,
        .address = (uintptr_t)request->address,
        .local = (uintptr_t)request->local,
        .bytes = request->bytes,
        .value = request->value,
        .cond = request->cond,
        .old = (uintptr_t)request->old,
    };
    device->ops->fill_dev(device, &args.dev);
    return launch(device, WEFTI_CUDA_KERNEL_far, 1, &args, stream);
}

static weft_status stream_quiet(wefti_device *device, weft_stream *stream)
{
    wefti_cuda_far_args args = {.what = WEFTI_CUDA_FAR_QUIET};
    WEFT_TRY(wefti_cuda_settle(device)); /* what calls of the host have begun is on another stream */
    if (wefti_cuda_of(device)->far == NULL) {
        return WEFT_OK; /* the stream's order is enough */
    }
    device->ops->fill_dev(device, &args.dev);
    return launch(device, WEFTI_CUDA_KERNEL_far, 1, &args, stream);
}

weft_status wefti_cuda_stream_sync(wefti_device *device, const weft_dev_team *team, weft_stream *stream)
{
    const wefti_cuda_sync_args args = {.team = *team};
    if (team->far_count > 0) {
        const wefti_cuda_wide_args wide = {.team = *team, .way = WEFTI_CUDA_WIDE_SYNC};
        return launch(device, WEFTI_CUDA_KERNEL_wide, 1, &wide, stream);
    }
    return launch(device, WEFTI_CUDA_KERNEL_sync, 1, &args, stream);
}

static wefti_cuda_kernel kernel_of(const wefti_device_coll *coll)
{
    switch (coll->kind) {
    case WEFTI_DEVICE_BROADCAST:
        return WEFTI_CUDA_KERNEL_broadcast;
    case WEFTI_DEVICE_FCOLLECT:
    case WEFTI_DEVICE_ALLTOALL:
        return WEFTI_CUDA_KERNEL_exchange;
    case WEFTI_DEVICE_COLLECT:
        return WEFTI_CUDA_KERNEL_collect;
    case WEFTI_DEVICE_ALLTOALLV:
        return WEFTI_CUDA_KERNEL_alltoallv;
    default:
        break;
    }
    const int is_sum = coll->op == WEFT_OP_SUM;
    switch (coll->dtype) {
    case WEFT_DTYPE_FLOAT:
        return is_sum ? WEFTI_CUDA_KERNEL_sum_float : WEFTI_CUDA_KERNEL_reduce_bits;
    case WEFT_DTYPE_BF16:
        return is_sum ? WEFTI_CUDA_KERNEL_sum_bf16 : WEFTI_CUDA_KERNEL_reduce_bf16;
    case WEFT_DTYPE_FP16:
        return is_sum ? WEFTI_CUDA_KERNEL_sum_fp16 : WEFTI_CUDA_KERNEL_reduce_fp16;
    case WEFT_DTYPE_E4M3:
    case WEFT_DTYPE_E5M2:
        return WEFTI_CUDA_KERNEL_reduce_any;
    default:
        return WEFTI_CUDA_KERNEL_reduce_bits;
    }
}

/* Whether members are reached through the proxy, by the same rule as wefti_dev_is_wide in kernels. */
static int is_wide(const weft_dev_team *team, const wefti_device_coll *coll)
{
    const int is_move = coll->kind <= WEFTI_DEVICE_ALLTOALLV;
    const uint64_t dest = (uint64_t)((uintptr_t)coll->dest - team->world.host_heap);
    const uint64_t source = (uint64_t)((uintptr_t)coll->source - team->world.host_heap);
    return team->far_count > 0 ||
           (team->abroad_count > 0 && (dest < team->world.host_bytes || (!is_move && source < team->world.host_bytes)));
}

static weft_status stream_coll(wefti_device *device, const weft_dev_team *team, const wefti_device_coll *coll,
                               weft_stream *stream)
{
    if (wefti_cuda_copies(wefti_cuda_of(device), team, coll)) {
        return wefti_cuda_stream_coll_copy(device, team, coll, stream);
    }
    wefti_cuda_choice choice = wefti_cuda_choose(team, coll);
    const int wide = is_wide(team, coll);
    if (wide) {
        choice = wefti_cuda_choose_wide(team, coll);
    }
    const wefti_cuda_coll_args args = {
        .team = *team,
        .dest = (uintptr_t)coll->dest,
        .source = (uintptr_t)coll->source,
        .bytes = coll->bytes,
        .part = coll->kind == WEFTI_DEVICE_REDUCE_SCATTER ? coll->bytes : 0,
        .way = choice.way,
        .is_alltoall = coll->kind == WEFTI_DEVICE_ALLTOALL,
        .root = coll->root,
        .dtype = (int)coll->dtype,
        .op = (int)coll->op,
        .receive_offsets = (const wefti_u64 *)(const void *)coll->receive_offsets,
        .send_offsets = (const wefti_u64 *)(const void *)coll->send_offsets,
        .send_bytes = (const wefti_u64 *)(const void *)coll->send_bytes,
    };
    return launch_in(device, wide ? WEFTI_CUDA_KERNEL_wide : kernel_of(coll), choice.blocks, coll->blocks_max, &args,
                     stream);
}

const wefti_device_stream_ops wefti_cuda_stream = {
    .ready = wefti_cuda_stream_ready,
    .is_capturing = stream_is_capturing,
    .copy = wefti_cuda_stream_copy,
    .store = stream_store,
    .amo = stream_amo,
    .signal = stream_signal,
    .wait = stream_wait,
    .strided = stream_strided,
    .far = stream_far,
    .quiet = stream_quiet,
    .sync = wefti_cuda_stream_sync,
    .coll = stream_coll,
};

/* Collectives on streams: what is decided at once; the device enqueues the rest. */
#include "base/error.h"
#include "gpu/gpu.h"

/* ---- waiting for all ---- */

/* Something of the team must be made now, which needs all members and the device. */
static weft_status check_not_capturing(weft_team *team, const char *call, weft_stream *stream)
{
    int is_capturing;
    wefti_device *device = team->world->device;
    WEFT_TRY(device->ops->stream->is_capturing(device, stream, &is_capturing));
    if (is_capturing) {
        return wefti_error(
            WEFT_ERR_STATE,
            "%s: the team's scratch in device memory is not made yet, and not while a stream is captured; "
            "call weft_team_stream_ready before",
            call);
    }
    return WEFT_OK;
}

/* WEFT_OK, or why this team can do nothing on a stream. */
static weft_status check_team(weft_team *team, const char *call)
{
    WEFT_TRY(wefti_team_check(team, call));
    return wefti_world_need_device(team->world, call);
}

weft_status weft_team_sync_on_stream(weft_team *team, weft_stream *stream)
{
    static const char call[] = "weft_team_sync_on_stream";
    weft_dev_team dev;
    WEFT_TRY(check_team(team, call));
    WEFTI_SPAN_OF_BLOCK(team->world, call);
    if (team->device_area == NULL) {
        WEFT_TRY(check_not_capturing(team, call, stream));
    }
    WEFT_TRY(wefti_team_device_area(team, call, &dev));
    return team->world->device->ops->stream->sync(team->world->device, &dev, stream);
}

weft_status weft_team_barrier_on_stream(weft_team *team, weft_stream *stream)
{
    WEFT_TRY(check_team(team, "weft_team_barrier_on_stream"));
    WEFT_TRY(team->world->device->ops->stream->quiet(team->world->device, stream));
    return weft_team_sync_on_stream(team, stream);
}

weft_status weft_sync_on_stream(weft_world *world, weft_stream *stream)
{
    return weft_team_sync_on_stream(weft_team_world(world), stream);
}

weft_status weft_barrier_on_stream(weft_world *world, weft_stream *stream)
{
    return weft_team_barrier_on_stream(weft_team_world(world), stream);
}

/* ---- collectives ---- */

/* `bytes` bytes of symmetric memory that kernels reach on every PE. */
static weft_status check_buffer(const weft_team *team, const char *call, const char *name, const void *buffer,
                                size_t bytes)
{
    const weft_world *world = team->world;
    uint64_t left = 0;
    if (buffer == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s is NULL", call, name);
    }
    uint64_t offset = (uint64_t)((uintptr_t)buffer - world->view.heap);
    uint64_t reserved = wefti_ld64(&world->view.heap_bytes, WEFTI_RELAXED);
    if (offset < reserved) {
        left = reserved - offset;
    } else {
        (void)world->device->ops->memory->locate(world->device, buffer, (int)world->view.pe, &left);
    }
    if (bytes > left) {
        return wefti_error(
            WEFT_ERR_RANGE,
            "%s: the %zu bytes of %s at %p are not in the symmetric memory of world \"%s\"; allocate them "
            "with weft_device_malloc, or register them",
            call, bytes, name, buffer, world->name);
    }
    return WEFT_OK;
}

/* The two buffers of a collective: bytes that this member reads and that are written here. */
typedef struct buffers {
    size_t source_bytes;
    size_t dest_bytes;
} buffers;

static weft_status enqueue(weft_team *team, const char *call, wefti_device_coll *coll, buffers needs,
                           weft_stream *stream)
{
    weft_dev_team dev;
    WEFT_TRY(check_buffer(team, call, "dest", coll->dest, needs.dest_bytes));
    WEFT_TRY(check_buffer(team, call, "source", coll->source, needs.source_bytes));
    if (team->stream_blocks == 0) {
        WEFT_TRY(check_not_capturing(team, call, stream));
        WEFT_TRY(weft_team_stream_ready(team));
    }
    WEFT_TRY(wefti_team_stream_dev(team, call, &dev));
    coll->blocks_max = team->stream_blocks;
    coll->team = team;
    return team->world->device->ops->stream->coll(team->world->device, &dev, coll, stream);
}

/* `count` times `bytes`; the largest size when that does not fit, which no heap holds. */
static size_t times(size_t bytes, int count)
{
    size_t product;
    return __builtin_mul_overflow(bytes, (size_t)count, &product) ? SIZE_MAX : product;
}

weft_status weft_broadcastmem_on_stream(weft_team *team, void *dest, const void *source, size_t bytes, int root,
                                        weft_stream *stream)
{
    static const char call[] = "weft_broadcastmem_on_stream";
    wefti_device_coll coll = {
        .kind = WEFTI_DEVICE_BROADCAST, .dest = dest, .source = source, .bytes = bytes, .root = root};
    WEFT_TRY(check_team(team, call));
    WEFTI_SPAN_OF_BLOCK(team->world, call);
    if (root < 0 || root >= team->pes) {
        return wefti_error(WEFT_ERR_RANGE, "%s: root %d is not one of the team's %d members", call, root, team->pes);
    }
    return bytes == 0 ? WEFT_OK : enqueue(team, call, &coll, (buffers){bytes, bytes}, stream);
}

weft_status weft_fcollectmem_on_stream(weft_team *team, void *dest, const void *source, size_t bytes,
                                       weft_stream *stream)
{
    static const char call[] = "weft_fcollectmem_on_stream";
    wefti_device_coll coll = {.kind = WEFTI_DEVICE_FCOLLECT, .dest = dest, .source = source, .bytes = bytes};
    WEFT_TRY(check_team(team, call));
    WEFTI_SPAN_OF_BLOCK(team->world, call);
    const buffers needs = {bytes, times(bytes, team->pes)};
    return bytes == 0 ? WEFT_OK : enqueue(team, call, &coll, needs, stream);
}

weft_status weft_collectmem_on_stream(weft_team *team, void *dest, const void *source, size_t bytes,
                                      weft_stream *stream)
{
    static const char call[] = "weft_collectmem_on_stream";
    wefti_device_coll coll = {.kind = WEFTI_DEVICE_COLLECT, .dest = dest, .source = source, .bytes = bytes};
    WEFT_TRY(check_team(team, call));
    WEFTI_SPAN_OF_BLOCK(team->world, call);
    return enqueue(team, call, &coll, (buffers){bytes, bytes}, stream);
}

weft_status weft_alltoallmem_on_stream(weft_team *team, void *dest, const void *source, size_t bytes,
                                       weft_stream *stream)
{
    static const char call[] = "weft_alltoallmem_on_stream";
    wefti_device_coll coll = {.kind = WEFTI_DEVICE_ALLTOALL, .dest = dest, .source = source, .bytes = bytes};
    WEFT_TRY(check_team(team, call));
    WEFTI_SPAN_OF_BLOCK(team->world, call);
    const size_t all = times(bytes, team->pes);
    return bytes == 0 ? WEFT_OK : enqueue(team, call, &coll, (buffers){all, all}, stream);
}

weft_status weft_alltoallvmem_on_stream(weft_team *team, void *dest, const uint64_t *receive_offsets,
                                        const void *source, const uint64_t *send_offsets, const uint64_t *send_bytes,
                                        weft_stream *stream)
{
    static const char call[] = "weft_alltoallvmem_on_stream";
    wefti_device_coll coll = {
        .kind = WEFTI_DEVICE_ALLTOALLV,
        .dest = dest,
        .source = source,
        .receive_offsets = receive_offsets,
        .send_offsets = send_offsets,
        .send_bytes = send_bytes,
    };
    WEFT_TRY(check_team(team, call));
    WEFTI_SPAN_OF_BLOCK(team->world, call);
    if (receive_offsets == NULL || send_offsets == NULL || send_bytes == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: an array of offsets or bytes is NULL", call);
    }
    return enqueue(team, call, &coll, (buffers){0, 0}, stream);
}

/* ---- reductions ---- */

/* Bytes of an element, 0 for what is no weft_dtype. */
static size_t element_bytes(weft_dtype dtype)
{
    switch (dtype) {
#define CASE(NAME, value, bytes, type)                                                                                 \
    case WEFT_DTYPE_##NAME:                                                                                            \
        return bytes;
        WEFT_DTYPES(CASE)
#undef CASE
    }
    return 0;
}

static int fits(weft_dtype dtype, weft_op op)
{
    int is_complex = dtype == WEFT_DTYPE_COMPLEXF || dtype == WEFT_DTYPE_COMPLEXD;
    int least = dtype <= WEFT_DTYPE_UINT64 ? WEFT_OP_AND : is_complex ? WEFT_OP_SUM : WEFT_OP_MIN;
    return (int)op >= least && op <= WEFT_OP_PROD;
}

static weft_status reduce(weft_team *team, const char *call, wefti_device_coll *coll, size_t count, weft_stream *stream)
{
    size_t element = element_bytes(coll->dtype);
    WEFT_TRY(check_team(team, call));
    WEFTI_SPAN_OF_BLOCK(team->world, call);
    if (element == 0 || !fits(coll->dtype, coll->op)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: type %d and operation %d do not go together: bitwise operations take integers, complex "
                           "numbers sum and product",
                           call, (int)coll->dtype, (int)coll->op);
    }
    if (__builtin_mul_overflow(count, element, &coll->bytes)) {
        coll->bytes = SIZE_MAX;
    }
    const int blocks = coll->kind == WEFTI_DEVICE_REDUCE_SCATTER ? team->pes : 1;
    const buffers needs = {times(coll->bytes, blocks), coll->bytes};
    return count == 0 ? WEFT_OK : enqueue(team, call, coll, needs, stream);
}

weft_status weft_reduce_on_stream(weft_team *team, weft_dtype dtype, weft_op op, void *dest, const void *source,
                                  size_t count, weft_stream *stream)
{
    wefti_device_coll coll = {.kind = WEFTI_DEVICE_REDUCE, .dest = dest, .source = source, .dtype = dtype, .op = op};
    return reduce(team, "weft_reduce_on_stream", &coll, count, stream);
}

weft_status weft_reduce_scatter_on_stream(weft_team *team, weft_dtype dtype, weft_op op, void *dest, const void *source,
                                          size_t count, weft_stream *stream)
{
    wefti_device_coll coll = {
        .kind = WEFTI_DEVICE_REDUCE_SCATTER, .dest = dest, .source = source, .dtype = dtype, .op = op};
    return reduce(team, "weft_reduce_scatter_on_stream", &coll, count, stream);
}

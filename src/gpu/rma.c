/* One-sided access on streams: what is decided at once; the device enqueues the rest. */
#include "weft/inline/rma.h"
#include "base/error.h"
#include "gpu/gpu.h"
#include "rma/strided.h"

/* WEFT_OK, or why nothing can be enqueued: no device, the world's fault. */
static weft_status check_world(weft_world *world, const char *call)
{
    WEFT_TRY(wefti_world_need_device(world, call));
    return wefti_world_check(world, call);
}

/* Where the GPU has the symmetric `bytes` bytes at `address` of PE `pe`; NULL when that is far. */
static weft_status locate(weft_world *world, const char *call, const void *address, size_t bytes, int pe, void **at)
{
    uint64_t left = 0;
    uint64_t offset = (uint64_t)((uintptr_t)address - world->view.heap);
    uint64_t reserved = wefti_ld64(&world->view.heap_bytes, WEFTI_RELAXED);
    WEFT_TRY(wefti_rma_check_pe(world, call, pe));
    int is_host = offset < reserved;
    int is_far = world->device->ops->memory->is_far(world->device, pe);
    *at = NULL;
    if (is_host) {
        left = reserved - offset;
        *at = is_far || !wefti_pe_is_near(&world->view, pe) ? NULL : wefti_peer_address(world, address, pe);
    } else if (world->device->ops->memory->locate(world->device, address, (int)world->view.pe, &left) != 0 && !is_far) {
        *at = (void *)world->device->ops->memory->locate(world->device, address, pe, &left);
    }
    if (left == 0 || bytes > left) {
        return wefti_error(
            WEFT_ERR_RANGE,
            "%s: %zu bytes at %p are not in the symmetric memory of PE %d of world \"%s\"; allocate them "
            "with weft_device_malloc or weft_malloc, or over a team that it is in, or register them",
            call, bytes, address, pe, world->name);
    }
    return WEFT_OK;
}

static weft_status locate_word(weft_world *world, const char *call, const void *address, size_t bytes, int pe,
                               void **at)
{
    WEFT_TRY(locate(world, call, address, bytes, pe, at));
    if (((uintptr_t)address & (bytes - 1)) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: the variable at %p is not aligned to its %zu bytes", call, address,
                           bytes);
    }
    return WEFT_OK;
}

weft_status weft_putmem_on_stream(weft_world *world, void *dest, const void *source, size_t bytes, int pe,
                                  weft_stream *stream)
{
    static const char call[] = "weft_putmem_on_stream";
    void *at;
    WEFT_TRY(check_world(world, call));
    WEFTI_SPAN_OF_BLOCK(world, call);
    WEFT_TRY(locate(world, call, dest, bytes, pe, &at));
    WEFT_TRY(wefti_rma_check_local(call, "source", source, bytes));
    const wefti_device_request request = {
        .kind = WEFTI_DEVICE_PUT, .pe = pe, .address = dest, .local = source, .bytes = bytes};
    if (bytes == 0) {
        return WEFT_OK;
    }
    return at == NULL ? world->device->ops->stream->far(world->device, &request, stream)
                      : world->device->ops->stream->copy(world->device, at, source, bytes, stream);
}

weft_status weft_getmem_on_stream(weft_world *world, void *dest, const void *source, size_t bytes, int pe,
                                  weft_stream *stream)
{
    static const char call[] = "weft_getmem_on_stream";
    void *at;
    WEFT_TRY(check_world(world, call));
    WEFTI_SPAN_OF_BLOCK(world, call);
    WEFT_TRY(locate(world, call, source, bytes, pe, &at));
    WEFT_TRY(wefti_rma_check_local(call, "dest", dest, bytes));
    const wefti_device_request request = {
        .kind = WEFTI_DEVICE_GET, .pe = pe, .address = (void *)(uintptr_t)source, .local = dest, .bytes = bytes};
    if (bytes == 0) {
        return WEFT_OK;
    }
    return at == NULL ? world->device->ops->stream->far(world->device, &request, stream)
                      : world->device->ops->stream->copy(world->device, dest, at, bytes, stream);
}

static weft_status strided(weft_world *world, const char *call, const wefti_device_strided *given,
                           ptrdiff_t dest_stride, ptrdiff_t source_stride, weft_stream *stream)
{
    wefti_device_strided all = *given;
    void *at;
    WEFT_TRY(check_world(world, call));
    WEFT_TRY(wefti_strided_check(call, dest_stride, source_stride, all.element));
    const size_t dest_span = wefti_strided_span(all.count, dest_stride, all.element);
    const size_t source_span = wefti_strided_span(all.count, source_stride, all.element);
    const void *there = all.is_get ? all.source : all.dest;
    const void *here = all.is_get ? all.dest : all.source;
    const size_t here_span = all.is_get ? dest_span : source_span;
    WEFT_TRY(locate(world, call, there, all.is_get ? source_span : dest_span, all.pe, &at));
    WEFT_TRY(wefti_rma_check_local(call, "local", here, here_span));
    if (here_span > PTRDIFF_MAX || all.element > UINT32_MAX) {
        return wefti_error(WEFT_ERR_RANGE, "%s: %zu elements of %zu bytes exceed the address space", call, all.count,
                           all.element);
    }
    all.dest_step = (size_t)dest_stride * all.element;
    all.source_step = (size_t)source_stride * all.element;
    all.is_far = at == NULL;
    if (at != NULL && all.is_get) {
        all.source = at;
    } else if (at != NULL) {
        all.dest = at;
    }
    return all.count == 0 ? WEFT_OK : world->device->ops->stream->strided(world->device, &all, stream);
}

weft_status weft_iputmem_on_stream(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,
                                   ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe,
                                   weft_stream *stream)
{
    const wefti_device_strided put = {
        .pe = pe, .dest = dest, .source = source, .count = count, .element = element_bytes};
    return strided(world, "weft_iputmem_on_stream", &put, dest_stride, source_stride, stream);
}

weft_status weft_igetmem_on_stream(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,
                                   ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe,
                                   weft_stream *stream)
{
    const wefti_device_strided get = {
        .is_get = 1, .pe = pe, .dest = dest, .source = source, .count = count, .element = element_bytes};
    return strided(world, "weft_igetmem_on_stream", &get, dest_stride, source_stride, stream);
}

weft_status weft_putmem_signal_on_stream(weft_world *world, void *dest, const void *source, size_t bytes,
                                         uint64_t *signal, uint64_t value, weft_signal_op op, int pe,
                                         weft_stream *stream)
{
    static const char call[] = "weft_putmem_signal_on_stream";
    void *at;
    WEFT_TRY(check_world(world, call));
    WEFTI_SPAN_OF_BLOCK(world, call);
    WEFT_TRY(locate_word(world, call, signal, sizeof *signal, pe, &at));
    if (op != WEFT_SIGNAL_SET && op != WEFT_SIGNAL_ADD) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: the operation is no weft_signal_op", call);
    }
    const wefti_device_signal request = {
        .dest = dest, .source = source, .bytes = bytes, .signal = signal, .value = value, .op = op, .pe = pe};
    if (bytes > 0) {
        WEFT_TRY(locate(world, call, dest, bytes, pe, &at));
        WEFT_TRY(wefti_rma_check_local(call, "source", source, bytes));
    }
    return world->device->ops->stream->signal(world->device, &request, at, stream);
}

weft_status weft_signal_on_stream(weft_world *world, uint64_t *signal, uint64_t value, weft_signal_op op, int pe,
                                  weft_stream *stream)
{
    return weft_putmem_signal_on_stream(world, NULL, NULL, 0, signal, value, op, pe, stream);
}

static size_t word_bytes(wefti_word_kind kind)
{
    return kind >= WEFTI_WORD_INT16 ? 2 : kind >= WEFTI_WORD_INT64 ? 8 : 4;
}

weft_status wefti_wait_on_stream(weft_world *world, const void *variable, wefti_word_kind kind, weft_cmp cmp,
                                 uint64_t value, weft_stream *stream)
{
    static const char call[] = "weft_wait_until_on_stream";
    void *at;
    WEFT_TRY(check_world(world, call));
    WEFTI_SPAN_OF_BLOCK(world, call);
    WEFT_TRY(locate_word(world, call, variable, word_bytes(kind), (int)world->view.pe, &at));
    if ((unsigned)cmp > WEFT_CMP_LE) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %d is no weft_cmp", call, (int)cmp);
    }
    return world->device->ops->stream->wait(world->device, at, kind, cmp, value, stream);
}

weft_status weft_signal_wait_until_on_stream(weft_world *world, const uint64_t *signal, weft_cmp cmp, uint64_t value,
                                             weft_stream *stream)
{
    return wefti_wait_on_stream(world, signal, WEFTI_WORD_UINT64, cmp, value, stream);
}

/* A kernel's or copy's stores are performed, for every PE of the link domain, before the stream goes on; requests to a
 * far PE take effect in order. */
weft_status weft_fence_on_stream(weft_world *world, weft_stream *stream)
{
    (void)stream;
    return check_world(world, "weft_fence_on_stream");
}

weft_status weft_quiet_on_stream(weft_world *world, weft_stream *stream)
{
    WEFT_TRY(check_world(world, "weft_quiet_on_stream"));
    return world->device->ops->stream->quiet(world->device, stream);
}

weft_status wefti_p_on_stream(weft_world *world, void *dest, uint64_t value, int bits, int pe, weft_stream *stream)
{
    static const char call[] = "weft_p_on_stream";
    void *at;
    WEFT_TRY(check_world(world, call));
    WEFTI_SPAN_OF_BLOCK(world, call);
    WEFT_TRY(locate_word(world, call, dest, (size_t)bits / 8, pe, &at));
    const wefti_device_request request = {
        .kind = WEFTI_DEVICE_STORE, .pe = pe, .address = dest, .bits = bits, .value = value};
    return at == NULL ? world->device->ops->stream->far(world->device, &request, stream)
                      : world->device->ops->stream->store(world->device, at, value, bits, stream);
}

weft_status wefti_amo_on_stream(weft_world *world, wefti_amo_op op, int bits, void *dest, uint64_t value, uint64_t cond,
                                int pe, void *old, weft_stream *stream)
{
    static const char call[] = "weft_atomic_on_stream";
    void *at;
    WEFT_TRY(check_world(world, call));
    WEFTI_SPAN_OF_BLOCK(world, call);
    WEFT_TRY(locate_word(world, call, dest, (size_t)bits / 8, pe, &at));
    if (at == NULL) {
        const wefti_device_request request = {.kind = WEFTI_DEVICE_AMO,
                                              .pe = pe,
                                              .address = dest,
                                              .op = op,
                                              .bits = bits,
                                              .value = value,
                                              .cond = cond,
                                              .old = old};
        return world->device->ops->stream->far(world->device, &request, stream);
    }
    weft_dev dev;
    world->device->ops->fill_dev(world->device, &dev);
    if (!dev.host_atomics && (uint64_t)((uintptr_t)dest - world->view.heap) < world->heap_max_bytes) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "%s: the variable is in the host heap, and this GPU's atomics are not atomic against the "
                           "CPU's; take device memory",
                           call);
    }
    return world->device->ops->stream->amo(world->device, op, bits, at, value, cond, old, stream);
}

weft_status wefti_no_place_on_stream(const char *call)
{
    return wefti_error(WEFT_ERR_ARGUMENT, "weft_%s_on_stream: argument 'old' is NULL", call);
}

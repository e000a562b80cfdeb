/* cuda/ep/host/route.c: a route's tables: its device memory, and what of it callers see. */
#include <string.h>

#include "base/alloc.h"
#include "cuda/ep/host/calls.h"
#include "weft.h"

/* Set the pointers of the route tables at `memory`, which is not touched and may be 0. Returns its bytes. */
static size_t lay_out(wefti_cuda_ep_tables *tables, const weft_ep *ep, const weft_ep_plan *plan, uint64_t memory)
{
    wefti_u64 end = 0;
    uint64_t ranks = (uint64_t)ep->ranks;
    int by_rank = wefti_ep_plan_is_by_rank(plan);
    uint64_t local = by_rank ? 1 : (uint64_t)wefti_ep_local_experts(ep);
    uint64_t tokens = (uint64_t)ep->config.tokens_max;
    uint64_t units = ep->device->group[0].at.units;
    uint64_t experts = (uint64_t)wefti_cuda_ep_experts_of(ep, plan);
    uint64_t topk = (uint64_t)plan->topk;
    int by_expert = !wefti_ep_plan_is_by_source(plan);
#define LAY(field, count)                                                                                              \
    tables->field = (void *)(uintptr_t)(memory + wefti_cuda_ep_take(&end, (count) * sizeof *tables->field))
    LAY(route_header, 1);
    LAY(rows_of_expert, local);
    LAY(rows_of_expert_source, local * ranks);
    LAY(offset_of_expert, local + 1);
    LAY(rows_of_source, ranks);
    LAY(offset_of_source, ranks + 1);
    LAY(tokens_of, ranks);
    LAY(sent, ranks);
    LAY(place, ranks);
    LAY(bits, units * ranks);
    if (ep->device->group[0].drops) {
        LAY(goes, units * ranks);
    } else {
        tables->goes = tables->bits;
    }
    LAY(before, units * ranks);
    LAY(next_unit, (uint64_t)ep->device->sms);
    LAY(partials, (uint64_t)ep->device->sms * (experts + 1));
    if (by_expert) {
        LAY(ahead, (uint64_t)ep->device->sms * experts);
        LAY(base, experts);
        LAY(full, ranks);
        LAY(cut, ranks);
        LAY(unpadded, 2);
        LAY(begin, local + 1);
        LAY(end, local);
        LAY(rows, tokens * topk);
        LAY(target, tokens * ranks);
    } else {
        LAY(weights, tokens * ranks);
        LAY(combine_weights, tokens * ranks);
    }
    LAY(counted, 1);
    if (by_rank) {
        LAY(ids, tokens * ranks);
        LAY(rows, tokens * ranks);
        LAY(target, tokens * ranks);
        LAY(unpadded, 2);
        LAY(no_rows, (uint64_t)wefti_ep_local_experts(ep) * ranks + 1);
    }
    LAY(owner, tokens * topk * ep->device->kind->owner_bytes);
    LAY(order, tokens * ranks);
    LAY(records, ep->device->received_max * (uint64_t)wefti_cuda_ep_record_words(plan->topk, by_expert));
#undef LAY
    return end;
}

size_t wefti_cuda_ep_route_bytes(const weft_ep *ep, const weft_ep_plan *plan)
{
    wefti_cuda_ep_tables tables = {0};
    return lay_out(&tables, ep, plan, 0);
}

weft_status wefti_cuda_ep_allocate(const wefti_cuda *cuda, size_t bytes, CUdeviceptr *memory)
{
    WEFT_TRY(wefti_cuda_enter(cuda));
    CUresult result = cuda->driver.cuMemAllocFromPoolAsync(memory, bytes, cuda->ep_pool, cuda->stream);
    if (result == CUDA_SUCCESS) {
        result = cuda->driver.cuStreamSynchronize(cuda->stream);
    }
    wefti_cuda_leave(cuda);
    return wefti_cuda_check(&cuda->driver, result, "weft_ep: cuMemAllocFromPoolAsync");
}

/* Calls of a group on a channel do not overlap, so that it claims for each the most that a route of it asks for, until
 * it is destroyed. */
static weft_status claim(const weft_ep *ep, const weft_ep_plan *plan)
{
    wefti_cuda *cuda = ep->device->cuda;
    wefti_cuda_ep_claim *shared = ep->device->claim;
    int sms = wefti_cuda_ep_sms_asked(ep, plan) * wefti_ep_channels(ep);
    if (plan->sms == 0 && !shared->is_guest) {
        wefti_cuda_budget_add_guest(&cuda->budget);
        shared->is_guest = 1;
    }
    if (sms > shared->sms) {
        WEFT_TRY(wefti_cuda_budget_take(&cuda->budget, sms - shared->sms, "weft_ep_route_create"));
        shared->sms = sms;
    }
    return WEFT_OK;
}

void wefti_cuda_ep_free(const wefti_cuda *cuda, CUdeviceptr memory)
{
    if (memory != 0 && wefti_cuda_enter(cuda) == WEFT_OK) {
        (void)cuda->driver.cuMemFreeAsync(memory, cuda->stream);
        wefti_cuda_leave(cuda);
    }
}

static void close_route(weft_ep_route *route)
{
    wefti_cuda_ep_free(route->ep->device->cuda, route->device->owned);
    wefti_free(route->device);
}

/* What must be clear before a first routing: counts of a route that has none, words of no epoch. */
static size_t cleared_bytes(const wefti_cuda_ep_tables *tables)
{
    return (size_t)((char *)tables->records - (char *)tables->route_header);
}

static weft_status open_route(weft_ep_route *route, void *memory)
{
    const weft_ep *ep = route->ep;
    size_t bytes = wefti_cuda_ep_route_bytes(ep, &route->plan);
    WEFT_TRY(claim(ep, &route->plan));
    wefti_ep_device_route *of = wefti_alloc_zeroed(1, sizeof *of);
    if (of == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_route_create: no memory for the route");
    }
    weft_status status = memory != NULL ? WEFT_OK : wefti_cuda_ep_allocate(ep->device->cuda, bytes, &of->owned);
    route->device = of;
    if (status != WEFT_OK) {
        close_route(route);
        return status;
    }
    (void)lay_out(&of->tables, ep, &route->plan, memory != NULL ? (uintptr_t)memory : (uintptr_t)of->owned);
    of->dirty_bytes = cleared_bytes(&of->tables);
    return WEFT_OK;
}

/* A capture that the calling thread has begun is no concern of what opens, clears and closes a route. Returns the mode
 * before. */
static CUstreamCaptureMode set_capture_mode(const wefti_cuda *cuda, CUstreamCaptureMode mode)
{
    (void)cuda->driver.cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

weft_status wefti_cuda_ep_route_open(weft_ep_route *route, void *memory)
{
    const wefti_cuda *cuda = route->ep->device->cuda;
    const CUstreamCaptureMode before = set_capture_mode(cuda, CU_STREAM_CAPTURE_MODE_RELAXED);
    weft_status status = open_route(route, memory);
    (void)set_capture_mode(cuda, before);
    return status;
}

void wefti_cuda_ep_route_close(weft_ep_route *route)
{
    const wefti_cuda *cuda = route->ep->device->cuda;
    const CUstreamCaptureMode before = set_capture_mode(cuda, CU_STREAM_CAPTURE_MODE_RELAXED);
    close_route(route);
    (void)set_capture_mode(cuda, before);
}

/* Not by the graph that is captured, which would clear at every launch what outlives them. */
static weft_status clear_at_once(wefti_cuda *cuda, void *tables, size_t bytes)
{
    const CUstreamCaptureMode before = set_capture_mode(cuda, CU_STREAM_CAPTURE_MODE_RELAXED);
    weft_status status = wefti_cuda_clear(&cuda->base, tables, bytes);
    (void)set_capture_mode(cuda, before);
    return status;
}

static weft_status clear_on(wefti_cuda *cuda, void *tables, size_t bytes, weft_stream *stream)
{
    static const char call[] = "weft_ep: cuMemsetD8Async";
    const CUstream on = (CUstream)(void *)stream;
    CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
    WEFT_TRY(wefti_cuda_enter(cuda));
    CUresult result = cuda->driver.cuStreamIsCapturing(on, &state);
    if (result == CUDA_SUCCESS && state == CU_STREAM_CAPTURE_STATUS_NONE) {
        result = cuda->driver.cuMemsetD8Async((CUdeviceptr)(uintptr_t)tables, 0, bytes, on);
    }
    wefti_cuda_leave(cuda);
    WEFT_TRY(wefti_cuda_check(&cuda->driver, result, call));
    return state != CU_STREAM_CAPTURE_STATUS_NONE ? clear_at_once(cuda, tables, bytes) : WEFT_OK;
}

weft_status wefti_cuda_ep_clear_dirty(wefti_cuda *cuda, void *tables, size_t *bytes, weft_stream *stream)
{
    if (*bytes > 0) {
        WEFT_TRY(clear_on(cuda, tables, *bytes, stream));
        *bytes = 0;
    }
    return WEFT_OK;
}

weft_status wefti_cuda_ep_route_move(weft_ep_route *route, void *memory)
{
    wefti_ep_device_route *of = route->device;
    const weft_ep *ep = route->ep;
    const size_t bytes = wefti_cuda_ep_route_bytes(ep, &route->plan);
    if (of->owned != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_route_move: the route lies in memory of the library's own");
    }
    WEFT_TRY(wefti_cuda_copy(&ep->device->cuda->base, memory, of->tables.route_header, bytes));
    (void)lay_out(&of->tables, ep, &route->plan, (uintptr_t)memory);
    return WEFT_OK;
}

weft_status wefti_cuda_ep_route_attach(weft_ep_route *route, void *memory, weft_ep_contents contents,
                                       weft_stream *stream)
{
    static const char call[] = "weft_ep_route_attach: cuMemsetD8Async";
    const weft_ep *ep = route->ep;
    const wefti_cuda *cuda = ep->device->cuda;
    wefti_cuda_ep_tables tables = route->device->tables;
    (void)lay_out(&tables, ep, &route->plan, (uintptr_t)memory);
    if (contents == WEFT_EP_CONTENTS_NONE) {
        WEFT_TRY(wefti_cuda_enter(cuda));
        CUresult result = cuda->driver.cuMemsetD8Async((CUdeviceptr)(uintptr_t)memory, 0, cleared_bytes(&tables),
                                                       (CUstream)(void *)stream);
        wefti_cuda_leave(cuda);
        WEFT_TRY(wefti_cuda_check(&cuda->driver, result, call));
    }
    route->device->tables = tables;
    route->device->dirty_bytes = 0;
    route->device->tokens_least = 0;
    route->device->is_unseen = 1;
    return WEFT_OK;
}

weft_status wefti_cuda_ep_counts(const weft_ep_route *route, weft_ep_counts *counts)
{
    const wefti_cuda_ep_tables *tables = &route->device->tables;
    int by_rank = wefti_ep_plan_is_by_rank(&route->plan);
    *counts = (weft_ep_counts){
        .rows = &tables->route_header->rows,
        .rows_of_expert = by_rank ? tables->no_rows : tables->rows_of_expert,
        .offset_of_expert = by_rank ? tables->no_rows : tables->offset_of_expert,
        .rows_of_source = tables->rows_of_source,
        .offset_of_source = tables->offset_of_source,
        .dropped = &tables->route_header->dropped,
        .status = &tables->route_header->status,
        .rows_of_expert_source = by_rank ? tables->no_rows : tables->rows_of_expert_source,
        .dropped_rows = &tables->route_header->dropped_rows,
    };
    return WEFT_OK;
}

weft_status wefti_cuda_ep_fetch_header(const wefti_cuda *cuda, const wefti_cuda_ep_route_header *there,
                                       weft_stream *stream, wefti_cuda_ep_route_header *header)
{
    const CUstream on = (CUstream)(void *)stream;
    WEFT_TRY(wefti_cuda_enter(cuda));
    weft_status status = WEFT_OK;
    CUresult result = cuda->driver.cuStreamSynchronize(on); /* a copy to pageable memory would wait in the driver */
    if (result == CUDA_SUCCESS) {
        status = wefti_cuda_enqueue_copy(cuda, header, there, sizeof *header, on);
        result = cuda->driver.cuStreamSynchronize(on);
    }
    wefti_cuda_leave(cuda);
    WEFT_TRY(status);
    return wefti_cuda_check(&cuda->driver, result, "weft_ep_route_query: cuStreamSynchronize");
}

void wefti_cuda_ep_tell_counts(const weft_ep *ep, const wefti_cuda_ep_route_header *header, weft_ep_host_counts *counts)
{
    counts->rows = header->rows;
    counts->tokens = header->received;
    counts->dropped = header->dropped;
    counts->local_experts = wefti_ep_local_experts(ep);
    counts->first_expert = ep->owners.first[ep->rank];
    counts->status = (weft_status)header->status;
    counts->dropped_rows = header->dropped_rows;
}

weft_status wefti_cuda_ep_query(const weft_ep_route *route, weft_stream *stream, weft_ep_host_counts *counts)
{
    weft_ep *ep = route->ep;
    wefti_cuda_ep_route_header header;
    WEFT_TRY(wefti_cuda_ep_fetch_header(ep->device->cuda, route->device->tables.route_header, stream, &header));
    WEFT_TRY(wefti_cuda_ep_host_status(ep, "weft_ep_route_query"));
    if (!wefti_ep_has_half_of(ep, route)) {
        route->device->is_unseen = 0;
    }
    wefti_cuda_ep_tell_counts(ep, &header, counts);
    return WEFT_OK;
}

/* Where kernels reach it at the host's address. */
static weft_status check_told(const wefti_cuda *cuda, void *array, const char *name)
{
    CUdeviceptr device = 0;
    if (array != NULL && (cuda->driver.cuMemHostGetDevicePointer(&device, array, 0) != CUDA_SUCCESS ||
                          device != (CUdeviceptr)(uintptr_t)array)) {
        return wefti_error(
            WEFT_ERR_ARGUMENT,
            "weft_ep_route_counts_to: arrays.%s is at %p, where the GPU does not reach it; give memory of "
            "the world's heap, or pin it (cudaHostAlloc, cudaHostRegister)",
            name, array);
    }
    return WEFT_OK;
}

weft_status wefti_cuda_ep_check_told(const wefti_cuda *cuda, const weft_ep_count_arrays *arrays)
{
    WEFT_TRY(wefti_cuda_enter(cuda));
    weft_status status = check_told(cuda, arrays->generation, "generation");
    status = status != WEFT_OK ? status : check_told(cuda, arrays->rows, "rows");
    status = status != WEFT_OK ? status : check_told(cuda, arrays->rows_of_expert, "rows_of_expert");
    status = status != WEFT_OK ? status : check_told(cuda, arrays->rows_of_expert_aligned, "rows_of_expert_aligned");
    status = status != WEFT_OK ? status : check_told(cuda, arrays->rows_of_source, "rows_of_source");
    status = status != WEFT_OK ? status : check_told(cuda, arrays->offset_of_expert, "offset_of_expert");
    wefti_cuda_leave(cuda);
    return status;
}

weft_status wefti_cuda_ep_counts_told(weft_ep_route *route, const weft_ep_count_arrays *arrays)
{
    wefti_cuda *cuda = route->ep->device->cuda;
    if (arrays->generation == NULL) { /* nothing is numbered, so that nothing begins anew */
        return WEFT_OK;
    }
    WEFT_TRY(wefti_cuda_ep_check_told(cuda, arrays));
    return wefti_cuda_clear(&cuda->base, route->device->tables.counted, sizeof *route->device->tables.counted);
}

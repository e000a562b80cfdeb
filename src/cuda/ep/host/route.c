/* cuda/ep/host/route.c: a route's tables: its device memory, and what of it callers see. */
#include <string.h>

#include "base/alloc.h"
#include "cuda/ep/host/calls.h"
#include "weft.h"

/* What lies in a route's memory, in this order: X(field, how many, whether the route has it). The order of two of them
 * is used: wefti_cuda_ep_tables_of. */
#define TABLES(X)                                                                                                      \
    X(route_header, 1, 1)                                                                                              \
    X(rows_of_expert, local, 1)                                                                                        \
    X(rows_of_expert_source, local *ranks, 1)                                                                          \
    X(offset_of_expert, local + 1, 1)                                                                                  \
    X(rows_of_source, ranks, 1)                                                                                        \
    X(offset_of_source, ranks + 1, 1)                                                                                  \
    X(tokens_of, ranks, 1)                                                                                             \
    X(sent, ranks, 1)                                                                                                  \
    X(place, ranks, 1)                                                                                                 \
    X(bits, units *ranks, 1)                                                                                           \
    X(goes, units *ranks, drops)                                                                                       \
    X(before, units *ranks, 1)                                                                                         \
    X(next_unit, banks *sms, 1)                                                                                        \
    X(partials, sms *(experts + 1), 1)                                                                                 \
    X(ahead, sms *experts, by_expert)                                                                                  \
    X(base, experts, by_expert)                                                                                        \
    X(full, ranks, by_expert)                                                                                          \
    X(cut, ranks, by_expert)                                                                                           \
    X(begin, local + 1, by_expert)                                                                                     \
    X(end, local, by_expert)                                                                                           \
    X(combine_weights, banks *tokens *ranks, !by_expert)                                                               \
    X(weights, tokens *ranks, !by_expert)                                                                              \
    X(ids, tokens *ranks, by_rank)                                                                                     \
    X(rows, tokens *(by_rank ? ranks : topk), by_expert || by_rank)                                                    \
    X(target, tokens *ranks, by_expert || by_rank)                                                                     \
    X(unpadded, 2, by_expert || by_rank)                                                                               \
    X(no_rows, (uint64_t)wefti_ep_local_experts(ep) * ranks + 1, by_rank)                                              \
    X(kept, tokens *topk, drops_rows)                                                                                  \
    X(asked, 1, drops_rows)                                                                                            \
    X(owner, tokens *topk * ep->device->kind->owner_bytes, 1)                                                          \
    X(order, banks *tokens *ranks, 1)                                                                                  \
    X(records, received *(uint64_t)wefti_cuda_ep_record_words(plan->topk, by_expert), 1)
#define COUNT(field, number, is_there) +1
enum { TABLES_FIELDS = 0 TABLES(COUNT) };
#undef COUNT

/* Set the pointers of the route tables, but for `counted`, which lies apart, at `memory`, which is not touched and may
 * be 0, as limits of that extent want. Returns its bytes: no part of them shrinks when limits grow, so that equal
 * numbers of bytes have equal places. */
static size_t lay_out_for(wefti_cuda_ep_tables *tables, const weft_ep *ep, const weft_ep_plan *plan,
                          const wefti_cuda_ep_extent *extent, uint64_t memory)
{
    wefti_u64 end = 0;
    const uint64_t ranks = (uint64_t)ep->ranks;
    const int by_rank = wefti_ep_plan_is_by_rank(plan);
    const uint64_t local = by_rank ? 1 : (uint64_t)wefti_ep_local_experts(ep);
    const uint64_t tokens = extent->tokens;
    const uint64_t units = extent->units;
    const uint64_t received = extent->received;
    const uint64_t experts = (uint64_t)wefti_cuda_ep_experts_of(ep, plan);
    const uint64_t topk = (uint64_t)plan->topk;
    const uint64_t sms = (uint64_t)ep->device->sms;
    const uint64_t banks = (uint64_t)wefti_ep_banks(ep);
    const int by_expert = !wefti_ep_plan_is_by_source(plan);
    const int drops = ep->device->group[0].drops != 0;
    const int drops_rows = wefti_ep_drops_rows(ep, plan);
#define LAY(field, count, is_there)                                                                                    \
    if (is_there) {                                                                                                    \
        tables->field = (void *)(uintptr_t)(memory + wefti_cuda_ep_take(&end, (count) * sizeof *tables->field));       \
    }
    TABLES(LAY)
#undef LAY
    if (!drops) {
        tables->goes = tables->bits;
    }
    return end;
}

/* Arrays of the running call lie there once a bank, and the next array behind them, which tells how large the limits
 * made them that were laid out by. */
wefti_cuda_ep_tables wefti_cuda_ep_tables_of(const weft_ep_route *route)
{
    const size_t banks = (size_t)wefti_ep_banks(route->ep);
    const size_t bank = (size_t)route->ep->bank;
    wefti_cuda_ep_tables tables = route->device->tables;
    tables.next_unit += bank * (size_t)route->ep->device->sms;
    tables.order += bank * (size_t)((unsigned char *)tables.records - tables.order) / banks;
    if (tables.combine_weights != NULL) {
        tables.combine_weights += bank * (size_t)(tables.weights - tables.combine_weights) / banks;
    }
    return tables;
}

/* The same by today's limits. */
static size_t lay_out(wefti_cuda_ep_tables *tables, const weft_ep *ep, const weft_ep_plan *plan, uint64_t memory)
{
    return lay_out_for(tables, ep, plan, &ep->device->extent, memory);
}

/* The addresses of what the tables have, and behind them that of the end. Returns how many there are. */
static size_t addresses(const wefti_ep_device_route *of, uint64_t at[TABLES_FIELDS + 1])
{
    const wefti_cuda_ep_tables *tables = &of->tables;
    size_t count = 0;
#define ADDRESS(field, number, is_there)                                                                               \
    if (tables->field != NULL && (count == 0 || (uintptr_t)tables->field > at[count - 1])) {                           \
        at[count++] = (uintptr_t)tables->field;                                                                        \
    }
    TABLES(ADDRESS)
#undef ADDRESS
    at[count] = (uintptr_t)tables->route_header + of->laid_bytes;
    return count;
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

/* Calls of a group on a bank do not overlap, so that it claims for each the most that a route of it asks for, until
 * it is destroyed. */
static weft_status claim(const weft_ep *ep, const weft_ep_plan *plan)
{
    wefti_cuda *cuda = ep->device->cuda;
    wefti_cuda_ep_claim *shared = ep->device->claim;
    int sms = wefti_cuda_ep_sms_asked(ep, plan) * wefti_ep_banks(ep);
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
    wefti_cuda_ep_free(route->ep->device->cuda, (CUdeviceptr)(uintptr_t)route->device->tables.counted);
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
    of->bytes = of->laid_bytes = bytes;
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

/* Whether the route lies where the library has allocated memory for it, and not where it was attached. */
static int is_in_own(const wefti_ep_device_route *of)
{
    return of->owned != 0 && of->owned == (CUdeviceptr)(uintptr_t)of->tables.route_header;
}

weft_status wefti_cuda_ep_route_move(weft_ep_route *route, void *memory, size_t bytes)
{
    wefti_ep_device_route *of = route->device;
    const weft_ep *ep = route->ep;
    wefti_cuda *cuda = ep->device->cuda;
    wefti_ep_device_route moved = *of;
    uint64_t from[TABLES_FIELDS + 1];
    uint64_t to[TABLES_FIELDS + 1];
    if (is_in_own(of)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_route_move: the route lies in memory of the library's own; give "
                                              "weft_ep_route_create memory for one that is to move");
    }
    moved.bytes = bytes;
    moved.laid_bytes = lay_out(&moved.tables, ep, &route->plan, (uintptr_t)memory);
    if (of->dirty_bytes > 0) { /* there has been no call */
        moved.dirty_bytes = cleared_bytes(&moved.tables);
        *of = moved;
        return WEFT_OK;
    }
    if (moved.laid_bytes == of->laid_bytes) {
        WEFT_TRY(wefti_cuda_copy(&cuda->base, memory, of->tables.route_header, of->laid_bytes));
        *of = moved;
        return WEFT_OK;
    }
    const size_t count = addresses(&moved, to);
    (void)addresses(of, from);
    WEFT_TRY(wefti_cuda_clear(&cuda->base, memory, cleared_bytes(&moved.tables)));
    for (size_t i = 0; i < count; i++) { /* of other limits, but of the same plan: arrays only grow at their ends */
        const uint64_t there = to[i + 1] - to[i];
        const uint64_t here = from[i + 1] - from[i];
        WEFT_TRY(wefti_cuda_copy(&cuda->base, (void *)(uintptr_t)to[i], (void *)(uintptr_t)from[i],
                                 here < there ? here : there));
    }
    *of = moved;
    return WEFT_OK;
}

/* Lay the route out anew, in memory of so many bytes, without a routing. */
static weft_status lay_anew(weft_ep_route *route, CUdeviceptr memory, size_t bytes)
{
    wefti_ep_device_route *of = route->device;
    wefti_cuda *cuda = route->ep->device->cuda;
    const int is_dirty = of->dirty_bytes > 0;
    of->bytes = bytes;
    of->laid_bytes = lay_out(&of->tables, route->ep, &route->plan, memory);
    route->is_routed = 0;
    if (is_dirty) { /* there has been no call: the first one clears it */
        of->dirty_bytes = cleared_bytes(&of->tables);
        return WEFT_OK;
    }
    return wefti_cuda_clear(&cuda->base, of->tables.route_header, cleared_bytes(&of->tables));
}

static weft_status fit(weft_ep_route *route, size_t bytes, const char *call)
{
    wefti_ep_device_route *of = route->device;
    const wefti_cuda *cuda = route->ep->device->cuda;
    const CUdeviceptr old = of->owned;
    CUdeviceptr memory = 0;
    WEFT_TRY(wefti_cuda_ep_settle(route->ep, call));
    if (bytes <= of->bytes) {
        return lay_anew(route, (CUdeviceptr)(uintptr_t)of->tables.route_header, of->bytes);
    }
    WEFT_TRY(wefti_cuda_ep_allocate(cuda, bytes, &memory));
    weft_status status = lay_anew(route, memory, bytes);
    of->owned = memory;
    wefti_cuda_ep_free(cuda, old);
    return status;
}

weft_status wefti_cuda_ep_route_fit(weft_ep_route *route, const char *call)
{
    const wefti_ep_device_route *of = route->device;
    const size_t bytes = wefti_cuda_ep_route_bytes(route->ep, &route->plan);
    if (bytes == of->laid_bytes) {
        return WEFT_OK;
    }
    if (bytes > of->bytes && !is_in_own(of)) {
        return wefti_error(WEFT_ERR_RANGE,
                           "%s: limits have grown; the route's memory, which is yours, holds %zu bytes, and it takes "
                           "%zu now: give it as many (weft_ep_route_bytes; weft_ep_route_move, or "
                           "weft_ep_route_attach) and call again",
                           call, of->bytes, bytes);
    }
    const CUstreamCaptureMode before = set_capture_mode(route->ep->device->cuda, CU_STREAM_CAPTURE_MODE_RELAXED);
    weft_status status = fit(route, bytes, call);
    (void)set_capture_mode(route->ep->device->cuda, before);
    return status;
}

/* Lay the tables out at `memory` as a routing there has them, which is of so many bytes. Limits stay: in that way
 * alone. */
static size_t lay_out_as_made(wefti_cuda_ep_tables *tables, const weft_ep *ep, const weft_ep_plan *plan, void *memory,
                              size_t bytes)
{
    const wefti_ep_device *device = ep->device;
    size_t laid = lay_out(tables, ep, plan, (uintptr_t)memory);
    for (size_t i = device->extents_count; i > 0 && laid != bytes; i--) {
        laid = lay_out_for(tables, ep, plan, &device->extents[i - 1], (uintptr_t)memory);
    }
    return laid;
}

/* Clear the tables before a first routing: on the stream, now or, where limits may grow before, by the call that
 * comes. */
static weft_status clear_for_routing(const weft_ep *ep, const wefti_cuda_ep_tables *tables, size_t *dirty_bytes,
                                     weft_stream *stream)
{
    static const char call[] = "weft_ep_route_attach: cuMemsetD8Async";
    const wefti_cuda *cuda = ep->device->cuda;
    const CUstream on = (CUstream)(void *)stream;
    CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
    WEFT_TRY(wefti_cuda_enter(cuda));
    CUresult result = cuda->driver.cuStreamIsCapturing(on, &state);
    const int is_later = wefti_ep_grows(ep) && state == CU_STREAM_CAPTURE_STATUS_NONE;
    if (result == CUDA_SUCCESS && !is_later) {
        result =
            cuda->driver.cuMemsetD8Async((CUdeviceptr)(uintptr_t)tables->route_header, 0, cleared_bytes(tables), on);
    }
    wefti_cuda_leave(cuda);
    *dirty_bytes = is_later ? cleared_bytes(tables) : 0;
    return wefti_cuda_check(&cuda->driver, result, call);
}

weft_status wefti_cuda_ep_route_attach(weft_ep_route *route, void *memory, size_t bytes, weft_ep_contents contents,
                                       weft_stream *stream)
{
    const weft_ep *ep = route->ep;
    wefti_ep_device_route *of = route->device;
    wefti_cuda_ep_tables tables = of->tables;
    size_t dirty_bytes = 0;
    size_t laid = lay_out(&tables, ep, &route->plan, (uintptr_t)memory);
    if (contents == WEFT_EP_CONTENTS_NONE) {
        WEFT_TRY(clear_for_routing(ep, &tables, &dirty_bytes, stream));
    } else if (wefti_ep_grows(ep)) {
        laid = lay_out_as_made(&tables, ep, &route->plan, memory, bytes);
        if (laid != bytes) {
            return wefti_error(WEFT_ERR_ARGUMENT,
                               "weft_ep_route_attach: %zu bytes; the group's limits grow, and no routing of this plan "
                               "has taken so many: give what weft_ep_route_bytes told after the call that made it",
                               bytes);
        }
    }
    of->tables = tables;
    of->bytes = bytes;
    of->laid_bytes = laid;
    of->dirty_bytes = dirty_bytes;
    of->tokens_least = 0;
    of->is_unseen = 1;
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

/* The number of routings that are told lies in memory of its own: what the tables have is cleared where a route is
 * attached, by each launch of a graph that has this, and another route may have left it there. */
static weft_status begin_counting(wefti_cuda *cuda, wefti_cuda_ep_tables *tables)
{
    CUdeviceptr memory = 0;
    if (tables->counted == NULL) {
        WEFT_TRY(wefti_cuda_ep_allocate(cuda, sizeof *tables->counted, &memory));
        tables->counted = (wefti_u64 *)(uintptr_t)memory;
    }
    return wefti_cuda_clear(&cuda->base, tables->counted, sizeof *tables->counted);
}

weft_status wefti_cuda_ep_counts_told(weft_ep_route *route, const weft_ep_count_arrays *arrays)
{
    wefti_cuda *cuda = route->ep->device->cuda;
    if (arrays->generation == NULL) { /* nothing is numbered, so that nothing begins anew */
        return WEFT_OK;
    }
    WEFT_TRY(wefti_cuda_ep_check_told(cuda, arrays));
    const CUstreamCaptureMode before = set_capture_mode(cuda, CU_STREAM_CAPTURE_MODE_RELAXED);
    weft_status status = begin_counting(cuda, &route->device->tables);
    (void)set_capture_mode(cuda, before);
    return status;
}

/* cuda/proxy/ring.c: a ring's two ends on the host: the proxy's, and that of host calls. Kernels have theirs in
 * weft/device/far.cuh. */
#include <stdio.h>
#include <string.h>

#include "cuda/proxy/far.h"

wefti_dev_entry *wefti_far_ring_entry(const wefti_far_ring *ring, uint64_t ticket)
{
    return &ring->shared->entries[ticket % WEFTI_DEV_RING_ENTRIES];
}

/* ---- the proxy's end ---- */

wefti_dev_entry *wefti_far_ring_peek(const wefti_far_ring *ring)
{
    wefti_dev_entry *entry = wefti_far_ring_entry(ring, ring->next);
    return wefti_ld64(&entry->filled, WEFTI_ACQUIRE) == ring->next + 1 ? entry : NULL;
}

wefti_far_task *wefti_far_ring_take(wefti_far_ring *ring)
{
    const size_t place = ring->next % WEFTI_DEV_RING_ENTRIES;
    const int is_answered = wefti_far_ring_entry(ring, ring->next)->request.answer != WEFTI_DEV_ANSWER_NONE;
    ring->is_done[place] = 0;
    ring->is_answered[place] = is_answered != 0;
    ring->tasks[place] = (wefti_far_task){.ring = ring, .ticket = ring->next, .has_answer = !is_answered};
    ring->next++;
    return &ring->tasks[place];
}

void wefti_far_ring_answer(wefti_far_ring *ring, uint64_t ticket, const wefti_far_answer *answer, size_t bytes)
{
    wefti_dev_entry *entry = wefti_far_ring_entry(ring, ticket);
    memcpy(entry->request.data, answer->data, bytes);
    entry->old = answer->old;
    entry->status = answer->status;
    wefti_st64(&entry->answered, ticket + 1, WEFTI_RELEASE);
}

int wefti_far_ring_is_left(const wefti_far_ring *ring, uint64_t ticket)
{
    const wefti_dev_entry *entry = wefti_far_ring_entry(ring, ticket);
    return ring->is_answered[ticket % WEFTI_DEV_RING_ENTRIES] && entry->answered != ticket + 1 &&
           wefti_ld64(&entry->taken, WEFTI_ACQUIRE) == ticket + 1;
}

void wefti_far_ring_finish(wefti_far_ring *ring, uint64_t ticket)
{
    ring->is_done[ticket % WEFTI_DEV_RING_ENTRIES] = 1;
}

static int is_free(const wefti_far_ring *ring, uint64_t ticket)
{
    return !ring->is_answered[ticket % WEFTI_DEV_RING_ENTRIES] ||
           wefti_ld64(&wefti_far_ring_entry(ring, ticket)->taken, WEFTI_ACQUIRE) == ticket + 1;
}

int wefti_far_ring_advance(wefti_far_ring *ring)
{
    const uint64_t done = ring->done;
    const uint64_t free = ring->free;
    while (ring->done < ring->next && ring->is_done[ring->done % WEFTI_DEV_RING_ENTRIES]) {
        ring->done++;
    }
    while (ring->free < ring->done && is_free(ring, ring->free)) {
        ring->free++;
    }
    if (ring->done < ring->next) {
        wefti_st64(&ring->shared->awaited, (uint64_t)(uint32_t)wefti_far_ring_entry(ring, ring->done)->pe + 1,
                   WEFTI_RELAXED);
    }
    if (ring->done != done) {
        wefti_st64(&ring->shared->done, ring->done, WEFTI_RELEASE);
    }
    if (ring->free != free) {
        wefti_st64(&ring->shared->end, ring->free + WEFTI_DEV_RING_ENTRIES, WEFTI_RELEASE);
    }
    return ring->done != done || ring->free != free;
}

/* ---- the end of host calls ---- */

static const char call[] = "weft: device memory beyond the link domain";

static weft_status expired(const wefti_cuda_far *far, weft_status status, int pe)
{
    const weft_world *world = far->cuda->world;
    char gone[WEFTI_GONE_BYTES];
    if (status != WEFT_ERR_TIMEOUT) {
        return status;
    }
    char limit[WEFTI_LIMIT_BYTES];
    return wefti_error(wefti_world_late(world), "%s: world \"%s\": PE %d does not answer, %s%s", call, world->name, pe,
                       wefti_world_limit_text(world, limit), wefti_world_gone_text(world, gone));
}

static weft_status claim(wefti_cuda_far *far, int pe, uint64_t *ticket)
{
    const wefti_dev_ring *shared = far->rings[WEFTI_FAR_RING_HOST].shared;
    wefti_waiter waiter = wefti_waiter_start(far->cuda->world, call);
    weft_status status = WEFT_OK;
    for (;;) {
        wefti_os_monitor_enter(far->host_lock);
        const int is_free = far->host_tail < wefti_ld64(&shared->end, WEFTI_ACQUIRE);
        *ticket = far->host_tail;
        far->host_tail += (uint64_t)is_free;
        wefti_os_monitor_leave(far->host_lock);
        if (is_free) {
            return WEFT_OK;
        }
        status = wefti_waiter_pause(&waiter, &shared->end);
        if (status != WEFT_OK) {
            return expired(far, status, pe);
        }
    }
}

static weft_status await(wefti_cuda_far *far, const wefti_dev_entry *entry, uint64_t ticket, int pe)
{
    wefti_waiter waiter = wefti_waiter_start(far->cuda->world, call);
    while (wefti_ld64(&entry->answered, WEFTI_ACQUIRE) != ticket + 1) {
        weft_status status = wefti_waiter_pause(&waiter, &entry->answered);
        if (status != WEFT_OK) {
            return expired(far, status, pe);
        }
    }
    return entry->status == WEFT_OK ? WEFT_OK
                                    : wefti_error((weft_status)entry->status, "%s: PE %d: %s", call, pe,
                                                  weft_status_name((weft_status)entry->status));
}

weft_status wefti_far_settle(wefti_device *device)
{
    wefti_cuda_far *far = wefti_cuda_of(device)->far;
    const wefti_dev_ring *shared = far->rings[WEFTI_FAR_RING_KERNELS].shared;
    wefti_waiter waiter = wefti_waiter_start(far->cuda->world, call);
    uint64_t asked = 0; /* requests, ever: a kernel that has ended has filled its own, perhaps before a running one's */
    weft_status status = WEFT_OK;
    for (size_t i = 0; i < WEFTI_DEV_RING_ENTRIES; i++) {
        const uint64_t filled = wefti_ld64(&shared->entries[i].filled, WEFTI_ACQUIRE);
        asked = filled > asked ? filled : asked;
    }
    while (status == WEFT_OK && wefti_ld64(&shared->done, WEFTI_ACQUIRE) < asked) {
        status = wefti_waiter_pause(&waiter, &shared->done);
    }
    return expired(far, status, (int)wefti_ld64(&shared->awaited, WEFTI_RELAXED) - 1);
}

/* What every PE calls this symmetric byte; 0: it is none. */
static uint64_t place_of(const wefti_cuda *cuda, const void *address)
{
    const wefti_device *device = &cuda->base;
    uint64_t offset = (uint64_t)((uintptr_t)address - (uintptr_t)device->heap);
    if (offset < device->heap_max_bytes) {
        return WEFTI_DEV_PLACE(WEFTI_DEV_SPACE_DEVICE, offset);
    }
    offset = (uint64_t)((uintptr_t)address - cuda->world->view.heap);
    if (offset < cuda->world->heap_max_bytes) {
        return WEFTI_DEV_PLACE(WEFTI_DEV_SPACE_HOST, offset);
    }
    const wefti_cuda_region *region = wefti_cuda_region_find(cuda, address, 1, &offset);
    return region == NULL ? 0 : WEFTI_DEV_PLACE(WEFTI_DEV_SPACE_REGION + region->number, offset);
}

/* Whether the driver does not know it: a program's own memory, neither of a GPU nor pinned. */
static int is_plain_memory(const wefti_cuda *cuda, const void *local)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;
    int has_entered;
    if (place_of(cuda, local) != 0 || wefti_cuda_enter_other(cuda, &has_entered) != WEFT_OK) {
        return 0;
    }
    const CUresult found = cuda->driver.cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)(uintptr_t)local);
    wefti_cuda_leave_other(cuda, has_entered);
    return found != CUDA_SUCCESS;
}

static void fill_in(wefti_dev_entry *entry, const wefti_device_request *asked, int kind, uint64_t place, uint64_t bytes)
{
    entry->pe = asked->pe;
    entry->request.kind = kind;
    entry->request.op = (int)asked->op;
    entry->request.bits = asked->bits;
    entry->request.answer = WEFTI_DEV_ANSWER_DONE;
    entry->request.place = place;
    entry->request.bytes = bytes;
    entry->request.value = asked->value;
    entry->request.cond = asked->cond;
}

/* Ask for as much as one entry of the ring can carry, and wait for the answer. */
static weft_status call_part(wefti_cuda_far *far, const wefti_device_request *asked, uint64_t place, size_t done,
                             size_t bytes)
{
    static const int kinds[] = {
        [WEFTI_DEVICE_PUT] = WEFTI_DEV_REQUEST_PUT,
        [WEFTI_DEVICE_GET] = WEFTI_DEV_REQUEST_GET,
        [WEFTI_DEVICE_AMO] = WEFTI_DEV_REQUEST_AMO,
    };
    uint64_t ticket;
    WEFT_TRY(claim(far, asked->pe, &ticket));
    wefti_dev_entry *entry = wefti_far_ring_entry(&far->rings[WEFTI_FAR_RING_HOST], ticket);
    unsigned char *local = (unsigned char *)(uintptr_t)asked->local + done;
    weft_status status = WEFT_OK;
    if (asked->kind == WEFTI_DEVICE_PUT) {
        status = wefti_cuda_copy(&far->cuda->base, entry->request.data, local, bytes);
    }
    fill_in(entry, asked, kinds[asked->kind], place + done,
            status == WEFT_OK ? bytes : 0); /* the entry has been claimed: it must be filled */
    wefti_st64(&entry->filled, ticket + 1, WEFTI_RELEASE);
    weft_status answered = await(far, entry, ticket, asked->pe);
    status = status == WEFT_OK ? answered : status;
    if (status == WEFT_OK && asked->kind == WEFTI_DEVICE_GET) {
        status = wefti_cuda_copy(&far->cuda->base, local, entry->request.data, bytes);
    }
    if (status == WEFT_OK && asked->old != NULL) {
        *(uint64_t *)asked->old = entry->old;
    }
    wefti_st64(&entry->taken, ticket + 1, WEFTI_RELEASE);
    return status;
}

/* Of a call that has met its deadline: until the proxy's copies do not use its memory, which the caller may have for
 * something else when the call has returned. Nobody else is waited for: it takes as long as copies of this host that
 * have begun, mostly less than a millisecond, or as the transport takes to give up. A copy cannot be taken back, so
 * that no deadline can be the bound; this one is for a GPU that does not copy any more. */
#define LET_GO_NS UINT64_C(10000000000)
static weft_status await_let_go(const wefti_dev_entry *entry, uint64_t ticket, weft_status status)
{
    const uint64_t start = wefti_os_now_ns();
    uint64_t waited = 0;
    char why[512];
    while (wefti_ld64(&entry->answered, WEFTI_ACQUIRE) != ticket + 1) {
        if (waited >= LET_GO_NS) {
            (void)snprintf(why, sizeof why, "%s", weft_last_error());
            return wefti_error(status,
                               "%s; a copy of its memory has not ended: leave that as it is until the world ends", why);
        }
        wefti_os_pause(&entry->answered, call, waited, LET_GO_NS - waited, 1);
        waited = wefti_os_now_ns() - start;
    }
    return status;
}

/* A long put or get, of the caller's memory by the proxy's copies. */
static weft_status call_long(wefti_cuda_far *far, const wefti_device_request *asked, uint64_t place, size_t done,
                             size_t bytes)
{
    uint64_t ticket;
    WEFT_TRY(claim(far, asked->pe, &ticket));
    wefti_dev_entry *entry = wefti_far_ring_entry(&far->rings[WEFTI_FAR_RING_HOST], ticket);
    fill_in(entry, asked, asked->kind == WEFTI_DEVICE_PUT ? WEFTI_DEV_REQUEST_LONG_PUT : WEFTI_DEV_REQUEST_LONG_GET,
            place + done, bytes);
    entry->request.op = is_plain_memory(far->cuda, asked->local) ? WEFTI_FAR_PLAIN_MEMORY : 0;
    entry->request.value = (uintptr_t)asked->local + done;
    wefti_st64(&entry->filled, ticket + 1, WEFTI_RELEASE);
    weft_status status = await(far, entry, ticket, asked->pe);
    wefti_st64(&entry->taken, ticket + 1, WEFTI_RELEASE);
    return await_let_go(entry, ticket, status);
}

weft_status wefti_far_call(wefti_device *device, const wefti_device_request *asked)
{
    wefti_cuda *cuda = wefti_cuda_of(device);
    const uint64_t place = place_of(cuda, asked->address);
    const size_t total = asked->kind == WEFTI_DEVICE_AMO ? 1 : asked->bytes;
    const int is_long = asked->kind != WEFTI_DEVICE_AMO && total > WEFTI_DEV_REQUEST_BYTES &&
                        cuda->far->chunk_bytes != 0 && WEFTI_DEV_PLACE_SPACE(place) != WEFTI_DEV_SPACE_HOST;
    const size_t most = is_long ? WEFTI_DEV_LONG_MAX : WEFTI_DEV_REQUEST_BYTES;
    size_t done = 0;
    while (done < total) {
        size_t bytes = total - done < most ? total - done : most;
        WEFT_TRY(is_long ? call_long(cuda->far, asked, place, done, bytes)
                         : call_part(cuda->far, asked, place, done, asked->kind == WEFTI_DEVICE_AMO ? 0 : bytes));
        done += bytes;
    }
    return WEFT_OK;
}

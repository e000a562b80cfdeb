#include "heap/window.h"

#include "base/error.h"

#define WINDOW_MAPPED 1
#define WINDOW_FAILED 2

_Static_assert(sizeof(wefti_window) <= WEFTI_OS_RECORD_BYTES_MAX, "a window is a record");

weft_status wefti_window_create(wefti_os_ticket *ticket, wefti_window **out)
{
    void *record;
    WEFT_TRY(wefti_os_record_create(sizeof(wefti_window), ticket, &record));
    *out = record;
    (*out)->memory.descriptor = -1;
    return WEFT_OK;
}

weft_status wefti_window_join(const wefti_os_ticket *ticket, wefti_window **out)
{
    void *record;
    WEFT_TRY(wefti_os_record_join(ticket, &record));
    *out = record;
    return WEFT_OK;
}

void wefti_window_leave(wefti_window *window)
{
    if (window == NULL || !wefti_os_record_leave(window)) {
        return;
    }
    if (window->device != NULL) {
        window->device_free(window->device);
    }
    wefti_os_memory_fini(&window->memory);
    wefti_os_record_free(window);
}

/* Fill in where slots are, and the bytes of it all. */
static weft_status lay_out(wefti_window *window, const wefti_window_shape *shape, size_t *bytes)
{
    const size_t unit = WEFTI_OS_MEMORY_ALIGNMENT;
    window->first_slot = (shape->head_bytes + unit - 1) / unit * unit;
    window->stride = shape->stride;
    if (__builtin_mul_overflow(shape->slots, shape->stride, bytes) ||
        __builtin_add_overflow(*bytes, window->first_slot, bytes)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "heaps of %zu bytes for %zu PEs exceed the address space; lower heap_max_bytes or "
                           "WEFT_HEAP_MAX",
                           shape->stride, shape->slots);
    }
    return WEFT_OK;
}

static void publish(wefti_window *window)
{
    __atomic_store_n(&window->ready, WINDOW_MAPPED, __ATOMIC_RELEASE);
}

weft_status wefti_window_make(wefti_window *window, const wefti_window_shape *shape)
{
    const size_t page = wefti_os_page_bytes();
    size_t bytes;
    WEFT_TRY(lay_out(window, shape, &bytes));
    WEFT_TRY(wefti_os_memory_create(&window->memory, bytes));
    WEFT_TRY(wefti_os_memory_reserve(&window->memory, 0, (shape->head_bytes + page - 1) / page * page));
    publish(window);
    return WEFT_OK;
}

weft_status wefti_window_adopt(wefti_window *window, int descriptor, const wefti_window_shape *shape)
{
    size_t bytes;
    WEFT_TRY(lay_out(window, shape, &bytes));
    WEFT_TRY(wefti_os_memory_adopt(&window->memory, descriptor, bytes));
    publish(window);
    return WEFT_OK;
}

void wefti_window_fail(wefti_window *window)
{
    __atomic_store_n(&window->ready, WINDOW_FAILED, __ATOMIC_RELEASE);
}

weft_status wefti_window_wait(const wefti_window *window, uint64_t until_ns)
{
    uint32_t ready;
    while ((ready = __atomic_load_n(&window->ready, __ATOMIC_ACQUIRE)) == 0) {
        if (wefti_os_now_ns() >= until_ns) {
            return wefti_error(WEFT_ERR_TIMEOUT, "another PE of this process did not map the symmetric memory in time");
        }
        wefti_os_sleep_ns(20000);
    }
    if (ready == WINDOW_FAILED) {
        return wefti_error_relay(WEFT_ERR_PEER, "another PE of this process could not map the symmetric memory");
    }
    return WEFT_OK;
}

/* The out-of-line half of one-sided access: PEs beyond the link domain, and the errors. */
#include "base/error.h"
#include "rma/strided.h"
#include "weft/inline/rma.h"
#include "world/world.h"

weft_status wefti_rma_check_pe(const weft_world *world, const char *call, int pe)
{
    if (pe < 0 || pe >= (int)world->view.pes) {
        return wefti_error(WEFT_ERR_RANGE, "%s: PE %d is not one of the %u PEs of world \"%s\"; give one of 0 to %u",
                           call, pe, world->view.pes, world->name, world->view.pes - 1);
    }
    return WEFT_OK;
}

weft_status wefti_rma_check_local(const char *call, const char *name, const void *local, size_t bytes)
{
    if (local == NULL && bytes > 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument '%s' is NULL, with %zu bytes", call, name, bytes);
    }
    return WEFT_OK;
}

/* Whether `bytes` bytes at `address`, the argument `name`, lie in the heap and `pe` in the world; which of them does
 * not, in words. */
static weft_status check(weft_world *world, const char *call, const char *name, const void *address, size_t bytes,
                         int pe)
{
    WEFT_TRY(wefti_world_expect(world, call));
    if (address == NULL) {
        return wefti_error_null(call, name);
    }
    WEFT_TRY(wefti_rma_check_pe(world, call, pe));
    uint64_t offset = (uint64_t)((uintptr_t)address - world->view.heap);
    uint64_t reserved = wefti_ld64(&world->view.heap_bytes, WEFTI_RELAXED);
    if (offset > reserved || bytes > reserved - offset) {
        return wefti_error(WEFT_ERR_RANGE,
                           "%s: %zu bytes at %p are not in the symmetric heap of world \"%s\" (%llu bytes at %p); "
                           "allocate them with weft_malloc of this world",
                           call, bytes, address, world->name, (unsigned long long)reserved, (void *)world->heap);
    }
    return WEFT_OK;
}

/* ---- device memory: the symmetric address is one of the device heap or of registered memory ---- */

static wefti_device *device_of(const weft_world *world, const void *address)
{
    uint64_t left;
    wefti_device *device = wefti_world_is_alive(world) ? world->device : NULL;
    return device != NULL && device->ops->memory->locate(device, address, (int)world->view.pe, &left) != 0 ? device
                                                                                                           : NULL;
}

/* Where PE `pe` has it; NULL when that is far. */
static weft_status locate(weft_world *world, const char *call, const void *address, size_t bytes, int pe, void **at)
{
    uint64_t left = 0;
    WEFT_TRY(wefti_rma_check_pe(world, call, pe));
    WEFTI_COUNT(world, device_accesses, 1);
    (void)world->device->ops->memory->locate(world->device, address, (int)world->view.pe, &left);
    *at = (void *)world->device->ops->memory->locate(world->device, address, pe, &left);
    if (bytes > left) {
        return wefti_error(
            WEFT_ERR_RANGE,
            "%s: %zu bytes at %p exceed the device memory of PE %d of world \"%s\" by %llu; allocate them "
            "over a team that it is in",
            call, bytes, address, pe, world->name, (unsigned long long)(bytes - left));
    }
    return WEFT_OK;
}

/* Between memory that is mapped here. */
static weft_status device_copy(wefti_device *device, void *to, const void *from, size_t bytes, int nbi)
{
    return nbi ? device->ops->memory->copy_nbi(device, to, from, bytes)
               : device->ops->memory->copy(device, to, from, bytes);
}

static weft_status device_put(weft_world *world, const char *call, void *dest, const void *source, size_t bytes, int pe,
                              int nbi)
{
    void *at;
    wefti_device *device = world->device;
    const wefti_device_request request = {
        .kind = WEFTI_DEVICE_PUT, .pe = pe, .address = dest, .local = source, .bytes = bytes};
    WEFT_TRY(locate(world, call, dest, bytes, pe, &at));
    WEFT_TRY(wefti_rma_check_local(call, "source", source, bytes));
    if (bytes == 0) {
        return WEFT_OK;
    }
    return at == NULL ? device->ops->memory->far(device, &request) : device_copy(device, at, source, bytes, nbi);
}

static weft_status device_get(weft_world *world, const char *call, void *dest, const void *source, size_t bytes, int pe,
                              int nbi)
{
    void *at;
    wefti_device *device = world->device;
    const wefti_device_request request = {
        .kind = WEFTI_DEVICE_GET, .pe = pe, .address = (void *)(uintptr_t)source, .local = dest, .bytes = bytes};
    WEFT_TRY(locate(world, call, source, bytes, pe, &at));
    WEFT_TRY(wefti_rma_check_local(call, "dest", dest, bytes));
    if (bytes == 0) {
        return WEFT_OK;
    }
    return at == NULL ? device->ops->memory->far(device, &request) : device_copy(device, dest, at, bytes, nbi);
}

static weft_status device_amo(weft_world *world, const char *call, wefti_amo_op op, int bits, void *dest,
                              uint64_t value, uint64_t cond, int pe, uint64_t *old)
{
    void *at;
    uint64_t before;
    wefti_device *device = world->device;
    const wefti_device_request request = {.kind = WEFTI_DEVICE_AMO,
                                          .pe = pe,
                                          .address = dest,
                                          .op = op,
                                          .bits = bits,
                                          .value = value,
                                          .cond = cond,
                                          .old = &before};
    WEFT_TRY(locate(world, call, dest, (size_t)bits / 8, pe, &at));
    if (((uintptr_t)dest & ((uintptr_t)bits / 8 - 1)) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: the variable at %p is not aligned to its %d bytes; align it", call,
                           dest, bits / 8);
    }
    WEFT_TRY(at == NULL ? device->ops->memory->far(device, &request)
                        : device->ops->memory->amo(device, op, bits, at, value, cond, &before));
    if (old != NULL) {
        *old = before;
    }
    return WEFT_OK;
}

/* ---- each call ---- */

weft_status wefti_put_slow(weft_world *world, void *dest, const void *source, size_t bytes, int pe)
{
    static const char call[] = "put";
    if (device_of(world, dest) != NULL) {
        return device_put(world, call, dest, source, bytes, pe, 0);
    }
    WEFT_TRY(check(world, call, "dest", dest, bytes, pe));
    WEFT_TRY(wefti_rma_check_local(call, "source", source, bytes));
    if (bytes == 0) {
        return WEFT_OK;
    }
    wefti_transport *transport = wefti_world_transport(world, pe);
    WEFTI_COUNT(world, remote_puts, 1);
    WEFTI_COUNT(world, remote_put_bytes, bytes);
    return transport->ops->put(transport, pe, wefti_slot_offset(world, dest), source, bytes);
}

static weft_status get(weft_world *world, const char *call, void *dest, const void *source, size_t bytes, int pe,
                       int nbi)
{
    if (device_of(world, source) != NULL) {
        return device_get(world, call, dest, source, bytes, pe, nbi);
    }
    WEFT_TRY(check(world, call, "source", source, bytes, pe));
    WEFT_TRY(wefti_rma_check_local(call, "dest", dest, bytes));
    if (bytes == 0) {
        return WEFT_OK;
    }
    wefti_transport *transport = wefti_world_transport(world, pe);
    WEFTI_COUNT(world, remote_gets, 1);
    WEFTI_COUNT(world, remote_get_bytes, bytes);
    const uint64_t offset = wefti_slot_offset(world, source);
    return nbi && transport->ops->get_nbi != NULL ? transport->ops->get_nbi(transport, pe, offset, dest, bytes)
                                                  : transport->ops->get(transport, pe, offset, dest, bytes);
}

weft_status wefti_get_slow(weft_world *world, void *dest, const void *source, size_t bytes, int pe)
{
    return get(world, "get", dest, source, bytes, pe, 0);
}

static weft_status check_signal(const char *call, const uint64_t *signal, weft_signal_op op)
{
    if (((uintptr_t)signal & 7) != 0 || (op != WEFT_SIGNAL_SET && op != WEFT_SIGNAL_ADD)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call,
                           ((uintptr_t)signal & 7) != 0 ? "the signal is not aligned to 8 bytes"
                                                        : "the operation is no weft_signal_op");
    }
    return WEFT_OK;
}

/* The data, or the signal, or both are in device memory: one after the other. A copy by the device is complete when it
 * returns; a put to host memory is ordered before the device's write of the signal by a quiet only. */
static weft_status device_put_signal(weft_world *world, void *dest, const void *source, size_t bytes, uint64_t *signal,
                                     uint64_t value, weft_signal_op op, int pe)
{
    static const char call[] = "put_signal";
    WEFT_TRY(check_signal(call, signal, op));
    if (bytes > 0) {
        WEFT_TRY(weft_putmem(world, dest, source, bytes, pe));
        WEFT_TRY(weft_quiet(world));
    }
    return op == WEFT_SIGNAL_SET ? weft_uint64_atomic_set(world, signal, value, pe)
                                 : weft_uint64_atomic_add(world, signal, value, pe);
}

weft_status wefti_put_signal_slow(weft_world *world, void *dest, const void *source, size_t bytes, uint64_t *signal,
                                  uint64_t value, weft_signal_op op, int pe)
{
    static const char call[] = "put_signal";
    if (device_of(world, signal) != NULL || (bytes > 0 && device_of(world, dest) != NULL)) {
        return device_put_signal(world, dest, source, bytes, signal, value, op, pe);
    }
    WEFT_TRY(check(world, call, "signal", signal, sizeof *signal, pe));
    if (bytes > 0) {
        WEFT_TRY(check(world, call, "dest", dest, bytes, pe));
        WEFT_TRY(wefti_rma_check_local(call, "source", source, bytes));
    }
    WEFT_TRY(check_signal(call, signal, op));
    wefti_transport *transport = wefti_world_transport(world, pe);
    WEFTI_COUNT(world, remote_put_signals, 1);
    WEFTI_COUNT(world, remote_put_bytes, bytes);
    return transport->ops->put_signal(transport, pe, bytes > 0 ? wefti_slot_offset(world, dest) : 0, source, bytes,
                                      wefti_slot_offset(world, signal), value, op);
}

/* Gets, and copies of device memory, are begun. Of other puts the source can be reused, and an atomic's value is there:
 * no transport returns before yet. */

weft_status wefti_put_nbi_slow(weft_world *world, void *dest, const void *source, size_t bytes, int pe)
{
    if (device_of(world, dest) != NULL) {
        return device_put(world, "put_nbi", dest, source, bytes, pe, 1);
    }
    return wefti_put_slow(world, dest, source, bytes, pe);
}

weft_status wefti_get_nbi_slow(weft_world *world, void *dest, const void *source, size_t bytes, int pe)
{
    return get(world, "get_nbi", dest, source, bytes, pe, 1);
}

weft_status wefti_put_signal_nbi_slow(weft_world *world, void *dest, const void *source, size_t bytes, uint64_t *signal,
                                      uint64_t value, weft_signal_op op, int pe)
{
    return wefti_put_signal_slow(world, dest, source, bytes, signal, value, op, pe);
}

weft_status wefti_amo_slow(weft_world *world, wefti_amo_op op, int bits, void *dest, uint64_t value, uint64_t cond,
                           int pe, uint64_t *old)
{
    static const char call[] = "atomic";
    uint64_t before;
    if (world == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'world' or 'old' is NULL", call);
    }
    WEFT_TRY(wefti_world_expect(world, call));
    if (device_of(world, dest) != NULL) {
        return device_amo(world, call, op, bits, dest, value, cond, pe, old);
    }
    WEFT_TRY(check(world, call, "dest", dest, (size_t)bits / 8, pe));
    if (((uintptr_t)dest & ((uintptr_t)bits / 8 - 1)) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: the variable at %p is not aligned to its %d bytes; align it", call,
                           dest, bits / 8);
    }
    wefti_transport *transport = wefti_world_transport(world, pe);
    WEFTI_COUNT(world, remote_atomics, 1);
    WEFT_TRY(transport->ops->amo(transport, pe, wefti_slot_offset(world, dest), op, bits, value, cond,
                                 old != NULL ? &before : NULL));
    if (old != NULL) {
        *old = before;
    }
    return WEFT_OK;
}

weft_status wefti_amo_nbi_slow(weft_world *world, wefti_amo_op op, int bits, void *dest, uint64_t value, uint64_t cond,
                               int pe, void *old)
{
    uint64_t before;
    WEFT_TRY(wefti_amo_slow(old != NULL ? world : NULL, op, bits, dest, value, cond, pe, &before));
    wefti_from_bits(old, before, (size_t)bits / 8);
    return WEFT_OK;
}

weft_status wefti_rma_check(weft_world *world, const char *call, const void *address, size_t bytes, const void *local,
                            int pe)
{
    if (device_of(world, address) != NULL) {
        void *at;
        WEFT_TRY(locate(world, call, address, bytes, pe, &at));
    } else {
        WEFT_TRY(check(world, call, "address", address, bytes, pe));
    }
    return wefti_rma_check_local(call, "local", local, bytes);
}

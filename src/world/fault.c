/* The latched fault of a world, and weft_world_abort.
 *
 * world->fault is 0 or  1 << 63 | (PE + 1) << 32 | -status : the first fault, set once. An abort also sets the abort
 * word in the control block of every PE, which each waiting PE polls and turns into its own fault. */
#include <stdio.h>

#include "base/error.h"
#include "world/world.h"

#define FAULT_SET ((uint64_t)1 << 63)

void wefti_world_latch(weft_world *world, weft_status status, int culprit_pe)
{
    uint64_t none = 0;
    uint64_t fault = FAULT_SET | (uint64_t)(uint32_t)(culprit_pe + 1) << 32 | (uint32_t)-status;
    __atomic_compare_exchange_n(&world->fault, &none, fault, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static int fault_pe(uint64_t fault)
{
    return (int)(fault >> 32 & 0x7fffffff) - 1;
}

static uint64_t read_fault(const weft_world *world)
{
    uint64_t fault = __atomic_load_n(&world->fault, __ATOMIC_ACQUIRE);
    if (fault == 0) {
        fault = wefti_ld64(&world->control->device_fault, WEFTI_ACQUIRE); /* spelled as ours */
        if (fault != 0) {
            weft_status status = (weft_status) - (int32_t)(uint32_t)fault;
            wefti_world_latch((weft_world *)(uintptr_t)world, status, fault_pe(fault));
            fault = __atomic_load_n(&world->fault, __ATOMIC_ACQUIRE);
        }
    }
    if (fault == 0) {
        uint64_t abort_word = wefti_ld64(&world->control->abort, WEFTI_ACQUIRE);
        if (abort_word != 0) {
            int pe = (int)(abort_word >> 32 & 0x7fffffff);
            wefti_world_latch((weft_world *)(uintptr_t)world, WEFT_ERR_ABORTED, pe);
            fault = __atomic_load_n(&world->fault, __ATOMIC_ACQUIRE);
        }
    }
    return fault;
}

weft_status wefti_world_check(weft_world *world, const char *call)
{
    uint64_t fault = read_fault(world);
    if (WEFTI_LIKELY(fault == 0)) {
        return WEFT_OK;
    }
    weft_status status = (weft_status) - (int32_t)(uint32_t)fault;
    char text[160];
    if (status == WEFT_ERR_ABORTED) {
        uint64_t abort_word = wefti_ld64(&world->control->abort, WEFTI_ACQUIRE);
        snprintf(text, sizeof text, "%s: world \"%s\" was aborted by PE %d with code %d", call, world->name,
                 fault_pe(fault), (int)(uint32_t)abort_word);
    } else {
        snprintf(text, sizeof text, "%s: world \"%s\" has failed with %s, caused by PE %d", call, world->name,
                 weft_status_name(status), fault_pe(fault));
    }
    return wefti_error_relay(status, text);
}

weft_status weft_world_fault(const weft_world *world, int *culprit_pe)
{
    if (!wefti_world_is_alive(world)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_world_fault: the world is NULL or destroyed");
    }
    uint64_t fault = read_fault(world);
    if (culprit_pe != NULL) {
        *culprit_pe = fault == 0 ? -1 : fault_pe(fault);
    }
    return fault == 0 ? WEFT_OK : (weft_status) - (int32_t)(uint32_t)fault;
}

weft_status weft_world_abort(weft_world *world, int code)
{
    if (!wefti_world_is_alive(world)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_world_abort: the world is NULL or destroyed");
    }
    uint64_t word = WEFTI_ABORT_SET | (uint64_t)world->view.pe << 32 | (uint32_t)code;
    for (int pe = 0; pe < (int)world->view.pes; pe++) {
        (void)wefti_world_set_once(world, &world->control->abort, word, pe); /* a PE that is gone needs no word */
    }
    (void)read_fault(world);
    return WEFT_OK;
}

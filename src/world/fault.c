/* The latched fault of a world, and weft_world_abort.
 *
 * world->fault is 0 or  1 << 63 | (PE + 1) << 32 | -status : the first fault, set once. An abort also sets the abort
 * word of this node's window, which each waiting PE polls and turns into its own fault; of a PE of another node, the
 * word in its control block, which that PE hands on to its node. */
#include <stdio.h>

#include "base/error.h"
#include "world/world.h"

#define FAULT_SET ((uint64_t)1 << 63)
#define TELL_NS UINT64_C(500000000) /* for PEs of other nodes to take the word of an abort: one may be stopped */

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

/* Read the node's abort word, into which what other nodes stored at this PE is carried over. */
static uint64_t read_abort(const weft_world *world)
{
    uint64_t word = wefti_ld64(&world->head->abort, WEFTI_ACQUIRE);
    uint64_t from_afar = word != 0 ? 0 : wefti_ld64(&world->control->abort, WEFTI_ACQUIRE);
    if (from_afar != 0) {
        (void)wefti_cas64(&world->head->abort, 0, from_afar);
        word = wefti_ld64(&world->head->abort, WEFTI_ACQUIRE);
    }
    return word;
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
        uint64_t abort_word = read_abort(world);
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
        uint64_t abort_word = read_abort(world);
        snprintf(text, sizeof text, "%s: world \"%s\" was aborted by PE %d with code %d", call, world->name,
                 fault_pe(fault), (int)(uint32_t)abort_word);
    } else {
        snprintf(text, sizeof text, "%s: world \"%s\" has failed with %s, caused by PE %d", call, world->name,
                 weft_status_name(status), fault_pe(fault));
    }
    return wefti_error_relay(status, text);
}

weft_status wefti_world_check_call(void *of)
{
    weft_world *world = of;
    const uint64_t tells_until_ns = __atomic_load_n(&world->tells_until_ns, __ATOMIC_ACQUIRE);
    if (!wefti_world_is_alive(world) || wefti_os_now_ns() < tells_until_ns) {
        return WEFT_OK;
    }
    if (tells_until_ns == 0) {
        WEFT_TRY(wefti_world_ask(world));
    }
    return wefti_world_check(world, "a call for another node");
}

weft_status weft_world_fault(const weft_world *world, int *culprit_pe)
{
    WEFT_TRY(wefti_world_expect(world, "weft_world_fault"));
    uint64_t fault = read_fault(world);
    if (culprit_pe != NULL) {
        *culprit_pe = fault == 0 ? -1 : fault_pe(fault);
    }
    return fault == 0 ? WEFT_OK : (weft_status) - (int32_t)(uint32_t)fault;
}

/* All are told before any of them is waited for. */
static void tell_nodes(weft_world *world, uint64_t word)
{
    wefti_transport *network = &world->transports[world->transport_count - 1];
    __atomic_store_n(&world->tells_until_ns, wefti_os_now_ns() + TELL_NS, __ATOMIC_RELEASE);
    for (int pe = 0; pe < (int)world->view.pes; pe++) {
        if (!wefti_pe_is_near(&world->view, pe)) {
            (void)wefti_world_set_once(world, &world->control->abort, word, pe); /* a PE that is gone needs no word */
        }
    }
    (void)network->ops->quiet(network);
    __atomic_store_n(&world->tells_until_ns, 0, __ATOMIC_RELEASE);
}

weft_status weft_world_abort(weft_world *world, int code)
{
    WEFT_TRY(wefti_world_expect(world, "weft_world_abort"));
    uint64_t word = WEFTI_ABORT_SET | (uint64_t)world->view.pe << 32 | (uint32_t)code;
    (void)wefti_cas64(&world->head->abort, 0, word);
    if ((world->view.remote & WEFTI_REMOTE_PES) != 0) {
        tell_nodes(world, word);
    }
    (void)read_fault(world);
    return WEFT_OK;
}

/* faces/nvshmem/modules.c: who holds what kernels are told: translation units, which announce themselves when they
 * are loaded, and modules and libraries of CUDA, which the program names. */
#include <stdio.h>

#include "faces/nvshmem/binding.h"
#include "faces/nvshmem/device.h"

/* The name of the state in modules: kernels.cuh has it. */
#define STATE_NAME "weft_nvshmem_state_d"

static weft_nvshmem_unit *units;
int wefti_nv_units_late;

/* How often filling units that CUDA does not know yet is tried again, counted from the last one that was loaded. */
#define TRIES 64
static int tries;

static void fill(weft_nvshmem_unit *unit)
{
    if (unit->abi != WEFT_NVSHMEM_ABI) {
        (void)fprintf(
            stderr,
            "nvshmem: kernels of this process were compiled with headers of another version of weft (%#x, the "
            "library has %#x); compile them again\n",
            unit->abi, WEFT_NVSHMEM_ABI);
        unit->is_filled = 1; /* it is filled in once */
        return;
    }
    unit->is_filled = unit->fill(&wefti_nv_state) == 0;
}

void wefti_nv_units_fill(void)
{
    if (wefti_nv_state.abi == 0 || wefti_nv_device_enter() != 0) {
        return;
    }
    int late = 0;
    for (weft_nvshmem_unit *unit = units; unit != NULL; unit = unit->next) {
        if (!unit->is_filled) {
            fill(unit);
            late |= !unit->is_filled;
        }
    }
    __atomic_store_n(&wefti_nv_units_late, late, __ATOMIC_RELAXED);
    wefti_nv_device_leave();
}

void wefti_nv_units_retry(void)
{
    wefti_nv_lock();
    wefti_nv_units_fill();
    if (wefti_nv_units_late && ++tries == TRIES) {
        (void)fprintf(stderr,
                      "nvshmem: kernels that were loaded after init are not known to CUDA on this GPU, and know "
                      "of no world; are they compiled for it?\n");
        __atomic_store_n(&wefti_nv_units_late, 0, __ATOMIC_RELAXED);
    }
    wefti_nv_unlock();
}

void wefti_nv_units_empty(void)
{
    if (wefti_nv_device_enter() != 0) {
        return;
    }
    for (weft_nvshmem_unit *unit = units; unit != NULL; unit = unit->next) {
        if (unit->is_filled && unit->abi == WEFT_NVSHMEM_ABI) {
            (void)unit->fill(&wefti_nv_state);
        }
        unit->is_filled = 0;
    }
    __atomic_store_n(&wefti_nv_units_late, 0, __ATOMIC_RELAXED);
    wefti_nv_device_leave();
}

void weft_nvshmem_unit_add(weft_nvshmem_unit *unit)
{
    wefti_nv_lock();
    unit->next = units;
    unit->is_filled = 0;
    units = unit;
    tries = 0;
    wefti_nv_units_fill();
    wefti_nv_unlock();
}

void weft_nvshmem_unit_remove(weft_nvshmem_unit *unit)
{
    wefti_nv_lock();
    for (weft_nvshmem_unit **at = &units; *at != NULL; at = &(*at)->next) {
        if (*at == unit) {
            *at = unit->next;
            break;
        }
    }
    wefti_nv_unlock();
}

/* ---- modules and libraries ---- */

typedef int (*global_of)(wefti_nv_address *address, size_t *bytes, void *holder, const char *name);

static int init_holder(const char *call, global_of find, void *holder)
{
    wefti_nv_address address;
    size_t bytes;
    weft_status status = wefti_nv_place_decide();
    if (status != WEFT_OK || wefti_nvshmem.place != WEFTI_NV_DEVICE) {
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_GPU_NOT_SELECTED,
                               "there is no heap on a GPU; call cudaSetDevice before");
    }
    if (holder == NULL) {
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_INVALID_VALUE, "the argument is NULL; load the module before");
    }
    if (find == NULL) {
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_NOT_SUPPORTED, "this driver of CUDA cannot name a module's state");
    }
    int error = wefti_nv_device_enter();
    if (error == 0) {
        error = find(&address, &bytes, holder, STATE_NAME);
        wefti_nv_device_leave();
    }
    if (error != 0) {
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_INVALID_VALUE,
                               "no kernel there uses nvshmem.h of weft; one that was linked with NVIDIA's device "
                               "library cannot be used: compile it again");
    }
    if (bytes != sizeof wefti_nv_state) {
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_INVALID_VALUE,
                               "its kernels were compiled with headers of another version of weft");
    }
    status = wefti_nv_device_write(address, &wefti_nv_state, sizeof wefti_nv_state);
    return wefti_nv_result(call, status);
}

int nvshmemx_cumodule_init(CUmodule module)
{
    const wefti_nv_driver *const driver = wefti_nv_driver_open();
    return init_holder(__func__, driver == NULL ? NULL : (global_of)(void (*)(void))driver->module_global, module);
}

int nvshmemx_culibrary_init(CUlibrary library)
{
    const wefti_nv_driver *const driver = wefti_nv_driver_open();
    return init_holder(__func__, driver == NULL ? NULL : (global_of)(void (*)(void))driver->library_global, library);
}

/* A module has nothing to free: only its own state was written. */
int nvshmemx_cumodule_finalize(CUmodule module)
{
    (void)module;
    return wefti_nv_result(__func__, WEFT_OK);
}

int nvshmemx_culibrary_finalize(CUlibrary library)
{
    (void)library;
    return wefti_nv_result(__func__, WEFT_OK);
}

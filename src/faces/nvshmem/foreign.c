/* faces/nvshmem/foreign.c: programs that were linked with NVIDIA's device library, libnvshmem_device.a. Their init is
 * that library's, which asks the host's library for its part by the names here and then fills in a state of its own,
 * which kernels of weft do not have. So the first of these calls says what to do instead, and the program ends or goes
 * on as it does after any init that fails. Its symbols have a version ("NVSHMEM"), ours have none, which the dynamic
 * linker takes. */
#include <stdio.h>

#include "faces/nvshmem/face.h"

/* Fills in where a device library's state is; never called. */
typedef int (*announce)(void **state, void **transport_state);

/* Declared in no header of ours, since programs do not call them. */
WEFT_NVSHMEM_API int nvshmemid_hostlib_init_attr(int requested, int *provided, unsigned int flags,
                                                 nvshmemx_init_attr_t *attributes, nvshmemi_version_t version,
                                                 announce announce_state);
WEFT_NVSHMEM_API void nvshmemid_hostlib_finalize(void *state, void *transport_state);
WEFT_NVSHMEM_API int nvshmemid_init_status(void);

/* A variable of NVIDIA's host library from 3.6 on, without which such a program would not be loaded at all. */
extern WEFT_NVSHMEM_API int nvshmem_selected_device_transport;
int nvshmem_selected_device_transport;

#define REMEDY                                                                                                         \
    "libnvshmem_device.a, whose kernels cannot use weft; compile and link it again with weft's headers and libraries"

int nvshmemid_hostlib_init_attr(int requested, int *provided, unsigned int flags, nvshmemx_init_attr_t *attributes,
                                nvshmemi_version_t version, announce announce_state)
{
    char cause[256];
    (void)requested;
    (void)provided;
    (void)flags;
    (void)attributes;
    (void)announce_state;
    (void)snprintf(cause, sizeof cause, "this program is linked with NVIDIA's device library %d.%d.%d, " REMEDY,
                   version.major, version.minor, version.patch);
    return wefti_nv_refuse("nvshmem_init", NVSHMEMX_ERROR_NOT_SUPPORTED, cause);
}

void nvshmemid_hostlib_finalize(void *state, void *transport_state)
{
    (void)state;
    (void)transport_state;
}

/* Also asked before each collective launch of such a program, whose host may have called an init of ours. */
int nvshmemid_init_status(void)
{
    static int told;
    if (wefti_nvshmem.world != NULL && __atomic_exchange_n(&told, 1, __ATOMIC_RELAXED) == 0) {
        (void)wefti_nv_refuse("a collective launch", NVSHMEMX_ERROR_NOT_SUPPORTED,
                              "this program is linked with NVIDIA's device library, " REMEDY);
    }
    return NVSHMEM_STATUS_NOT_INITIALIZED;
}

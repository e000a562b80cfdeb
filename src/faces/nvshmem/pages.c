/* faces/nvshmem/pages.c: pages of registered host memory. CUDA locks a page once; registrations share it. */
#include "faces/nvshmem/pages.h"

#include <stdlib.h>
#include <unistd.h>

#include "faces/nvshmem/device.h"
#include "faces/nvshmem/driver.h"

#define PORTABLE_AND_MAPPED 3
#define ATTRIBUTE_MEMORY_TYPE 2
#define ALREADY_REGISTERED 712
#define NO_MEMORY 2

/* Neighbouring pages that were locked by one call. The lock of setup.c guards the list. */
typedef struct run {
    struct run *next;
    uintptr_t first;
    uintptr_t end;
    int users;
    int is_ours; /* else CUDA knew it before */
} run;

static run *runs;

static uintptr_t page_of(uintptr_t address, size_t more)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return (address + more) & ~(page - 1);
}

static uintptr_t first_of(const void *address)
{
    return page_of((uintptr_t)address, 0);
}

static uintptr_t end_of(const void *address, size_t bytes)
{
    return page_of((uintptr_t)address + bytes, (size_t)sysconf(_SC_PAGESIZE) - 1);
}

/* The run with this page; else NULL, and `end` is no further than the next one. */
static run *run_of(uintptr_t page, uintptr_t *end)
{
    for (run *one = runs; one != NULL; one = one->next) {
        if (one->first <= page && page < one->end) {
            return one;
        }
        if (page < one->first && one->first < *end) {
            *end = one->first;
        }
    }
    return NULL;
}

/* The GPU's context is current. */
static int meet(const wefti_nv_driver *driver, uintptr_t first, uintptr_t end)
{
    int type;
    run *const one = malloc(sizeof *one);
    if (one == NULL) {
        return NO_MEMORY;
    }
    *one = (run){.next = runs, .first = first, .end = end};
    const int is_known = driver->pointer_attribute != NULL &&
                         driver->pointer_attribute(&type, ATTRIBUTE_MEMORY_TYPE, (wefti_nv_address)first) == 0;
    const int error =
        is_known ? ALREADY_REGISTERED : driver->host_register((void *)first, end - first, PORTABLE_AND_MAPPED);
    if (error != 0 && error != ALREADY_REGISTERED) {
        free(one);
        return error;
    }
    one->is_ours = error == 0;
    runs = one;
    return 0;
}

static void leave(const wefti_nv_driver *driver, uintptr_t first, uintptr_t end)
{
    for (run **at = &runs; *at != NULL;) {
        run *const one = *at;
        if (one->first < end && first < one->end && --one->users == 0) {
            if (one->is_ours) {
                (void)driver->host_unregister((void *)one->first);
            }
            *at = one->next;
            free(one);
        } else {
            at = &one->next;
        }
    }
}

int wefti_nv_pages_lock(const void *address, size_t bytes)
{
    const wefti_nv_driver *const driver = wefti_nv_driver_open();
    const uintptr_t end = end_of(address, bytes);
    int error = wefti_nv_device_enter();
    if (error != 0) {
        return error;
    }
    for (uintptr_t at = first_of(address); at < end && error == 0;) {
        uintptr_t until = end;
        run *one = run_of(at, &until);
        if (one == NULL) {
            error = meet(driver, at, until);
            one = runs;
        }
        if (error == 0) {
            one->users++;
            at = one->end;
        } else {
            leave(driver, first_of(address), at);
        }
    }
    wefti_nv_device_leave();
    return error;
}

void wefti_nv_pages_unlock(const void *address, size_t bytes)
{
    if (wefti_nv_device_enter() == 0) {
        leave(wefti_nv_driver_open(), first_of(address), end_of(address, bytes));
        wefti_nv_device_leave();
    }
}

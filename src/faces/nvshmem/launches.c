/* faces/nvshmem/launches.c: collective launches as functions of the library, for programs that look them up by name or
 * declare them themselves. Those that include nvshmemx.h have them inline: CUDA's runtime in the program, which may be
 * linked into it, knows its kernels by address. */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "faces/nvshmem/device.h"

/* CUDA's structs, whose headers this library does without: dim3, cudaLaunchAttribute and cudaLaunchConfig_t, the last
 * two laid out as the driver's CUlaunchAttribute and CUlaunchConfig. */
typedef struct dims {
    unsigned x;
    unsigned y;
    unsigned z;
} dims;

typedef struct launch_attribute {
    int id;
    int unused;
    uint64_t value[8];
} launch_attribute;

typedef struct launch_config {
    dims grid;
    dims block;
    size_t shared_bytes;
    cudaStream_t stream;
    launch_attribute *attributes;
    unsigned attribute_count;
} launch_config;

#define ATTRIBUTES_MAX 16
#define ATTRIBUTE_COOPERATIVE 2

/* The interface's, of which the header declares none without CUDA's. */
WEFT_NVSHMEM_API int nvshmemx_collective_launch(const void *func, dims grid, dims block, void **args,
                                                size_t shared_bytes, cudaStream_t stream);
WEFT_NVSHMEM_API int nvshmemx_collective_launch_attr(const launch_config *attr, const void *func, void **args);
WEFT_NVSHMEM_API int nvshmemx_collective_launch_query_gridsize(const void *func, dims block, void **args,
                                                               size_t shared_bytes, int *gridsize);

/* ---- which kernel is meant ---- */

/* A shared runtime of CUDA that the process has loaded, by a function of it; NULL: none. */
static void *find_in_runtime(const char *name)
{
    static const char *const libraries[] = {"libcudart.so.13", "libcudart.so.12"};
    void *found = dlsym(RTLD_DEFAULT, name);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && found == NULL; i++) {
        void *const library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);
        found = library == NULL ? NULL : dlsym(library, name);
    }
    return found;
}

static int holds_code(struct dl_phdr_info *object, size_t bytes, void *address)
{
    (void)bytes;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *const part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0 &&
            (uintptr_t)address - (object->dlpi_addr + part->p_vaddr) < part->p_memsz) {
            return 1;
        }
    }
    return 0;
}

/* What the driver calls the kernel `func`: a function of the program that CUDA's runtime knows as one, or a handle, a
 * CUfunction or CUkernel. 0, or a status of NVSHMEM. */
static int find_kernel(const char *call, const void *func, void **kernel)
{
    int (*by_symbol)(void **kernel, const void *func);
    int (*forget)(void);
    *kernel = (void *)(uintptr_t)func;
    if (func == NULL) {
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_INVALID_VALUE, "the kernel is NULL");
    }
    if (!dl_iterate_phdr(holds_code, *kernel)) {
        return NVSHMEMX_SUCCESS;
    }
    *(void **)&by_symbol = find_in_runtime("cudaGetFuncBySymbol");
    if (by_symbol != NULL && by_symbol(kernel, func) == 0) {
        return NVSHMEMX_SUCCESS;
    }
    *(void **)&forget = find_in_runtime("cudaGetLastError");
    if (by_symbol != NULL && forget != NULL) {
        (void)forget();
    }
    return wefti_nv_refuse(call, NVSHMEMX_ERROR_INVALID_VALUE,
                           "no shared runtime of CUDA knows that function as a kernel; include nvshmemx.h, link the "
                           "program with -cudart shared, or give a CUfunction or CUkernel");
}

/* ---- the calls ---- */

int nvshmemx_collective_launch(const void *func, dims grid, dims block, void **args, size_t shared_bytes,
                               cudaStream_t stream)
{
    void *kernel;
    const int status = find_kernel(__func__, func, &kernel);
    return status != NVSHMEMX_SUCCESS
               ? status
               : weft_nvshmem_launch(kernel, (const unsigned[]){grid.x, grid.y, grid.z},
                                     (const unsigned[]){block.x, block.y, block.z}, args, shared_bytes, stream);
}

int nvshmemx_collective_launch_query_gridsize(const void *func, dims block, void **args, size_t shared_bytes,
                                              int *gridsize)
{
    void *kernel;
    (void)args;
    const int status = find_kernel(__func__, func, &kernel);
    return status != NVSHMEMX_SUCCESS ? status
                                      : weft_nvshmem_launch_query(kernel, (const unsigned[]){block.x, block.y, block.z},
                                                                  shared_bytes, gridsize);
}

/* The attributes of a launch, and that it is cooperative unless they say otherwise. */
static void add_attributes(launch_config *config, launch_attribute attributes[ATTRIBUTES_MAX + 1])
{
    int is_said = 0;
    for (unsigned i = 0; i < config->attribute_count; i++) {
        attributes[i] = config->attributes[i];
        is_said |= attributes[i].id == ATTRIBUTE_COOPERATIVE;
    }
    if (!is_said) {
        memset(&attributes[config->attribute_count], 0, sizeof *attributes);
        attributes[config->attribute_count].id = ATTRIBUTE_COOPERATIVE;
        attributes[config->attribute_count++].value[0] = 1;
    }
    config->attributes = attributes;
}

int nvshmemx_collective_launch_attr(const launch_config *attr, const void *func, void **args)
{
    const wefti_nv_driver *const driver = wefti_nv_driver_open();
    launch_attribute attributes[ATTRIBUTES_MAX + 1];
    void *kernel;
    int most;
    if (attr == NULL || attr->attribute_count > ATTRIBUTES_MAX) {
        return wefti_nv_refuse(__func__, NVSHMEMX_ERROR_INVALID_VALUE,
                               attr == NULL ? "attr is NULL" : "there are more than 16 attributes");
    }
    int status = find_kernel(__func__, func, &kernel);
    if (status != NVSHMEMX_SUCCESS) {
        return status;
    }
    launch_config config = *attr;
    const unsigned block[3] = {config.block.x, config.block.y, config.block.z};
    /* It also sees to it that kernels know of the world. */
    status = weft_nvshmem_launch_query(kernel, block, config.shared_bytes, &most);
    if (status != NVSHMEMX_SUCCESS) {
        return status;
    }
    if (driver == NULL || driver->launch_config == NULL) {
        return wefti_nv_refuse(__func__, NVSHMEMX_ERROR_NOT_SUPPORTED,
                               "this driver of CUDA has no attributes of launches");
    }
    add_attributes(&config, attributes);
    if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0) {
        config.grid = (dims){(unsigned)most, 1, 1};
    }
    int error = wefti_nv_device_enter();
    if (error == 0) {
        error = driver->launch_config(&config, kernel, args, NULL);
        wefti_nv_device_leave();
    }
    return error == 0 ? wefti_nv_result(__func__, WEFT_OK)
                      : wefti_nv_refuse(__func__, NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED,
                                        "CUDA refused the launch; do all blocks run at the same time?");
}

/* cuda/heap/trial.c: whether GPUs of other hosts can be reached by multi-node NVLink. That the driver has fabric
 * handles does not tell: they need a service on each host and the right to use it. So memory is exported, imported and
 * mapped. NVML is asked only where the world has PEs of other nodes. */
#include <string.h>

#include "base/env.h"
#include "cuda/device.h"
#include "topo/nvml.h"

static uint64_t granule(const wefti_cuda *cuda, const CUmemAllocationProp *prop)
{
    size_t bytes = 0;
    return cuda->driver.cuMemGetAllocationGranularity(&bytes, prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS
               ? bytes
               : 0;
}

int wefti_cuda_trial_take(const wefti_cuda *cuda, const wefti_cuda_gpu_of_pe *gpu)
{
    const wefti_cuda_driver *driver = &cuda->driver;
    const CUmemAllocationProp prop = wefti_cuda_properties(cuda, WEFTI_CUDA_FABRIC);
    const CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const uint64_t bytes = granule(cuda, &prop);
    CUmemFabricHandle fabric = gpu->trial;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at = 0;
    int works = 0;
    if (driver->cuMemImportFromShareableHandle(&handle, &fabric, CU_MEM_HANDLE_TYPE_FABRIC) != CUDA_SUCCESS) {
        return 0;
    }
    if (driver->cuMemAddressReserve(&at, bytes, 0, 0, 0) == CUDA_SUCCESS) {
        if (driver->cuMemMap(at, bytes, 0, handle, 0) == CUDA_SUCCESS) {
            works = driver->cuMemSetAccess(at, bytes, &access, 1) == CUDA_SUCCESS;
            (void)driver->cuMemUnmap(at, bytes);
        }
        (void)driver->cuMemAddressFree(at, bytes);
    }
    (void)driver->cuMemRelease(handle);
    return works;
}

static int export_one(wefti_cuda *cuda, wefti_cuda_trial *trial, wefti_cuda_gpu_of_pe *gpu)
{
    const CUmemAllocationProp prop = wefti_cuda_properties(cuda, WEFTI_CUDA_FABRIC);
    const uint64_t bytes = granule(cuda, &prop);
    if (bytes == 0 || cuda->driver.cuMemCreate(&trial->handle, bytes, &prop, 0) != CUDA_SUCCESS) {
        trial->handle = 0;
        return 0;
    }
    return cuda->driver.cuMemExportToShareableHandle(&gpu->trial, trial->handle, CU_MEM_HANDLE_TYPE_FABRIC, 0) ==
           CUDA_SUCCESS;
}

void wefti_cuda_trial_open(wefti_cuda *cuda, wefti_cuda_trial *trial, wefti_cuda_gpu_of_pe *gpu)
{
    wefti_topo_fabric *fabric = &gpu->topo.fabric;
    char text[WEFTI_TOPO_PCI_BYTES];
    wefti_topo_pci pci;
    if (cuda->driver.cuDeviceGetPCIBusId(text, sizeof text, cuda->ordinal) != CUDA_SUCCESS ||
        !wefti_topo_pci_parse(text, &pci)) {
        return;
    }
    wefti_topo_read_fabric(pci, fabric);
    fabric->has_handles = cuda->sharing == WEFTI_CUDA_POSIX &&
                          wefti_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED) != 0;
    fabric->was_tried = 1;
    if (wefti_topo_fabric_refusal(fabric) == NULL) { /* nothing but the trial is left to refuse it */
        fabric->was_tried = export_one(cuda, trial, gpu) && wefti_cuda_trial_take(cuda, gpu);
    }
}

void wefti_cuda_trial_close(wefti_cuda *cuda, wefti_cuda_trial *trial)
{
    if (trial->handle != 0) {
        (void)cuda->driver.cuMemRelease(trial->handle);
        trial->handle = 0;
    }
}

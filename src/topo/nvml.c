#include "topo/nvml.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/library.h"
#include "base/log.h"

/* The parts of NVML's interface that are used; its header comes with CUDA only. */
#define NVML_NVLINKS_MAX 18
typedef struct nvml_device nvml_device;
typedef struct nvml_pci {
    char legacy[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned id;
    unsigned subsystem;
    char text[32];
} nvml_pci;
typedef struct nvml_fabric {
    unsigned version; /* size | 2 << 24 */
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
} nvml_fabric;

typedef struct library {
    void *handle;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*by_index)(unsigned index, nvml_device **device);
    int (*by_pci)(const char *pci, nvml_device **device);
    int (*pci)(nvml_device *device, nvml_pci *pci);
    int (*uuid)(nvml_device *device, char *uuid, unsigned bytes);
    int (*mig)(nvml_device *device, unsigned *current, unsigned *pending);
    int (*link_state)(nvml_device *device, unsigned link, unsigned *is_active);
    int (*link_remote)(nvml_device *device, unsigned link, nvml_pci *pci);
    int (*fabric)(nvml_device *device, nvml_fabric *fabric);
} library;

/* Optional functions are NULL in drivers that lack them. */
static int open_library(library *lib)
{
    lib->handle = wefti_library_open("libnvidia-ml.so.1");
    if (lib->handle == NULL) {
        return 0;
    }
    (void)wefti_library_find(lib->handle, "nvmlInit_v2", &lib->init);
    (void)wefti_library_find(lib->handle, "nvmlShutdown", &lib->shutdown);
    (void)wefti_library_find(lib->handle, "nvmlDeviceGetCount_v2", &lib->count);
    (void)wefti_library_find(lib->handle, "nvmlDeviceGetHandleByIndex_v2", &lib->by_index);
    (void)wefti_library_find(lib->handle, "nvmlDeviceGetHandleByPciBusId_v2", &lib->by_pci);
    (void)wefti_library_find(lib->handle, "nvmlDeviceGetPciInfo_v3", &lib->pci);
    (void)wefti_library_find(lib->handle, "nvmlDeviceGetUUID", &lib->uuid);
    (void)wefti_library_find(lib->handle, "nvmlDeviceGetMigMode", &lib->mig);
    (void)wefti_library_find(lib->handle, "nvmlDeviceGetNvLinkState", &lib->link_state);
    (void)wefti_library_find(lib->handle, "nvmlDeviceGetNvLinkRemotePciInfo_v2", &lib->link_remote);
    (void)wefti_library_find(lib->handle, "nvmlDeviceGetGpuFabricInfoV", &lib->fabric);
    if (lib->init == NULL || lib->shutdown == NULL || lib->count == NULL || lib->by_index == NULL || lib->pci == NULL ||
        lib->uuid == NULL || lib->init() != 0) {
        wefti_library_close(lib->handle);
        return 0;
    }
    return 1;
}

static int find_gpu(const wefti_topo *topo, int host, const nvml_pci *pci)
{
    const wefti_topo_pci at = (wefti_topo_pci)pci->domain << 16 | (wefti_topo_pci)(pci->bus & 0xff) << 8 |
                              (wefti_topo_pci)(pci->device & 31) << 3;
    for (int i = 0; i < topo->count; i++) {
        const wefti_topo_object *object = &topo->objects[i];
        if (object->kind == WEFTI_TOPO_GPU && object->host == host && object->pci == at) {
            return i;
        }
    }
    return -1;
}

static uint8_t is_divided(const library *lib, nvml_device *device)
{
    unsigned current = 0;
    unsigned pending = 0;
    return lib->mig != NULL && lib->mig(device, &current, &pending) == 0 && current != 0;
}

static void read_fabric(const library *lib, nvml_device *device, wefti_topo_fabric *fabric)
{
    nvml_fabric told = {.version = (unsigned)sizeof told | 2u << 24};
    if (lib->fabric == NULL || lib->fabric(device, &told) != 0) {
        return;
    }
    memcpy(fabric->cluster, told.cluster, sizeof fabric->cluster);
    fabric->clique = told.clique;
    fabric->state = told.state <= WEFTI_TOPO_FABRIC_COMPLETED ? told.state : WEFTI_TOPO_FABRIC_NONE;
    fabric->has_failed = told.status != 0;
    fabric->is_divided = is_divided(lib, device);
}

/* Links that end at another GPU; those that end at an NVSwitch are counted: all GPUs with such reach each other. */
static weft_status read_links(const library *lib, wefti_topo *topo, int host, nvml_device *device, int gpu,
                              int *switched)
{
    int direct[NVML_NVLINKS_MAX];
    int count = 0;
    *switched = 0;
    for (unsigned link = 0; link < NVML_NVLINKS_MAX && lib->link_state != NULL && lib->link_remote != NULL; link++) {
        unsigned is_active = 0;
        nvml_pci pci;
        if (lib->link_state(device, link, &is_active) == 0 && is_active && lib->link_remote(device, link, &pci) == 0) {
            const int to = find_gpu(topo, host, &pci);
            *switched += to < 0;
            direct[count] = to;
            count += to >= 0;
        }
    }
    for (int i = 0; i < count; i++) {
        int links = 0;
        int is_first = 1;
        for (int j = 0; j < count; j++) {
            links += direct[j] == direct[i];
            is_first &= j >= i || direct[j] != direct[i];
        }
        if (is_first) {
            WEFT_TRY(wefti_topo_add_link(topo, gpu, direct[i], links));
        }
    }
    return WEFT_OK;
}

static weft_status link_switched(wefti_topo *topo, const int *gpus, const int *switched, int count)
{
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            if (i != j && switched[i] > 0 && switched[j] > 0) {
                WEFT_TRY(
                    wefti_topo_add_link(topo, gpus[i], gpus[j], switched[i] < switched[j] ? switched[i] : switched[j]));
            }
        }
    }
    return WEFT_OK;
}

#define GPUS_MAX 256

static weft_status read_all(const library *lib, wefti_topo *topo, int host)
{
    int gpus[GPUS_MAX];
    int switched[GPUS_MAX];
    int known = 0;
    unsigned count = 0;
    if (lib->count(&count) != 0) {
        return WEFT_OK;
    }
    for (unsigned i = 0; i < count && known < GPUS_MAX; i++) {
        nvml_device *device;
        nvml_pci pci;
        if (lib->by_index(i, &device) != 0 || lib->pci(device, &pci) != 0 || find_gpu(topo, host, &pci) < 0) {
            continue;
        }
        const int gpu = gpus[known] = find_gpu(topo, host, &pci);
        (void)lib->uuid(device, topo->objects[gpu].name, sizeof topo->objects[gpu].name);
        topo->objects[gpu].is_mig = is_divided(lib, device);
        read_fabric(lib, device, &topo->objects[gpu].fabric);
        WEFT_TRY(read_links(lib, topo, host, device, gpu, &switched[known++]));
    }
    return link_switched(topo, gpus, switched, known);
}

weft_status wefti_topo_add_nvml(wefti_topo *topo, int host)
{
    library lib;
    if (!open_library(&lib)) {
        wefti_log(WEFTI_LOG_DEBUG, "topology: no NVML here, so nothing is known of NVLinks");
        return WEFT_OK;
    }
    const weft_status status = read_all(&lib, topo, host);
    (void)lib.shutdown();
    wefti_library_close(lib.handle);
    return status;
}

void wefti_topo_read_fabric(wefti_topo_pci pci, wefti_topo_fabric *fabric)
{
    library lib;
    nvml_device *device;
    char text[WEFTI_TOPO_PCI_BYTES];
    memset(fabric, 0, sizeof *fabric);
    if (!open_library(&lib)) {
        return;
    }
    if (lib.by_pci != NULL && lib.by_pci(wefti_topo_pci_text(pci, text), &device) == 0) {
        read_fabric(&lib, device, fabric);
    }
    (void)lib.shutdown();
    wefti_library_close(lib.handle);
}

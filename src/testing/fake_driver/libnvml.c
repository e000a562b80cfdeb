/* testing/fake_driver/libnvml.c: NVML of the fake driver's devices: what src/topo asks of libnvidia-ml.so.1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/fake_driver/fabric.h"

#define FAKE __attribute__((visibility("default")))
#define DEVICES_MAX 16

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
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
} nvml_fabric;

enum { SUCCESS, ARGUMENT = 2, NOT_FOUND = 6 };

static int devices[DEVICES_MAX]; /* a handle is the address of its entry */

static unsigned count_devices(void)
{
    const char *text = getenv("WEFT_FAKE_GPUS");
    return text == NULL ? 2 : (unsigned)atoi(text);
}

FAKE int nvmlInit_v2(void);
FAKE int nvmlInit_v2(void)
{
    return SUCCESS;
}

FAKE int nvmlShutdown(void);
FAKE int nvmlShutdown(void)
{
    return SUCCESS;
}

FAKE int nvmlDeviceGetCount_v2(unsigned *count);
FAKE int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = count_devices();
    return SUCCESS;
}

FAKE int nvmlDeviceGetHandleByIndex_v2(unsigned index, int **device);
FAKE int nvmlDeviceGetHandleByIndex_v2(unsigned index, int **device)
{
    *device = &devices[index % DEVICES_MAX];
    return index < count_devices() ? SUCCESS : ARGUMENT;
}

/* Devices have the numbers by which cuDeviceGetPCIBusId makes their addresses. */
FAKE int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, int **device);
FAKE int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, int **device)
{
    unsigned domain;
    unsigned bus;
    if (sscanf(pci, "%x:%x:", &domain, &bus) != 2 || bus == 0 || bus > count_devices()) {
        return NOT_FOUND;
    }
    *device = &devices[bus - 1];
    return SUCCESS;
}

FAKE int nvmlDeviceGetPciInfo_v3(const int *device, nvml_pci *pci);
FAKE int nvmlDeviceGetPciInfo_v3(const int *device, nvml_pci *pci)
{
    memset(pci, 0, sizeof *pci);
    pci->bus = (unsigned)(device - devices) + 1;
    return SUCCESS;
}

FAKE int nvmlDeviceGetUUID(const int *device, char *uuid, unsigned bytes);
FAKE int nvmlDeviceGetUUID(const int *device, char *uuid, unsigned bytes)
{
    char text[FAKE_UUID_TEXT_BYTES];
    fake_uuid_text((int)(device - devices), text);
    (void)snprintf(uuid, bytes, "%s", text);
    return SUCCESS;
}

FAKE int nvmlDeviceGetGpuFabricInfoV(const int *device, nvml_fabric *told);
FAKE int nvmlDeviceGetGpuFabricInfoV(const int *device, nvml_fabric *told)
{
    fake_fabric fabric;
    (void)device;
    if (told->version != (sizeof *told | 2u << 24)) {
        return ARGUMENT;
    }
    fake_fabric_read(&fabric);
    memcpy(told->cluster, fabric.cluster, sizeof told->cluster);
    told->clique = fabric.clique;
    told->state = (unsigned char)fabric.state;
    told->status = fabric.status;
    return SUCCESS;
}

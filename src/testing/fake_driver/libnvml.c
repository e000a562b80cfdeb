/* testing/fake_driver/libnvml.c: NVML of the fake driver's devices: what src/topo asks of libnvidia-ml.so.1.
 * WEFT_FAKE_MIG: the number of a device that is divided. WEFT_FAKE_NVLINKS: switched, 18 links of each device lead to
 * NVSwitches, but the last device's, of which 6 do; or pairs, 4 links between devices 0 and 1, 2 and 3, and so on. */
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

FAKE int nvmlDeviceGetMigMode(const int *device, unsigned *current, unsigned *pending);
FAKE int nvmlDeviceGetMigMode(const int *device, unsigned *current, unsigned *pending)
{
    const char *divided = getenv("WEFT_FAKE_MIG");
    *current = *pending = divided != NULL && atoi(divided) == (int)(device - devices);
    return SUCCESS;
}

static int is_word(const char *word)
{
    const char *links = getenv("WEFT_FAKE_NVLINKS");
    return links != NULL && strcmp(links, word) == 0;
}

FAKE int nvmlDeviceGetNvLinkState(const int *device, unsigned link, unsigned *is_active);
FAKE int nvmlDeviceGetNvLinkState(const int *device, unsigned link, unsigned *is_active)
{
    const int is_last = device - devices == (int)count_devices() - 1;
    *is_active = is_word("switched") ? link < (is_last ? 6 : 18) : is_word("pairs") && link < 4;
    return SUCCESS;
}

FAKE int nvmlDeviceGetNvLinkRemotePciInfo_v2(const int *device, unsigned link, nvml_pci *pci);
FAKE int nvmlDeviceGetNvLinkRemotePciInfo_v2(const int *device, unsigned link, nvml_pci *pci)
{
    memset(pci, 0, sizeof *pci);
    pci->bus = is_word("switched") ? 0xf0 + link % 4 : ((unsigned)(device - devices) ^ 1) + 1;
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

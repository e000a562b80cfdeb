#include "topo/hwloc.h"

#include "base/error.h"
#include "base/library.h"

#ifndef WEFT_HAVE_HWLOC

weft_status wefti_topo_add_hwloc(wefti_topo *topo, int host, const char *xml)
{
    (void)topo;
    (void)host;
    (void)xml;
    return wefti_error(WEFT_ERR_UNSUPPORTED,
                       "topology: this build of weft has no hwloc; build it where libhwloc-dev is, "
                       "or describe the machine in a file (WEFT_TOPO_FILE)");
}

#else

#include <hwloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libhwloc.so.15"
#define VENDOR_NVIDIA 0x10de
#define CLASS_DISPLAY 0x03
#define DEPTH_MAX 64 /* of nested objects: what comes from files is bounded */

typedef struct library {
    int (*init)(hwloc_topology_t *topology);
    int (*set_xml)(hwloc_topology_t topology, const char *file);
    int (*set_type_filter)(hwloc_topology_t topology, hwloc_obj_type_t type, enum hwloc_type_filter_e filter);
    int (*load)(hwloc_topology_t topology);
    hwloc_obj_t (*get_obj_by_depth)(hwloc_topology_t topology, int depth, unsigned index);
    void (*destroy)(hwloc_topology_t topology);
} library;

/* Loaded once and kept: its plugins leave state behind. */
static library lib;

static void load_library(void)
{
    library found;
    void *handle = wefti_library_open(LIBRARY);
    if (handle != NULL && wefti_library_find(handle, "hwloc_topology_init", &found.init) &&
        wefti_library_find(handle, "hwloc_topology_set_xml", &found.set_xml) &&
        wefti_library_find(handle, "hwloc_topology_set_type_filter", &found.set_type_filter) &&
        wefti_library_find(handle, "hwloc_topology_load", &found.load) &&
        wefti_library_find(handle, "hwloc_get_obj_by_depth", &found.get_obj_by_depth) &&
        wefti_library_find(handle, "hwloc_topology_destroy", &found.destroy)) {
        lib = found;
    } else {
        wefti_library_close(handle);
    }
}

typedef struct walk {
    wefti_topo *topo;
    int is_here; /* this machine, so that /sys may be asked */
    int depth;
} walk;

/* ---- ports of NICs ---- */

static int read_number(const char *path)
{
    int value = 0;
    FILE *from = fopen(path, "re");
    if (from != NULL) {
        value = fscanf(from, "%9d", &value) == 1 ? value : 0;
        (void)fclose(from);
    }
    return value;
}

static weft_status add_port(const walk *w, int parent, hwloc_obj_t pci, const char *name, int port, int is_network)
{
    const int index = wefti_topo_add(w->topo, WEFTI_TOPO_NIC, parent, name);
    if (index < 0) {
        return WEFT_ERR_MEMORY;
    }
    wefti_topo_object *nic = &w->topo->objects[index];
    const struct hwloc_pcidev_attr_s *at = &pci->attr->pcidev;
    nic->port = port;
    nic->pci = (wefti_topo_pci)at->domain << 16 | (wefti_topo_pci)at->bus << 8 | (wefti_topo_pci)at->dev << 3 |
               (wefti_topo_pci)at->func;
    if (w->is_here) {
        char path[256];
        if (is_network) { /* in Mbit/s */
            (void)snprintf(path, sizeof path, "/sys/class/net/%s/speed", name);
            nic->speed_gbits = read_number(path) / 1000;
        } else { /* as "400 Gb/sec (4X NDR)" */
            (void)snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%d/rate", name, port);
            nic->speed_gbits = read_number(path);
        }
    }
    return WEFT_OK;
}

/* An InfiniBand or RoCE device, or EFA; its ports are told one by one. */
static weft_status add_openfabrics(const walk *w, int parent, hwloc_obj_t pci, hwloc_obj_t device)
{
    int port = 1;
    const char *state;
    do {
        char key[32];
        (void)snprintf(key, sizeof key, "Port%dState", port);
        state = hwloc_obj_get_info_by_name(device, key);
        if (state != NULL || port == 1) {
            WEFT_TRY(add_port(w, parent, pci, device->name, port, 0));
            w->topo->objects[w->topo->count - 1].is_down = state != NULL && atoi(state) != 4; /* IBV_PORT_ACTIVE */
        }
        port++;
    } while (state != NULL && port < 256);
    return WEFT_OK;
}

static weft_status add_nic(const walk *w, int parent, hwloc_obj_t pci)
{
    int has_openfabrics = 0;
    for (hwloc_obj_t device = pci->io_first_child; device != NULL; device = device->next_sibling) {
        if (device->type == HWLOC_OBJ_OS_DEVICE && device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS) {
            has_openfabrics = 1;
            WEFT_TRY(add_openfabrics(w, parent, pci, device));
        }
    }
    for (hwloc_obj_t device = pci->io_first_child; device != NULL && !has_openfabrics; device = device->next_sibling) {
        if (device->type == HWLOC_OBJ_OS_DEVICE && device->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK) {
            WEFT_TRY(add_port(w, parent, pci, device->name, 1, 1));
        }
    }
    return WEFT_OK;
}

/* ---- PCI ---- */

static weft_status add_pci(const walk *w, int parent, hwloc_obj_t pci)
{
    const struct hwloc_pcidev_attr_s *at = &pci->attr->pcidev;
    if (at->vendor_id != VENDOR_NVIDIA || at->class_id >> 8 != CLASS_DISPLAY) {
        return add_nic(w, parent, pci);
    }
    const int index = wefti_topo_add(w->topo, WEFTI_TOPO_GPU, parent, "");
    if (index < 0) {
        return WEFT_ERR_MEMORY;
    }
    w->topo->objects[index].pci = (wefti_topo_pci)at->domain << 16 | (wefti_topo_pci)at->bus << 8 |
                                  (wefti_topo_pci)at->dev << 3 | (wefti_topo_pci)at->func;
    return WEFT_OK;
}

/* What tells devices below a bridge apart: functions of one device count once. */
static unsigned place_of(hwloc_obj_t object)
{
    const struct hwloc_pcidev_attr_s *at =
        object->type == HWLOC_OBJ_BRIDGE ? &object->attr->bridge.upstream.pci : &object->attr->pcidev;
    return (unsigned)at->bus << 5 | (unsigned)at->dev;
}

/* A switch is a bridge where ways part. It shows as two bridges, its upstream port and the downstream port above a
 * device, or as three with the root port: the others have one way on only. */
static int is_switch(hwloc_obj_t bridge)
{
    int ways = 0;
    unsigned first = 0;
    for (hwloc_obj_t child = bridge->io_first_child; child != NULL; child = child->next_sibling) {
        if (child->type == HWLOC_OBJ_BRIDGE || child->type == HWLOC_OBJ_PCI_DEVICE) {
            ways += ways == 0 || place_of(child) != first;
            first = ways == 1 ? place_of(child) : first;
        }
    }
    return ways > 1;
}

static weft_status add_io(walk *w, int parent, hwloc_obj_t object);

static weft_status add_io_children(walk *w, int parent, hwloc_obj_t object)
{
    if (++w->depth > DEPTH_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "topology: objects of hwloc are nested more than %d deep", DEPTH_MAX);
    }
    for (hwloc_obj_t child = object->io_first_child; child != NULL; child = child->next_sibling) {
        WEFT_TRY(add_io(w, parent, child));
    }
    w->depth--;
    return WEFT_OK;
}

static weft_status add_bridge(walk *w, int parent, hwloc_obj_t bridge)
{
    char name[WEFTI_TOPO_NAME_BYTES];
    const int is_root = bridge->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST;
    if (!is_root && !is_switch(bridge)) {
        return add_io_children(w, parent, bridge);
    }
    (void)snprintf(name, sizeof name, "%s%u", is_root ? "root" : "switch", bridge->logical_index);
    const int index = wefti_topo_add(w->topo, is_root ? WEFTI_TOPO_ROOT : WEFTI_TOPO_SWITCH, parent, name);
    return index < 0 ? WEFT_ERR_MEMORY : add_io_children(w, index, bridge);
}

static weft_status add_io(walk *w, int parent, hwloc_obj_t object)
{
    if (object->type == HWLOC_OBJ_BRIDGE && object->attr != NULL) {
        return add_bridge(w, parent, object);
    }
    return object->type == HWLOC_OBJ_PCI_DEVICE && object->attr != NULL ? add_pci(w, parent, object) : WEFT_OK;
}

/* ---- packages and NUMA nodes ---- */

/* Add below `parent` the NUMA node of this object, if it has one; the first, where it has nodes of several kinds of
 * memory. */
static int add_numa(const walk *w, int parent, hwloc_obj_t object)
{
    char name[WEFTI_TOPO_NAME_BYTES];
    hwloc_obj_t memory = object->memory_first_child;
    while (memory != NULL && memory->type != HWLOC_OBJ_NUMANODE) {
        memory = memory->memory_first_child; /* a memory-side cache, which lies above its node */
    }
    if (memory == NULL) {
        return parent;
    }
    (void)snprintf(name, sizeof name, "numa%u", memory->os_index);
    return wefti_topo_add(w->topo, WEFTI_TOPO_NUMA, parent, name);
}

/* Of the objects from `first` on, the NUMA node if there is one and no other, else -1: devices that hwloc hangs above
 * it are near it. */
static int only_numa(const wefti_topo *topo, int first)
{
    int found = -1;
    for (int i = first; i < topo->count; i++) {
        if (topo->objects[i].kind == WEFTI_TOPO_NUMA) {
            if (found >= 0) {
                return -1;
            }
            found = i;
        }
    }
    return found;
}

static weft_status add_normal(walk *w, int parent, hwloc_obj_t object)
{
    char name[WEFTI_TOPO_NAME_BYTES];
    if (++w->depth > DEPTH_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "topology: objects of hwloc are nested more than %d deep", DEPTH_MAX);
    }
    if (object->type == HWLOC_OBJ_PACKAGE) {
        (void)snprintf(name, sizeof name, "package%u", object->os_index);
        parent = wefti_topo_add(w->topo, WEFTI_TOPO_PACKAGE, parent, name);
    }
    parent = parent < 0 ? -1 : add_numa(w, parent, object);
    if (parent < 0) {
        return WEFT_ERR_MEMORY;
    }
    const int before = w->topo->count;
    for (hwloc_obj_t child = object->first_child; child != NULL; child = child->next_sibling) {
        if (child->type < HWLOC_OBJ_CORE || child->type == HWLOC_OBJ_GROUP || child->type == HWLOC_OBJ_DIE) {
            WEFT_TRY(add_normal(w, parent, child));
        }
    }
    const int numa = only_numa(w->topo, before);
    WEFT_TRY(add_io_children(w, numa >= 0 ? numa : parent, object));
    w->depth--;
    return WEFT_OK;
}

/* ---- the topology ---- */

static weft_status load(hwloc_topology_t topology, const char *xml)
{
    if (xml != NULL && lib.set_xml(topology, xml) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "topology: hwloc cannot read \"%s\"; give an XML that lstopo wrote", xml);
    }
    /* Without these hwloc leaves devices out. */
    if (lib.set_type_filter(topology, HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
        lib.set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
        lib.set_type_filter(topology, HWLOC_OBJ_OS_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
        lib.load(topology) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "topology: hwloc cannot load %s%s%s", xml != NULL ? "\"" : "this machine",
                           xml != NULL ? xml : "", xml != NULL ? "\"" : "");
    }
    return WEFT_OK;
}

weft_status wefti_topo_add_hwloc(wefti_topo *topo, int host, const char *xml)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    hwloc_topology_t topology;
    (void)pthread_once(&once, load_library);
    if (lib.init == NULL) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "topology: " LIBRARY " cannot be loaded; install the package libhwloc15, "
                           "or describe the machine in a file (WEFT_TOPO_FILE)");
    }
    if (lib.init(&topology) != 0) {
        return wefti_error(WEFT_ERR_MEMORY, "topology: hwloc has no memory");
    }
    walk w = {.topo = topo, .is_here = xml == NULL};
    weft_status status = load(topology, xml);
    if (status == WEFT_OK) {
        status = add_normal(&w, host, lib.get_obj_by_depth(topology, 0, 0));
    }
    lib.destroy(topology);
    return status;
}

#endif

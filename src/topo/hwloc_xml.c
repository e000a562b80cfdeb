#include "topo/hwloc_xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "topo/xml.h"

#define VENDOR_NVIDIA 0x10de
#define CLASS_DISPLAY 0x03
#define OSDEV_NETWORK 2
#define OSDEV_OPENFABRICS 3
#define PORTS_MAX 255
#define VALUE_BYTES 128

/* Types of objects that matter; all others are places in which they may be. */
typedef enum type {
    OTHER,
    PACKAGE,
    NUMA,
    MEMORY_CACHE, /* lies above its node */
    BRIDGE,
    PCI,
    OS_DEVICE,
    MISC
} type;

typedef struct walk {
    wefti_topo *topo;
    wefti_topo_xml xml;
    int is_first_version; /* where a NUMA node is not beside what is near it, but around it */
    int roots;
    int switches;
} walk;

/* ---- attributes ---- */

static weft_status need(const walk *w, int element, const char *name, char value[VALUE_BYTES])
{
    const wefti_topo_xml_attribute *attribute = wefti_topo_xml_find(&w->xml, element, name);
    if (attribute == NULL) {
        const wefti_topo_xml_text *at = &w->xml.elements[element].name;
        return wefti_topo_xml_wrong(&w->xml, at->at, "expected an attribute %s", name);
    }
    if (wefti_topo_xml_value(attribute, value, VALUE_BYTES) >= VALUE_BYTES) {
        return wefti_topo_xml_wrong(&w->xml, attribute->value.at, "%s has more than %d bytes", name, VALUE_BYTES - 1);
    }
    return WEFT_OK;
}

static weft_status wrong_value(const walk *w, int element, const char *name, const char *expected)
{
    const wefti_topo_xml_attribute *attribute = wefti_topo_xml_find(&w->xml, element, name);
    return wefti_topo_xml_wrong(&w->xml, attribute->value.at, "%s is no %s", name, expected);
}

static weft_status need_number(const walk *w, int element, const char *name, unsigned *number)
{
    char value[VALUE_BYTES];
    char *end;
    WEFT_TRY(need(w, element, name, value));
    const unsigned long read = strtoul(value, &end, 10);
    *number = (unsigned)read;
    return value[0] >= '0' && value[0] <= '9' && *end == '\0' && read <= 0xffffffff
               ? WEFT_OK
               : wrong_value(w, element, name, "number");
}

static weft_status need_pci(const walk *w, int element, wefti_topo_pci *pci)
{
    char value[VALUE_BYTES];
    WEFT_TRY(need(w, element, "pci_busid", value));
    return wefti_topo_pci_parse(value, pci) ? WEFT_OK
                                            : wrong_value(w, element, "pci_busid", "PCI address such as 0000:1b:00.0");
}

/* The name of a device, as systems have them. */
static weft_status need_name(const walk *w, int element, char name[VALUE_BYTES])
{
    WEFT_TRY(need(w, element, "name", name));
    if (name[0] == '\0' || strlen(name) >= WEFTI_TOPO_NAME_BYTES || strpbrk(name, ":,^ \t\r\n") != NULL) {
        char expected[80];
        (void)snprintf(expected, sizeof expected, "name of 1 to %d bytes and none of : , ^ or blank",
                       WEFTI_TOPO_NAME_BYTES - 1);
        return wrong_value(w, element, "name", expected);
    }
    return WEFT_OK;
}

/* ---- objects ---- */

/* The next object from `element` on, which is a child, or none. */
static int object_from(const walk *w, int element)
{
    while (element >= 0 && !wefti_topo_xml_is(&w->xml, element, "object")) {
        element = w->xml.elements[element].next;
    }
    return element;
}

static int first_object(const walk *w, int element)
{
    return object_from(w, w->xml.elements[element].first_child);
}

static int next_object(const walk *w, int element)
{
    return object_from(w, w->xml.elements[element].next);
}

/* All objects have been seen to have a type. */
static type type_of(const walk *w, int element)
{
    static const struct {
        const char *name;
        type type;
    } types[] = {{"Package", PACKAGE}, {"Socket", PACKAGE}, {"NUMANode", NUMA},   {"MemCache", MEMORY_CACHE},
                 {"Bridge", BRIDGE},   {"PCIDev", PCI},     {"OSDev", OS_DEVICE}, {"Misc", MISC}};
    char value[VALUE_BYTES];
    (void)wefti_topo_xml_value(wefti_topo_xml_find(&w->xml, element, "type"), value, sizeof value);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(value, types[i].name) == 0) {
            return types[i].type;
        }
    }
    return OTHER;
}

static int is_of(const walk *w, int element, unsigned types)
{
    return (types >> type_of(w, element) & 1) != 0;
}

#define IO (1u << BRIDGE | 1u << PCI | 1u << OS_DEVICE)
#define MEMORY (1u << NUMA | 1u << MEMORY_CACHE)

static weft_status add_named(walk *w, wefti_topo_kind kind, int parent, const char *prefix, unsigned number, int *index)
{
    char name[WEFTI_TOPO_NAME_BYTES];
    (void)snprintf(name, sizeof name, "%s%u", prefix, number);
    *index = wefti_topo_add(w->topo, kind, parent, name);
    return *index < 0 ? WEFT_ERR_MEMORY : WEFT_OK;
}

/* ---- ports of NICs ---- */

static weft_status add_port(walk *w, int parent, wefti_topo_pci pci, const char *name, unsigned port, int *index)
{
    *index = wefti_topo_add(w->topo, WEFTI_TOPO_NIC, parent, name);
    if (*index < 0) {
        return WEFT_ERR_MEMORY;
    }
    w->topo->objects[*index].port = (int)port;
    w->topo->objects[*index].pci = pci;
    return WEFT_OK;
}

/* The port that an info "Port3State" is of; 0: it is another. */
static unsigned port_of_state(const walk *w, int info)
{
    char value[VALUE_BYTES];
    unsigned port = 0;
    int used = 0;
    const wefti_topo_xml_attribute *name = wefti_topo_xml_find(&w->xml, info, "name");
    if (name == NULL || wefti_topo_xml_value(name, value, sizeof value) >= sizeof value ||
        sscanf(value, "Port%3uState%n", &port, &used) != 1 || used == 0 || value[used] != '\0') {
        return 0;
    }
    return port;
}

/* An InfiniBand or RoCE device, or EFA; its ports are told one by one, each with its state. */
static weft_status add_openfabrics(walk *w, int parent, wefti_topo_pci pci, int device)
{
    char name[VALUE_BYTES];
    unsigned state;
    int index;
    int has_ports = 0;
    WEFT_TRY(need_name(w, device, name));
    for (int info = w->xml.elements[device].first_child; info >= 0; info = w->xml.elements[info].next) {
        const unsigned port = wefti_topo_xml_is(&w->xml, info, "info") ? port_of_state(w, info) : 0;
        if (port == 0) {
            continue;
        }
        if (port > PORTS_MAX) {
            return wrong_value(w, info, "name", "port of 1 .. 255");
        }
        WEFT_TRY(need_number(w, info, "value", &state));
        WEFT_TRY(add_port(w, parent, pci, name, port, &index));
        w->topo->objects[index].is_down = state != 4; /* IBV_PORT_ACTIVE */
        has_ports = 1;
    }
    return has_ports ? WEFT_OK : add_port(w, parent, pci, name, 1, &index);
}

/* The devices of a NIC: those of InfiniBand, else its network interfaces. */
static weft_status add_nic(walk *w, int parent, int element, wefti_topo_pci pci)
{
    char name[VALUE_BYTES];
    unsigned kind;
    int index;
    int has_openfabrics = 0;
    for (int device = first_object(w, element); device >= 0; device = next_object(w, device)) {
        if (is_of(w, device, 1u << OS_DEVICE)) {
            WEFT_TRY(need_number(w, device, "osdev_type", &kind));
            if (kind == OSDEV_OPENFABRICS) {
                has_openfabrics = 1;
                WEFT_TRY(add_openfabrics(w, parent, pci, device));
            }
        }
    }
    for (int device = first_object(w, element); device >= 0 && !has_openfabrics; device = next_object(w, device)) {
        if (is_of(w, device, 1u << OS_DEVICE)) {
            WEFT_TRY(need_number(w, device, "osdev_type", &kind));
            if (kind == OSDEV_NETWORK) {
                WEFT_TRY(need_name(w, device, name));
                WEFT_TRY(add_port(w, parent, pci, name, 1, &index));
            }
        }
    }
    return WEFT_OK;
}

/* ---- PCI ---- */

static weft_status add_pci(walk *w, int parent, int element)
{
    char value[VALUE_BYTES];
    wefti_topo_pci pci;
    unsigned class_id;
    unsigned vendor;
    WEFT_TRY(need_pci(w, element, &pci));
    WEFT_TRY(need(w, element, "pci_type", value)); /* as "0302 [10de:2330] [10de:16c1] a1" */
    if (sscanf(value, "%4x [%4x:", &class_id, &vendor) != 2) {
        return wrong_value(w, element, "pci_type", "class and [vendor:device]");
    }
    if (vendor != VENDOR_NVIDIA || class_id >> 8 != CLASS_DISPLAY) {
        return add_nic(w, parent, element, pci);
    }
    const int index = wefti_topo_add(w->topo, WEFTI_TOPO_GPU, parent, "");
    if (index < 0) {
        return WEFT_ERR_MEMORY;
    }
    w->topo->objects[index].pci = pci;
    return WEFT_OK;
}

/* Whether a bridge has more than one device or bridge below it: then it is taken for the switch. A switch shows as two
 * bridges on the path to a device, its upstream and a downstream port, or three with the root port; the other ones have
 * only one child. Functions of one device count once. */
static weft_status find_ways(const walk *w, int bridge, int *is_switch)
{
    wefti_topo_pci first = WEFTI_TOPO_PCI_NONE;
    *is_switch = 0;
    for (int child = first_object(w, bridge); child >= 0; child = next_object(w, child)) {
        wefti_topo_pci pci;
        if (is_of(w, child, 1u << BRIDGE | 1u << PCI)) {
            WEFT_TRY(need_pci(w, child, &pci));
            *is_switch |= first != WEFTI_TOPO_PCI_NONE && pci >> 3 != first >> 3;
            first = pci;
        }
    }
    return WEFT_OK;
}

static weft_status add_io(walk *w, int parent, int element);

static weft_status add_io_children(walk *w, int parent, int element)
{
    for (int child = first_object(w, element); child >= 0; child = next_object(w, child)) {
        WEFT_TRY(add_io(w, parent, child));
    }
    return WEFT_OK;
}

static weft_status add_bridge(walk *w, int parent, int element)
{
    char value[VALUE_BYTES];
    unsigned up;
    unsigned down;
    int is_switch;
    int index = parent;
    WEFT_TRY(need(w, element, "bridge_type", value)); /* 0: the host; 1: PCI */
    if (sscanf(value, "%1u-%1u", &up, &down) != 2 || up > 1 || down != 1 || strlen(value) != 3) {
        return wrong_value(w, element, "bridge_type", "0-1 or 1-1");
    }
    WEFT_TRY(find_ways(w, element, &is_switch));
    if (up == 0) {
        WEFT_TRY(add_named(w, WEFTI_TOPO_ROOT, parent, "root", (unsigned)w->roots++, &index));
    } else if (is_switch) {
        WEFT_TRY(add_named(w, WEFTI_TOPO_SWITCH, parent, "switch", (unsigned)w->switches++, &index));
    }
    return add_io_children(w, index, element);
}

static weft_status add_io(walk *w, int parent, int element)
{
    return is_of(w, element, 1u << BRIDGE) ? add_bridge(w, parent, element)
           : is_of(w, element, 1u << PCI)  ? add_pci(w, parent, element)
                                           : WEFT_OK;
}

/* ---- packages and NUMA nodes ---- */

/* The NUMA node beside what is in this object, or -1; the first, where it has nodes of several kinds of memory. */
static int node_beside(const walk *w, int element)
{
    for (int child = first_object(w, element); child >= 0; child = next_object(w, child)) {
        const type kind = type_of(w, child);
        const int node = kind == NUMA ? child : kind == MEMORY_CACHE ? node_beside(w, child) : -1;
        if (node >= 0) {
            return node;
        }
    }
    return -1;
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

/* Add a package or NUMA node and make it *parent; below a NUMA node neither is added. */
static weft_status add_place(walk *w, int *parent, int element, int node)
{
    unsigned number;
    if (w->topo->objects[*parent].kind == WEFTI_TOPO_NUMA) {
        return WEFT_OK;
    }
    if (type_of(w, element) == PACKAGE) {
        WEFT_TRY(need_number(w, element, "os_index", &number));
        WEFT_TRY(add_named(w, WEFTI_TOPO_PACKAGE, *parent, "package", number, parent));
    }
    if (node >= 0) {
        WEFT_TRY(need_number(w, node, "os_index", &number));
        WEFT_TRY(add_named(w, WEFTI_TOPO_NUMA, *parent, "numa", number, parent));
    }
    return WEFT_OK;
}

static weft_status add_normal(walk *w, int parent, int element)
{
    const unsigned apart = IO | 1u << MISC | (w->is_first_version ? 0 : MEMORY);
    WEFT_TRY(add_place(w, &parent, element,
                       !w->is_first_version          ? node_beside(w, element)
                       : type_of(w, element) == NUMA ? element
                                                     : -1));
    const int before = w->topo->count;
    for (int child = first_object(w, element); child >= 0; child = next_object(w, child)) {
        if (!is_of(w, child, apart)) {
            WEFT_TRY(add_normal(w, parent, child));
        }
    }
    const int numa = only_numa(w->topo, before);
    return add_io_children(w, numa >= 0 ? numa : parent, element);
}

/* ---- the file ---- */

static weft_status check_objects(const walk *w)
{
    char value[VALUE_BYTES];
    for (int i = 0; i < w->xml.count; i++) {
        if (wefti_topo_xml_is(&w->xml, i, "object")) {
            WEFT_TRY(need(w, i, "type", value));
        }
    }
    return WEFT_OK;
}

static weft_status check_root(walk *w, int *machine)
{
    char value[VALUE_BYTES];
    const char *start = w->xml.elements[0].name.at;
    if (!wefti_topo_xml_is(&w->xml, 0, "topology")) {
        return wefti_topo_xml_wrong(&w->xml, start, "expected topology, as lstopo writes it");
    }
    w->is_first_version = wefti_topo_xml_find(&w->xml, 0, "version") == NULL;
    if (!w->is_first_version) {
        WEFT_TRY(need(w, 0, "version", value));
        if (strncmp(value, "2.", 2) != 0) {
            return wrong_value(w, 0, "version", "version of hwloc's XML that is known here, as 2.0");
        }
    }
    *machine = first_object(w, 0);
    if (*machine < 0 || next_object(w, *machine) >= 0) {
        return wefti_topo_xml_wrong(&w->xml, *machine < 0 ? start : w->xml.elements[next_object(w, *machine)].name.at,
                                    "expected one object in the topology, the machine");
    }
    return check_objects(w);
}

weft_status wefti_topo_add_hwloc_xml(wefti_topo *topo, int host, const char *name, const char *text, size_t bytes)
{
    walk w = {.topo = topo};
    int machine = -1;
    WEFT_TRY(wefti_topo_xml_parse(&w.xml, name, text, bytes));
    weft_status status = check_root(&w, &machine);
    status = status == WEFT_OK ? add_normal(&w, host, machine) : status;
    wefti_topo_xml_fini(&w.xml);
    return status;
}

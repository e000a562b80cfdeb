/* topo/machine.h: what a machine is made of, as far as it matters who is near whom: a tree of hosts, packages
 * (sockets), NUMA nodes, PCI host bridges, PCI switches, and below them GPUs and ports of NICs.
 *
 * A machine is discovered (topo/discover.c), or read from a description (topo/description.c); everything else in this
 * folder looks at nothing but this, so that plans for machines one does not have are made by the same code. */
#ifndef WEFTI_TOPO_MACHINE_H
#define WEFTI_TOPO_MACHINE_H

#include <stdint.h>

#include "weft/status.h"

typedef enum wefti_topo_kind {
    WEFTI_TOPO_HOST,
    WEFTI_TOPO_PACKAGE,
    WEFTI_TOPO_NUMA,
    WEFTI_TOPO_ROOT, /* a PCI host bridge */
    WEFTI_TOPO_SWITCH, /* a PCI switch */
    WEFTI_TOPO_GPU,
    WEFTI_TOPO_NIC, /* one port of a NIC */
    WEFTI_TOPO_KINDS
} wefti_topo_kind;

#define WEFTI_TOPO_NAME_BYTES 48
#define WEFTI_TOPO_OBJECTS_MAX 65536 /* of a machine: what comes from files is bounded */

/* Domain, bus, device and function, so that their order is that of PCI addresses. */
typedef uint64_t wefti_topo_pci;
#define WEFTI_TOPO_PCI_BYTES 20
int wefti_topo_hex_digit(char c); /* -1: it is none */
int wefti_topo_pci_parse(const char *text, wefti_topo_pci *pci);
const char *wefti_topo_pci_text(wefti_topo_pci pci, char text[WEFTI_TOPO_PCI_BYTES]);

/* What NVML says of a GPU's multi-node NVLink (nvmlGpuFabricInfo), and whether an export and import of memory
 * worked. */
typedef enum wefti_topo_fabric_state {
    WEFTI_TOPO_FABRIC_NONE, /* not supported */
    WEFTI_TOPO_FABRIC_NOT_STARTED,
    WEFTI_TOPO_FABRIC_IN_PROGRESS,
    WEFTI_TOPO_FABRIC_COMPLETED
} wefti_topo_fabric_state;

typedef struct wefti_topo_fabric {
    unsigned char cluster[16]; /* UUID */
    uint32_t clique;
    uint8_t state; /* a wefti_topo_fabric_state */
    uint8_t has_failed; /* completed with an error */
    uint8_t has_handles; /* the driver has fabric handles */
    uint8_t was_tried; /* a trial export and import worked */
    uint8_t is_divided; /* the GPU is (MIG), so that it has no NVLink */
} wefti_topo_fabric;

typedef struct wefti_topo_object {
    uint8_t kind;
    uint8_t is_down; /* NIC: the port has no link */
    uint8_t is_mig; /* GPU: divided, so that it has no peer access */
    int32_t parent; /* -1: a host */
    int32_t host; /* the object that is its host */
    int32_t depth; /* steps to the host */
    char name[WEFTI_TOPO_NAME_BYTES]; /* NIC: the device's, as mlx5_0; GPU: its UUID or empty */
    wefti_topo_pci pci; /* GPU and NIC; all bits set: not known */
    int32_t port; /* NIC: 1 .. */
    int32_t speed_gbits; /* NIC: of the link; 0: not known */
    wefti_topo_fabric fabric; /* GPU */
} wefti_topo_object;
#define WEFTI_TOPO_PCI_NONE (~(wefti_topo_pci)0)

/* NVLinks between two GPUs, or that `from` cannot reach the memory of `to` although it should. */
typedef struct wefti_topo_link {
    int32_t from;
    int32_t to;
    int32_t links; /* 0: no access */
} wefti_topo_link;

/* An address of a port of a NIC (InfiniBand, RoCE, EFA): an entry of its table that is in use. */
typedef enum wefti_topo_gid_type {
    WEFTI_TOPO_GID_IB,
    WEFTI_TOPO_GID_ROCE_V1,
    WEFTI_TOPO_GID_ROCE_V2
} wefti_topo_gid_type;
#define WEFTI_TOPO_GID_TYPES 3

typedef struct wefti_topo_gid {
    int32_t nic; /* the object */
    int32_t index;
    uint8_t type;
    unsigned char address[16]; /* as of IPv6; of RoCE it is the interface's, ::ffff:10.0.0.1 of IPv4 */
} wefti_topo_gid;

typedef struct wefti_topo {
    char name[64];
    char source[256]; /* where the description comes from */
    wefti_topo_object *objects; /* parents before children */
    int count;
    int room;
    wefti_topo_link *links;
    int link_count;
    int link_room;
    wefti_topo_gid *gids;
    int gid_count;
    int gid_room;
} wefti_topo;

void wefti_topo_init(wefti_topo *topo);
void wefti_topo_fini(wefti_topo *topo);

/* A new object below `parent` (-1: a host). Returns its index, or -1 with this thread's error: no memory, or more than
 * WEFTI_TOPO_OBJECTS_MAX. */
int wefti_topo_add(wefti_topo *topo, wefti_topo_kind kind, int parent, const char *name);
weft_status wefti_topo_add_link(wefti_topo *topo, int from, int to, int links);
weft_status wefti_topo_add_gid(wefti_topo *topo, const wefti_topo_gid *gid);

const char *wefti_topo_gid_type_name(wefti_topo_gid_type type);

const char *wefti_topo_kind_name(wefti_topo_kind kind);

/* The objects of a kind of a host (-1: of all hosts), ordered: GPUs and NICs by PCI address, then port, then name. The
 * caller frees the list (wefti_free). Returns how many, or -1 with this thread's error. */
int wefti_topo_list(const wefti_topo *topo, wefti_topo_kind kind, int host, int **list);

#endif

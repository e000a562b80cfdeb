/* topo/plan.h: which ports of NICs each GPU of a host uses.
 *
 * The plan is of the host's GPUs as they are, in the order of their PCI addresses, whether a process sees them or not:
 * so every module of every process gets the same plan, whatever the numbers of its PEs.
 *
 *   with a mapping   the first GPUs use the first entry's port, and so on. Fewer GPUs served than the host has is an
 *                    error; entries beyond the last GPU are not used
 *   round robin      (WEFT_NIC_ROUND_ROBIN, NVSHMEM_ENABLE_NIC_PE_MAPPING=1) GPU i uses entry i of the list, which
 *                    begins again; without a list the host's ports in PCI order
 *   else             the nearest ports, by the classes of topo/distance.h; among equally near ones as few GPUs a port
 *                    as can be, never a farther one for that. Where ports outnumber GPUs, a port that nobody uses goes
 *                    to the GPU with the fewest among those to which none is nearer
 *
 * Without a list, ports without link are left out, and those with less than a quarter of the fastest's speed. */
#ifndef WEFTI_TOPO_PLAN_H
#define WEFTI_TOPO_PLAN_H

#include "topo/distance.h"
#include "topo/nic_list.h"

typedef struct wefti_topo_wish {
    const char *list; /* texts; NULL or empty: none */
    const char *mapping;
    int is_round_robin;
    const char *list_name; /* the names of the texts in errors; NULL: WEFT_NIC_LIST, WEFT_NIC_MAPPING */
    const char *mapping_name;
} wefti_topo_wish;

typedef enum wefti_topo_reason {
    WEFTI_TOPO_BY_MAPPING,
    WEFTI_TOPO_BY_ROUND_ROBIN,
    WEFTI_TOPO_NEAREST, /* no other port is as near */
    WEFTI_TOPO_BALANCED, /* others are as near, and no less used */
    WEFTI_TOPO_SPARE /* more ports than GPUs: a further one */
} wefti_topo_reason;

/* That a GPU uses a port. */
typedef struct wefti_topo_use {
    int gpu; /* objects of the machine */
    int nic;
    int is_first; /* the GPU's first port */
    wefti_topo_reason reason;
    wefti_topo_distance distance;
    int alternatives; /* ports as near as this one, itself included; of a mapping the number of its entry */
} wefti_topo_use;

typedef struct wefti_topo_plan {
    int host;
    int *gpus; /* of the host, in PCI order */
    int gpu_count;
    int *nics; /* that may be used, in PCI order */
    int nic_count;
    wefti_topo_use *uses; /* ordered by GPU */
    int use_count;
} wefti_topo_plan;

/* Errors: those of the texts (WEFT_ERR_ARGUMENT); WEFT_ERR_RANGE: an entry that is no port of the host, a mapping of
 * too few GPUs; WEFT_ERR_MEMORY. A host without NICs has an empty plan. On an error the plan is empty. */
weft_status wefti_topo_plan_make(wefti_topo_plan *plan, const wefti_topo *topo, int host, const wefti_topo_wish *given);
void wefti_topo_plan_fini(wefti_topo_plan *plan);

/* The first use of a GPU by its PCI address, or NULL. */
const wefti_topo_use *wefti_topo_plan_find(const wefti_topo_plan *plan, const wefti_topo *topo, wefti_topo_pci pci);

/* The port of a PE without a GPU: of the ports nearest to `numa` (an object, -1: all), and how many those are, those of
 * a world's PEs on this host in turn by their number there. -1 when there is none. */
int wefti_topo_plan_nearest_count(const wefti_topo_plan *plan, const wefti_topo *topo, int numa);
int wefti_topo_plan_without_gpu(const wefti_topo_plan *plan, const wefti_topo *topo, int numa, int number);

/* A use's reason as a sentence. */
#define WEFTI_TOPO_REASON_BYTES 160
const char *wefti_topo_reason_text(const wefti_topo_use *use, char text[WEFTI_TOPO_REASON_BYTES]);

#endif

/* topo/nic_of_pe.h: the ports of NICs, its rails, that one PE uses, by the plan of its host. */
#ifndef WEFTI_TOPO_NIC_OF_PE_H
#define WEFTI_TOPO_NIC_OF_PE_H

#include "topo/plan.h"

/* Who asks. */
typedef struct wefti_topo_pe {
    wefti_topo_pci gpu; /* its GPU; WEFTI_TOPO_PCI_NONE: it has none, or none that is known */
    int numa; /* without a GPU: the NUMA node on which it runs, by the system's number; -1: several */
    int number; /* without a GPU: its number among its world's PEs on the host */
    int count; /* and how many those are */
} wefti_topo_pe;

#define WEFTI_TOPO_NIC_REASON_BYTES 400
/* Rails of a PE's own, and with those that it has only to send by. */
#define WEFTI_TOPO_RAILS_OWN 4
#define WEFTI_TOPO_RAILS_MAX 8

#define WEFTI_TOPO_RAIL_GIDS_MAX 256 /* as the tables of today have */

typedef struct wefti_topo_rail {
    char name[WEFTI_TOPO_NAME_BYTES]; /* of the NIC */
    int port;
    int slot; /* of the port, among those of the plan in PCI order */
    int ports; /* that the NIC has, whether they are used or not */
    unsigned char gids[WEFTI_TOPO_RAIL_GIDS_MAX][16]; /* of the port, those that are known, each once */
    int gid_count;
} wefti_topo_rail;

/* WEFT_NIC_RAILS. */
typedef enum wefti_topo_rails_wish {
    WEFTI_TOPO_RAILS_ALL, /* a PE uses all ports that the plan gives it */
    WEFTI_TOPO_RAILS_ONE, /* the first of them */
    WEFTI_TOPO_RAILS_SAME_SLOT, /* as all, and what goes to a PE leaves by the port of the same slot */
} wefti_topo_rails_wish;

typedef struct wefti_topo_rails {
    wefti_topo_rail rails[WEFTI_TOPO_RAILS_MAX];
    int count; /* 0: the host has no NIC that may be used */
    int own; /* so many of them, the first, the plan gives the PE; the rest are there to send by, in the same slots */
    char reason[WEFTI_TOPO_NIC_REASON_BYTES]; /* and which further ports the plan gives the GPU */
} wefti_topo_rails;

/* What the environment asks for. */
typedef struct wefti_topo_rails_ask {
    wefti_topo_wish wish;
    wefti_topo_rails_wish rails;
    int is_asked; /* by WEFT_NIC_LIST, WEFT_NIC_MAPPING or WEFT_NIC_ROUND_ROBIN */
    int is_described; /* the machine, by WEFT_TOPO_FILE */
} wefti_topo_rails_ask;

weft_status wefti_topo_rails_ask_read(wefti_topo_rails_ask *ask);

/* The PE's ports on the host of `topo` that has this machine's name, else on the first. Errors: those of
 * wefti_topo_plan_make; WEFT_ERR_RANGE: the GPU is none of the host's, or there are more slots than a PE can have. */
weft_status wefti_topo_rails_of(const wefti_topo *topo, const wefti_topo_rails_ask *ask, const wefti_topo_pe *pe,
                                wefti_topo_rails *out);

/* The same on the machine that is described, or this one, which is looked at. A GPU that the machine does not show, as
 * in some containers, is no reason to have no network unless a plan is asked for. */
weft_status wefti_topo_rails_here(const wefti_topo_rails_ask *ask, const wefti_topo_pe *pe, wefti_topo_rails *out);

#endif

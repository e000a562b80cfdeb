/* topo/spread.h: each GPU gets one of the ports nearest to it, so that the ports' loads are as equal as can be.
 *
 * This is an optimal semi-matching: the sum of the squares of the loads is least, and so is the greatest load (Harvey,
 * Ladner, Lovasz, Tamir: Semi-matchings for bipartite graphs and load balancing). Found by taking the least used port
 * for one GPU after the other, and then moving GPUs along paths from a port to one with at least two GPUs fewer. */
#ifndef WEFTI_TOPO_SPREAD_H
#define WEFTI_TOPO_SPREAD_H

#include "topo/distance.h"

typedef struct wefti_topo_spread {
    int *first; /* by GPU: its port, as a number in `nics` */
    int *alternatives; /* by GPU: how many ports are as near */
    int *spare; /* by port: the GPU that uses it beside its first one, or -1 */
    unsigned char *is_near; /* [GPU][port] */
} wefti_topo_spread;

/* At least one port. Error: WEFT_ERR_MEMORY. */
weft_status wefti_topo_spread_make(wefti_topo_spread *spread, const wefti_topo *topo, const int *gpus, int gpu_count,
                                   const int *nics, int nic_count);
void wefti_topo_spread_fini(wefti_topo_spread *spread);

#endif

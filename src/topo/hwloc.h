/* topo/hwloc.h: machines as hwloc sees them. libhwloc is loaded when this is called, and is not linked. */
#ifndef WEFTI_TOPO_HWLOC_H
#define WEFTI_TOPO_HWLOC_H

#include "topo/machine.h"

/* Add what hwloc knows below `host`: of this machine (xml NULL), or of an XML that lstopo wrote. Errors:
 * WEFT_ERR_UNSUPPORTED (no libhwloc here, or this build has none), WEFT_ERR_ARGUMENT (the file). */
weft_status wefti_topo_add_hwloc(wefti_topo *topo, int host, const char *xml);

#endif

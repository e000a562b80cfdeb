/* topo/hwloc_xml.h: machines from the XML of hwloc, which lstopo and libhwloc write. libhwloc itself is not asked: it
 * takes what it writes on trust, and may crash on a file that is damaged. */
#ifndef WEFTI_TOPO_HWLOC_XML_H
#define WEFTI_TOPO_HWLOC_XML_H

#include <stddef.h>

#include "topo/machine.h"

/* Add what the text tells below `host`: packages, NUMA nodes, PCI, GPUs, ports of NICs. Versions 1 and 2 of the format.
 * Errors: WEFT_ERR_ARGUMENT, with "NAME:LINE:COLUMN: " in front; WEFT_ERR_MEMORY. */
weft_status wefti_topo_add_hwloc_xml(wefti_topo *topo, int host, const char *name, const char *text, size_t bytes);

#endif

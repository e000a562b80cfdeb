/* topo/description.h: machines as text: WEFT_TOPO_FILE, weft-info topo --machine, and the machines of tests/topo.
 *
 *     weft-topology 1                 the first line
 *     machine NAME ...                the rest of the line
 *     source WHERE ...                where the description comes from
 *     host NAME                       or NAME[0-17]: so many hosts that are alike; what follows belongs to them
 *     package NAME
 *     numa NAME parent=NAME           inside a package, or the host if there is no parent
 *     root NAME [parent=NAME]         a PCI host bridge
 *     switch NAME parent=NAME         a PCI switch, below a root or a switch
 *     gpu PCI [parent=NAME] [uuid=TEXT] [mig=yes] [cluster=UUID clique=N [fabric=STATE] [handles=no] [trial=failed]]
 *     nic NAME [parent=NAME] [pci=PCI] [port=N] [speed=GBITS] [state=down]
 *     gid NIC[:PORT] INDEX ADDRESS [type=TYPE]
 *                                     an entry of the port's table, as fe80::1 or ::ffff:10.0.0.1; TYPE: ib, the
 *                                     default, roce-v1 or roce-v2
 *     nvlink PCI PCI LINKS            or: nvlink all LINKS, among the GPUs of the host so far
 *     unreachable PCI PCI             the first GPU cannot reach the memory of the second
 *     hwloc FILE                      the host's objects from an XML of lstopo, beside this file; `gpu` and `nic` lines
 *                                     after it that name an object of it say what hwloc does not know
 *
 * A gpu or nic that is new needs a parent: a root, a switch or a numa. STATE: completed (the default with a cluster),
 * in-progress, not-started, none, failed. Words are apart by blanks; '#' begins a comment. What is wrong is told with
 * line and column, and what was expected there. */
#ifndef WEFTI_TOPO_DESCRIPTION_H
#define WEFTI_TOPO_DESCRIPTION_H

#include <stddef.h>

#include "topo/machine.h"

#define WEFTI_TOPO_TEXT_MAX (1u << 20) /* bytes of a description */

/* Errors: WEFT_ERR_ARGUMENT, with "NAME:LINE:COLUMN: " in front; WEFT_ERR_MEMORY. `name` is the file's, for them, and
 * for the folder of the files that it names; NULL: it may name none. On an error `topo` is empty. */
weft_status wefti_topo_parse(wefti_topo *topo, const char *name, const char *text, size_t bytes);

/* The same from a file: one that begins as an XML does is hwloc's, else a description. */
weft_status wefti_topo_read(wefti_topo *topo, const char *file);

#endif

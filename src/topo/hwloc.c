#include "topo/hwloc.h"

#include "base/error.h"
#include "base/library.h"
#include "topo/hwloc_xml.h"

#ifndef WEFT_HAVE_HWLOC

weft_status wefti_topo_add_hwloc(wefti_topo *topo, int host)
{
    (void)topo;
    (void)host;
    return wefti_error(WEFT_ERR_UNSUPPORTED,
                       "topology: this build of weft has no hwloc; build it where libhwloc-dev is, "
                       "or describe the machine in a file (WEFT_TOPO_FILE)");
}

#else

#include <hwloc.h>
#include <pthread.h>
#include <string.h>

#define LIBRARY "libhwloc.so.15"

typedef struct library {
    int (*init)(hwloc_topology_t *topology);
    int (*set_flags)(hwloc_topology_t topology, unsigned long flags);
    int (*set_type_filter)(hwloc_topology_t topology, hwloc_obj_type_t type, enum hwloc_type_filter_e filter);
    int (*load)(hwloc_topology_t topology);
    int (*export_xml)(hwloc_topology_t topology, char **text, int *bytes, unsigned long flags);
    void (*free_xml)(hwloc_topology_t topology, char *text);
    void (*destroy)(hwloc_topology_t topology);
} library;

/* Loaded once and kept: its plugins leave state behind. */
static library lib;

static void load_library(void)
{
    library found;
    void *handle = wefti_library_open(LIBRARY);
    if (handle != NULL && wefti_library_find(handle, "hwloc_topology_init", &found.init) &&
        wefti_library_find(handle, "hwloc_topology_set_flags", &found.set_flags) &&
        wefti_library_find(handle, "hwloc_topology_set_type_filter", &found.set_type_filter) &&
        wefti_library_find(handle, "hwloc_topology_load", &found.load) &&
        wefti_library_find(handle, "hwloc_topology_export_xmlbuffer", &found.export_xml) &&
        wefti_library_find(handle, "hwloc_free_xmlbuffer", &found.free_xml) &&
        wefti_library_find(handle, "hwloc_topology_destroy", &found.destroy)) {
        lib = found;
    } else {
        wefti_library_close(handle);
    }
}

static weft_status read_machine(hwloc_topology_t topology, wefti_topo *topo, int host)
{
    char *text = NULL;
    int bytes = 0;
    /* Without the flag hwloc leaves out what the process may not use, as in a container that has some of the
     * processors, and hangs the devices there elsewhere; without the filters it leaves devices out. */
    if (lib.set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        lib.set_type_filter(topology, HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
        lib.set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
        lib.set_type_filter(topology, HWLOC_OBJ_OS_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
        lib.load(topology) != 0 || lib.export_xml(topology, &text, &bytes, 0) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "topology: hwloc cannot load this machine; describe it in a file "
                                              "(WEFT_TOPO_FILE)");
    }
    /* Its length counts the 0 at the end. */
    const weft_status status =
        wefti_topo_add_hwloc_xml(topo, host, "what hwloc says of this machine", text, strnlen(text, (size_t)bytes));
    lib.free_xml(topology, text);
    return status;
}

weft_status wefti_topo_add_hwloc(wefti_topo *topo, int host)
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
    const weft_status status = read_machine(topology, topo, host);
    lib.destroy(topology);
    return status;
}

#endif

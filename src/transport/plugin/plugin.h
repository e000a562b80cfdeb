/* transport/plugin/plugin.h: a transport between nodes of somebody else's (weft/transport.h). */
#ifndef WEFTI_TRANSPORT_PLUGIN_PLUGIN_H
#define WEFTI_TRANSPORT_PLUGIN_PLUGIN_H

#include "transport/transport.h"

/* Load the library at an absolute path, once a process, which keeps it. Any thread.
 * WEFT_ERR_ARGUMENT (relative, absent, no plugin, a function missing), WEFT_ERR_UNSUPPORTED (another version),
 * WEFT_ERR_STATE (the process has another one). */
weft_status wefti_transport_plugin_load(const char *path, size_t length);
/* The one that the process has; NULL: none. */
const wefti_transport_ops *wefti_transport_plugin(void);

#endif

/* os/posix/node.h: what processes must have in common to share memory here. */
#ifndef WEFTI_OS_POSIX_NODE_H
#define WEFTI_OS_POSIX_NODE_H

#include "os/os.h"

/* Fill in all of the identity but the process. */
weft_status wefti_os_node_query(wefti_os_identity *identity);

/* The user outside of this process's user namespace whom `uid` inside of it stands for, by the text of a uid_map; *user
 * is not written when it stands for none. Returns whether it stands for one. */
int wefti_os_uid_outside(const char *map, uint64_t uid, uint64_t *user);

#endif

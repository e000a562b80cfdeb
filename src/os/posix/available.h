/* os/posix/available.h: the memory that a control group leaves, apart so that a test can describe one. */
#ifndef WEFTI_OS_POSIX_AVAILABLE_H
#define WEFTI_OS_POSIX_AVAILABLE_H

#include <stdint.h>

/* The least that the group `path` ("/a/b") and those above it leave, in a tree of groups (version 2) mounted at `root`.
 * UINT64_MAX when none sets a limit. */
uint64_t wefti_os_group_available_bytes(const char *root, const char *path);

#endif

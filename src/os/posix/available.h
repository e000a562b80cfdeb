/* os/posix/available.h: the memory that a control group leaves, apart so that a test can describe one. */
#ifndef WEFTI_OS_POSIX_AVAILABLE_H
#define WEFTI_OS_POSIX_AVAILABLE_H

#include <stdint.h>

/* How the files of a version's groups are called. */
typedef struct wefti_os_group_form {
    const char *limit;
    const char *used;
    const char *files[2]; /* labels in memory.stat: pages of files, which the kernel takes back */
} wefti_os_group_form;
extern const wefti_os_group_form wefti_os_group_v1;
extern const wefti_os_group_form wefti_os_group_v2;

/* The least that the group `path` ("/a/b") and those above it leave, in a tree of groups mounted at `root`. UINT64_MAX
 * when none sets a limit; else *mark tells the group that leaves the least from others. */
uint64_t wefti_os_group_available_bytes(const wefti_os_group_form *form, const char *root, const char *path,
                                        uint64_t *mark);

/* The path of the group in the text of a process's cgroup file, in the line that begins with a number and `label`; it
 * is cut off from what follows. NULL when there is none. */
char *wefti_os_group_path(char *text, const char *label);

#endif

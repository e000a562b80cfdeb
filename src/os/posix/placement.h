/* os/posix/placement.h: the calls by which memory gets its place, so that tests can record them and stand in for
 * machines with several NUMA nodes. */
#ifndef WEFTI_OS_POSIX_PLACEMENT_H
#define WEFTI_OS_POSIX_PLACEMENT_H

#include <stddef.h>
#include <sys/types.h>

typedef struct wefti_os_placement_calls {
    /* The first bytes of a file, as text. Returns their number, -1: it cannot be read. */
    ssize_t (*read_text)(const char *path, char *text, size_t bytes);
    /* These return 0, or -1. Pages of this part that come from now on, or of this thread's new memory, are had from
     * that NUMA node while it has any. */
    int (*bind)(void *address, size_t bytes, int numa);
    int (*prefer)(int numa); /* -1: as the thread's processor */
    int (*has_policy)(void); /* this thread has one, as by numactl */
    int (*advise)(void *address, size_t bytes, int advice);
} wefti_os_placement_calls;

extern const wefti_os_placement_calls wefti_os_placement_system;
extern const wefti_os_placement_calls *wefti_os_placement; /* the system's, but in tests */

#endif

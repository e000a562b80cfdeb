/* os/posix/user.c: whose process is at the other end of a local socket. The system gives a number (SO_PEERCRED). It
 * identifies the user except in user namespaces that do not map every user: all others have the number of "nobody"
 * there, and so may this process. */
#include "os/posix/user.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/posix/file.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* from Linux 6.5 on */
#endif
#define NOBODY 65534u /* unless kernel.overflowuid was changed */
#define USERS_ALL UINT64_C(4294967295)

int wefti_os_uid_map_next(const char **map, wefti_os_uid_range *range)
{
    char *end;
    if (*map == NULL || **map == '\0') {
        return 0;
    }
    range->inside = strtoull(*map, &end, 10);
    range->outside = strtoull(end, &end, 10);
    range->count = strtoull(end, &end, 10);
    end = strchr(end, '\n');
    *map = end == NULL ? NULL : end + 1;
    return 1;
}

/* How many users a map knows. */
static uint64_t count_users(const char *map)
{
    uint64_t users = 0;
    wefti_os_uid_range range;
    while (wefti_os_uid_map_next(&map, &range)) {
        users += range.count;
    }
    return users;
}

int wefti_os_uid_is_vague(const char *map, uint64_t uid)
{
    return uid == NOBODY && count_users(map) < USERS_ALL;
}

int wefti_os_user_is_vague(void)
{
    char map[WEFTI_OS_UID_MAP_BYTES];
    if (geteuid() != NOBODY) {
        return 0;
    }
    if (access("/proc/self/uid_map", F_OK) != 0 && access("/proc/self/stat", F_OK) == 0) {
        return 0; /* a system without user namespaces */
    }
    (void)wefti_os_file_read("/proc/self/uid_map", map, sizeof map);
    return wefti_os_uid_is_vague(map, NOBODY);
}

/* Whether the process still exists. A process id is reused once it is free, so this is checked after the namespace of
 * that process was read. Older systems do not tell. */
static int is_there(int process)
{
    struct pollfd ends = {.fd = process, .events = POLLIN};
    return process < 0 || poll(&ends, 1, 0) == 0;
}

int wefti_os_user_namespace_is_own(int descriptor, pid_t pid)
{
    char path[64];
    struct stat own;
    struct stat other;
    int process = -1;
    socklen_t bytes = sizeof process;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERPIDFD, &process, &bytes) != 0) {
        process = -1;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    int is_own = stat("/proc/self/ns/user", &own) == 0 && stat(path, &other) == 0 && own.st_ino == other.st_ino &&
                 own.st_dev == other.st_dev && is_there(process);
    if (process >= 0) {
        (void)close(process);
    }
    return is_own;
}

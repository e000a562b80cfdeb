/* os/posix/user.h: whose process is at the other end of a local socket. */
#ifndef WEFTI_OS_POSIX_USER_H
#define WEFTI_OS_POSIX_USER_H

#include <stdint.h>
#include <sys/types.h>

#define WEFTI_OS_UID_MAP_BYTES 16384 /* of a uid_map of 340 lines, the most that Linux takes */

/* A line of a uid_map: the `count` users from `inside` on are those from `outside` on in the namespace around. */
typedef struct wefti_os_uid_range {
    uint64_t inside;
    uint64_t outside;
    uint64_t count;
} wefti_os_uid_range;

/* Read the line at *map, the text of a uid_map, and go on to the next. 0: there is none. */
int wefti_os_uid_map_next(const char **map, wefti_os_uid_range *range);

/* Whether the number of a user, as read in a user namespace with this map (the text of a uid_map), may stand for
 * several: the system shows all those that the namespace does not know as one. */
int wefti_os_uid_is_vague(const char *map, uint64_t uid);
/* Whether that is so of this process's own user. */
int wefti_os_user_is_vague(void);
/* Whether process `pid`, which is at the other end of the socket, is in this process's user namespace. 0 if that cannot
 * be told. */
int wefti_os_user_namespace_is_own(int descriptor, pid_t pid);

#endif

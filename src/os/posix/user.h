/* os/posix/user.h: whose process is at the other end of a local socket. */
#ifndef WEFTI_OS_POSIX_USER_H
#define WEFTI_OS_POSIX_USER_H

#include <stdint.h>
#include <sys/types.h>

/* Whether the number of a user, as read in a user namespace with this map (the text of a uid_map), may stand for
 * several: the system shows all those that the namespace does not know as one. */
int wefti_os_uid_is_vague(const char *map, uint64_t uid);
/* Whether that is so of this process's own user. */
int wefti_os_user_is_vague(void);
/* Whether process `pid`, which is at the other end of the socket, is in this process's user namespace. 0 if that cannot
 * be told. */
int wefti_os_user_namespace_is_own(int descriptor, pid_t pid);

#endif

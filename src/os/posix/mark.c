/* os/posix/mark.c: seeing whether another process of this node is in reach, before anybody waits for it. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "os/os.h"
#include "os/socket.h"

static socklen_t name_address(struct sockaddr_un *address, const unsigned char name[16])
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    char *at = address->sun_path + 1; /* the zero before it makes the name abstract */
    int used = snprintf(at, sizeof address->sun_path - 1, "weft/mark/");
    for (int i = 0; i < 16; i++) {
        used += snprintf(at + used, sizeof address->sun_path - 1 - (size_t)used, "%02x", name[i]);
    }
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used);
}

static weft_status open_socket(int *descriptor)
{
    *descriptor = wefti_fault("socket", EMFILE) ? -1 : wefti_os_socket_open(AF_UNIX);
    return *descriptor >= 0
               ? WEFT_OK
               : wefti_error(WEFT_ERR_SYSTEM, "cannot open a local socket: %s; look at ulimit -n", strerror(errno));
}

weft_status wefti_os_mark_open(wefti_os_mark *mark, const unsigned char name[16])
{
    struct sockaddr_un address;
    socklen_t bytes = name_address(&address, name);
    int listener;
    WEFT_TRY(open_socket(&listener));
    if (wefti_fault("bind", EADDRINUSE) ||
        wefti_os_socket_bind(listener, (const struct sockaddr *)&address, bytes) != 0 ||
        wefti_fault("listen", EADDRINUSE) || wefti_os_socket_listen(listener, SOMAXCONN) != 0) {
        weft_status status = wefti_error(WEFT_ERR_SYSTEM,
                                         "cannot listen at a local socket, by which others see that this process "
                                         "lives: %s; a container's security profile has to allow abstract sockets",
                                         strerror(errno));
        wefti_os_socket_close(listener);
        return status;
    }
    mark->listener = listener;
    return WEFT_OK;
}

/* Who connects to a socket of this kind knows who listens there, though nobody has accepted. */
static wefti_os_mark_sight compare_users(int looker)
{
    return wefti_os_socket_is_own_user(looker, NULL) ? WEFTI_OS_MARK_SEEN : WEFTI_OS_MARK_FOREIGN;
}

weft_status wefti_os_mark_look(const unsigned char name[16], wefti_os_mark_sight *sight)
{
    struct sockaddr_un address;
    socklen_t bytes = name_address(&address, name);
    int looker;
    WEFT_TRY(open_socket(&looker));
    weft_status status = WEFT_OK;
    if (wefti_os_socket_connect(looker, (const struct sockaddr *)&address, bytes) == 0) {
        *sight = compare_users(looker);
    } else if (errno == ECONNREFUSED || errno == ENOENT) {
        *sight = WEFTI_OS_MARK_UNSEEN;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        *sight = WEFTI_OS_MARK_SEEN; /* so many look at it that there is no more room */
    } else {
        status = wefti_error(WEFT_ERR_SYSTEM,
                             "cannot connect to the local socket of another PE's process, to see whether it lives: %s; "
                             "a container's security profile has to allow abstract sockets",
                             strerror(errno));
    }
    wefti_os_socket_close(looker);
    return status;
}

void wefti_os_mark_close(wefti_os_mark *mark)
{
    if (mark->listener >= 0) {
        wefti_os_socket_close(mark->listener);
        mark->listener = -1;
    }
}

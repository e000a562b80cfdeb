#include "os/posix/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/socket.h"

#define FEW 4 /* descriptors that PE 0 needs: it listens at two addresses, and a connection takes another */
#define GIVEN_UP 16 /* descriptors that a thread closes in its own table: more than meeting other PEs takes */

int wefti_os_descriptor_beyond_standard(int descriptor)
{
    if (descriptor < 0 || descriptor > STDERR_FILENO) {
        return descriptor;
    }
    int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int error = errno;
    close(descriptor);
    errno = error;
    return copy;
}

int wefti_os_descriptors_are_spent(void)
{
    int opened[FEW];
    int count = 0;
    int error = 0;
    while (count < FEW && error == 0) {
        opened[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        error = opened[count] < 0 ? errno : 0;
        count += error == 0;
    }
    while (count > 0) {
        close(opened[--count]);
    }
    return error == EMFILE;
}

/* Record locks belong to a table, so closing a copy does not end those of the process. */
int wefti_os_descriptors_unshare(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || unshare(CLONE_FILES) != 0) {
        return 0;
    }
    int closed = 0;
    for (rlim_t at = limit.rlim_cur; at > STDERR_FILENO + 1 && closed < GIVEN_UP; at--) {
        closed += close((int)(at - 1)) == 0;
    }
    return closed > 0;
}

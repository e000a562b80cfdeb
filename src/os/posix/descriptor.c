#include "os/posix/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

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

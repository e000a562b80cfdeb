/* os/posix/file.c: reading the small files in which Linux tells about itself. */
#include "os/posix/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"

ssize_t wefti_os_file_read(const char *path, char *text, size_t bytes)
{
    int descriptor = wefti_fault("open", EMFILE) ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return -1;
    }
    ssize_t got;
    do {
        got = wefti_fault("read", EIO) ? -1 : read(descriptor, text, bytes - 1);
    } while (got < 0 && errno == EINTR);
    int error = errno;
    close(descriptor);
    errno = error;
    text[got < 0 ? 0 : got] = '\0';
    return got;
}

/* os/posix/file.h: reading the small files in which Linux tells about itself. */
#ifndef WEFTI_OS_POSIX_FILE_H
#define WEFTI_OS_POSIX_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Read what fits and end it with a zero byte. Returns the number of bytes before it, or -1 with errno set. */
ssize_t wefti_os_file_read(const char *path, char *text, size_t bytes);

#endif

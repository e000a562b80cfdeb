/* os/posix/random.c: bytes fit for secrets. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "os/os.h"

weft_status wefti_os_random(void *bytes, size_t count)
{
    unsigned char *at = bytes;
    while (count > 0) {
        ssize_t got = wefti_fault("getrandom", ENOSYS) ? -1 : getrandom(at, count, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return wefti_error(
                WEFT_ERR_SYSTEM,
                "cannot get random bytes (getrandom): %s; a container's security profile has to allow it",
                strerror(errno));
        }
        at += got;
        count -= (size_t)got;
    }
    return WEFT_OK;
}

/* os/posix/journal.c: a file of text that several processes add to, whole at any time. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/held_signals.h"
#include "os/os.h"
#include "os/posix/descriptor.h"

#define PATIENCE_NS UINT64_C(3000000000)
#define RETRY_NS UINT64_C(1000000)
#define HEAD_BYTES_MAX 128

/* A process that is stopped while it holds the lock must not stop the others. */
static int lock(int descriptor)
{
    uint64_t until_ns = wefti_os_now_ns() + PATIENCE_NS;
    while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || wefti_os_now_ns() > until_ns) {
            return 0;
        }
        wefti_os_sleep_ns(RETRY_NS);
    }
    return 1;
}

/* The parts of a text, in one write; all or nothing. */
static int write_at(int descriptor, off_t at, const struct iovec *parts, int count)
{
    ssize_t bytes = 0;
    for (int i = 0; i < count; i++) {
        bytes += (ssize_t)parts[i].iov_len;
    }
    ssize_t wrote;
    const wefti_held_signals held = wefti_signals_hold();
    do {
        wrote = wefti_fault("pwritev", ENOSPC) ? -1 : pwritev(descriptor, parts, count, at);
    } while (wrote < 0 && errno == EINTR);
    wefti_signals_release(&held);
    if (wrote >= 0 && wrote < bytes) {
        errno = ENOSPC; /* a file takes less than it is given when there is no room */
    }
    return wrote == bytes;
}

static struct iovec part(const char *text, size_t bytes)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)text, .iov_len = bytes};
}

/* Whether the file has `text` at `at`. */
static int has_text(int descriptor, off_t at, const char *text)
{
    char found[HEAD_BYTES_MAX];
    size_t bytes = strlen(text);
    return at >= 0 && bytes <= sizeof found && pread(descriptor, found, bytes, at) == (ssize_t)bytes &&
           memcmp(found, text, bytes) == 0;
}

/* Where the tail begins; 0 in an empty file; -1 when the file is another's. */
static off_t find_tail(int descriptor, const wefti_os_journal *journal)
{
    struct stat about;
    if (fstat(descriptor, &about) != 0) {
        return -1;
    }
    off_t at = about.st_size - (off_t)strlen(journal->tail);
    errno = EEXIST;
    return about.st_size == 0                                                                  ? 0
           : has_text(descriptor, 0, journal->head) && has_text(descriptor, at, journal->tail) ? at
                                                                                               : -1;
}

static int insert(int descriptor, const wefti_os_journal *journal, const char *text, size_t bytes)
{
    off_t at = lock(descriptor) ? find_tail(descriptor, journal) : -1;
    if (at < 0) {
        return 0;
    }
    const char *before = at == 0 ? journal->head : journal->separator;
    const struct iovec tail = part(journal->tail, strlen(journal->tail));
    const struct iovec parts[] = {part(before, strlen(before)), part(text, bytes), tail};
    if (write_at(descriptor, at, parts, 3)) {
        return 1;
    }
    int error = errno;
    int restored = ftruncate(descriptor, at) == 0 && (at == 0 || write_at(descriptor, at, &tail, 1));
    errno = restored ? error : EIO;
    return 0;
}

weft_status wefti_os_journal_insert(const wefti_os_journal *journal, const char *text, size_t bytes)
{
    int descriptor = wefti_fault("open", EMFILE)
                         ? -1
                         : wefti_os_descriptor_beyond_standard(open(journal->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    int done = descriptor >= 0 && insert(descriptor, journal, text, bytes);
    int error = errno;
    if (descriptor >= 0) {
        (void)flock(descriptor, LOCK_UN); /* closing does not, while a process that was forked meanwhile has the file */
        (void)close(descriptor);
    }
    if (!done) {
        return wefti_error(WEFT_ERR_SYSTEM, "%s: cannot add to it: %s", journal->path,
                           error == EEXIST ? "the file is another's, or was cut; remove it or name another"
                                           : strerror(error));
    }
    return WEFT_OK;
}

void wefti_os_journal_discard(const wefti_os_journal *journal)
{
    int descriptor = open(journal->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        return;
    }
    if (has_text(descriptor, 0, journal->head)) {
        (void)unlink(journal->path);
    }
    (void)close(descriptor);
}

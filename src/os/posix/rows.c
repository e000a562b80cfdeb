/* os/posix/rows.c: a table of numbers that the processes of a user share by its name, with a row for each process.
 *
 * The table is a file of /dev/shm. A row is held by a lock on the byte of its number, of the kind that belongs to an
 * open file: the system ends it with the process, or when the last copy of the descriptor is closed. (A process that
 * was forked from the holder, and does not call exec, keeps the row of a holder that died.) A row that nobody holds is
 * cleared by whoever sees it. One more byte is the lock under which claims are made. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/held_signals.h"
#include "os/os.h"
#include "os/posix/descriptor.h"

#define PATIENCE_NS UINT64_C(3000000000)
#define RETRY_NS UINT64_C(50000)
#define FOLDER "/dev/shm"

enum { CLAIMS = WEFTI_OS_ROWS_MAX };

static int lock_byte(const wefti_os_rows *rows, int command, short type, int byte, short *seen)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    const int result = fcntl(rows->descriptor, command, &lock);
    *seen = lock.l_type;
    return result;
}

static weft_status refuse(const char *path, const char *why)
{
    return wefti_error(WEFT_ERR_SYSTEM, "%s: cannot share it with other processes: %s", path, why);
}

/* The file has its size before any row is taken, and keeps it. */
static weft_status map_file(wefti_os_rows *rows, const char *path)
{
    struct stat about;
    if (fstat(rows->descriptor, &about) != 0 || !S_ISREG(about.st_mode)) {
        return refuse(path, "it is no regular file; have it removed");
    }
    if (about.st_uid != geteuid() || (about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return refuse(path, "it is another user's, or open to others; have it removed");
    }
    const wefti_held_signals held = wefti_signals_hold();
    const int sized = !wefti_fault("ftruncate", EINVAL) && ftruncate(rows->descriptor, sizeof *rows->table) == 0;
    wefti_signals_release(&held);
    void *base = !sized || wefti_fault("mmap", ENOMEM)
                     ? MAP_FAILED
                     : mmap(NULL, sizeof *rows->table, PROT_READ | PROT_WRITE, MAP_SHARED, rows->descriptor, 0);
    if (base == MAP_FAILED) {
        return refuse(path, strerror(errno));
    }
    rows->table = base;
    return WEFT_OK;
}

static weft_status take_row(wefti_os_rows *rows, const char *path)
{
    short seen;
    for (rows->own = 0; rows->own < WEFTI_OS_ROWS_MAX; rows->own++) {
        if (lock_byte(rows, F_OFD_SETLK, F_WRLCK, rows->own, &seen) == 0) {
            memset(rows->table->row[rows->own], 0, sizeof rows->table->row[0]);
            return WEFT_OK;
        }
        if (errno != EAGAIN && errno != EACCES) {
            return refuse(path, strerror(errno));
        }
    }
    return refuse(path, "all its rows are taken; end other processes that use it");
}

weft_status wefti_os_rows_open(wefti_os_rows *rows, const char *name)
{
    char path[128];
    *rows = (wefti_os_rows){0};
    (void)snprintf(path, sizeof path, FOLDER "/weft-%u-%s", (unsigned)geteuid(), name);
    rows->descriptor = wefti_fault("open", EMFILE)
                           ? -1
                           : wefti_os_descriptor_beyond_standard(
                                 open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (rows->descriptor < 0) {
        return refuse(path, strerror(errno));
    }
    weft_status status = map_file(rows, path);
    status = status == WEFT_OK ? take_row(rows, path) : status;
    if (status != WEFT_OK) {
        rows->own = -1;
        wefti_os_rows_close(rows);
    }
    return status;
}

void wefti_os_rows_close(wefti_os_rows *rows)
{
    if (rows->table != NULL && rows->own >= 0) {
        memset(rows->table->row[rows->own], 0, sizeof rows->table->row[0]);
    }
    wefti_os_rows_forget(rows);
}

void wefti_os_rows_forget(wefti_os_rows *rows)
{
    if (rows->table != NULL) {
        munmap(rows->table, sizeof *rows->table);
    }
    if (rows->descriptor > 0) { /* never a standard one */
        close(rows->descriptor);
    }
    *rows = (wefti_os_rows){0};
}

static int is_zero(const int *row)
{
    static const int zero[WEFTI_OS_ROW_NUMBERS];
    return memcmp(row, zero, sizeof zero) == 0;
}

void wefti_os_rows_clear_dead(wefti_os_rows *rows)
{
    for (int i = 0; i < WEFTI_OS_ROWS_MAX; i++) {
        short seen = F_UNLCK;
        if (i != rows->own && !is_zero(rows->table->row[i]) && lock_byte(rows, F_OFD_SETLK, F_WRLCK, i, &seen) == 0) {
            memset(rows->table->row[i], 0, sizeof rows->table->row[0]);
            (void)lock_byte(rows, F_OFD_SETLK, F_UNLCK, i, &seen);
        }
    }
}

int wefti_os_rows_lock(wefti_os_rows *rows)
{
    short seen;
    const uint64_t until_ns = wefti_os_now_ns() + PATIENCE_NS;
    while (lock_byte(rows, F_OFD_SETLK, F_WRLCK, CLAIMS, &seen) != 0) {
        if ((errno != EAGAIN && errno != EACCES && errno != EINTR) || wefti_os_now_ns() > until_ns) {
            return 0;
        }
        wefti_os_sleep_ns(RETRY_NS);
    }
    return 1;
}

void wefti_os_rows_unlock(wefti_os_rows *rows)
{
    short seen;
    (void)lock_byte(rows, F_OFD_SETLK, F_UNLCK, CLAIMS, &seen);
}

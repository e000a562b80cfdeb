/* os/posix/record.c: a record that PEs of one process share, who know of each other by messages only.
 *
 * An address alone would not do: its maker may have failed, and freed it, before another PE hears of it. The record is
 * a page of an anonymous file, and begins with the number of PEs that use it. A PE that joins reads that number
 * through a mapping of its own, which stays valid whatever the others do; if it is not 0, the first mapping stays.
 *
 * By then the number of the descriptor may mean another file, which is somebody else's: it is not read; nor is
 * it duplicated and closed, which would end this process's record locks on it. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/held_signals.h"
#include "os/os.h"
#include "os/posix/descriptor.h"

typedef struct page {
    uint32_t inside; /* PEs; 0: it will never be used again */
    uint32_t zero;
    uint64_t address; /* of the first mapping */
    _Alignas(64) unsigned char record[WEFTI_OS_RECORD_BYTES_MAX];
} page;

static page *page_of(void *record)
{
    return (page *)(void *)((unsigned char *)record - offsetof(page, record));
}

static page *map_page(int descriptor)
{
    void *base = wefti_fault("mmap", ENOMEM)
                     ? MAP_FAILED
                     : mmap(NULL, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return base == MAP_FAILED ? NULL : base;
}

static weft_status lacking(const char *what)
{
    return wefti_error(WEFT_ERR_SYSTEM,
                       "cannot %s shared memory for the PEs of this process: %s; look at ulimit -n and -f", what,
                       strerror(errno));
}

/* ---- making ---- */

static int open_file(void)
{
    int descriptor = wefti_fault("memfd_create", EMFILE)
                         ? -1
                         : wefti_os_descriptor_beyond_standard(memfd_create("weft", MFD_CLOEXEC));
    const wefti_held_signals held = wefti_signals_hold();
    int sized = descriptor >= 0 && !wefti_fault("ftruncate", EINVAL) && ftruncate(descriptor, sizeof(page)) == 0;
    wefti_signals_release(&held);
    if (descriptor >= 0 && !sized) {
        int error = errno;
        close(descriptor);
        errno = error;
        return -1;
    }
    return descriptor;
}

weft_status wefti_os_record_create(size_t bytes, wefti_os_ticket *ticket, void **record)
{
    struct stat about;
    if (bytes > WEFTI_OS_RECORD_BYTES_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "a record of %zu bytes exceeds %d", bytes, WEFTI_OS_RECORD_BYTES_MAX);
    }
    int descriptor = open_file();
    if (descriptor < 0) {
        return lacking("make");
    }
    page *first = wefti_fault("fstat", EIO) || fstat(descriptor, &about) != 0 ? NULL : map_page(descriptor);
    if (first == NULL) {
        weft_status status = lacking("map");
        close(descriptor);
        return status;
    }
    first->inside = 1;
    first->address = (uint64_t)(uintptr_t)first;
    *ticket = (wefti_os_ticket){
        .address = first->address, .file = about.st_ino, .file_system = about.st_dev, .descriptor = descriptor};
    *record = first->record;
    return WEFT_OK;
}

void wefti_os_ticket_close(wefti_os_ticket *ticket)
{
    if (ticket->descriptor >= 0) {
        close(ticket->descriptor);
    }
    ticket->descriptor = -1;
}

/* ---- coming and leaving ---- */

static int is_the_file(int descriptor, const wefti_os_ticket *ticket)
{
    struct stat about;
    return fstat(descriptor, &about) == 0 && about.st_ino == ticket->file && about.st_dev == ticket->file_system &&
           about.st_size == (off_t)sizeof(page);
}

/* Map the ticket's file. The descriptor means that file until its maker closes it and never again; so if it means the
 * file after the mapping was made, that file was mapped. */
static weft_status map_ticket(const wefti_os_ticket *ticket, page **out)
{
    if (!is_the_file(ticket->descriptor, ticket)) {
        return WEFT_ERR_PEER;
    }
    page *seen = map_page(ticket->descriptor);
    if (seen == NULL) {
        return errno == EBADF ? WEFT_ERR_PEER : lacking("map");
    }
    if (!is_the_file(ticket->descriptor, ticket)) {
        munmap(seen, sizeof *seen);
        return WEFT_ERR_PEER;
    }
    *out = seen;
    return WEFT_OK;
}

/* Add one to the number of PEs that use the record. Returns 0 when all have left. */
static int count_in(page *seen)
{
    uint32_t inside = __atomic_load_n(&seen->inside, __ATOMIC_RELAXED);
    while (inside != 0 &&
           !__atomic_compare_exchange_n(&seen->inside, &inside, inside + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
    return inside != 0;
}

weft_status wefti_os_record_join(const wefti_os_ticket *ticket, void **record)
{
    page *seen = NULL;
    WEFT_TRY(map_ticket(ticket, &seen));
    int is_in = seen->address == ticket->address && count_in(seen);
    munmap(seen, sizeof *seen);
    if (!is_in) {
        return WEFT_ERR_PEER;
    }
    *record = ((page *)(uintptr_t)ticket->address)->record;
    return WEFT_OK;
}

int wefti_os_record_leave(void *record)
{
    return __atomic_sub_fetch(&page_of(record)->inside, 1, __ATOMIC_ACQ_REL) == 0;
}

void wefti_os_record_free(void *record)
{
    munmap(page_of(record), sizeof(page));
}

/* faces/shmem/pages.c: see pages.h. The system says in /proc/self/pagemap which pages exist; where it does not say, all
 * are read, which costs time but no memory. */
#include "faces/shmem/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define ENTRIES 2048 /* of the page map, read at once */
#define EXISTS ((uint64_t)3 << 62) /* in memory, or in swap */

/* Pages that will be written together. */
typedef struct run {
    int descriptor;
    uint64_t offset; /* of the page at `base` */
    uintptr_t base;
    uintptr_t begin;
    uintptr_t end; /* begin: none */
} run;

/* Whole pages, whatever lies in them: AddressSanitizer, which knows what lies between variables, does not look here. */
#define WHOLE_PAGES __attribute__((no_sanitize("address")))

static ssize_t write_pages(int descriptor, uintptr_t begin, size_t bytes, off_t at)
{
    return (ssize_t)syscall(SYS_pwrite64, descriptor, begin, bytes, at);
}

static ssize_t read_pages(int descriptor, uintptr_t begin, size_t bytes, off_t at)
{
    return (ssize_t)syscall(SYS_pread64, descriptor, begin, bytes, at);
}

static int write_run(run *r)
{
    while (r->begin < r->end) {
        ssize_t wrote =
            write_pages(r->descriptor, r->begin, r->end - r->begin, (off_t)(r->offset + (r->begin - r->base)));
        if (wrote < 0 && errno != EINTR) {
            return -1;
        }
        r->begin += wrote > 0 ? (uintptr_t)wrote : 0;
    }
    return 0;
}

WHOLE_PAGES static int is_zero(uintptr_t page, size_t page_bytes)
{
    const uint64_t *words = (const uint64_t *)page;
    for (size_t i = 0; i < page_bytes / sizeof *words; i++) {
        if (words[i] != 0) {
            return 0;
        }
    }
    return 1;
}

static int take_page(run *r, uintptr_t page, size_t page_bytes)
{
    if (is_zero(page, page_bytes)) {
        return 0;
    }
    if (page != r->end) {
        if (write_run(r) != 0) {
            return -1;
        }
        r->begin = page;
    }
    r->end = page + page_bytes;
    return 0;
}

/* What the page map says of the pages from `begin` on; all exist where it says nothing. */
static size_t look(int map, uintptr_t begin, uintptr_t end, size_t page_bytes, uint64_t entries[ENTRIES])
{
    size_t count = (end - begin) / page_bytes;
    count = count < ENTRIES ? count : ENTRIES;
    const size_t bytes = count * sizeof *entries;
    if (map < 0 || pread(map, entries, bytes, (off_t)(begin / page_bytes * sizeof *entries)) != (ssize_t)bytes) {
        for (size_t i = 0; i < count; i++) {
            entries[i] = EXISTS;
        }
    }
    return count;
}

static int take_private(run *r, int map, uintptr_t begin, uintptr_t end, size_t page_bytes)
{
    uint64_t entries[ENTRIES];
    while (begin < end) {
        const size_t count = look(map, begin, end, page_bytes, entries);
        for (size_t i = 0; i < count; i++) {
            if ((entries[i] & EXISTS) != 0 && take_page(r, begin + i * page_bytes, page_bytes) != 0) {
                return -1;
            }
        }
        begin += count * page_bytes;
    }
    return 0;
}

int wefti_pages_store(uintptr_t begin, uintptr_t private_from, uintptr_t end, int descriptor, uint64_t offset)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    run r = {.descriptor = descriptor, .offset = offset, .base = begin};
    for (uintptr_t page = begin; page < private_from; page += page_bytes) {
        if (take_page(&r, page, page_bytes) != 0) {
            return -1;
        }
    }
    int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    int result = take_private(&r, map, private_from, end, page_bytes);
    if (map >= 0) {
        (void)close(map);
    }
    return result != 0 ? result : write_run(&r);
}

static int read_part(uintptr_t begin, uintptr_t end, int descriptor, off_t at)
{
    while (begin < end) {
        ssize_t got = read_pages(descriptor, begin, end - begin, at);
        if (got == 0) {
            errno = EIO;
        }
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return -1;
        }
        begin += got > 0 ? (uintptr_t)got : 0;
        at += got > 0 ? got : 0;
    }
    return 0;
}

int wefti_pages_load(uintptr_t begin, uintptr_t end, int descriptor, uint64_t offset)
{
    const off_t first = (off_t)offset;
    const off_t last = first + (off_t)(end - begin);
    off_t at = first;
    while (at < last) {
        off_t data = lseek(descriptor, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO) {
            return 0; /* only holes are left */
        }
        off_t hole = data < 0 ? -1 : lseek(descriptor, data, SEEK_HOLE);
        if (hole < 0) {
            return -1;
        }
        if (data >= last) {
            return 0;
        }
        hole = hole < last ? hole : last;
        if (read_part(begin + (uintptr_t)(data - first), begin + (uintptr_t)(hole - first), descriptor, data) != 0) {
            return -1;
        }
        at = hole;
    }
    return 0;
}

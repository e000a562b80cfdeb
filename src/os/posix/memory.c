/* os/posix/memory.c: sparse shared memory in an anonymous file.
 *
 * The file's size is sealed, so that no process can cut it and turn another's access into a signal. Pages are reserved
 * by fallocate, which reports the lack of memory as a status; touching a page that was not reserved may raise one. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/held_signals.h"
#include "os/os.h"
#include "os/posix/descriptor.h"

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* An interrupted fallocate undoes all of its work: pieces let a process with a periodic signal get on. */
#define RESERVE_PIECE_BYTES (UINT64_C(4) << 20)
/* How many pieces are reserved between two checks of how much memory is left, since others reserve at the same time.
 * The check is needed because the system ends processes rather than let fallocate fail. */
#define RESERVE_LOOK 4

/* Map the file at a multiple of WEFTI_OS_MEMORY_ALIGNMENT, inside a range of addresses that is reserved first. */
static void *map_aligned(int descriptor, size_t bytes)
{
    const size_t page = wefti_os_page_bytes();
    const size_t rounded = (bytes + page - 1) / page * page;
    size_t room_bytes;
    if (wefti_fault("mmap", ENOMEM) || rounded < bytes ||
        __builtin_add_overflow(rounded, WEFTI_OS_MEMORY_ALIGNMENT, &room_bytes)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    unsigned char *room = mmap(NULL, room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
        return MAP_FAILED;
    }
    size_t before = -(size_t)(uintptr_t)room % WEFTI_OS_MEMORY_ALIGNMENT;
    size_t after = WEFTI_OS_MEMORY_ALIGNMENT - before;
    void *base =
        mmap(room + before, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, descriptor, 0);
    if (base == MAP_FAILED) {
        int error = errno;
        munmap(room, room_bytes);
        errno = error;
        return MAP_FAILED;
    }
    if (before > 0) {
        munmap(room, before);
    }
    munmap(room + before + rounded, after);
    return base;
}

/* Whether the descriptor still means the file. A program may have closed it, as one that becomes a daemon closes all;
 * by then the number may mean a file of the program, which must not be resized, locked or closed here. */
static int has_file(const wefti_os_memory *memory)
{
    struct stat about;
    return memory->descriptor >= 0 && fstat(memory->descriptor, &about) == 0 && about.st_ino == memory->file &&
           about.st_dev == memory->file_system;
}

static weft_status map_file(wefti_os_memory *memory, int descriptor, size_t bytes)
{
    struct stat about;
    if (wefti_fault("fstat", EIO) || fstat(descriptor, &about) != 0) {
        return wefti_error(
            WEFT_ERR_SYSTEM,
            "cannot look at a file in memory (fstat): %s; a program must not close descriptors that it has not opened",
            strerror(errno));
    }
    void *base = map_aligned(descriptor, bytes);
    if (base == MAP_FAILED) {
        return wefti_error(WEFT_ERR_MEMORY,
                           "cannot map %zu bytes of shared address space: %s; lower WEFT_HEAP_MAX or raise ulimit -v",
                           bytes, strerror(errno));
    }
    (void)madvise(base, bytes, MADV_DONTDUMP); /* only keeps core files small */
    memory->descriptor = descriptor;
    memory->base = base;
    memory->bytes = bytes;
    memory->file = about.st_ino;
    memory->file_system = about.st_dev;
    return WEFT_OK;
}

/* Make an empty file in memory. Returns the descriptor, or -1 with errno set. */
static int open_file(void)
{
    return wefti_fault("memfd_create", EMFILE)
               ? -1
               : wefti_os_descriptor_beyond_standard(memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING));
}

/* Give the file its size, for good. Returns 0, or -1 with errno set. */
static int fix_size(int descriptor, size_t bytes)
{
    const wefti_held_signals held = wefti_signals_hold();
    int result = wefti_fault("ftruncate", EINVAL) ? -1 : ftruncate(descriptor, (off_t)bytes);
    wefti_signals_release(&held);
    if (result != 0) {
        return -1;
    }
    if (wefti_fault("fcntl", EINVAL) || fcntl(descriptor, F_ADD_SEALS, SIZE_SEALS | F_SEAL_SEAL) != 0) {
        return -1;
    }
    return 0;
}

weft_status wefti_os_memory_create(wefti_os_memory *memory, size_t bytes)
{
    if (bytes == 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "shared memory of 0 bytes was asked for");
    }
    int descriptor = open_file();
    if (descriptor < 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot make a file in memory: %s; look at ulimit -n", strerror(errno));
    }
    weft_status status;
    if (fix_size(descriptor, bytes) != 0) {
        status = wefti_error(WEFT_ERR_SYSTEM, "cannot give a file in memory its size of %zu bytes: %s%s", bytes,
                             strerror(errno), errno == EFBIG ? "; raise ulimit -f or lower WEFT_HEAP_MAX" : "");
        goto close_descriptor;
    }
    status = map_file(memory, descriptor, bytes);
    if (status != WEFT_OK) {
        goto close_descriptor;
    }
    return WEFT_OK;

close_descriptor:
    close(descriptor);
    return status;
}

/* Check that a received file has this size, and that the size is sealed. */
static weft_status check_file(int descriptor, size_t bytes)
{
    struct stat about;
    if (wefti_fault("fstat", EIO) || fstat(descriptor, &about) != 0) {
        return wefti_error(WEFT_ERR_SYSTEM,
                           "cannot look at a received descriptor (fstat): %s; a program must not close descriptors "
                           "that it has not opened",
                           strerror(errno));
    }
    if ((uint64_t)about.st_size != bytes) {
        return wefti_error(WEFT_ERR_MISMATCH, "received shared memory of %jd bytes where %zu were expected",
                           (intmax_t)about.st_size, bytes);
    }
    int seals = wefti_fault("fcntl", EINVAL) ? -1 : fcntl(descriptor, F_GET_SEALS);
    if (seals < 0 && errno != EINVAL) { /* EINVAL: the file cannot be sealed */
        return wefti_error(WEFT_ERR_SYSTEM,
                           "cannot see whether received shared memory is sealed (fcntl): %s; a program must not close "
                           "descriptors that it has not opened",
                           strerror(errno));
    }
    if (seals < 0 || (seals & SIZE_SEALS) != SIZE_SEALS) {
        return wefti_error(WEFT_ERR_MISMATCH, "received shared memory whose size is not sealed");
    }
    return WEFT_OK;
}

weft_status wefti_os_memory_adopt(wefti_os_memory *memory, int descriptor, size_t bytes)
{
    weft_status status = check_file(descriptor, bytes);
    if (status == WEFT_OK) {
        status = map_file(memory, descriptor, bytes);
    }
    if (status != WEFT_OK) {
        close(descriptor);
    }
    return status;
}

/* Whether a page-aligned part lies inside the memory. */
static int is_part(const wefti_os_memory *memory, size_t offset, size_t bytes)
{
    size_t page_mask = wefti_os_page_bytes() - 1;
    return (offset & page_mask) == 0 && (bytes & page_mask) == 0 && offset <= memory->bytes &&
           bytes <= memory->bytes - offset;
}

/* fallocate through interruptions. Returns 0, or -1 with errno set. */
static int allocate_part(int descriptor, int mode, size_t offset, size_t bytes)
{
    const wefti_held_signals held = wefti_signals_hold();
    int result;
    do {
        result = wefti_fault("fallocate", ENOSPC) ? -1 : fallocate(descriptor, mode, (off_t)offset, (off_t)bytes);
    } while (result != 0 && errno == EINTR);
    wefti_signals_release(&held);
    return result;
}

static weft_status refuse_reserve(size_t bytes)
{
    if (errno == ENOSPC || errno == ENOMEM) {
        return wefti_error(WEFT_ERR_MEMORY,
                           "this machine has no memory left for %zu bytes of the symmetric heap; allocate less or free "
                           "memory",
                           bytes);
    }
    return wefti_error(WEFT_ERR_SYSTEM, "cannot reserve %zu bytes of shared memory: %s%s", bytes, strerror(errno),
                       errno == EFBIG ? "; raise ulimit -f" : "");
}

/* Whether the rest of a part can still be reserved. */
static weft_status expect_rest(size_t rest)
{
    uint64_t available = wefti_os_memory_available_bytes();
    return rest <= available ? WEFT_OK
                             : wefti_error(WEFT_ERR_MEMORY,
                                           "%zu bytes more of the symmetric heap were asked for and this machine has "
                                           "%" PRIu64 " bytes of memory left; allocate less or free memory",
                                           rest, available);
}

weft_status wefti_os_memory_reserve(wefti_os_memory *memory, size_t offset, size_t bytes)
{
    if (!has_file(memory)) {
        return wefti_error(WEFT_ERR_STATE,
                           "shared memory cannot be reserved after its descriptor was closed; a program with worlds "
                           "must not close descriptors that it did not open");
    }
    if (!is_part(memory, offset, bytes)) {
        return wefti_error(WEFT_ERR_RANGE, "bytes %zu to %zu are no whole pages of a shared memory of %zu bytes",
                           offset, offset + bytes, memory->bytes);
    }
    unsigned pieces = 0;
    for (size_t done = 0; done < bytes; pieces++) {
        const size_t most = RESERVE_PIECE_BYTES - (offset + done) % WEFTI_OS_HUGE_PAGE; /* ends no huge page early */
        size_t piece = bytes - done < most ? bytes - done : most;
        weft_status status =
            bytes > RESERVE_PIECE_BYTES && pieces % RESERVE_LOOK == 0 ? expect_rest(bytes - done) : WEFT_OK;
        if (status == WEFT_OK) {
            wefti_os_memory_populate(memory, offset + done, piece);
        }
        if (status == WEFT_OK && allocate_part(memory->descriptor, 0, offset + done, piece) != 0) {
            status = refuse_reserve(bytes);
        }
        if (status != WEFT_OK) {
            wefti_os_memory_release(memory, offset, done);
            return status;
        }
        done += piece;
    }
    return WEFT_OK;
}

void wefti_os_memory_release(wefti_os_memory *memory, size_t offset, size_t bytes)
{
    if (bytes > 0 && is_part(memory, offset, bytes) && has_file(memory)) {
        /* When this fails the memory stays in use, and the next reserve finds it reserved. */
        (void)allocate_part(memory->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
    }
}

/* A signature is a record lock on one byte, which belongs to a process whatever descriptor it was made by, and ends
 * with the process, or when it closes the file: that has one descriptor only. */
static int lock_byte(const wefti_os_memory *memory, int command, short type, uint64_t number, short *seen)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)number, .l_len = 1};
    int result = has_file(memory) ? fcntl(memory->descriptor, command, &lock) : -1;
    *seen = lock.l_type;
    return result;
}

int wefti_os_memory_sign(wefti_os_memory *memory, uint64_t number)
{
    short seen;
    return lock_byte(memory, F_SETLK, F_WRLCK, number, &seen) == 0;
}

int wefti_os_memory_is_signed(const wefti_os_memory *memory, uint64_t number)
{
    short seen;
    return lock_byte(memory, F_GETLK, F_WRLCK, number, &seen) != 0 || seen != F_UNLCK;
}

void wefti_os_memory_close(wefti_os_memory *memory)
{
    if (memory->base != NULL) {
        if (has_file(memory)) {
            close(memory->descriptor);
        }
        memory->descriptor = -1;
    }
}

void wefti_os_memory_fini(wefti_os_memory *memory)
{
    if (memory->base == NULL) {
        return;
    }
    wefti_os_memory_close(memory);
    munmap(memory->base, memory->bytes);
    *memory = (wefti_os_memory){.descriptor = -1};
}

/* faces/shmem/static_data.c: see static_data.h.
 *
 * The data are copied into the sparse part of this PE's heap, and then that part of the file is mapped where they were:
 * one step of the system for each piece, so that no thread ever finds nothing there. */
#include "faces/shmem/static_data.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "faces/shmem/executable.h"
#include "faces/shmem/hold.h"
#include "faces/shmem/pages.h"

wefti_static_data wefti_static;

/* What is mapped: nothing while wefti_static.bytes is 0. */
static wefti_executable executable;
static weft_sparse sparse;

static char cause[512];

static uintptr_t first_address(const wefti_executable *e)
{
    return e->count == 0 ? 0 : e->pieces[0].begin;
}

static size_t span_bytes(const wefti_executable *e)
{
    return e->count == 0 ? 0 : e->pieces[e->count - 1].end - first_address(e);
}

void wefti_static_configure(weft_world_config *config)
{
    wefti_executable found;
    wefti_executable_read(&found);
    config->sparse_bytes = span_bytes(&found);
    memcpy(config->program, found.id, sizeof config->program);
}

static const char *explain(const char *what)
{
    (void)snprintf(cause, sizeof cause, "cannot make the executable's global and static variables %s: %s", what,
                   strerror(errno));
    return cause;
}

static uint64_t file_offset(const wefti_executable *e, const weft_sparse *s, uintptr_t address)
{
    return s->offset + (address - first_address(e));
}

/* ---- into the heap ---- */

static const char *check(const wefti_executable *e)
{
    if (e->is_static) {
        return "this executable is linked statically, with the C library's own data among its variables; link it "
               "without "
               "-static";
    }
    if (e->has_more) {
        return "this executable has its variables in too many places; link it without a script of its own";
    }
    return NULL;
}

static int store_all(const wefti_executable *e, const weft_sparse *s)
{
    for (size_t i = 0; i < e->count; i++) {
        const wefti_executable_piece *piece = &e->pieces[i];
        if (wefti_pages_store(piece->begin, piece->file_end, piece->end, s->descriptor,
                              file_offset(e, s, piece->begin)) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Where a later piece cannot be mapped, the earlier ones stay mapped: their contents are the same. */
static int map_all(const wefti_executable *e, const weft_sparse *s)
{
    for (size_t i = 0; i < e->count; i++) {
        const wefti_executable_piece *piece = &e->pieces[i];
        if (mmap((void *)piece->begin, piece->end - piece->begin, piece->protection, MAP_SHARED | MAP_FIXED,
                 s->descriptor, (off_t)file_offset(e, s, piece->begin)) == MAP_FAILED) {
            return -1;
        }
    }
    return 0;
}

const char *wefti_static_map(weft_world *world)
{
    wefti_executable found;
    weft_sparse place;
    wefti_hold hold;
    wefti_executable_read(&found);
    const char *wrong = check(&found);
    if (wrong != NULL || found.count == 0) {
        return wrong;
    }
    if (weft_world_sparse(world, &place) != WEFT_OK || place.bytes < span_bytes(&found)) {
        return "the world has no room for the executable's variables";
    }
    if (wefti_hold_begin(&hold, &found) != 0) {
        return explain("symmetric");
    }
    const int failed = store_all(&found, &place) != 0 || map_all(&found, &place) != 0;
    const int error = errno;
    wefti_hold_end(&hold);
    if (failed) {
        errno = error;
        return explain("symmetric");
    }
    executable = found;
    sparse = place;
    wefti_static.begin = first_address(&found);
    wefti_static.delta = (intptr_t)((uintptr_t)place.address - first_address(&found));
    wefti_static.bytes = span_bytes(&found);
    return NULL;
}

/* ---- back out of it ---- */

/* A copy of each piece, in private pages elsewhere. */
typedef struct private_copy {
    int is_taken;
    int error; /* whether it could not be made */
    void *pages[WEFTI_EXECUTABLE_PIECES_MAX];
} private_copy;

static size_t piece_bytes(size_t i)
{
    return executable.pieces[i].end - executable.pieces[i].begin;
}

static int reserve_copy(private_copy *copy)
{
    for (size_t i = 0; i < executable.count; i++) {
        copy->pages[i] = mmap(NULL, piece_bytes(i), executable.pieces[i].protection,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (copy->pages[i] == MAP_FAILED) {
            copy->pages[i] = NULL;
            return -1;
        }
    }
    return 0;
}

static int fill_copy(const private_copy *copy)
{
    for (size_t i = 0; i < executable.count; i++) {
        const uintptr_t begin = (uintptr_t)copy->pages[i];
        if (wefti_pages_load(begin, begin + piece_bytes(i), sparse.descriptor,
                             file_offset(&executable, &sparse, executable.pieces[i].begin)) != 0) {
            return -1;
        }
    }
    return 0;
}

static void drop_copy(private_copy *copy)
{
    for (size_t i = 0; i < executable.count; i++) {
        if (copy->pages[i] != NULL) {
            (void)munmap(copy->pages[i], piece_bytes(i));
            copy->pages[i] = NULL;
        }
    }
}

/* Exchange the shared pages for the copy's. `e` is not among them, where the library is part of the executable. */
static int move_copy(const wefti_executable *e, private_copy *copy)
{
    for (size_t i = 0; i < e->count; i++) {
        const wefti_executable_piece *piece = &e->pieces[i];
        const size_t bytes = piece->end - piece->begin;
        if (mremap(copy->pages[i], bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)piece->begin) == MAP_FAILED) {
            return -1;
        }
        copy->pages[i] = NULL;
    }
    return 0;
}

static void forget(void)
{
    memset(&wefti_static, 0, sizeof wefti_static);
}

const char *wefti_static_unmap(void)
{
    private_copy copy = {0};
    wefti_hold hold;
    const wefti_executable mapped = executable;
    if (wefti_static.bytes == 0) {
        return NULL;
    }
    int failed = reserve_copy(&copy) != 0;
    if (!failed) {
        failed = wefti_hold_begin(&hold, &mapped) != 0;
        if (!failed) {
            failed = fill_copy(&copy) != 0 || move_copy(&mapped, &copy) != 0;
            const int error = errno;
            wefti_hold_end(&hold);
            errno = error;
        }
    }
    if (failed) {
        const char *text = explain("private again");
        drop_copy(&copy);
        return text;
    }
    forget();
    return NULL;
}

/* ---- forks ----
 *
 * A mapping of a file is shared with a forked child, who would write its parent's variables. So the parent takes a copy
 * before it forks, and the child exchanges its pages for those before anybody else can write there: its handler is the
 * first, since it was registered before the program began, and the parent's the last. Children by vfork and posix_spawn
 * share all memory with their parent until they exec, as ever. */

static _Thread_local private_copy of_child;

static void before_fork(void)
{
    of_child.is_taken = wefti_static.bytes != 0;
    if (of_child.is_taken) {
        of_child.error = reserve_copy(&of_child) != 0 || fill_copy(&of_child) != 0 ? errno : 0;
    }
}

static void in_parent(void)
{
    if (of_child.is_taken) {
        of_child.is_taken = 0;
        drop_copy(&of_child);
    }
}

static void in_child(void)
{
    static const char text[] =
        "shmem: a process forked by a PE ends: there is no memory for a copy of its global and static variables\n";
    const wefti_executable mapped = executable;
    if (!of_child.is_taken) {
        return;
    }
    of_child.is_taken = 0;
    if (of_child.error != 0 || move_copy(&mapped, &of_child) != 0) {
        ssize_t wrote = write(STDERR_FILENO, text, sizeof text - 1);
        (void)wrote;
        _exit(127);
    }
    forget();
}

__attribute__((constructor(101))) static void register_for_forks(void)
{
    (void)pthread_atfork(before_fork, in_parent, in_child);
}

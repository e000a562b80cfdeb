/* faces/shmem/hold.c: see hold.h.
 *
 * Other threads are held off by taking the permission to write from the pages: who writes gets a signal, whose handler
 * gives way and returns, which repeats the write, until it goes through. Nothing tells the handler that it may: pages
 * that are mapped anew may be written. So there is no moment between two words at which it could be wrong. */
#include "faces/shmem/hold.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define DIRECTORY_LINKS 2 /* of /proc/self/task, beside one a thread */

static wefti_executable watched; /* written before the first signal can come */
static struct sigaction before;
static int is_watching;

static int is_watched(const void *address)
{
    for (size_t i = 0; i < watched.count; i++) {
        if ((uintptr_t)address >= watched.pieces[i].begin && (uintptr_t)address < watched.pieces[i].end) {
            return 1;
        }
    }
    return 0;
}

/* This handler is never removed, since a thread may have got its signal and not yet have run it when the hold is over.
 * A fault at other addresses is left to the handler from before: that is restored, and the access faults again. */
static void at_fault(int number, siginfo_t *about, void *context)
{
    (void)context;
    if (about->si_code == SEGV_ACCERR && is_watched(about->si_addr)) {
        (void)sched_yield();
        return;
    }
    (void)sigaction(number, &before, NULL);
    if (about->si_code <= 0) { /* somebody sent it: it does not happen again by itself */
        (void)raise(number);
    }
}

static int has_other_threads(void)
{
    struct stat about;
    return stat("/proc/self/task", &about) != 0 || about.st_nlink != DIRECTORY_LINKS + 1;
}

static int watch(const wefti_executable *executable)
{
    struct sigaction now;
    watched = *executable;
    if (is_watching && sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_sigaction == at_fault) {
        return 0;
    }
    struct sigaction action = {.sa_sigaction = at_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    (void)sigemptyset(&action.sa_mask);
    is_watching = 1;
    return sigaction(SIGSEGV, &action, &before);
}

static int protect(const wefti_executable *executable, int is_writable)
{
    for (size_t i = 0; i < executable->count; i++) {
        const wefti_executable_piece *piece = &executable->pieces[i];
        const int protection = is_writable ? piece->protection : piece->protection & ~PROT_WRITE;
        if (mprotect((void *)piece->begin, piece->end - piece->begin, protection) != 0) {
            return -1;
        }
    }
    return 0;
}

int wefti_hold_begin(wefti_hold *hold, const wefti_executable *executable)
{
    sigset_t all;
    hold->executable = executable;
    hold->is_protected = has_other_threads();
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGSEGV);
    (void)pthread_sigmask(SIG_SETMASK, &all, &hold->mask);
    if (hold->is_protected && (watch(executable) != 0 || protect(executable, 0) != 0)) {
        const int error = errno;
        wefti_hold_end(hold);
        errno = error;
        return -1;
    }
    return 0;
}

void wefti_hold_end(const wefti_hold *hold)
{
    if (hold->is_protected) {
        (void)protect(hold->executable, 1);
    }
    (void)pthread_sigmask(SIG_SETMASK, &hold->mask, NULL);
}

/* Goal: `ucx` keeps the contract of transport/transport.h, and reaches every PE; what the library would take for itself
 * of the process stays as it was.
 * Method: the dispositions of all signals and the first bytes of the calls that UCX can redirect are compared before
 * and after; then the conformance suite, over the network of this machine. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "transport/conformance.h"

#define SIGNALS 65
#define CODE_BYTES 16

static void handler(int number)
{
    (void)number;
}

typedef struct process {
    struct sigaction signals[SIGNALS];
    unsigned char code[4][CODE_BYTES];
} process;

static void look(process *at)
{
    static const char *const calls[] = {"mmap", "munmap", "sbrk", "madvise"};
    memset(at, 0, sizeof *at);
    for (int number = 1; number < SIGNALS; number++) {
        (void)sigaction(number, NULL, &at->signals[number]);
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const void *code = dlsym(RTLD_DEFAULT, calls[i]);
        memcpy(at->code[i], code, CODE_BYTES);
    }
}

static int differ(const process *before, const process *after)
{
    int differences = 0;
    for (int number = 1; number < SIGNALS; number++) {
        if (before->signals[number].sa_handler != after->signals[number].sa_handler) {
            (void)fprintf(stderr, "signal %d is handled otherwise than before\n", number);
            differences++;
        }
    }
    if (memcmp(before->code, after->code, sizeof before->code) != 0) {
        (void)fprintf(stderr, "calls that map memory have other code than before\n");
        differences++;
    }
    return differences;
}

int main(void)
{
    static process before;
    static process after;
    (void)signal(SIGBUS, handler); /* the program's own, beside the default of the others */
    look(&before);
    const int failed = conformance_run(&wefti_transport_ucx, CONFORMANCE_REACHES_ALL);
    look(&after);
    return failed + differ(&before, &after);
}

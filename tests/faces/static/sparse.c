/* Gigabytes that are not touched cost nothing: not at shmem_init, in a put to one place of them, in a fork, at
 * shmem_finalize. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faces/static/check.h"

#define BYTES ((size_t)4 << 30)
#define FEW ((long)96 << 20) /* bytes; there are four thousand and more of data */

static volatile char huge[BYTES];
static int after = 3;

/* Memory of this process, the shared included; with what of the heaps' file is in memory. */
static long resident(void)
{
    char line[256];
    long kilobytes = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        (void)sscanf(line, "VmRSS: %ld", &kilobytes);
    }
    if (status != NULL) {
        (void)fclose(status);
    }
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}

static long machine_shared(void)
{
    char line[256];
    long kilobytes = -1;
    FILE *memory = fopen("/proc/meminfo", "r");
    while (memory != NULL && fgets(line, sizeof line, memory) != NULL) {
        (void)sscanf(line, "Shmem: %ld", &kilobytes);
    }
    if (memory != NULL) {
        (void)fclose(memory);
    }
    return kilobytes * 1024;
}

static void check_in_child(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        int is_right = huge[BYTES / 2] == 21 && huge[BYTES - 1] == 22 && resident() < FEW;
        huge[BYTES / 2] = 1;
        _exit(is_right ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(huge[BYTES / 2] == 21);
}

int main(void)
{
    const long shared = machine_shared();
    huge[BYTES / 2] = 21;
    shmem_init();
    const int me = shmem_my_pe();
    const int next = (me + 1) % shmem_n_pes();
    CHECK(huge[BYTES / 2] == 21 && huge[0] == 0 && huge[BYTES - 1] == 0);
    CHECK(resident() >= 0 && resident() < FEW);
    shmem_barrier_all();
    shmem_char_p((char *)&huge[BYTES - 1], 22, next);
    shmem_int_atomic_add(&after, 4, next);
    shmem_barrier_all();
    CHECK(huge[BYTES - 1] == 22 && after == 7);
    char *block = shmem_malloc((size_t)8 << 20);
    CHECK(block != NULL);
    memset(block, 1, (size_t)8 << 20);
    check_in_child();
    CHECK(resident() < FEW && machine_shared() - shared < 4 * FEW);
    shmem_free(block);
    shmem_finalize();
    return huge[BYTES / 2] == 21 && huge[BYTES - 1] == 22 && after == 7 && resident() < FEW ? 0 : 1;
}

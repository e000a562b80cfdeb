/* os/posix/placement.c: on which NUMA node memory lies, and in pages of which size. Shared memory is bound before its
 * pages exist: each page is placed by the file's policy, whichever process touches it first. */
#include "os/posix/placement.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"
#include "os/posix/file.h"

#define NUMA_MAX 1024
#define LONG_BITS (8 * (int)sizeof(unsigned long))
#define LIST_BYTES 1024

/* ---- the system's calls ---- */

enum { POLICY_DEFAULT, POLICY_PREFERRED }; /* of linux/mempolicy.h */

static void fill_mask(unsigned long mask[NUMA_MAX / LONG_BITS], int numa)
{
    memset(mask, 0, NUMA_MAX / 8);
    mask[numa / LONG_BITS] |= 1ul << numa % LONG_BITS;
}

static int bind_part(void *address, size_t bytes, int numa)
{
    unsigned long mask[NUMA_MAX / LONG_BITS];
    fill_mask(mask, numa);
    return (int)syscall(SYS_mbind, address, bytes, POLICY_PREFERRED, mask, (unsigned long)NUMA_MAX, 0u);
}

static int prefer(int numa)
{
    unsigned long mask[NUMA_MAX / LONG_BITS];
    if (numa < 0) {
        return (int)syscall(SYS_set_mempolicy, POLICY_DEFAULT, NULL, 0ul);
    }
    fill_mask(mask, numa);
    return (int)syscall(SYS_set_mempolicy, POLICY_PREFERRED, mask, (unsigned long)NUMA_MAX);
}

static int has_policy(void)
{
    int policy = POLICY_DEFAULT;
    return syscall(SYS_get_mempolicy, &policy, NULL, 0ul, NULL, 0ul) == 0 && policy != POLICY_DEFAULT;
}

static int advise(void *address, size_t bytes, int advice)
{
    return madvise(address, bytes, advice);
}

const wefti_os_placement_calls wefti_os_placement_system = {wefti_os_file_read, bind_part, prefer, has_policy, advise};
const wefti_os_placement_calls *wefti_os_placement = &wefti_os_placement_system;

/* ---- NUMA nodes ---- */

/* Calls `each` for every number of a list as 0-3,8 until it returns 0. */
static void go_through(const char *list, int (*each)(void *context, int number), void *context)
{
    char *end;
    int goes_on = 1;
    for (const char *at = list; goes_on; at = end + 1) {
        const long first = strtol(at, &end, 10);
        if (end == at) {
            return;
        }
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long number = first; goes_on && number <= last && number < CPU_SETSIZE; number++) {
            goes_on = each(context, (int)number);
        }
        goes_on = goes_on && *end == ',';
    }
}

typedef struct search {
    cpu_set_t allowed;
    int runs_here; /* whether this thread may run on the node that is looked at */
    int found; /* -1: none; -2: several */
} search;

static int look_at_processor(void *context, int number)
{
    search *s = context;
    s->runs_here = CPU_ISSET(number, &s->allowed) != 0;
    return !s->runs_here;
}

static int look_at_node(void *context, int number)
{
    search *s = context;
    char path[64];
    char list[LIST_BYTES];
    (void)snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", number);
    s->runs_here = 0;
    if (wefti_os_placement->read_text(path, list, sizeof list) > 0) {
        go_through(list, look_at_processor, s);
    }
    if (s->runs_here) {
        s->found = s->found == -1 ? number : -2;
    }
    return s->found != -2;
}

static int read_nodes(char list[LIST_BYTES])
{
    return wefti_os_placement->read_text("/sys/devices/system/node/online", list, LIST_BYTES) > 0;
}

int wefti_os_numa_here(void)
{
    char list[LIST_BYTES];
    search s = {.found = -1};
    if (!read_nodes(list) || sched_getaffinity(0, sizeof s.allowed, &s.allowed) != 0) {
        return -1;
    }
    go_through(list, look_at_node, &s);
    return s.found < 0 ? -1 : s.found;
}

int wefti_os_numa_is_one(void)
{
    char list[LIST_BYTES];
    return !read_nodes(list) || strpbrk(list, ",-") == NULL;
}

int wefti_os_numa_of_pci(const char *pci)
{
    char path[96];
    char text[16];
    char lower[32] = ""; /* as Linux writes addresses; CUDA may have capitals */
    for (size_t i = 0; i + 1 < sizeof lower && pci[i] != '\0'; i++) {
        lower[i] = (char)tolower((unsigned char)pci[i]);
    }
    (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", lower);
    return wefti_os_placement->read_text(path, text, sizeof text) > 0 ? atoi(text) : -1;
}

int wefti_os_numa_prefer(int numa)
{
    return !(numa >= 0 && wefti_os_placement->has_policy()) && wefti_os_placement->prefer(numa) == 0;
}

/* ---- huge pages ---- */

/* The setting of huge pages: that word of the file which is in brackets. */
static wefti_os_huge read_huge(void)
{
    char text[128];
    if (wefti_os_placement->read_text("/sys/kernel/mm/transparent_hugepage/shmem_enabled", text, sizeof text) <= 0) {
        return WEFTI_OS_HUGE_NEVER;
    }
    return strstr(text, "[never]") != NULL || strstr(text, "[deny]") != NULL ? WEFTI_OS_HUGE_NEVER
           : strstr(text, "[advise]") != NULL                                ? WEFTI_OS_HUGE_ADVISED
                                                                             : WEFTI_OS_HUGE_ALWAYS;
}

/* The whole huge pages of a part. */
static unsigned char *huge_part(const wefti_os_memory *memory, size_t offset, size_t bytes, size_t *huge_bytes)
{
    const size_t mask = WEFTI_OS_HUGE_PAGE - 1;
    const size_t first = (offset + mask) & ~mask;
    const size_t end = (offset + bytes) & ~mask;
    *huge_bytes = first < end ? end - first : 0;
    return memory->base + first;
}

void wefti_os_memory_populate(const wefti_os_memory *memory, size_t offset, size_t bytes)
{
    size_t huge_bytes;
    unsigned char *at = huge_part(memory, offset, bytes, &huge_bytes);
    if (__atomic_load_n(&memory->has_advice, __ATOMIC_RELAXED) && huge_bytes > 0) {
#ifdef MADV_POPULATE_WRITE
        (void)wefti_os_placement->advise(at, huge_bytes, MADV_POPULATE_WRITE); /* fallocate reports a lack of memory */
#else
        (void)at;
#endif
    }
}

wefti_os_placement_made wefti_os_memory_place(wefti_os_memory *memory, size_t offset, size_t bytes)
{
    wefti_os_placement_made made = {.numa = WEFTI_OS_NUMA_ONE, .huge = read_huge()};
    size_t huge_bytes;
    unsigned char *at = huge_part(memory, offset, bytes, &huge_bytes);
    if (!wefti_os_numa_is_one() && wefti_os_placement->has_policy()) {
        made.numa = WEFTI_OS_NUMA_POLICY;
    } else if (!wefti_os_numa_is_one()) {
        const int numa = wefti_os_numa_here();
        made.numa = numa < 0 || numa >= NUMA_MAX                                        ? WEFTI_OS_NUMA_ANY
                    : wefti_os_placement->bind(memory->base + offset, bytes, numa) == 0 ? numa
                                                                                        : WEFTI_OS_NUMA_REFUSED;
    }
    if (made.huge == WEFTI_OS_HUGE_ADVISED) {
        if (huge_bytes > 0 && wefti_os_placement->advise(at, huge_bytes, MADV_HUGEPAGE) == 0) {
            __atomic_store_n(&memory->has_advice, 1, __ATOMIC_RELAXED);
        } else {
            made.huge = WEFTI_OS_HUGE_NEVER;
        }
    }
    return made;
}

const char *wefti_os_placement_text(const wefti_os_placement_made *made, char text[WEFTI_OS_PLACEMENT_BYTES])
{
    static const char *const huge[] = {[WEFTI_OS_HUGE_NEVER] = "no huge pages (the system gives none to shared memory)",
                                       [WEFTI_OS_HUGE_ADVISED] = "huge pages, as advised",
                                       [WEFTI_OS_HUGE_ALWAYS] = "huge pages as the system gives them"};
    char numa[32];
    (void)snprintf(numa, sizeof numa, "NUMA node %d", made->numa);
    (void)snprintf(text, WEFTI_OS_PLACEMENT_BYTES, "memory on %s, %s",
                   made->numa == WEFTI_OS_NUMA_ONE       ? "the only NUMA node"
                   : made->numa == WEFTI_OS_NUMA_ANY     ? "any NUMA node (the PE may run on several)"
                   : made->numa == WEFTI_OS_NUMA_POLICY  ? "the NUMA nodes of the process's memory policy"
                   : made->numa == WEFTI_OS_NUMA_REFUSED ? "any NUMA node (the system refused to bind it)"
                                                         : numa,
                   huge[made->huge]);
    return text;
}

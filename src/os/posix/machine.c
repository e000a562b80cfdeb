/* os/posix/machine.c: what this machine and this process are. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "os/os.h"
#include "os/posix/node.h"

/* Machines with more processors than this are counted as having this many. */
#define CORES_MAX 65536

static unsigned cores_online(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (unsigned)cores : 1;
}

static uint64_t mark_of(const void *bytes, size_t count)
{
    static const unsigned char no_secret[WEFTI_HASH_BYTES] = {0};
    unsigned char hash[WEFTI_HASH_BYTES];
    uint64_t mark;
    wefti_hash(no_secret, bytes, count, hash);
    memcpy(&mark, hash, sizeof mark);
    return mark;
}

/* The affinity of this thread read into a set of `bits` bits; count 0 when it does not fit or fails. */
static wefti_os_cores cores_allowed(int bits)
{
    wefti_os_cores cores = {0, 0};
    cpu_set_t *set = CPU_ALLOC((size_t)bits);
    if (set == NULL) {
        return cores;
    }
    size_t bytes = CPU_ALLOC_SIZE((size_t)bits);
    CPU_ZERO_S(bytes, set);
    if (!wefti_fault("sched_getaffinity", EINVAL) && sched_getaffinity(0, bytes, set) == 0) {
        cores.count = (unsigned)CPU_COUNT_S(bytes, set);
        cores.mark = mark_of(set, bytes);
    }
    CPU_FREE(set);
    return cores;
}

wefti_os_cores wefti_os_cores_query(void)
{
    for (int bits = 1024; bits <= CORES_MAX; bits *= 8) {
        wefti_os_cores cores = cores_allowed(bits);
        if (cores.count > 0) {
            return cores;
        }
    }
    return (wefti_os_cores){cores_online(), 0};
}

uint64_t wefti_os_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    return pages > 0 ? (uint64_t)pages * wefti_os_page_bytes() : 0;
}

size_t wefti_os_page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

int wefti_os_process_number(void)
{
    return (int)getpid();
}

int wefti_os_owner_number(void)
{
    return wefti_os_process_number();
}

/* The namespace in which process numbers are counted: process 1 of another one is another process. 0: /proc does not
 * say. */
static uint64_t number_space(void)
{
    struct stat about;
    return stat("/proc/self/ns/pid", &about) == 0 ? (uint64_t)about.st_ino : 0;
}

/* The 16 random bytes that the kernel gave this process image also guard its stacks, so they leave the process only as
 * the key of a hash. A fork has the same ones and another number. */
static weft_status process_identity(unsigned char out[16])
{
    const unsigned char *key = (const unsigned char *)getauxval(AT_RANDOM); /* NOLINT: an address, as documented */
    if (key == NULL) {
        return wefti_error(WEFT_ERR_SYSTEM, "the kernel gave this process no random bytes (AT_RANDOM)");
    }
    const uint64_t number[2] = {(uint64_t)wefti_os_process_number(), number_space()};
    wefti_hash(key, number, sizeof number, out);
    return WEFT_OK;
}

weft_status wefti_os_identity_query(wefti_os_identity *out)
{
    wefti_os_identity identity;
    memset(&identity, 0, sizeof identity);
    WEFT_TRY(process_identity(identity.process));
    WEFT_TRY(wefti_os_node_query(&identity));
    *out = identity;
    return WEFT_OK;
}

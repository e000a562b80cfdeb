/* bootstrap/pmi/pmi.c: processes that a launcher with PMI-1 or PMI-2 has started: over the socket PMI_FD (MPICH's and
 * Intel MPI's mpiexec, srun --mpi=pmi2, flux), else by the launcher's library.
 *
 * A process joins at its first world, by one of the two for all its worlds, and leaves at its end: a process that ends
 * without leaving has failed, as launchers see it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "bootstrap/pmi/store.h"
#include "os/socket.h"

#define JOIN_NS UINT64_C(10000000000) /* how long the launcher may take to answer on a local socket */
#define VARIABLES "PMI_FD, PMI_RANK and PMI_SIZE"

static struct {
    wefti_joining joining;
    int version; /* of who joined first */
    int is_wire;
    wefti_pmi_job pmi;
} process;

static void leave(void)
{
    if (wefti_os_process_number() == process.joining.process) {
        (process.is_wire ? wefti_pmi_wire_leave : wefti_pmi_library_leave)(&process.pmi.store);
    }
}

/* PMI_RANK and PMI_SIZE, where they must be there. */
static weft_status read_place(wefti_pmi_store *store)
{
    uint64_t rank = 0;
    uint64_t size = 0;
    if (!wefti_env_is_set(WEFTI_ENV_PMI_RANK) || !wefti_env_is_set(WEFTI_ENV_PMI_SIZE)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "PMI_FD is set, and PMI_RANK or PMI_SIZE is not: start the program by the launcher itself, "
                           "or unset PMI_FD");
    }
    WEFT_TRY(wefti_env_count(WEFTI_ENV_PMI_RANK, &rank));
    WEFT_TRY(wefti_env_count(WEFTI_ENV_PMI_SIZE, &size));
    if (size > INT32_MAX || rank >= size) {
        return wefti_error(WEFT_ERR_ARGUMENT, "PMI_RANK=%s of PMI_SIZE=%s is no process of a job",
                           wefti_env_word(WEFTI_ENV_PMI_RANK), wefti_env_word(WEFTI_ENV_PMI_SIZE));
    }
    store->rank = (int)rank;
    store->size = (int)size;
    return WEFT_OK;
}

static weft_status join_wire(wefti_pmi_store *store, uint64_t until_ns)
{
    uint64_t descriptor = 0;
    char job[64];
    WEFT_TRY(wefti_env_count(WEFTI_ENV_PMI_FD, &descriptor));
    WEFT_TRY(read_place(store));
    const uint64_t cookie = descriptor > INT32_MAX ? 0 : wefti_os_socket_cookie((int)descriptor);
    if (cookie == 0) {
        return wefti_error(
            WEFT_ERR_ARGUMENT,
            "PMI_FD=%s is no open socket: this process was not started by the launcher, but by a process "
            "of its job, and has inherited " VARIABLES "; unset them, say WEFT_BOOTSTRAP=self for a "
            "world of one PE, or start the program by weftrun",
            wefti_env_word(WEFTI_ENV_PMI_FD));
    }
    (void)snprintf(job, sizeof job, "pmi%llu", (unsigned long long)cookie);
    WEFT_TRY(wefti_job_claim(job, store->rank, VARIABLES));
    (void)snprintf(store->job, sizeof store->job, "%.200s", wefti_env_word(WEFTI_ENV_PMI_JOBID));
    process.is_wire = 1;
    return wefti_pmi_wire_join(store, (int)descriptor, process.version, until_ns);
}

static weft_status join(void)
{
    wefti_pmi_store *store = &process.pmi.store;
    const uint64_t until_ns = wefti_os_now_ns() + JOIN_NS;
    WEFT_TRY(wefti_env_is_set(WEFTI_ENV_PMI_FD) ? join_wire(store, until_ns)
                                                : wefti_pmi_library_join(store, process.version, until_ns));
    (void)atexit(leave);
    return wefti_pmi_job_init(&process.pmi, until_ns);
}

static weft_status open_version(int version, const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    const uint64_t until_ns = wefti_os_now_ns() + config->deadline_ns;
    int expected = 0;
    if (!__atomic_compare_exchange_n(&process.version, &expected, version, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
        expected != version) {
        return wefti_error(
            WEFT_ERR_STATE,
            "this process speaks PMI-%d with its launcher since its first world, and cannot speak PMI-%d", expected,
            version);
    }
    WEFT_TRY(wefti_join_once(&process.joining, join));
    return wefti_job_open(&process.pmi.job, config, bootstrap, until_ns);
}

static weft_status pmi1_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    return open_version(1, config, bootstrap);
}

static weft_status pmi2_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    return open_version(2, config, bootstrap);
}

const wefti_bootstrap_ops wefti_bootstrap_pmi1 = {.name = "pmi1", .open = pmi1_open};
const wefti_bootstrap_ops wefti_bootstrap_pmi2 = {.name = "pmi2", .open = pmi2_open};

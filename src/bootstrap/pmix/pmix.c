/* bootstrap/pmix/pmix.c: processes that a launcher with PMIx has started (mpirun, srun --mpi=pmix, prun): PE 0 tells
 * the others a unique id by PMIx, and with that they meet (bootstrap/uid).
 *
 * Every process of the job is a PE of the world, by its rank. The library is loaded at the first world, is a client
 * from then on, and says at the end of the process that it was one: launchers take a client that ends without for one
 * that failed. Nothing waits in PMIx itself: a value is asked for, and comes by a call from its thread or not. */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/library.h"
#include "bootstrap/job/job.h"
#include "os/os.h"

#define LIBRARY "libpmix.so.2"
#define WHOEVER (PMIX_RANK_WILDCARD - 1) /* no process's number */
/* Between questions for a value that is not there yet. */
#define PAUSE_FIRST_NS UINT64_C(1000000)
#define PAUSE_LONGEST_NS UINT64_C(20000000)

/* ---- the library ---- */

typedef struct client {
    pmix_proc_t me;
    pmix_status_t (*init)(pmix_proc_t *proc, pmix_info_t info[], size_t count);
    pmix_status_t (*finalize)(const pmix_info_t info[], size_t count);
    pmix_status_t (*put)(pmix_scope_t scope, const char key[], pmix_value_t *value);
    pmix_status_t (*commit)(void);
    pmix_status_t (*get)(const pmix_proc_t *proc, const char key[], const pmix_info_t info[], size_t count,
                         pmix_value_cbfunc_t result, void *context);
    pmix_status_t (*publish)(const pmix_info_t info[], size_t count, pmix_op_cbfunc_t done, void *context);
    pmix_status_t (*lookup)(char **keys, const pmix_info_t info[], size_t count, pmix_lookup_cbfunc_t found,
                            void *context);
    const char *(*error)(pmix_status_t status);
} client;

static client pmix;
static wefti_joining joining;

static void leave(void)
{
    if (wefti_os_process_number() == joining.process) {
        (void)pmix.finalize(NULL, 0);
    }
}

/* Before PMIx knows of this process: its server takes several processes for one, and ends them together. */
static weft_status claim(void)
{
    uint64_t rank = 0;
    if (!wefti_env_is_set(WEFTI_ENV_PMIX_NAMESPACE) || !wefti_env_is_set(WEFTI_ENV_PMIX_RANK)) {
        return WEFT_OK;
    }
    WEFT_TRY(wefti_env_count(WEFTI_ENV_PMIX_RANK, &rank));
    return wefti_job_claim(wefti_env_word(WEFTI_ENV_PMIX_NAMESPACE), (int)(rank & INT32_MAX),
                           "PMIX_RANK and others "
                           "of PMIx");
}

static weft_status join(void)
{
    void *handle = wefti_library_open(LIBRARY);
    if (handle == NULL || !wefti_library_find(handle, "PMIx_Init", &pmix.init) ||
        !wefti_library_find(handle, "PMIx_Finalize", &pmix.finalize) ||
        !wefti_library_find(handle, "PMIx_Put", &pmix.put) ||
        !wefti_library_find(handle, "PMIx_Commit", &pmix.commit) ||
        !wefti_library_find(handle, "PMIx_Get_nb", &pmix.get) ||
        !wefti_library_find(handle, "PMIx_Publish_nb", &pmix.publish) ||
        !wefti_library_find(handle, "PMIx_Lookup_nb", &pmix.lookup) ||
        !wefti_library_find(handle, "PMIx_Error_string", &pmix.error)) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, LIBRARY
                           ", by which the processes of a job find each other, cannot be loaded; install the package "
                           "libpmix2, or start the program with weftrun or torchrun");
    }
    WEFT_TRY(claim());
    pmix_status_t joined = pmix.init(&pmix.me, NULL, 0);
    if (joined != PMIX_SUCCESS) {
        return wefti_error(WEFT_ERR_SYSTEM,
                           "PMIx's variables are set, but its server does not take this process (%s): start it by the "
                           "launcher itself, or unset PMIX_RANK",
                           pmix.error(joined));
    }
    (void)atexit(leave);
    return WEFT_OK;
}

/* ---- values ---- */

/* What was asked for. Two have it: who asks, and PMIx, whose call may come when nobody waits any more. */
typedef struct answer {
    wefti_os_monitor *lock;
    int holders;
    int has_come;
    pmix_status_t status;
    uint32_t number;
    size_t bytes;
    unsigned char data[WEFT_UID_BYTES];
    pmix_info_t info[2]; /* what PMIx was asked with, as long as it may read it */
    char key[WEFTI_JOB_KEY_BYTES];
    char *keys[2];
} answer;

static void let_go(answer *a)
{
    wefti_os_monitor_enter(a->lock);
    int left = --a->holders;
    wefti_os_monitor_leave(a->lock);
    if (left == 0) {
        wefti_os_monitor_destroy(a->lock);
        wefti_free(a);
    }
}

static void take(answer *a, const pmix_value_t *value)
{
    if (value->type == PMIX_UINT32) {
        a->number = value->data.uint32;
    } else if (value->type == PMIX_BYTE_OBJECT && value->data.bo.size <= sizeof a->data) {
        a->bytes = value->data.bo.size;
        memcpy(a->data, value->data.bo.bytes, a->bytes);
    }
}

static void on_value(pmix_status_t status, pmix_value_t *value, void *context)
{
    answer *a = context;
    wefti_os_monitor_enter(a->lock);
    a->status = status;
    if (status == PMIX_SUCCESS && value != NULL) {
        take(a, value);
    }
    a->has_come = 1;
    wefti_os_monitor_notify_all(a->lock);
    wefti_os_monitor_leave(a->lock);
    let_go(a);
}

static void on_found(pmix_status_t status, pmix_pdata_t data[], size_t count, void *context)
{
    on_value(status == PMIX_SUCCESS && count == 0 ? PMIX_ERR_NOT_FOUND : status, count == 0 ? NULL : &data[0].value,
             context);
}

static void on_done(pmix_status_t status, void *context)
{
    on_value(status, NULL, context);
}

/* To or from the processes of this job. */
static void fill_range(pmix_info_t *info)
{
    (void)snprintf(info->key, sizeof info->key, "%s", PMIX_RANGE);
    info->value.type = PMIX_DATA_RANGE;
    info->value.data.range = PMIX_RANGE_NAMESPACE;
}

static answer *answer_create(weft_status *status)
{
    answer *a = wefti_alloc_zeroed(1, sizeof *a);
    if (a == NULL) {
        *status = wefti_error(WEFT_ERR_MEMORY, "no memory to ask PMIx for a value");
        return NULL;
    }
    *status = wefti_os_monitor_create(&a->lock);
    if (*status != WEFT_OK) {
        wefti_free(a);
        return NULL;
    }
    a->holders = 2;
    return a;
}

/* What came of what PMIx was asked, PMIX_ERR_TIMEOUT for nothing by until_ns; `asked` is what the call said. */
static pmix_status_t await(answer *a, pmix_status_t asked, uint64_t until_ns)
{
    if (asked != PMIX_SUCCESS) {
        let_go(a); /* for PMIx */
        return asked;
    }
    wefti_os_monitor_enter(a->lock);
    while (!a->has_come && wefti_os_monitor_wait(a->lock, until_ns)) {
    }
    const pmix_status_t result = a->has_come ? a->status : PMIX_ERR_TIMEOUT;
    wefti_os_monitor_leave(a->lock);
    return result;
}

/* Ask once for the value of `rank`, or, WHOEVER, for what anybody has published. */
static pmix_status_t ask(uint32_t rank, const char *key, uint64_t until_ns, answer *a)
{
    pmix_proc_t whose;
    if (rank == WHOEVER) {
        fill_range(&a->info[0]);
        (void)snprintf(a->key, sizeof a->key, "%s", key);
        a->keys[0] = a->key;
        return await(a, pmix.lookup(a->keys, a->info, 1, on_found, a), until_ns);
    }
    memset(&whose, 0, sizeof whose);
    memcpy(whose.nspace, pmix.me.nspace, sizeof whose.nspace);
    whose.rank = rank;
    return await(a, pmix.get(&whose, key, NULL, 0, on_value, a), until_ns);
}

/* The value of `rank`, which may come to be meanwhile; *out is for let_go, on success only. */
static weft_status get(uint32_t rank, const char *key, uint64_t until_ns, answer **out)
{
    uint64_t pause_ns = PAUSE_FIRST_NS;
    pmix_status_t result;
    for (;;) {
        weft_status status;
        *out = answer_create(&status);
        if (*out == NULL) {
            return status;
        }
        result = ask(rank, key, until_ns, *out);
        if (result == PMIX_SUCCESS) {
            return WEFT_OK;
        }
        let_go(*out);
        if (result != PMIX_ERR_NOT_FOUND || wefti_os_now_ns() >= until_ns) {
            break;
        }
        wefti_os_sleep_ns(pause_ns);
        pause_ns = pause_ns * 2 < PAUSE_LONGEST_NS ? pause_ns * 2 : PAUSE_LONGEST_NS;
    }
    return result == PMIX_ERR_TIMEOUT || result == PMIX_ERR_NOT_FOUND
               ? wefti_error(WEFT_ERR_TIMEOUT, "PE 0 did not come: it has not told the others by PMIx how to find it")
               : wefti_error(WEFT_ERR_SYSTEM, "PMIx has no value \"%s\" of process %u: %s", key, rank,
                             pmix.error(result));
}

/* ---- the id ---- */

static weft_status publish(wefti_job *job, const char *key, const weft_uid *uid, uint64_t until_ns)
{
    (void)job;
    (void)until_ns;
    pmix_value_t value;
    memset(&value, 0, sizeof value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *)(uintptr_t)uid->bytes;
    value.data.bo.size = sizeof uid->bytes;
    pmix_status_t told = pmix.put(PMIX_GLOBAL, key, &value);
    if (told == PMIX_SUCCESS) {
        told = pmix.commit();
    }
    return told == PMIX_SUCCESS ? WEFT_OK
                                : wefti_error(WEFT_ERR_SYSTEM, "PE 0 cannot tell the others by PMIx how to find it: %s",
                                              pmix.error(told));
}

static weft_status fetch_from(uint32_t rank, const char *key, uint64_t until_ns, weft_uid *uid)
{
    answer *a;
    WEFT_TRY(get(rank, key, until_ns, &a));
    const size_t bytes = a->bytes;
    memcpy(uid->bytes, a->data, sizeof uid->bytes);
    let_go(a);
    return bytes == sizeof uid->bytes
               ? WEFT_OK
               : wefti_error(WEFT_ERR_MISMATCH, "what PE 0 has told by PMIx is no unique id: it runs another weft");
}

static weft_status fetch(wefti_job *job, const char *key, uint64_t until_ns, weft_uid *uid)
{
    (void)job;
    return fetch_from(0, key, until_ns, uid);
}

/* ---- worlds of some of the processes: who is PE 0 is not known ---- */

static weft_status publish_part(wefti_job *job, const char *key, const weft_uid *uid, uint64_t until_ns)
{
    weft_status status;
    answer *a = answer_create(&status);
    if (a == NULL) {
        return status;
    }
    memcpy(a->data, uid->bytes, sizeof a->data);
    (void)snprintf(a->info[0].key, sizeof a->info[0].key, "%s", key);
    a->info[0].value.type = PMIX_BYTE_OBJECT;
    a->info[0].value.data.bo.bytes = (char *)a->data;
    a->info[0].value.data.bo.size = sizeof a->data;
    fill_range(&a->info[1]);
    const pmix_status_t told = await(a, pmix.publish(a->info, 2, on_done, a), until_ns);
    let_go(a);
    return told == PMIX_SUCCESS
               ? WEFT_OK
               : wefti_error(
                     WEFT_ERR_UNSUPPORTED,
                     "the launcher's PMIx does not carry names (%s), so that by it a world has all of the job's "
                     "%d processes: give config.pes 0, or make other worlds by a unique id",
                     pmix.error(told), job->size);
}

static weft_status fetch_part(wefti_job *job, const char *key, uint64_t until_ns, weft_uid *uid)
{
    (void)job;
    return fetch_from(WHOEVER, key, until_ns, uid);
}

/* ---- the ops ---- */

static const wefti_job_ops part_ops = {.name = "PMIx", .publish = publish_part, .fetch = fetch_part};
static const wefti_job_ops job_ops = {.name = "PMIx", .publish = publish, .fetch = fetch};

static weft_status find_size(uint64_t until_ns, int *size)
{
    answer *a;
    WEFT_TRY(get(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, until_ns, &a));
    const uint32_t number = a->number;
    let_go(a);
    *size = (int)number;
    return number >= 1 && number <= INT32_MAX && pmix.me.rank < number
               ? WEFT_OK
               : wefti_error(WEFT_ERR_SYSTEM, "the launcher's PMIx says that this is process %u of %u, which cannot be",
                             pmix.me.rank, number);
}

static weft_status pmix_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    static wefti_job whole = {.ops = &job_ops, .needs_all = 1};
    static wefti_job part = {.ops = &part_ops};
    const uint64_t until_ns = wefti_os_now_ns() + config->deadline_ns;
    int size;
    WEFT_TRY(wefti_join_once(&joining, join));
    WEFT_TRY(find_size(until_ns, &size));
    const int rank = (int)pmix.me.rank;
    if (config->pes == size && config->pe != rank) {
        return wefti_error(
            WEFT_ERR_ARGUMENT,
            "config.pe %d in process %d of a job of %d: by PMIx the processes of a world that has all of "
            "them are its PEs in their order; give pes 0, or make the world by a unique id",
            config->pe, rank, size);
    }
    wefti_job *job = config->pes == 0 || config->pes == size ? &whole : &part;
    __atomic_store_n(&job->rank, rank, __ATOMIC_RELAXED);
    __atomic_store_n(&job->size, size, __ATOMIC_RELAXED);
    return wefti_job_open(job, config, bootstrap, until_ns);
}

const wefti_bootstrap_ops wefti_bootstrap_pmix = {.name = "pmix", .open = pmix_open};

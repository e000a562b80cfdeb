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
#include "base/error.h"
#include "base/hash.h"
#include "base/library.h"
#include "bootstrap/bootstrap.h"
#include "os/os.h"

#define LIBRARY "libpmix.so.2"
/* Between questions for a value that is not there yet. */
#define PAUSE_FIRST_NS UINT64_C(1000000)
#define PAUSE_LONGEST_NS UINT64_C(20000000)

/* ---- the library ---- */

typedef struct client {
    weft_status status; /* of the first try, which is the only one */
    char text[WEFTI_ERROR_BYTES];
    pmix_proc_t me;
    int process; /* which joined: one that is forked from it is no client */
    pmix_status_t (*init)(pmix_proc_t *proc, pmix_info_t info[], size_t count);
    pmix_status_t (*finalize)(const pmix_info_t info[], size_t count);
    pmix_status_t (*put)(pmix_scope_t scope, const char key[], pmix_value_t *value);
    pmix_status_t (*commit)(void);
    pmix_status_t (*get)(const pmix_proc_t *proc, const char key[], const pmix_info_t info[], size_t count,
                         pmix_value_cbfunc_t heard, void *context);
    const char *(*error)(pmix_status_t status);
} client;

static client pmix;
static int joining; /* 0; 1 while a thread joins; 2 once that is over */

static void leave(void)
{
    if (wefti_os_process_number() == pmix.process) {
        (void)pmix.finalize(NULL, 0);
    }
}

static weft_status join(void)
{
    void *handle = wefti_library_open(LIBRARY);
    if (handle == NULL || !wefti_library_find(handle, "PMIx_Init", &pmix.init) ||
        !wefti_library_find(handle, "PMIx_Finalize", &pmix.finalize) ||
        !wefti_library_find(handle, "PMIx_Put", &pmix.put) ||
        !wefti_library_find(handle, "PMIx_Commit", &pmix.commit) ||
        !wefti_library_find(handle, "PMIx_Get_nb", &pmix.get) ||
        !wefti_library_find(handle, "PMIx_Error_string", &pmix.error)) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, LIBRARY
                           ", by which the processes of a job find each other, cannot be loaded; install the package "
                           "libpmix2, or start the program with weftrun or torchrun");
    }
    pmix_status_t joined = pmix.init(&pmix.me, NULL, 0);
    if (joined != PMIX_SUCCESS) {
        return wefti_error(WEFT_ERR_SYSTEM,
                           "PMIx's variables are set, but its server does not take this process (%s): start it by the "
                           "launcher itself, or unset PMIX_RANK",
                           pmix.error(joined));
    }
    pmix.process = wefti_os_process_number();
    (void)atexit(leave);
    return WEFT_OK;
}

/* Once a process; other threads wait, for as long as PMIx takes to find its server on this host. */
static weft_status join_once(void)
{
    int expected = 0;
    if (__atomic_compare_exchange_n(&joining, &expected, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        pmix.status = join();
        (void)snprintf(pmix.text, sizeof pmix.text, "%s", pmix.status == WEFT_OK ? "" : weft_last_error());
        __atomic_store_n(&joining, 2, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(&joining, __ATOMIC_ACQUIRE) != 2) {
        wefti_os_yield();
    }
    return pmix.status == WEFT_OK ? WEFT_OK : wefti_error_relay(pmix.status, pmix.text);
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

static void hear(pmix_status_t status, pmix_value_t *value, void *context)
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

static weft_status answer_create(answer **out)
{
    answer *a = wefti_alloc_zeroed(1, sizeof *a);
    if (a == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory to ask PMIx for a value");
    }
    weft_status status = wefti_os_monitor_create(&a->lock);
    if (status != WEFT_OK) {
        wefti_free(a);
        return status;
    }
    a->holders = 2;
    *out = a;
    return WEFT_OK;
}

/* Ask once for the value of `rank`. Returns what PMIx said, PMIX_ERR_TIMEOUT for nothing by until_ns; *out is for
 * let_go, on success only. */
static pmix_status_t ask(uint32_t rank, const char *key, uint64_t until_ns, answer *a)
{
    pmix_proc_t whose;
    memset(&whose, 0, sizeof whose);
    memcpy(whose.nspace, pmix.me.nspace, sizeof whose.nspace);
    whose.rank = rank;
    const pmix_status_t asked = pmix.get(&whose, key, NULL, 0, hear, a);
    if (asked != PMIX_SUCCESS) {
        let_go(a); /* for PMIx */
        return asked;
    }
    wefti_os_monitor_enter(a->lock);
    while (!a->has_come && wefti_os_monitor_wait(a->lock, until_ns)) {
    }
    const pmix_status_t heard = a->has_come ? a->status : PMIX_ERR_TIMEOUT;
    wefti_os_monitor_leave(a->lock);
    return heard;
}

/* The value of `rank`, which may come to be meanwhile; *out is for let_go, on success only. */
static weft_status get(uint32_t rank, const char *key, uint64_t until_ns, answer **out)
{
    uint64_t pause_ns = PAUSE_FIRST_NS;
    pmix_status_t heard;
    for (;;) {
        WEFT_TRY(answer_create(out));
        heard = ask(rank, key, until_ns, *out);
        if (heard == PMIX_SUCCESS) {
            return WEFT_OK;
        }
        let_go(*out);
        if (heard != PMIX_ERR_NOT_FOUND || wefti_os_now_ns() >= until_ns) {
            break;
        }
        wefti_os_sleep_ns(pause_ns);
        pause_ns = pause_ns * 2 < PAUSE_LONGEST_NS ? pause_ns * 2 : PAUSE_LONGEST_NS;
    }
    return heard == PMIX_ERR_TIMEOUT || heard == PMIX_ERR_NOT_FOUND
               ? wefti_error(WEFT_ERR_TIMEOUT, "PE 0 did not come: it has not told the others by PMIx how to find it")
               : wefti_error(WEFT_ERR_SYSTEM, "PMIx has no value \"%s\" of process %u: %s", key, rank,
                             pmix.error(heard));
}

/* ---- the id ---- */

static weft_status publish(const char *key, weft_uid *uid)
{
    pmix_value_t value;
    memset(&value, 0, sizeof value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *)uid->bytes;
    value.data.bo.size = sizeof uid->bytes;
    pmix_status_t told = pmix.put(PMIX_GLOBAL, key, &value);
    if (told == PMIX_SUCCESS) {
        told = pmix.commit();
    }
    return told == PMIX_SUCCESS ? WEFT_OK
                                : wefti_error(WEFT_ERR_SYSTEM, "PE 0 cannot tell the others by PMIx how to find it: %s",
                                              pmix.error(told));
}

static weft_status fetch(const char *key, uint64_t until_ns, weft_uid *uid)
{
    answer *a;
    WEFT_TRY(get(0, key, until_ns, &a));
    const size_t bytes = a->bytes;
    memcpy(uid->bytes, a->data, sizeof uid->bytes);
    let_go(a);
    return bytes == sizeof uid->bytes
               ? WEFT_OK
               : wefti_error(WEFT_ERR_MISMATCH, "what PE 0 has told by PMIx is no unique id: it runs another weft");
}

/* Worlds of one name are told apart by how many there were, which is the same in all processes. */
static unsigned count_world(const char *name)
{
    static struct {
        uint64_t hash;
        unsigned count;
    } seen[256];
    static int is_locked;
    static const unsigned char no_secret[WEFTI_HASH_BYTES] = {0};
    unsigned char bytes[WEFTI_HASH_BYTES];
    uint64_t hash;
    wefti_hash(no_secret, name, strlen(name), bytes);
    memcpy(&hash, bytes, sizeof hash);
    while (__atomic_exchange_n(&is_locked, 1, __ATOMIC_ACQUIRE)) {
        wefti_os_yield();
    }
    size_t at = hash % 256;
    for (size_t tries = 0; tries < 256 && seen[at].count != 0 && seen[at].hash != hash; tries++) {
        at = (at + 1) % 256;
    }
    seen[at].hash = hash;
    const unsigned count = ++seen[at].count;
    __atomic_store_n(&is_locked, 0, __ATOMIC_RELEASE);
    return count;
}

/* ---- the ops ---- */

static weft_status find_place(weft_world_config *config, uint64_t until_ns)
{
    answer *a;
    WEFT_TRY(get(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, until_ns, &a));
    const uint32_t size = a->number;
    let_go(a);
    if (config->pes == 0) {
        config->pe = (int)pmix.me.rank;
        config->pes = (int)size;
    }
    return config->pes == (int)size && config->pe == (int)pmix.me.rank
               ? WEFT_OK
               : wefti_error(
                     WEFT_ERR_ARGUMENT,
                     "config.pe %d of config.pes %d, in process %u of a job of %u: by PMIx a world has all of a "
                     "job's processes; give pes 0, or make other worlds by a unique id",
                     config->pe, config->pes, pmix.me.rank, size);
}

static weft_status find_id(const weft_world_config *config, uint64_t until_ns, weft_uid *uid)
{
    const char *name = wefti_bootstrap_world_name(config);
    char key[WEFTI_BOOTSTRAP_NAME_BYTES + 32];
    (void)snprintf(key, sizeof key, "weft.%u.%s", count_world(name), name);
    if (config->pe != 0) {
        return fetch(key, until_ns, uid);
    }
    WEFT_TRY(weft_uid_create(NULL, uid));
    weft_status status = publish(key, uid);
    if (status != WEFT_OK) {
        (void)weft_uid_discard(uid);
    }
    return status;
}

static weft_status pmix_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    weft_world_config own = *config;
    weft_uid uid;
    const uint64_t until_ns = wefti_os_now_ns() + config->deadline_ns;
    WEFT_TRY(join_once());
    WEFT_TRY(find_place(&own, until_ns));
    if (own.pes == 1) {
        bootstrap->ops = &wefti_bootstrap_self;
        return wefti_bootstrap_self.open(&own, bootstrap);
    }
    WEFT_TRY(find_id(&own, until_ns, &uid));
    own.bootstrap = WEFT_BOOTSTRAP_UID;
    own.uid = &uid;
    const uint64_t now_ns = wefti_os_now_ns();
    own.deadline_ns = now_ns < until_ns ? until_ns - now_ns : 1;
    bootstrap->ops = &wefti_bootstrap_uid;
    return wefti_bootstrap_uid.open(&own, bootstrap);
}

const wefti_bootstrap_ops wefti_bootstrap_pmix = {.name = "pmix", .open = pmix_open};

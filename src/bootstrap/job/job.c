/* bootstrap/job/job.c: PE 0's unique id by the launcher's store. */
#include "bootstrap/job/job.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "bootstrap/uid/id.h"
#include "os/os.h"

/* Worlds of one name are told apart by how many there were, which is the same in all processes. */
static unsigned count_world(wefti_job *job, uint64_t hash)
{
    while (__atomic_exchange_n(&job->lock, 1, __ATOMIC_ACQUIRE)) {
        wefti_os_yield();
    }
    size_t at = hash % WEFTI_JOB_WORLDS_MAX;
    for (size_t tries = 0; tries < WEFTI_JOB_WORLDS_MAX && job->worlds[at].count != 0 && job->worlds[at].hash != hash;
         tries++) {
        at = (at + 1) % WEFTI_JOB_WORLDS_MAX;
    }
    job->worlds[at].hash = hash;
    const unsigned count = ++job->worlds[at].count;
    __atomic_store_n(&job->lock, 0, __ATOMIC_RELEASE);
    return count;
}

/* Short, and of letters and digits alone: stores take few bytes and have their own marks. */
static void make_key(wefti_job *job, const char *name, char key[WEFTI_JOB_KEY_BYTES])
{
    static const unsigned char no_secret[WEFTI_HASH_BYTES] = {0};
    unsigned char bytes[WEFTI_HASH_BYTES];
    uint64_t hash;
    wefti_hash(no_secret, name, strlen(name), bytes);
    memcpy(&hash, bytes, sizeof hash);
    (void)snprintf(key, WEFTI_JOB_KEY_BYTES, "weft%016llxn%u", (unsigned long long)hash, count_world(job, hash));
}

static void find_place(const wefti_job *job, weft_world_config *config)
{
    if (config->pes == 0) {
        config->pe = job->rank;
        config->pes = job->size;
    }
}

/* Where the launcher makes all processes of the job meet, a world of some of them meets its deadline: say why. */
static weft_status explain(const wefti_job *job, const weft_world_config *config, weft_status status)
{
    return status != WEFT_ERR_TIMEOUT || !job->needs_all || config->pes == job->size
               ? status
               : wefti_error_context(
                     status,
                     "config.pes is %d in a job of %d processes, and by %s of this launcher a world has "
                     "all of them: make other worlds by a unique id",
                     config->pes, job->size, job->ops->name);
}

/* ---- why there is no id ---- */

#define REFUSAL_MAGIC UINT32_C(0x4f4e5557) /* "WUNO" */

/* What PE 0 publishes in place of an id that it cannot make. */
typedef struct refusal {
    uint32_t magic;
    int32_t status;
    char text[WEFT_UID_BYTES - 8];
} refusal;
_Static_assert(sizeof(refusal) == WEFT_UID_BYTES, "stores take as many bytes as an id has");

/* The others would wait for the id until their deadline. Whether they can be told does not change what failed. */
static weft_status tell_refusal(wefti_job *job, const char *key, uint64_t until_ns, weft_status status)
{
    refusal told = {.magic = REFUSAL_MAGIC, .status = (int32_t)status};
    char text[WEFTI_ERROR_BYTES];
    weft_uid uid;
    (void)snprintf(text, sizeof text, "%s", weft_last_error());
    (void)snprintf(told.text, sizeof told.text, "PE 0: %.*s", (int)sizeof told.text - 7, text);
    memcpy(uid.bytes, &told, sizeof uid.bytes);
    (void)job->ops->publish(job, key, &uid, until_ns);
    return wefti_error_relay(status, text);
}

static weft_status check_refusal(const weft_uid *uid)
{
    refusal told;
    memcpy(&told, uid->bytes, sizeof told);
    told.text[sizeof told.text - 1] = '\0';
    return told.magic != REFUSAL_MAGIC || told.status == WEFT_OK ? WEFT_OK : wefti_error_relay(told.status, told.text);
}

/* ---- meeting ---- */

/* PE 0 makes the id and publishes it. A second process that says it is PE 0 takes the id of the first, who refuses it
 * when they meet. */
static weft_status tell(wefti_job *job, const char *key, uint64_t until_ns, weft_uid *uid)
{
    weft_uid first;
    weft_status status = weft_uid_create(NULL, uid);
    if (status != WEFT_OK) {
        return tell_refusal(job, key, until_ns, status);
    }
    status = job->ops->publish(job, key, uid, until_ns);
    if (status != WEFT_OK) {
        wefti_uid_drop(uid);
        return status;
    }
    if (job->ops->is_other != NULL && job->ops->is_other(job, key, until_ns, &first) &&
        memcmp(&first, uid, sizeof first) != 0) {
        wefti_uid_drop(uid);
        *uid = first;
        wefti_uid_disown(uid);
    }
    return WEFT_OK;
}

static weft_status meet(wefti_job *job, const weft_world_config *config, wefti_bootstrap *bootstrap, const char *key,
                        uint64_t until_ns)
{
    weft_world_config copy = *config;
    weft_uid uid;
    WEFT_TRY(explain(job, config,
                     copy.pe == 0 ? tell(job, key, until_ns, &uid) : job->ops->fetch(job, key, until_ns, &uid)));
    WEFT_TRY(check_refusal(&uid));
    copy.bootstrap = WEFT_BOOTSTRAP_UID;
    copy.uid = &uid;
    const uint64_t now_ns = wefti_os_now_ns();
    copy.deadline_ns = now_ns < until_ns ? until_ns - now_ns : 1;
    bootstrap->ops = &wefti_bootstrap_uid;
    weft_status status = wefti_bootstrap_uid.open(&copy, bootstrap);
    if (copy.pe == 0 && status == WEFT_OK && job->ops->retract != NULL) {
        job->ops->retract(job, key);
    }
    if (copy.pe == 0 && status != WEFT_OK) {
        wefti_uid_drop(&uid);
    }
    explicit_bzero(&uid, sizeof uid);
    return status;
}

weft_status wefti_job_open(wefti_job *job, const weft_world_config *config, wefti_bootstrap *bootstrap,
                           uint64_t until_ns)
{
    weft_world_config copy = *config;
    char key[WEFTI_JOB_KEY_BYTES];
    make_key(job, wefti_bootstrap_world_name(config), key);
    find_place(job, &copy);
    if (copy.pes == 1) {
        bootstrap->ops = &wefti_bootstrap_self;
        return wefti_bootstrap_self.open(&copy, bootstrap);
    }
    return meet(job, &copy, bootstrap, key, until_ns);
}

/* bootstrap/pmi/job.c: a job whose processes tell each other ids by a store of PMI.
 *
 * Where the launcher takes names, PE 0 publishes the id under the world's key and the others look it up again and
 * again: nobody waits in the launcher, and any processes of the job can be a world. Where it does not, PE 0 puts the id
 * and all of the job's processes meet in the launcher's barrier, which names nobody who does not come. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/pmi/store.h"

/* Between questions for a name that is not there yet: all of a job's processes ask one launcher. */
#define PAUSE_FIRST_NS UINT64_C(1000000)
#define PAUSE_LONGEST_NS UINT64_C(20000000)
#define PAUSE_PROCESSES 64 /* so many share the longest pause */
#define RETRACT_NS UINT64_C(1000000000)

/* ---- one thread at a time ---- */

static weft_status enter(wefti_pmi_job *pmi, uint64_t until_ns)
{
    weft_status status = WEFT_OK;
    wefti_os_monitor_enter(pmi->lock);
    while (pmi->is_busy && wefti_os_monitor_wait(pmi->lock, until_ns)) {
    }
    if (pmi->is_busy) {
        status = wefti_error(WEFT_ERR_TIMEOUT,
                             "another world of this process waits in the launcher's PMI; create them in one order "
                             "on all PEs");
    } else {
        pmi->is_busy = 1;
    }
    wefti_os_monitor_leave(pmi->lock);
    return status;
}

static void leave(wefti_pmi_job *pmi)
{
    wefti_os_monitor_enter(pmi->lock);
    pmi->is_busy = 0;
    wefti_os_monitor_notify_all(pmi->lock);
    wefti_os_monitor_leave(pmi->lock);
}

/* ---- ids as text ---- */

static void write_hex(const weft_uid *uid, char text[WEFTI_PMI_VALUE_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof uid->bytes; i++) {
        text[2 * i] = digits[uid->bytes[i] >> 4];
        text[2 * i + 1] = digits[uid->bytes[i] & 15];
    }
    text[2 * sizeof uid->bytes] = '\0';
}

static int read_digit(char digit)
{
    return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static weft_status read_hex(const char *text, weft_uid *uid)
{
    int is_wrong = strlen(text) != 2 * sizeof uid->bytes;
    for (size_t i = 0; i < sizeof uid->bytes && !is_wrong; i++) {
        const int high = read_digit(text[2 * i]);
        const int low = read_digit(text[2 * i + 1]);
        is_wrong = high < 0 || low < 0;
        uid->bytes[i] = (unsigned char)(high * 16 + low);
    }
    return is_wrong ? wefti_error(WEFT_ERR_MISMATCH,
                                  "what the launcher's PMI has from PE 0 is no unique id: PE 0 runs another weft")
                    : WEFT_OK;
}

/* ---- by names ---- */

static weft_status refuse(const wefti_pmi_job *pmi, const char *what)
{
    return wefti_error(WEFT_ERR_SYSTEM, "PE 0 cannot tell the others by %s how to find it: the launcher does not %s",
                       pmi->job.ops->name, what);
}

static weft_status publish_name(wefti_job *job, const char *key, const weft_uid *uid, uint64_t until_ns)
{
    wefti_pmi_job *pmi = (wefti_pmi_job *)job;
    char text[WEFTI_PMI_VALUE_BYTES];
    write_hex(uid, text);
    WEFT_TRY(enter(pmi, until_ns));
    weft_status status = pmi->store.ops->publish(&pmi->store, key, text, until_ns);
    if (status == WEFT_ERR_STATE && pmi->store.broken[0] == '\0') {
        /* Some launchers refuse a name that is there: then there is another PE 0, which is found by it. */
        char other[WEFTI_PMI_VALUE_BYTES];
        status = pmi->store.ops->lookup(&pmi->store, key, other, until_ns);
        status = status == WEFT_ERR_STATE ? refuse(pmi, "take its name") : status;
    }
    leave(pmi);
    return status;
}

static weft_status lookup_once(wefti_pmi_job *pmi, const char *key, char text[WEFTI_PMI_VALUE_BYTES], uint64_t until_ns,
                               int *is_there)
{
    WEFT_TRY(enter(pmi, until_ns));
    weft_status status = pmi->store.ops->lookup(&pmi->store, key, text, until_ns);
    const int is_no = status == WEFT_ERR_STATE && pmi->store.broken[0] == '\0';
    leave(pmi);
    *is_there = status == WEFT_OK;
    return is_no ? WEFT_OK : status;
}

static weft_status miss_first(const wefti_job *job)
{
    return wefti_error(WEFT_ERR_TIMEOUT, "PE 0 did not come: it has not told the others by %s how to find it",
                       job->ops->name);
}

/* A launcher that has answered, and is late when the time ends, is not what is missing. */
static weft_status fetch_name(wefti_job *job, const char *key, uint64_t until_ns, weft_uid *uid)
{
    wefti_pmi_job *pmi = (wefti_pmi_job *)job;
    char text[WEFTI_PMI_VALUE_BYTES];
    const uint64_t longest_ns = PAUSE_LONGEST_NS * (1 + (uint64_t)job->size / PAUSE_PROCESSES);
    uint64_t pause_ns = PAUSE_FIRST_NS;
    int is_there = 0;
    for (int has_answered = 0;; has_answered = 1) {
        const weft_status status = lookup_once(pmi, key, text, until_ns, &is_there);
        if (status != WEFT_OK) {
            return status == WEFT_ERR_TIMEOUT && has_answered ? miss_first(job) : status;
        }
        if (is_there) {
            return read_hex(text, uid);
        }
        const uint64_t now_ns = wefti_os_now_ns();
        if (now_ns + pause_ns >= until_ns) {
            wefti_os_sleep_ns(now_ns < until_ns ? until_ns - now_ns : 0);
            return miss_first(job);
        }
        wefti_os_sleep_ns(pause_ns);
        pause_ns = pause_ns * 2 < longest_ns ? pause_ns * 2 : longest_ns;
    }
}

static void retract_name(wefti_job *job, const char *key)
{
    wefti_pmi_job *pmi = (wefti_pmi_job *)job;
    const uint64_t until_ns = wefti_os_now_ns() + RETRACT_NS;
    if (enter(pmi, until_ns) == WEFT_OK) {
        (void)pmi->store.ops->unpublish(&pmi->store, key, until_ns);
        leave(pmi);
    }
}

static int find_other(wefti_job *job, const char *key, uint64_t until_ns, weft_uid *uid)
{
    char text[WEFTI_PMI_VALUE_BYTES];
    int is_there = 0;
    return lookup_once((wefti_pmi_job *)job, key, text, until_ns, &is_there) == WEFT_OK && is_there &&
           read_hex(text, uid) == WEFT_OK;
}

/* ---- by values ---- */

static weft_status put_value(wefti_job *job, const char *key, const weft_uid *uid, uint64_t until_ns)
{
    wefti_pmi_job *pmi = (wefti_pmi_job *)job;
    char text[WEFTI_PMI_VALUE_BYTES];
    write_hex(uid, text);
    WEFT_TRY(enter(pmi, until_ns));
    weft_status status = pmi->store.ops->put(&pmi->store, key, text, until_ns);
    if (status == WEFT_OK || pmi->store.broken[0] == '\0') {
        /* A value may be refused because there is one: then there is another PE 0. */
        const int is_refused = status != WEFT_OK;
        char other[WEFTI_PMI_VALUE_BYTES];
        status = pmi->store.ops->fence(&pmi->store, until_ns);
        status = status == WEFT_OK && is_refused ? pmi->store.ops->get(&pmi->store, key, other, until_ns) : status;
    }
    if (status == WEFT_ERR_STATE && pmi->store.broken[0] == '\0') {
        status = refuse(pmi, "take its value");
    }
    leave(pmi);
    return status;
}

static int find_other_value(wefti_job *job, const char *key, uint64_t until_ns, weft_uid *uid)
{
    wefti_pmi_job *pmi = (wefti_pmi_job *)job;
    char text[WEFTI_PMI_VALUE_BYTES] = "";
    if (enter(pmi, until_ns) != WEFT_OK) {
        return 0;
    }
    weft_status status = pmi->store.ops->get(&pmi->store, key, text, until_ns);
    leave(pmi);
    return status == WEFT_OK && read_hex(text, uid) == WEFT_OK;
}

static weft_status get_value(wefti_job *job, const char *key, uint64_t until_ns, weft_uid *uid)
{
    wefti_pmi_job *pmi = (wefti_pmi_job *)job;
    char text[WEFTI_PMI_VALUE_BYTES] = "";
    WEFT_TRY(enter(pmi, until_ns));
    weft_status status = pmi->store.ops->fence(&pmi->store, until_ns);
    if (status == WEFT_OK) {
        status = pmi->store.ops->get(&pmi->store, key, text, until_ns);
    }
    if (status == WEFT_ERR_STATE && pmi->store.broken[0] == '\0') {
        status = wefti_error(WEFT_ERR_PEER,
                             "PE 0 failed, or creates another world: by %s it has told nobody how to "
                             "find it",
                             job->ops->name);
    }
    leave(pmi);
    return status == WEFT_OK ? read_hex(text, uid) : status;
}

/* ---- the job ---- */

static const wefti_job_ops by_name[2] = {
    {.name = "PMI-1", .publish = publish_name, .fetch = fetch_name, .retract = retract_name, .is_other = find_other},
    {.name = "PMI-2", .publish = publish_name, .fetch = fetch_name, .retract = retract_name, .is_other = find_other},
};
static const wefti_job_ops by_value[2] = {
    {.name = "PMI-1", .publish = put_value, .fetch = get_value, .is_other = find_other_value},
    {.name = "PMI-2", .publish = put_value, .fetch = get_value, .is_other = find_other_value},
};

/* Find out by a name of its own whether the launcher publishes names; all processes get the same answer. */
static weft_status probe(wefti_pmi_store *store, uint64_t until_ns, int *takes_names)
{
    char name[32];
    (void)snprintf(name, sizeof name, "weftprobe%d", store->rank);
    weft_status status = store->ops->publish(store, name, "weft", until_ns);
    *takes_names = status == WEFT_OK;
    if (status == WEFT_OK) {
        status = store->ops->unpublish(store, name, until_ns);
    }
    return status == WEFT_ERR_STATE && store->broken[0] == '\0' ? WEFT_OK : status;
}

weft_status wefti_pmi_job_init(wefti_pmi_job *pmi, uint64_t until_ns)
{
    wefti_pmi_store *store = &pmi->store;
    int takes_names;
    WEFT_TRY(probe(store, until_ns, &takes_names));
    WEFT_TRY(wefti_os_monitor_create(&pmi->lock));
    pmi->job.ops = takes_names ? &by_name[store->version - 1] : &by_value[store->version - 1];
    pmi->job.needs_all = !takes_names;
    pmi->job.rank = store->rank;
    pmi->job.size = store->size;
    return WEFT_OK;
}

void wefti_pmi_job_fini(wefti_pmi_job *pmi)
{
    if (pmi->lock != NULL) {
        wefti_os_monitor_destroy(pmi->lock);
        pmi->lock = NULL;
    }
}

/* bootstrap/threads/threads.c: PEs that are threads of one process and meet at a weft_threads object.
 *
 * A generation is the creation of one world. In it each PE comes (open), takes part in exchanges and leaves (close).
 * Coming is exchange 0, so one count a PE says how far it is. Contributions go to one of two buffers by turns: the
 * deposits of exchange n + 2 begin when all have deposited for n + 1, and so when all have copied n. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/pe_list.h"
#include "bootstrap/bootstrap.h"
#include "os/os.h"

typedef enum pe_place { PE_AWAY = 0, PE_HERE, PE_GONE } pe_place;

/* Contributions to one exchange. */
typedef struct exchange_buffer {
    unsigned char *memory;
    size_t capacity;
    size_t bytes; /* of one PE */
    unsigned char *digest; /* of them, where one is asked for */
} exchange_buffer;

struct weft_threads {
    wefti_os_monitor *monitor;
    int owner; /* the process that made it: a forked one has a copy, whose monitor may be in use for ever */
    int pes;
    char name[WEFTI_BOOTSTRAP_NAME_BYTES]; /* of the world being created: what its first PE said */
    int first; /* that PE */
    uint64_t exchange; /* the one being made */
    int arrived; /* PEs that came to it */
    int has_warned; /* a warning that it takes long has been logged */
    int gone; /* PEs that left this generation */
    uint64_t *exchanges; /* by PE: how many it came to */
    unsigned char *places; /* by PE: pe_place */
    unsigned char *marks; /* by PE: scratch for naming PEs */
    exchange_buffer buffers[2];
    weft_status failed; /* the latched error: not WEFT_OK once this generation has failed */
    int to_be_told; /* how many more PEs of the failed generation may come and get its error */
    char text[WEFTI_ERROR_BYTES];
};

/* ---- the object ---- */

weft_status weft_threads_create(int pes, weft_threads **out)
{
    if (pes < 1 || out == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_threads_create needs at least 1 PE (%d given) and an output", pes);
    }
    weft_threads *threads = wefti_alloc_zeroed(1, sizeof *threads);
    if (threads == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for a meeting point of %d threads", pes);
    }
    threads->pes = pes;
    threads->owner = wefti_os_owner_number();
    threads->exchanges = wefti_alloc_zeroed((size_t)pes, sizeof *threads->exchanges);
    threads->places = wefti_alloc_zeroed((size_t)pes, 1);
    threads->marks = wefti_alloc_zeroed((size_t)pes, 1);
    weft_status status = wefti_os_monitor_create(&threads->monitor);
    if (status == WEFT_OK && (threads->exchanges == NULL || threads->places == NULL || threads->marks == NULL)) {
        status = wefti_error(WEFT_ERR_MEMORY, "no memory for a meeting point of %d threads", pes);
    }
    if (status != WEFT_OK) {
        weft_threads_destroy(threads);
        return status;
    }
    *out = threads;
    return WEFT_OK;
}

void weft_threads_destroy(weft_threads *threads)
{
    if (threads == NULL || threads->owner != wefti_os_owner_number()) {
        return;
    }
    if (threads->monitor != NULL) {
        wefti_os_monitor_destroy(threads->monitor);
    }
    for (int i = 0; i < 2; i++) {
        wefti_free(threads->buffers[i].memory);
        wefti_free(threads->buffers[i].digest);
    }
    wefti_free(threads->exchanges);
    wefti_free(threads->places);
    wefti_free(threads->marks);
    wefti_free(threads);
}

/* ---- failure: latched, and the same on every PE ---- */

/* Latch the error that this thread has just decided. */
static weft_status latch(weft_threads *threads, weft_status status, int to_be_told)
{
    threads->failed = status;
    threads->to_be_told = to_be_told;
    (void)snprintf(threads->text, sizeof threads->text, "%s", weft_last_error());
    wefti_os_monitor_notify_all(threads->monitor);
    return status;
}

static weft_status relay_latch(const weft_threads *threads)
{
    return wefti_error_relay(threads->failed, threads->text);
}

/* What a PE gets that comes after a failure: its own share of it, or none. */
static weft_status refuse_late_comer(weft_threads *threads)
{
    if (threads->to_be_told > 0) {
        threads->to_be_told--;
        return relay_latch(threads);
    }
    return wefti_error(
        WEFT_ERR_STATE,
        "this meeting point of %d threads is spent, an earlier creation failed there (%.200s); make a new "
        "one with weft_threads_create",
        threads->pes, threads->text);
}

static void mark_missing(weft_threads *threads)
{
    for (int pe = 0; pe < threads->pes; pe++) {
        threads->marks[pe] = threads->exchanges[pe] <= threads->exchange;
    }
}

static weft_status name_missing(weft_threads *threads, uint64_t deadline_ns)
{
    char missing[WEFTI_PE_LIST_BYTES];
    mark_missing(threads);
    (void)wefti_pe_list_text(threads->marks, threads->pes, 1, missing);
    weft_status status =
        wefti_error(WEFT_ERR_TIMEOUT,
                    "world \"%s\": %s had not come to %s when the deadline of %.3g s passed; start "
                    "what is missing, or raise WEFT_DEADLINE",
                    threads->name, missing, threads->exchange == 0 ? "its creation" : "an exchange during creation",
                    (double)deadline_ns * 1e-9);
    return latch(threads, status, 0);
}

/* Decide the error: a PE has left, and will not come to the exchange in which others wait. */
static weft_status name_gone(weft_threads *threads)
{
    char gone[WEFTI_PE_LIST_BYTES];
    int count = 0;
    for (int pe = 0; pe < threads->pes; pe++) {
        threads->marks[pe] = threads->places[pe] == PE_GONE && threads->exchanges[pe] <= threads->exchange;
        count += threads->marks[pe];
    }
    if (count == 0 || threads->arrived == 0) {
        return WEFT_OK;
    }
    (void)wefti_pe_list_text(threads->marks, threads->pes, 1, gone);
    weft_status status =
        wefti_error(WEFT_ERR_PEER, "world \"%s\": %s left during creation; an earlier message of the same PE says why",
                    threads->name, gone);
    return latch(threads, status, 0);
}

/* ---- exchanges; the caller is inside the monitor ---- */

static void begin_generation(weft_threads *threads)
{
    memset(threads->exchanges, 0, (size_t)threads->pes * sizeof *threads->exchanges);
    memset(threads->places, PE_AWAY, (size_t)threads->pes);
    threads->exchange = 0;
    threads->arrived = 0;
    threads->gone = 0;
}

static void warn(weft_threads *threads)
{
    char missing[WEFTI_PE_LIST_BYTES];
    threads->has_warned = 1;
    mark_missing(threads);
    (void)wefti_pe_list_text(threads->marks, threads->pes, 1, missing);
    wefti_log(WEFTI_LOG_WARN, "world \"%s\": its creation still waits for %s", threads->name, missing);
}

/* Sleep until something happens. Returns 0 when the time has passed. */
static int await_change(weft_threads *threads, uint64_t until_ns, uint64_t warn_ns)
{
    int will_warn = !threads->has_warned && warn_ns < until_ns;
    int in_time = wefti_os_monitor_wait(threads->monitor, will_warn ? warn_ns : until_ns);
    return in_time || will_warn;
}

/* Count `pe` in and wait until all have come to the same exchange; until_ns is when that deadline passes. */
static weft_status meet(weft_threads *threads, int pe, uint64_t deadline_ns, uint64_t until_ns, uint64_t warn_ns)
{
    uint64_t exchange = threads->exchange;
    warn_ns = warn_ns == 0 ? UINT64_MAX : wefti_os_now_ns() + warn_ns;
    threads->exchanges[pe]++;
    threads->arrived++;
    WEFT_TRY(name_gone(threads));
    if (threads->arrived == threads->pes) {
        threads->arrived = 0;
        threads->exchange++;
        threads->has_warned = 0;
        wefti_os_monitor_notify_all(threads->monitor);
        return WEFT_OK;
    }
    while (threads->exchange == exchange && threads->failed == WEFT_OK) {
        int in_time = await_change(threads, until_ns, warn_ns);
        int is_waiting = threads->exchange == exchange && threads->failed == WEFT_OK;
        if (is_waiting && !in_time) {
            return name_missing(threads, deadline_ns);
        }
        if (is_waiting && !threads->has_warned && wefti_os_now_ns() >= warn_ns) {
            warn(threads);
        }
    }
    return threads->exchange == exchange ? relay_latch(threads) : WEFT_OK;
}

static unsigned buffer_of(uint64_t exchange)
{
    return (unsigned)(exchange % 2);
}

/* Put a contribution into the buffer whose turn it is. */
static weft_status deposit(weft_threads *threads, int pe, const void *mine, size_t bytes)
{
    exchange_buffer *now = &threads->buffers[buffer_of(threads->exchange)];
    if (threads->arrived == 0) {
        now->bytes = bytes;
    }
    if (now->bytes != bytes) {
        weft_status status = wefti_error(WEFT_ERR_MISMATCH, "world \"%s\": PE %d exchanges %zu bytes, others %zu",
                                         threads->name, pe, bytes, now->bytes);
        return latch(threads, status, 0);
    }
    size_t wanted = bytes * (size_t)threads->pes;
    if (now->capacity < wanted) {
        unsigned char *grown = wefti_realloc(now->memory, wanted);
        if (grown == NULL) {
            weft_status status = wefti_error(WEFT_ERR_MEMORY, "world \"%s\": PE %d has no memory to exchange %zu bytes",
                                             threads->name, pe, wanted);
            return latch(threads, status, 0);
        }
        now->memory = grown;
        now->capacity = wanted;
    }
    if (bytes > 0) {
        memcpy(now->memory + (size_t)pe * bytes, mine, bytes);
    }
    return WEFT_OK;
}

/* The last PE to come makes the digest for all. */
static weft_status make_digest(weft_threads *threads, const wefti_digest_call *call)
{
    exchange_buffer *now = &threads->buffers[buffer_of(threads->exchange)];
    if (threads->arrived + 1 < threads->pes) {
        return WEFT_OK;
    }
    wefti_free(now->digest);
    now->digest = wefti_alloc(call->digest_bytes);
    weft_status status = now->digest != NULL ? call->make(now->memory, threads->pes, now->digest)
                                             : wefti_error(WEFT_ERR_MEMORY, "world \"%s\": no memory for %zu bytes",
                                                           threads->name, call->digest_bytes);
    return status == WEFT_OK ? WEFT_OK : latch(threads, status, 0);
}

/* ---- the ops ---- */

/* Check that a PE that comes fits those that are here. If not, it counts as one of the failed generation. */
static weft_status check_comer(weft_threads *threads, const weft_world_config *config)
{
    const char *name = wefti_bootstrap_world_name(config);
    weft_status status = WEFT_OK;
    if (config->pes != 0 && config->pes != threads->pes) {
        status = wefti_error(WEFT_ERR_MISMATCH,
                             "world \"%s\": PE %d was given %d PEs, but its meeting point is one of %d threads", name,
                             config->pe, config->pes, threads->pes);
    } else if (config->pe >= threads->pes) {
        status = wefti_error(WEFT_ERR_MISMATCH, "world \"%s\": PE %d does not fit its meeting point of %d threads",
                             name, config->pe, threads->pes);
    } else if (threads->places[config->pe] == PE_HERE) {
        status = wefti_error(WEFT_ERR_MISMATCH, "world \"%s\": PE %d came twice; give each PE a number of its own",
                             name, config->pe);
    } else if (threads->arrived > 0 && strcmp(threads->name, name) != 0) {
        status = wefti_error(WEFT_ERR_MISMATCH, "PE %d creates the world \"%s\" where PE %d creates \"%s\"", config->pe,
                             name, threads->first, threads->name);
    }
    return status == WEFT_OK ? WEFT_OK : latch(threads, status, threads->pes - threads->arrived - 1);
}

/* Once all have come, who comes next, under whatever number, comes for the next world: wait until all have left
 * this. */
static weft_status await_generation(weft_threads *threads, const weft_world_config *config)
{
    uint64_t until_ns = wefti_os_now_ns() + config->deadline_ns;
    while (threads->failed == WEFT_OK && threads->exchange > 0) {
        if (!wefti_os_monitor_wait(threads->monitor, until_ns)) {
            return wefti_error(
                WEFT_ERR_TIMEOUT,
                "PE %d cannot create the world \"%s\": other threads of its meeting point are still busy "
                "creating \"%s\"",
                config->pe, wefti_bootstrap_world_name(config), threads->name);
        }
    }
    return threads->failed == WEFT_OK ? WEFT_OK : refuse_late_comer(threads);
}

static weft_status come(weft_threads *threads, const weft_world_config *config)
{
    WEFT_TRY(await_generation(threads, config));
    WEFT_TRY(check_comer(threads, config));
    if (threads->arrived == 0) {
        (void)snprintf(threads->name, sizeof threads->name, "%s", wefti_bootstrap_world_name(config));
        threads->first = config->pe;
    }
    threads->places[config->pe] = PE_HERE;
    return meet(threads, config->pe, config->deadline_ns, wefti_os_now_ns() + config->deadline_ns, config->warn_ns);
}

static weft_status threads_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    weft_threads *threads = config->threads;
    if (threads == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "WEFT_BOOTSTRAP_THREADS needs config.threads, from weft_threads_create");
    }
    if (threads->owner != wefti_os_owner_number()) {
        return wefti_error(WEFT_ERR_STATE,
                           "world \"%s\": this process was forked from the one that made config.threads; make another "
                           "by weft_threads_create",
                           wefti_bootstrap_world_name(config));
    }
    wefti_os_monitor_enter(threads->monitor);
    weft_status status = come(threads, config);
    wefti_os_monitor_leave(threads->monitor);
    if (status == WEFT_OK) {
        bootstrap->pe = config->pe;
        bootstrap->pes = threads->pes;
        bootstrap->state = threads;
    }
    return status;
}

/* `call`: of the digest that is to be made; NULL: none. */
static weft_status exchange(wefti_bootstrap *bootstrap, const void *mine, size_t bytes, const wefti_digest_call *call,
                            exchange_buffer *out)
{
    weft_threads *threads = bootstrap->state;
    wefti_os_monitor_enter(threads->monitor);
    const exchange_buffer *now = &threads->buffers[buffer_of(threads->exchange)];
    weft_status status =
        threads->failed == WEFT_OK ? deposit(threads, bootstrap->pe, mine, bytes) : relay_latch(threads);
    if (status == WEFT_OK && call != NULL) {
        status = make_digest(threads, call);
    }
    if (status == WEFT_OK) {
        status = meet(threads, bootstrap->pe, bootstrap->deadline_ns, wefti_bootstrap_limit_ns(bootstrap), 0);
    }
    *out = *now;
    wefti_os_monitor_leave(threads->monitor);
    return status;
}

static weft_status threads_allgather(wefti_bootstrap *bootstrap, const void *mine, void *all, size_t bytes)
{
    exchange_buffer now;
    WEFT_TRY(exchange(bootstrap, mine, bytes, NULL, &now));
    if (bytes > 0) {
        memcpy(all, now.memory, bytes * (size_t)bootstrap->pes);
    }
    return WEFT_OK;
}

static weft_status threads_digest(wefti_bootstrap *bootstrap, const wefti_digest_call *call)
{
    exchange_buffer now;
    WEFT_TRY(exchange(bootstrap, call->mine, call->bytes, call, &now));
    memcpy(call->digest, now.digest, call->digest_bytes);
    return WEFT_OK;
}

static void threads_close(wefti_bootstrap *bootstrap)
{
    weft_threads *threads = bootstrap->state;
    wefti_os_monitor_enter(threads->monitor);
    threads->places[bootstrap->pe] = PE_GONE;
    threads->gone++;
    if (threads->failed == WEFT_OK && threads->gone == threads->pes) {
        begin_generation(threads);
        wefti_os_monitor_notify_all(threads->monitor);
    } else if (threads->failed == WEFT_OK) {
        (void)name_gone(threads);
    }
    wefti_os_monitor_leave(threads->monitor);
}

const wefti_bootstrap_ops wefti_bootstrap_threads = {
    .name = "threads",
    .open = threads_open,
    .allgather = threads_allgather,
    .digest = threads_digest,
    .close = threads_close,
};

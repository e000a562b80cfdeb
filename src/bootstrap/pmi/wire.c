/* bootstrap/pmi/wire.c: PMI's protocols, as launchers speak them over the socket that they leave open in PMI_FD.
 *
 * PMI-1: lines of "key=value" with blanks between. PMI-2: six digits that say how long the rest is, and "key=value;".
 * One question, one answer. What the launcher says is bounded, and an answer to something else than what was asked, or
 * none in time, ends the connection for good: nobody would know to which question the next answer is. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "bootstrap/pmi/store.h"
#include "os/socket.h"

#define MESSAGE_BYTES 2048
#define PREFIX_BYTES 6 /* of PMI-2 */
#define FIRST_ANSWER "response_to_init"
#define LEAVE_NS UINT64_C(1000000000)

typedef struct wire {
    int descriptor;
    uint64_t cookie; /* of the socket: others of the process may close the descriptor */
    size_t used; /* of `in` */
    char in[MESSAGE_BYTES];
    char answer[MESSAGE_BYTES]; /* the last, a text */
} wire;

static weft_status break_off(wefti_pmi_store *store, weft_status status, const char *format, ...) WEFT_PRINTF(3, 4);

static weft_status break_off(wefti_pmi_store *store, weft_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(store->broken, sizeof store->broken, format, arguments);
    va_end(arguments);
    return wefti_error(status, "%s", store->broken);
}

/* ---- bytes ---- */

static weft_status await(wefti_pmi_store *store, short events, const char *what, uint64_t until_ns)
{
    const wire *w = store->state;
    for (;;) {
        struct pollfd item = {.fd = w->descriptor, .events = events};
        const uint64_t now_ns = wefti_os_now_ns();
        if (now_ns >= until_ns) {
            return break_off(store, WEFT_ERR_TIMEOUT, "the launcher did not answer PMI's \"%.40s\" in time%s", what,
                             strstr(what, "barrier") != NULL || strstr(what, "fence") != NULL
                                 ? ": a process of the job did not come, which PMI does not name"
                                 : "");
        }
        if (wefti_os_socket_poll(&item, 1, until_ns - now_ns) > 0) {
            return WEFT_OK;
        }
    }
}

/* A launcher serves one program in a place: who takes leave has the connection closed. */
static weft_status lose(wefti_pmi_store *store, const char *what, const char *why)
{
    if (strcmp(what, FIRST_ANSWER) == 0) {
        return break_off(store, WEFT_ERR_SYSTEM,
                         "the launcher does not answer PMI here (%s): a program that ran before in this place, of the "
                         "same script, has spoken PMI and taken leave; start each program by srun or mpiexec itself",
                         why);
    }
    return break_off(store, WEFT_ERR_SYSTEM, "the launcher's PMI cannot be asked for \"%.40s\": %s", what, why);
}

static weft_status send_text(wefti_pmi_store *store, const char *message, size_t bytes, const char *what,
                             uint64_t until_ns)
{
    const wire *w = store->state;
    if (wefti_os_socket_cookie(w->descriptor) != w->cookie) {
        return break_off(store, WEFT_ERR_SYSTEM, "descriptor %d, by which the launcher's PMI was asked, was closed",
                         w->descriptor);
    }
    for (size_t sent = 0; sent < bytes;) {
        struct iovec part = {(void *)(uintptr_t)(message + sent), bytes - sent};
        WEFT_TRY(await(store, POLLOUT, what, until_ns));
        const ssize_t took = wefti_fault("send", ECONNRESET) ? -1 : wefti_os_socket_send(w->descriptor, &part, 1);
        if (took < 0 && errno != EAGAIN && errno != EINTR) {
            return lose(store, what, strerror(errno));
        }
        sent += took > 0 ? (size_t)took : 0;
    }
    return WEFT_OK;
}

/* How many bytes of `in` are the first message, with what surrounds it; 0: not all are there. -1: it is none. */
static long measure(const wefti_pmi_store *store, const wire *w)
{
    if (store->version == 1) {
        const char *end = memchr(w->in, '\n', w->used);
        return end != NULL ? end - w->in + 1 : w->used == sizeof w->in ? -1 : 0;
    }
    if (w->used < PREFIX_BYTES) {
        return 0;
    }
    long bytes = 0;
    for (int i = 0; i < PREFIX_BYTES; i++) {
        if (w->in[i] != ' ' && (w->in[i] < '0' || w->in[i] > '9')) {
            return -1;
        }
        bytes = w->in[i] == ' ' ? bytes : bytes * 10 + (w->in[i] - '0');
    }
    if (bytes == 0 || bytes > MESSAGE_BYTES - PREFIX_BYTES) {
        return -1;
    }
    return (size_t)bytes + PREFIX_BYTES <= w->used ? bytes + PREFIX_BYTES : 0;
}

static void take(const wefti_pmi_store *store, wire *w, size_t bytes)
{
    const size_t before = store->version == 1 ? 0 : PREFIX_BYTES;
    const size_t behind = store->version == 1 ? 1 : 0;
    memcpy(w->answer, w->in + before, bytes - before - behind);
    w->answer[bytes - before - behind] = '\0';
    w->used -= bytes;
    memmove(w->in, w->in + bytes, w->used);
}

static weft_status receive(wefti_pmi_store *store, const char *what, uint64_t until_ns)
{
    wire *w = store->state;
    for (;;) {
        const long bytes = measure(store, w);
        if (bytes < 0) {
            return break_off(store, WEFT_ERR_SYSTEM, "what the launcher said to PMI's \"%.40s\" is no answer of PMI-%d",
                             what, store->version);
        }
        if (bytes > 0) {
            take(store, w, (size_t)bytes);
            return WEFT_OK;
        }
        WEFT_TRY(await(store, POLLIN, what, until_ns));
        const ssize_t got = wefti_fault("receive", ECONNRESET)
                                ? -1
                                : wefti_os_socket_receive(w->descriptor, w->in + w->used, sizeof w->in - w->used);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            return lose(store, what, "it has closed the connection");
        }
        w->used += got > 0 ? (size_t)got : 0;
    }
}

/* ---- messages ---- */

/* The value of a key in the last answer, at most bytes - 1 of it; 0 if there is none or it is longer. */
static int find(const wefti_pmi_store *store, const char *key, char *value, size_t bytes)
{
    const wire *w = store->state;
    const char mark = store->version == 1 ? ' ' : ';';
    const size_t length = strlen(key);
    for (const char *at = w->answer; at != NULL; at = strchr(at, mark)) {
        at += *at == mark;
        if (strncmp(at, key, length) == 0 && at[length] == '=') {
            const char *from = at + length + 1;
            const char *end = strchr(from, mark);
            const size_t has = end == NULL ? strlen(from) : (size_t)(end - from);
            if (has >= bytes) {
                return 0;
            }
            memcpy(value, from, has);
            value[has] = '\0';
            return 1;
        }
    }
    return 0;
}

/* A question and its answer, which must begin with cmd=`wanted`. */
static weft_status ask(wefti_pmi_store *store, const char *wanted, uint64_t until_ns, const char *format, ...)
    WEFT_PRINTF(4, 5);

static weft_status ask(wefti_pmi_store *store, const char *wanted, uint64_t until_ns, const char *format, ...)
{
    char message[MESSAGE_BYTES];
    char said[48];
    va_list arguments;
    if (store->broken[0] != '\0') {
        return wefti_error(WEFT_ERR_STATE, "PMI cannot be used any more: %s", store->broken);
    }
    va_start(arguments, format);
    const int bytes = vsnprintf(message + PREFIX_BYTES, sizeof message - PREFIX_BYTES, format, arguments);
    va_end(arguments);
    if (bytes < 0 || (size_t)bytes >= sizeof message - PREFIX_BYTES) {
        return wefti_error(WEFT_ERR_SYSTEM, "a message to PMI is too long");
    }
    const int is_framed = store->version == 2 && strcmp(wanted, FIRST_ANSWER) != 0;
    if (is_framed) {
        char prefix[16];
        (void)snprintf(prefix, sizeof prefix, "%6d", bytes);
        memcpy(message, prefix, PREFIX_BYTES);
    }
    WEFT_TRY(send_text(store, is_framed ? message : message + PREFIX_BYTES,
                       (size_t)bytes + (is_framed ? PREFIX_BYTES : 0), wanted, until_ns));
    WEFT_TRY(receive(store, wanted, until_ns));
    if (!find(store, "cmd", said, sizeof said) || strcmp(said, wanted) != 0) {
        return break_off(store, WEFT_ERR_SYSTEM, "the launcher's PMI said something else than \"%.40s\"", wanted);
    }
    return WEFT_OK;
}

/* Whether the last answer says that it was done: launchers say "rc=0", or "info=ok". */
static int is_done(const wefti_pmi_store *store)
{
    char word[16];
    if (find(store, "rc", word, sizeof word)) {
        return strcmp(word, "0") == 0;
    }
    return find(store, "info", word, sizeof word) && strcmp(word, "ok") == 0;
}

/* A number from 0 to INT32_MAX, or -1. */
static int find_number(const wefti_pmi_store *store, const char *key)
{
    char text[16];
    char *end;
    if (!find(store, key, text, sizeof text) || text[0] < '0' || text[0] > '9') {
        return -1;
    }
    const unsigned long number = strtoul(text, &end, 10);
    return *end == '\0' && number <= INT32_MAX ? (int)number : -1;
}

/* ---- names and values ---- */

static weft_status wire_publish(wefti_pmi_store *store, const char *name, const char *value, uint64_t until_ns)
{
    WEFT_TRY(store->version == 1
                 ? ask(store, "publish_result", until_ns, "cmd=publish_name service=%s port=%s\n", name, value)
                 : ask(store, "name-publish-response", until_ns, "cmd=name-publish;name=%s;port=%s;infokeycount=0;",
                       name, value));
    return is_done(store) ? WEFT_OK : WEFT_ERR_STATE;
}

static weft_status wire_lookup(wefti_pmi_store *store, const char *name, char value[WEFTI_PMI_VALUE_BYTES],
                               uint64_t until_ns)
{
    WEFT_TRY(store->version == 1
                 ? ask(store, "lookup_result", until_ns, "cmd=lookup_name service=%s\n", name)
                 : ask(store, "name-lookup-response", until_ns, "cmd=name-lookup;name=%s;infokeycount=0;", name));
    return is_done(store) && (find(store, "port", value, WEFTI_PMI_VALUE_BYTES) ||
                              find(store, "value", value, WEFTI_PMI_VALUE_BYTES))
               ? WEFT_OK
               : WEFT_ERR_STATE;
}

static weft_status wire_unpublish(wefti_pmi_store *store, const char *name, uint64_t until_ns)
{
    WEFT_TRY(store->version == 1
                 ? ask(store, "unpublish_result", until_ns, "cmd=unpublish_name service=%s\n", name)
                 : ask(store, "name-unpublish-response", until_ns, "cmd=name-unpublish;name=%s;infokeycount=0;", name));
    return is_done(store) ? WEFT_OK : WEFT_ERR_STATE;
}

static weft_status wire_put(wefti_pmi_store *store, const char *key, const char *value, uint64_t until_ns)
{
    WEFT_TRY(store->version == 1
                 ? ask(store, "put_result", until_ns, "cmd=put kvsname=%s key=%s value=%s\n", store->job, key, value)
                 : ask(store, "kvs-put-response", until_ns, "cmd=kvs-put;key=%s;value=%s;", key, value));
    return is_done(store) ? WEFT_OK : WEFT_ERR_STATE;
}

static weft_status wire_fence(wefti_pmi_store *store, uint64_t until_ns)
{
    if (store->version == 1) {
        return ask(store, "barrier_out", until_ns, "cmd=barrier_in\n");
    }
    WEFT_TRY(ask(store, "kvs-fence-response", until_ns, "cmd=kvs-fence;"));
    return is_done(store) ? WEFT_OK : WEFT_ERR_STATE;
}

static weft_status wire_get(wefti_pmi_store *store, const char *key, char value[WEFTI_PMI_VALUE_BYTES],
                            uint64_t until_ns)
{
    WEFT_TRY(store->version == 1
                 ? ask(store, "get_result", until_ns, "cmd=get kvsname=%s key=%s\n", store->job, key)
                 : ask(store, "kvs-get-response", until_ns, "cmd=kvs-get;jobid=%s;srcid=-1;key=%s;", store->job, key));
    return is_done(store) && find(store, "value", value, WEFTI_PMI_VALUE_BYTES) ? WEFT_OK : WEFT_ERR_STATE;
}

static const wefti_pmi_store_ops wire_ops = {
    .publish = wire_publish,
    .lookup = wire_lookup,
    .unpublish = wire_unpublish,
    .put = wire_put,
    .fence = wire_fence,
    .get = wire_get,
};

/* ---- joining ---- */

static weft_status join_first(wefti_pmi_store *store, uint64_t until_ns)
{
    WEFT_TRY(ask(store, FIRST_ANSWER, until_ns, "cmd=init pmi_version=1 pmi_subversion=1\n"));
    if (!is_done(store)) {
        return break_off(store, WEFT_ERR_SYSTEM, "the launcher does not speak PMI-1");
    }
    WEFT_TRY(ask(store, "my_kvsname", until_ns, "cmd=get_my_kvsname\n"));
    if (!find(store, "kvsname", store->job, sizeof store->job)) {
        return break_off(store, WEFT_ERR_SYSTEM, "the launcher's PMI-1 has no name for the job's values");
    }
    return WEFT_OK;
}

/* The first answer is still a line. */
static weft_status join_second(wefti_pmi_store *store, uint64_t until_ns)
{
    char word[16];
    const int rank = store->rank;
    store->version = 1;
    weft_status status = ask(store, FIRST_ANSWER, until_ns, "cmd=init pmi_version=2 pmi_subversion=0\n");
    const int speaks =
        status == WEFT_OK && is_done(store) && find(store, "pmi_version", word, sizeof word) && strcmp(word, "2") == 0;
    store->version = 2;
    WEFT_TRY(status);
    if (!speaks) {
        return break_off(store, WEFT_ERR_SYSTEM, "the launcher does not speak PMI-2; try WEFT_BOOTSTRAP=pmi1");
    }
    WEFT_TRY(ask(store, "fullinit-response", until_ns, "cmd=fullinit;pmijobid=%.200s;pmirank=%d;threaded=FALSE;",
                 store->job, rank));
    store->rank = find_number(store, "rank");
    store->size = find_number(store, "size");
    if (!is_done(store) || store->rank != rank || store->size <= rank) {
        return break_off(store, WEFT_ERR_SYSTEM,
                         "the launcher's PMI-2 says that process %d is number %d of %d, which cannot be", rank,
                         store->rank, store->size);
    }
    WEFT_TRY(ask(store, "job-getid-response", until_ns, "cmd=job-getid;"));
    if (!find(store, "jobid", store->job, sizeof store->job)) {
        return break_off(store, WEFT_ERR_SYSTEM, "the launcher's PMI-2 has no name for the job");
    }
    return WEFT_OK;
}

weft_status wefti_pmi_wire_join(wefti_pmi_store *store, int descriptor, int version, uint64_t until_ns)
{
    wire *w = wefti_alloc_zeroed(1, sizeof *w);
    if (w == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "process %d of the launcher's job has no memory to speak PMI", store->rank);
    }
    w->descriptor = descriptor;
    w->cookie = wefti_os_socket_cookie(descriptor);
    store->ops = &wire_ops;
    store->version = version;
    store->state = w;
    weft_status status = version == 1 ? join_first(store, until_ns) : join_second(store, until_ns);
    if (status != WEFT_OK) {
        wefti_free(w);
        store->state = NULL;
    }
    return status;
}

void wefti_pmi_wire_leave(wefti_pmi_store *store)
{
    if (store->state == NULL) {
        return;
    }
    const uint64_t until_ns = wefti_os_now_ns() + LEAVE_NS;
    if (store->broken[0] == '\0') {
        (void)(store->version == 1 ? ask(store, "finalize_ack", until_ns, "cmd=finalize\n")
                                   : ask(store, "finalize-response", until_ns, "cmd=finalize;"));
    }
    wefti_free(store->state);
    store->state = NULL;
}

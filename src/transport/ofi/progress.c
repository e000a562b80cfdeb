/* Completions, and the thread that sees to them. A PE that waits in a call sees to them itself, which spares it a
 * switch of threads; the thread does while nobody waits, so that a PE that computes is read from and written to all the
 * same. Where calls are to see to them (WEFT_PROGRESS=inline) the thread looks seldom: it sees to the creation and the
 * end of worlds, in which no call looks, and to small puts that are gathered. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "transport/ofi/ofi.h"

#define COMPLETIONS_AT_ONCE 16
#define POLLED_NS 500000
#define REST_MS 1
#define REST_INLINE_MS 10 /* where calls see to what comes */
#define LOOKS 8 /* each endpoint is looked at at least once in so many turns */
/* After something has come: to be asleep costs who asks the time that it takes to be woken, to yield that of others. */
#define AWAKE_NS 200000
#define ALERT_NS 50000

/* ---- buffers ---- */

static int endpoint_of(const wefti_ofi_buffer *buffer)
{
    return buffer->role == WEFTI_OFI_REQUEST_IN || buffer->role == WEFTI_OFI_REQUEST_OUT ? WEFTI_FABRIC_REQUESTS
                                                                                         : WEFTI_FABRIC_REPLIES;
}

static int try_post(wefti_ofi *ofi, wefti_ofi_buffer *buffer)
{
    return fi_recv(ofi->fabric.endpoints[endpoint_of(buffer)], buffer->header, WEFTI_OFI_MESSAGE_MAX,
                   ofi->fabric.descriptor, FI_ADDR_UNSPEC, &buffer->context) == 0;
}

void wefti_ofi_post(wefti_ofi *ofi, wefti_ofi_buffer *buffer)
{
    if (!try_post(ofi, buffer)) {
        buffer->next = ofi->unposted;
        ofi->unposted = buffer;
    }
}

static void post_unposted(wefti_ofi *ofi)
{
    while (ofi->unposted != NULL) {
        wefti_ofi_buffer *buffer = ofi->unposted;
        if (!try_post(ofi, buffer)) {
            return;
        }
        ofi->unposted = buffer->next;
    }
}

int wefti_ofi_send(wefti_ofi *ofi, wefti_ofi_buffer *buffer, int *error)
{
    const int endpoint = endpoint_of(buffer);
    *error = (int)fi_send(ofi->fabric.endpoints[endpoint], buffer->header, buffer->bytes, ofi->fabric.descriptor,
                          ofi->peers[buffer->pe].at[endpoint], &buffer->context);
    return *error == 0;
}

/* The provider has done with a buffer. */
static void give_back(wefti_ofi *ofi, wefti_ofi_buffer *buffer)
{
    if (buffer->role == WEFTI_OFI_REQUEST_OUT) {
        wefti_ofi_free_out(ofi, buffer);
        return;
    }
    if (buffer->role == WEFTI_OFI_REPLY_OUT) {
        buffer->role = WEFTI_OFI_REQUEST_IN;
    }
    wefti_ofi_post(ofi, buffer);
}

/* ---- completions ---- */

static wefti_ofi_buffer *buffer_of(void *context)
{
    return (wefti_ofi_buffer *)((char *)context - offsetof(wefti_ofi_buffer, context));
}

static void complete(wefti_ofi *ofi, const struct fi_cq_msg_entry *entry)
{
    wefti_ofi_buffer *buffer = buffer_of(entry->op_context);
    switch (buffer->role) {
    case WEFTI_OFI_REQUEST_IN:
        wefti_ofi_serve(ofi, buffer, entry->len);
        return;
    case WEFTI_OFI_REPLY_IN:
        wefti_ofi_take_reply(ofi, buffer->header, entry->len);
        break;
    case WEFTI_OFI_RMA:
        wefti_ofi_rma_take(ofi, buffer, 0);
        return;
    case WEFTI_OFI_REQUEST_OUT:
    case WEFTI_OFI_REPLY_OUT:
        break;
    }
    give_back(ofi, buffer);
}

void wefti_ofi_lose(wefti_ofi *ofi, uint32_t pe)
{
    ofi->peers[pe].is_lost = 1;
    for (size_t i = 0; i < WEFTI_OFI_WAITING_MAX; i++) {
        wefti_ofi_request *request = &ofi->requests[i];
        if (request->number != 0 && !request->is_done && request->pe == pe) {
            request->status = WEFT_ERR_PEER;
            request->is_done = 1;
        }
    }
}

/* An operation that failed: a message that could not be sent tells that its PE is gone. */
static int take_failure(wefti_ofi *ofi, int endpoint)
{
    struct fi_cq_err_entry entry = {0};
    if (fi_cq_readerr(ofi->fabric.completions[endpoint], &entry, 0) <= 0) {
        return 0;
    }
    if (entry.op_context == NULL) {
        return 1;
    }
    wefti_ofi_buffer *buffer = buffer_of(entry.op_context);
    if (buffer->role == WEFTI_OFI_REQUEST_OUT || buffer->role == WEFTI_OFI_REPLY_OUT || buffer->role == WEFTI_OFI_RMA) {
        wefti_ofi_lose(ofi, buffer->pe);
    }
    if (buffer->role == WEFTI_OFI_RMA) {
        wefti_ofi_rma_take(ofi, buffer, 1);
    } else if (!ofi->is_closing) {
        give_back(ofi, buffer);
    }
    return 1;
}

/* Returns 0 if nothing has happened at this endpoint. */
static int look(wefti_ofi *ofi, int endpoint)
{
    struct fi_cq_msg_entry entries[COMPLETIONS_AT_ONCE];
    ssize_t count = fi_cq_read(ofi->fabric.completions[endpoint], entries, COMPLETIONS_AT_ONCE);
    if (count == -FI_EAVAIL) {
        return take_failure(ofi, endpoint);
    }
    for (ssize_t i = 0; i < count; i++) {
        complete(ofi, &entries[i]);
    }
    return count > 0;
}

static void send_and_post(wefti_ofi *ofi)
{
    wefti_ofi_send_unsent(ofi);
    post_unposted(ofi);
}

int wefti_ofi_progress(wefti_ofi *ofi)
{
    int happened = 0;
    for (int endpoint = 0; endpoint < WEFTI_FABRIC_ENDPOINTS; endpoint++) {
        happened |= look(ofi, endpoint);
    }
    send_and_post(ofi);
    return happened;
}

/* Looking at an endpoint is a call of the system or two. Who waits for a reply finds it at one, who waits for a word at
 * the other; the rest is seen to now and then. */
static int look_where_due(wefti_ofi *ofi)
{
    const int awaits_reply = ofi->requests_free < WEFTI_OFI_WAITING_MAX;
    const uint32_t turn = ofi->looks++ % LOOKS;
    int happened = 0;
    if (awaits_reply || turn == 0) {
        happened |= look(ofi, WEFTI_FABRIC_REPLIES);
    }
    if (!awaits_reply || turn % 2 == 0) {
        happened |= look(ofi, WEFTI_FABRIC_REQUESTS);
    }
    send_and_post(ofi);
    return happened;
}

int wefti_ofi_poll(wefti_ofi *ofi)
{
    ofi->polled_ns = wefti_os_now_ns();
    wefti_ofi_try_gathered(ofi, UINT64_MAX);
    if (!look_where_due(ofi)) {
        return 0;
    }
    ofi->came_ns = ofi->polled_ns;
    return 1;
}

/* ---- sleeping ---- */

/* Whether a sleep will end when there is something to see to. */
static int can_sleep(wefti_ofi *ofi)
{
    struct fid *objects[WEFTI_FABRIC_ENDPOINTS];
    for (int endpoint = 0; endpoint < WEFTI_FABRIC_ENDPOINTS; endpoint++) {
        objects[endpoint] = &ofi->fabric.completions[endpoint]->fid;
    }
    return ofi->unsent == NULL && ofi->unposted == NULL && ofi->gathering == NULL &&
           (ofi->setup.progress_inline || fi_trywait(ofi->fabric.fabric, objects, WEFTI_FABRIC_ENDPOINTS) == 0);
}

void wefti_ofi_wake(wefti_ofi *ofi)
{
    if (ofi->is_asleep) {
        ofi->is_asleep = 0;
        (void)!write(ofi->wake[1], "", 1);
    }
}

static void await_endpoints(const wefti_ofi *ofi, struct pollfd items[WEFTI_FABRIC_ENDPOINTS])
{
    for (int endpoint = 0; endpoint < WEFTI_FABRIC_ENDPOINTS; endpoint++) {
        items[endpoint] = (struct pollfd){.fd = ofi->fabric.wake[endpoint], .events = POLLIN};
    }
}

/* The thread's, without the lock: until it is woken and, unless it only rests, until there are completions. */
static void sleep_until_woken(const wefti_ofi *ofi, int rests)
{
    char bytes[16];
    struct pollfd items[1 + WEFTI_FABRIC_ENDPOINTS] = {{.fd = ofi->wake[0], .events = POLLIN}};
    await_endpoints(ofi, items + 1);
    const int rest_ms = ofi->setup.progress_inline ? REST_INLINE_MS : REST_MS;
    rests |= ofi->setup.progress_inline;
    (void)poll(items, rests ? 1 : 1 + WEFTI_FABRIC_ENDPOINTS, rests ? rest_ms : -1);
    (void)!read(ofi->wake[0], bytes, sizeof bytes);
}

void wefti_ofi_idle(wefti_ofi *ofi, uint64_t sleep_ns)
{
    const uint64_t quiet_ns = ofi->polled_ns - ofi->came_ns;
    const int sleeps = sleep_ns != 0 && quiet_ns >= AWAKE_NS && can_sleep(ofi);
    const int is_alert = quiet_ns < ALERT_NS && *ofi->setup.pes_per_core == 1 && !wefti_ofi_is_wanted(ofi);
    wefti_os_monitor_leave(ofi->lock);
    if (sleeps) {
        struct pollfd items[WEFTI_FABRIC_ENDPOINTS];
        const struct timespec limit = {.tv_sec = (time_t)(sleep_ns / 1000000000),
                                       .tv_nsec = (long)(sleep_ns % 1000000000)};
        await_endpoints(ofi, items);
        (void)ppoll(items, WEFTI_FABRIC_ENDPOINTS, &limit, NULL);
    } else if (!is_alert) {
        wefti_os_yield();
    }
    wefti_os_monitor_enter(ofi->lock);
}

/* ---- the thread ---- */

/* Somebody waits, and sees to what comes: two would only be in each other's way. */
static int is_polled(const wefti_ofi *ofi)
{
    return wefti_os_now_ns() - ofi->polled_ns < POLLED_NS;
}

/* A lock goes to whoever is there first, which after a look at what others send without end would be the thread. */
static void let_callers_in(const wefti_ofi *ofi)
{
    do {
        wefti_os_yield();
    } while (wefti_ofi_is_wanted(ofi));
}

static void run(void *argument)
{
    wefti_ofi *ofi = argument;
    wefti_os_monitor_enter(ofi->lock);
    while (!ofi->is_closing) {
        wefti_ofi_try_gathered(ofi, wefti_os_now_ns() - WEFTI_OFI_GATHER_NS);
        const int rests = is_polled(ofi) && ofi->gathering == NULL;
        const int sleeps = !rests && !wefti_ofi_progress(ofi) && can_sleep(ofi);
        ofi->is_asleep = rests || sleeps;
        wefti_os_monitor_leave(ofi->lock);
        if (rests || sleeps) {
            sleep_until_woken(ofi, rests);
        } else {
            let_callers_in(ofi);
        }
        wefti_os_monitor_enter(ofi->lock);
        ofi->is_asleep = 0;
    }
    wefti_os_monitor_leave(ofi->lock);
}

weft_status wefti_ofi_progress_start(wefti_ofi *ofi)
{
    if (pipe2(ofi->wake, O_CLOEXEC | O_NONBLOCK) != 0) {
        ofi->wake[0] = ofi->wake[1] = -1;
        return wefti_error(WEFT_ERR_SYSTEM, "cannot make a pipe for the thread of a network; look at ulimit -n");
    }
    return wefti_os_thread_start(&ofi->thread, run, ofi);
}

void wefti_ofi_progress_stop(wefti_ofi *ofi)
{
    if (ofi->thread != NULL) {
        wefti_os_monitor_enter(ofi->lock);
        ofi->is_closing = 1;
        wefti_os_monitor_leave(ofi->lock);
        (void)!write(ofi->wake[1], "", 1);
        wefti_os_thread_join(ofi->thread);
        ofi->thread = NULL;
    }
    for (int i = 0; i < 2; i++) {
        if (ofi->wake[i] >= 0) {
            (void)close(ofi->wake[i]);
        }
    }
}

/* Completions, and the thread that sees to them. A PE that waits in a call sees to them itself, which spares it a
 * switch of threads; the thread does while nobody waits, so that a PE that computes is read from and written to all the
 * same. Where calls are to see to them (WEFT_PROGRESS=inline) the thread looks seldom: it sees to the creation and the
 * end of worlds, in which no call looks, and to small puts that are gathered. */
#include "os/socket.h"
#include "transport/am/am.h"

#define COMPLETIONS_AT_ONCE 16
#define POLLED_NS 500000
#define REST_NS 1000000
#define REST_INLINE_NS 10000000 /* where calls see to what comes */
#define LONG_NS UINT64_C(3600000000000) /* as good as for ever */
#define LOOKS 8 /* each channel is looked at at least once in so many turns */
/* How long after something has come nobody here sleeps (AWAKE_NS) or yields (ALERT_NS): a PE that asks something next
 * would wait until this one is woken, or until those that have its processor are done. */
#define AWAKE_NS 200000
#define AWAKE_INLINE_NS 10000000 /* where nothing wakes a sleeper, and large puts tell nothing until they are here */
#define ALERT_NS 50000

/* ---- buffers ---- */

static int channel_of(const wefti_am_buffer *buffer)
{
    return buffer->role == WEFTI_AM_REQUEST_IN || buffer->role == WEFTI_AM_REQUEST_OUT ? WEFTI_WIRE_REQUESTS
                                                                                       : WEFTI_WIRE_REPLIES;
}

static int try_post(wefti_am *am, wefti_am_buffer *buffer)
{
    return am->wire.ops->post(&am->wire, channel_of(buffer), buffer);
}

void wefti_am_post(wefti_am *am, wefti_am_buffer *buffer)
{
    if (!try_post(am, buffer)) {
        buffer->next = am->unposted;
        am->unposted = buffer;
    }
}

static void post_unposted(wefti_am *am)
{
    while (am->unposted != NULL) {
        wefti_am_buffer *buffer = am->unposted;
        if (!try_post(am, buffer)) {
            return;
        }
        am->unposted = buffer->next;
    }
}

wefti_wire_answer wefti_am_send(wefti_am *am, wefti_am_buffer *buffer)
{
    uint32_t *sent = &am->peers[buffer->pe].sent;
    const int is_request = buffer->role == WEFTI_AM_REQUEST_OUT;
    buffer->header->number = is_request ? *sent : 0;
    buffer->header->writes = is_request ? am->peers[buffer->pe].writes_sent : 0;
    const wefti_wire_answer answer = am->wire.ops->send(&am->wire, channel_of(buffer), buffer);
    *sent += is_request && answer == WEFTI_WIRE_TAKEN;
    return answer;
}

/* The wire has done with a buffer. */
static void give_back(wefti_am *am, wefti_am_buffer *buffer)
{
    if (buffer->role == WEFTI_AM_REQUEST_OUT) {
        wefti_am_free_out(am, buffer);
        return;
    }
    if (buffer->role == WEFTI_AM_REPLY_OUT) {
        buffer->role = WEFTI_AM_REQUEST_IN;
    }
    wefti_am_post(am, buffer);
}

/* ---- completions ---- */

void wefti_am_completed(wefti_am *am, wefti_am_buffer *buffer, size_t bytes)
{
    switch (buffer->role) {
    case WEFTI_AM_REQUEST_IN:
        wefti_am_serve(am, buffer, bytes);
        return;
    case WEFTI_AM_REPLY_IN:
        wefti_am_take_reply(am, buffer->header, bytes);
        break;
    case WEFTI_AM_RMA:
        wefti_am_rma_take(am, buffer, 0);
        return;
    case WEFTI_AM_REQUEST_OUT:
    case WEFTI_AM_REPLY_OUT:
        break;
    }
    give_back(am, buffer);
}

void wefti_am_lose(wefti_am *am, uint32_t pe)
{
    am->peers[pe].is_lost = 1;
    for (size_t i = 0; i < WEFTI_AM_WAITING_MAX; i++) {
        wefti_am_request *request = &am->requests[i];
        if (request->number != 0 && request->get == 0 && !request->is_done && request->pe == pe) {
            request->status = WEFT_ERR_PEER;
            request->is_done = 1;
        }
    }
    wefti_am_lose_gets(am, pe);
}

void wefti_am_note_left(wefti_am *am, uint32_t pe)
{
    __atomic_store_n(&am->peers[pe].has_left, 1, __ATOMIC_RELEASE);
    wefti_am_lose(am, pe);
}

/* A message that could not be sent tells that its PE is gone. */
void wefti_am_failed(wefti_am *am, wefti_am_buffer *buffer)
{
    if (buffer->role == WEFTI_AM_REQUEST_OUT || buffer->role == WEFTI_AM_REPLY_OUT || buffer->role == WEFTI_AM_RMA) {
        wefti_am_lose(am, buffer->pe);
    }
    if (buffer->role == WEFTI_AM_RMA) {
        wefti_am_rma_take(am, buffer, 1);
    } else if (!am->is_closing) {
        give_back(am, buffer);
    }
}

static int look(wefti_am *am, int channel)
{
    return am->wire.ops->poll(&am->wire, channel);
}

static void send_and_post(wefti_am *am)
{
    wefti_am_send_unsent(am);
    post_unposted(am);
}

void wefti_am_wake(wefti_am *am)
{
    if (am->is_asleep) {
        am->is_asleep = WEFTI_AM_AWAKE;
        wefti_os_bell_ring(am->bell);
    }
}

/* A call that looks while the thread sleeps takes from the network what would have ended that sleep. It may end before
 * it has seen to all of that: the rest is the thread's. */
static void leave_the_rest(wefti_am *am)
{
    const wefti_wire *wire = &am->wire;
    if (am->is_asleep == WEFTI_AM_SLEEPS &&
        (am->unsent != NULL || am->unposted != NULL || (wire->ops->has_more != NULL && wire->ops->has_more(wire)))) {
        wefti_am_wake(am);
    }
}

int wefti_am_progress(wefti_am *am)
{
    int happened = 0;
    for (int channel = 0; channel < WEFTI_WIRE_CHANNELS; channel++) {
        happened |= look(am, channel);
    }
    send_and_post(am);
    leave_the_rest(am);
    return happened;
}

/* Looking at a channel is a call of the system or two. Who waits for a reply finds it at one, who waits for a word at
 * the other; the rest is seen to now and then. */
static int look_where_due(wefti_am *am)
{
    const int awaits_reply = am->requests_free < WEFTI_AM_WAITING_MAX;
    const uint32_t visit = am->looks++ % LOOKS;
    int happened = 0;
    if (awaits_reply || visit == 0) {
        happened |= look(am, WEFTI_WIRE_REPLIES);
    }
    if (!awaits_reply || visit % 2 == 0) {
        happened |= look(am, WEFTI_WIRE_REQUESTS);
    }
    send_and_post(am);
    return happened;
}

/* What comes while the thread sleeps is mostly seen to by a call before the thread has run, which then sleeps on: each
 * message costs two switches of threads. Of several that come soon after one another the second ends that: the thread,
 * once woken, leaves what comes to the call. */
static void leave_it_to_this_call(wefti_am *am, uint64_t quiet_ns)
{
    if (am->is_asleep == WEFTI_AM_SLEEPS && quiet_ns < ALERT_NS) {
        wefti_am_wake(am);
    }
}

int wefti_am_poll(wefti_am *am)
{
    am->polled_ns = wefti_os_now_ns();
    wefti_am_try_gathered(am, UINT64_MAX);
    const int happened = look_where_due(am);
    leave_the_rest(am);
    if (!happened) {
        return 0;
    }
    leave_it_to_this_call(am, am->polled_ns - am->came_ns);
    am->came_ns = am->polled_ns;
    return 1;
}

/* ---- sleeping ---- */

/* Whether a sleep will end when there is something to see to. */
static int can_sleep(wefti_am *am)
{
    return am->unsent == NULL && am->unposted == NULL && am->gathering == NULL &&
           (am->setup.progress_inline || am->wire.ops->can_sleep(&am->wire));
}

static size_t await_wire(const wefti_am *am, struct pollfd items[WEFTI_WIRE_WAKES])
{
    for (int i = 0; i < am->wire.wakes; i++) {
        items[i] = (struct pollfd){.fd = am->wire.wake[i], .events = POLLIN};
    }
    return (size_t)am->wire.wakes;
}

/* The thread's, without the lock: until it is woken and, unless it only rests, until there are completions. */
static void sleep_until_woken(const wefti_am *am, int rests)
{
    struct pollfd items[1 + WEFTI_WIRE_WAKES] = {{.fd = am->bell, .events = POLLIN}};
    const size_t wakes = await_wire(am, items + 1);
    const uint64_t rest_ns = am->setup.progress_inline ? REST_INLINE_NS : REST_NS;
    const uint64_t sleep_ns = am->wire.sleep_ms < 0 ? LONG_NS : (uint64_t)am->wire.sleep_ms * 1000000;
    rests |= am->setup.progress_inline;
    (void)wefti_os_socket_poll(items, rests ? 1 : 1 + wakes, rests ? rest_ns : sleep_ns);
    wefti_os_bell_hush(am->bell);
}

/* Who shares its processor with other PEs leaves it to them sooner. */
static uint64_t awake_ns(const wefti_am *am)
{
    return am->setup.progress_inline && *am->setup.pes_per_core == 1 ? AWAKE_INLINE_NS : AWAKE_NS;
}

void wefti_am_idle(wefti_am *am, uint64_t sleep_ns)
{
    const uint64_t quiet_ns = am->polled_ns - am->came_ns;
    const int may_sleep = sleep_ns != 0 && quiet_ns >= awake_ns(am);
    if (may_sleep && am->is_asleep == WEFTI_AM_SLEEPS) {
        wefti_am_wake(am); /* to ask whether one can sleep takes away what would have ended the thread's sleep */
    }
    const int sleeps = may_sleep && can_sleep(am);
    const int is_alert = quiet_ns < ALERT_NS && *am->setup.pes_per_core == 1 && !wefti_am_is_wanted(am);
    wefti_os_monitor_leave(am->lock);
    if (sleeps) {
        struct pollfd items[WEFTI_WIRE_WAKES];
        const size_t wakes = await_wire(am, items);
        (void)wefti_os_socket_poll(items, wakes, sleep_ns);
    } else if (!is_alert) {
        wefti_os_yield();
    }
    wefti_os_monitor_enter(am->lock);
}

/* ---- the thread ---- */

/* A call that waits sees to what comes: it and the thread would only be in each other's way. */
static int is_polled(const wefti_am *am)
{
    return wefti_os_now_ns() - am->polled_ns < POLLED_NS;
}

/* While others send without end the thread would take the lock again at once, before callers that wait for it. */
static void let_callers_in(const wefti_am *am)
{
    do {
        wefti_os_yield();
    } while (wefti_am_is_wanted(am));
}

static void run(void *argument)
{
    wefti_am *am = argument;
    wefti_os_monitor_enter(am->lock);
    while (!am->is_closing) {
        wefti_am_try_gathered(am, wefti_os_now_ns() - WEFTI_AM_GATHER_NS);
        const int rests = is_polled(am) && am->gathering == NULL;
        const int sleeps = !rests && !wefti_am_progress(am) && can_sleep(am);
        am->is_asleep = rests ? WEFTI_AM_RESTS : sleeps ? WEFTI_AM_SLEEPS : WEFTI_AM_AWAKE;
        wefti_os_monitor_leave(am->lock);
        if (rests || sleeps) {
            sleep_until_woken(am, rests);
        } else {
            let_callers_in(am);
        }
        wefti_os_monitor_enter(am->lock);
        am->is_asleep = WEFTI_AM_AWAKE;
    }
    wefti_os_monitor_leave(am->lock);
}

weft_status wefti_am_progress_start(wefti_am *am)
{
    am->bell = wefti_os_bell_open();
    if (am->bell < 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot open a descriptor for the thread of a network; look at ulimit -n");
    }
    return wefti_os_thread_start(&am->thread, run, am);
}

void wefti_am_progress_stop(wefti_am *am)
{
    if (am->thread != NULL) {
        wefti_os_monitor_enter(am->lock);
        am->is_closing = 1;
        wefti_os_monitor_leave(am->lock);
        wefti_os_bell_ring(am->bell);
        wefti_os_thread_join(am->thread);
        am->thread = NULL;
    }
    if (am->bell >= 0) {
        wefti_os_socket_close(am->bell);
    }
}

/* A transport plugin (weft/transport.h) that needs nothing but TCP, to copy from. It is slow, and shows what a
 * transport owes its world.
 *
 *     cc -shared -fPIC -o sockets.so sockets.c $(pkg-config --cflags weft)
 *     export WEFT_TRANSPORT=$PWD/sockets.so SOCKETS_HOST=10.0.0.1      # this host's IPv4 address; else 127.0.0.1
 *
 * How it works: a PE that wants something of another sends it a `request` over TCP and waits for the `reply`. The other
 * PE has a thread for each such connection, which does what is asked and then replies. So nothing is under way any more
 * when an operation returns, and fence and quiet have nothing to do.
 *
 * Where to read: the table of functions is at the end of the file. Each operation fills in a request and calls `ask`,
 * which holds the peer's lock and gives up at the deadline. At the other PE `accept_all` starts
 * the threads, and serve_put, serve_get and serve_amo do the work.
 *
 * The system closes a process's connections when it ends, and looks after those on which nothing moves: so each PE has
 * a connection to each other from the start, by which it is told who is gone. Who leaves says so before.
 *
 * Requests without the world's key end their connection. Who can read the network can read the key. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4, pthread_timedjoin_np, POLLRDHUP */
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <weft/transport.h>

#define SOON_NS UINT64_C(200000000)
#define SECOND_NS UINT64_C(1000000000)
#define PARTING_NS 100000000 /* for who is served still */
#define GOODBYE UINT64_MAX /* the number of the reply that no request has: its PE has left */
#define SILENT_S 5

enum { PUT, PUT_SIGNAL, GET, AMO };

typedef struct request {
    uint64_t world;
    uint64_t number;
    uint32_t kind;
    uint32_t op; /* of a signal or an atomic */
    uint32_t bits;
    uint32_t unused;
    uint64_t offset;
    uint64_t bytes; /* of a put, which follow, or that a get asks for */
    uint64_t signal_offset;
    uint64_t value;
    uint64_t cond;
} request;

typedef struct reply {
    uint64_t number; /* of the request */
    uint64_t bytes; /* that follow */
    uint64_t value; /* an atomic's word before */
} reply;

/* What this PE asks of another goes here, one thing at a time. */
typedef struct peer {
    pthread_mutex_t lock;
    int socket; /* -1: not connected yet */
    int is_gone;
    weft_transport_fate fate; /* atomic */
    uint64_t number; /* of the last request */
    struct sockaddr_in address;
} peer;

typedef struct state state;

/* Another PE's connection, and who serves it. */
typedef struct server {
    state *owner;
    pthread_t thread;
    int socket;
    struct server *next;
} server;

struct state {
    const weft_transport_setup *setup;
    int listener;
    int is_accepting;
    int is_leaving; /* atomic */
    pthread_t acceptor;
    server *servers; /* the acceptor's, until it has ended */
    peer *peers;
};

/* ---- bytes on a socket ---- */

static int send_all(int to, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        const ssize_t sent = send(to, at, bytes, MSG_NOSIGNAL);
        if (sent <= 0) {
            return 0;
        }
        at += sent;
        bytes -= (size_t)sent;
    }
    return 1;
}

static int receive_all(int from, void *data, size_t bytes)
{
    char *at = data;
    while (bytes > 0) {
        const ssize_t came = recv(from, at, bytes, 0);
        if (came <= 0) {
            return 0;
        }
        at += came;
        bytes -= (size_t)came;
    }
    return 1;
}

/* ---- what others ask of this PE ---- */

/* Where it lies in this PE's memory; NULL: not inside. */
static unsigned char *place(const state *s, uint64_t offset, uint64_t bytes)
{
    const uint64_t all = __atomic_load_n(s->setup->memory_bytes, __ATOMIC_ACQUIRE);
    return offset <= all && bytes <= all - offset ? s->setup->memory + offset : NULL;
}

static int is_word(const void *at, uint64_t bytes)
{
    return (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && (uintptr_t)at % bytes == 0;
}

/* A word is stored whole, since others may look at it. */
static void store_word(void *at, const void *from, uint64_t bytes)
{
    switch (bytes) {
    case 1:
        __atomic_store_n((uint8_t *)at, *(const uint8_t *)from, __ATOMIC_RELEASE);
        break;
    case 2:
        __atomic_store_n((uint16_t *)at, *(const uint16_t *)from, __ATOMIC_RELEASE);
        break;
    case 4:
        __atomic_store_n((uint32_t *)at, *(const uint32_t *)from, __ATOMIC_RELEASE);
        break;
    default:
        __atomic_store_n((uint64_t *)at, *(const uint64_t *)from, __ATOMIC_RELEASE);
        break;
    }
}

static void load_word(void *to, const void *at, uint64_t bytes)
{
    switch (bytes) {
    case 1:
        *(uint8_t *)to = __atomic_load_n((const uint8_t *)at, __ATOMIC_ACQUIRE);
        break;
    case 2:
        *(uint16_t *)to = __atomic_load_n((const uint16_t *)at, __ATOMIC_ACQUIRE);
        break;
    case 4:
        *(uint32_t *)to = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
        break;
    default:
        *(uint64_t *)to = __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
        break;
    }
}

static int serve_put(const state *s, int socket, const request *asked)
{
    uint64_t word = 0;
    unsigned char *at = place(s, asked->offset, asked->bytes);
    unsigned char *signal = asked->kind == PUT_SIGNAL ? place(s, asked->signal_offset, sizeof word) : NULL;
    if (at == NULL || (asked->kind == PUT_SIGNAL && (signal == NULL || (uintptr_t)signal % 8 != 0))) {
        return 0;
    }
    const int whole = is_word(at, asked->bytes);
    if (!receive_all(socket, whole ? (void *)&word : at, asked->bytes)) {
        return 0;
    }
    if (whole) {
        store_word(at, &word, asked->bytes);
    }
    if (signal != NULL && asked->op == WEFT_SIGNAL_SET) {
        __atomic_store_n((uint64_t *)(void *)signal, asked->value, __ATOMIC_RELEASE);
    } else if (signal != NULL) {
        (void)__atomic_fetch_add((uint64_t *)(void *)signal, asked->value, __ATOMIC_ACQ_REL);
    }
    const reply told = {.number = asked->number};
    return send_all(socket, &told, sizeof told);
}

static int serve_get(const state *s, int socket, const request *asked)
{
    uint64_t word = 0;
    const reply told = {.number = asked->number, .bytes = asked->bytes};
    const void *at = place(s, asked->offset, asked->bytes);
    if (at == NULL || !send_all(socket, &told, sizeof told)) {
        return 0;
    }
    if (is_word(at, asked->bytes)) {
        load_word(&word, at, asked->bytes);
        at = &word;
    }
    return send_all(socket, at, asked->bytes);
}

#define DEFINE_APPLY(NAME, TYPE)                                                                                       \
    static TYPE NAME(TYPE *at, const request *asked)                                                                   \
    {                                                                                                                  \
        const TYPE value = (TYPE)asked->value;                                                                         \
        TYPE before = (TYPE)asked->cond;                                                                               \
        switch ((weft_transport_amo)asked->op) {                                                                       \
        case WEFT_TRANSPORT_FETCH:                                                                                     \
            return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                              \
        case WEFT_TRANSPORT_SET:                                                                                       \
        case WEFT_TRANSPORT_SWAP:                                                                                      \
            return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                                   \
        case WEFT_TRANSPORT_COMPARE_SWAP:                                                                              \
            (void)__atomic_compare_exchange_n(at, &before, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
            return before;                                                                                             \
        case WEFT_TRANSPORT_ADD:                                                                                       \
            return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);                                                    \
        case WEFT_TRANSPORT_AND:                                                                                       \
            return __atomic_fetch_and(at, value, __ATOMIC_SEQ_CST);                                                    \
        case WEFT_TRANSPORT_OR:                                                                                        \
            return __atomic_fetch_or(at, value, __ATOMIC_SEQ_CST);                                                     \
        default:                                                                                                       \
            return __atomic_fetch_xor(at, value, __ATOMIC_SEQ_CST);                                                    \
        }                                                                                                              \
    }
DEFINE_APPLY(apply32, uint32_t)
DEFINE_APPLY(apply64, uint64_t)

static int serve_amo(const state *s, int socket, const request *asked)
{
    void *at = place(s, asked->offset, asked->bits / 8);
    if (at == NULL || (asked->bits != 32 && asked->bits != 64) || (uintptr_t)at % (asked->bits / 8) != 0) {
        return 0;
    }
    const reply told = {.number = asked->number, .value = asked->bits == 32 ? apply32(at, asked) : apply64(at, asked)};
    return send_all(socket, &told, sizeof told);
}

static int serve_one(const state *s, int socket)
{
    request asked;
    if (!receive_all(socket, &asked, sizeof asked) || asked.world != s->setup->world) {
        return 0;
    }
    return asked.kind == PUT || asked.kind == PUT_SIGNAL ? serve_put(s, socket, &asked)
           : asked.kind == GET                           ? serve_get(s, socket, &asked)
                                                         : serve_amo(s, socket, &asked);
}

static void *serve(void *argument)
{
    const server *self = argument;
    while (serve_one(self->owner, self->socket)) {
    }
    if (__atomic_load_n(&self->owner->is_leaving, __ATOMIC_ACQUIRE)) {
        const reply told = {.number = GOODBYE};
        (void)send_all(self->socket, &told, sizeof told);
    }
    (void)shutdown(self->socket, SHUT_RDWR); /* who asked is told */
    return NULL;
}

/* A signal to the process is none of these threads'. */
static int start_thread(pthread_t *thread, void *(*work)(void *), void *argument)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(thread, NULL, work, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}

static void set_no_delay(int socket)
{
    const int on = 1;
    (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void *accept_all(void *argument)
{
    state *s = argument;
    for (int socket = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC); socket >= 0;
         socket = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) {
        server *made = malloc(sizeof *made);
        set_no_delay(socket);
        if (made != NULL) {
            *made = (server){.owner = s, .socket = socket, .next = s->servers};
        }
        if (made == NULL || !start_thread(&made->thread, serve, made)) {
            free(made);
            (void)close(socket);
        } else {
            s->servers = made;
        }
    }
    return NULL;
}

/* ---- what this PE asks of others ---- */

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static uint64_t end_of(uint64_t patience_ns)
{
    const uint64_t now = now_ns();
    return patience_ns > UINT64_MAX - now ? UINT64_MAX : now + patience_ns;
}

static weft_status fail(const state *s, weft_status status, int pe, const char *what)
{
    char text[200];
    (void)snprintf(text, sizeof text, "PE %d %s, over the transport sockets", pe, what);
    return s->setup->fail(status, text);
}

/* Whether there is something to read by then. */
static int await_readable(int socket, uint64_t until_ns)
{
    for (;;) {
        struct pollfd wanted = {.fd = socket, .events = POLLIN};
        const uint64_t now = now_ns();
        const uint64_t left_ms = now >= until_ns ? 0 : (until_ns - now) / 1000000 + 1;
        const int ready = poll(&wanted, 1, left_ms > 1000 ? 1000 : (int)left_ms);
        if (ready > 0 || now >= until_ns) {
            return ready > 0;
        }
    }
}

static void set_option(int socket, int option, int value)
{
    (void)setsockopt(socket, IPPROTO_TCP, option, &value, sizeof value);
}

/* The system sees to it that the other host gives a sign of life each second, or ends the connection. */
static void set_alive(int socket)
{
    const int on = 1;
    (void)setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    set_option(socket, TCP_KEEPIDLE, 1);
    set_option(socket, TCP_KEEPINTVL, 1);
    set_option(socket, TCP_KEEPCNT, SILENT_S);
    set_option(socket, TCP_USER_TIMEOUT, 1000 * SILENT_S);
}

/* Nor does a send to a PE that takes nothing wait for longer. */
static void set_patience(int socket, uint64_t patience_ns)
{
    const struct timeval patience = {.tv_sec = (time_t)(patience_ns / SECOND_NS),
                                     .tv_usec = (suseconds_t)(patience_ns % SECOND_NS / 1000)};
    if (patience_ns < 1000000 * SECOND_NS) {
        (void)setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        (void)setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }
}

static int connect_to(peer *p, uint64_t connect_ns, uint64_t patience_ns)
{
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made >= 0) {
        set_patience(made, connect_ns); /* for a host that is silent */
    }
    if (made >= 0 && connect(made, (const struct sockaddr *)&p->address, sizeof p->address) == 0) {
        set_no_delay(made);
        set_alive(made);
        set_patience(made, patience_ns);
        p->socket = made;
        return 1;
    }
    if (made >= 0) {
        (void)close(made);
    }
    return 0;
}

/* The reply to the last request; those to requests that were given up come before. *is_late: there is none yet. */
static int take_reply(peer *p, void *dest, uint64_t until_ns, reply *told, int *is_late)
{
    do {
        if (!await_readable(p->socket, until_ns)) {
            *is_late = 1;
            return 0;
        }
        if (!receive_all(p->socket, told, sizeof *told)) {
            return 0;
        }
        if (told->number == GOODBYE) {
            __atomic_store_n(&p->fate, WEFT_TRANSPORT_LEFT, __ATOMIC_RELEASE);
        }
    } while (told->number != p->number && told->bytes == 0);
    return told->number == p->number && receive_all(p->socket, dest, told->bytes);
}

/* With the peer's lock. A get that was given up leaves its bytes in the way: the connection is of no use any more. */
static int exchange(const state *s, peer *p, request *asked, const void *source, void *dest, uint64_t until_ns,
                    reply *told, int *is_late)
{
    const size_t follow = asked->kind == GET ? 0 : asked->bytes;
    if (p->is_gone || (p->socket < 0 && !connect_to(p, s->setup->deadline_ns, s->setup->deadline_ns))) {
        p->is_gone = 1;
        return 0;
    }
    asked->number = ++p->number;
    if (!send_all(p->socket, asked, sizeof *asked) || !send_all(p->socket, source, follow)) {
        *is_late = errno == EAGAIN;
        p->is_gone = 1;
        return 0;
    }
    if (take_reply(p, dest, until_ns, told, is_late)) {
        return 1;
    }
    p->is_gone = !*is_late || asked->kind == GET;
    return 0;
}

static int lock_until(pthread_mutex_t *lock, uint64_t patience_ns)
{
    struct timespec until;
    if (patience_ns > 1000000 * SECOND_NS) {
        return pthread_mutex_lock(lock) == 0;
    }
    (void)clock_gettime(CLOCK_REALTIME, &until);
    const uint64_t end = (uint64_t)until.tv_nsec + patience_ns;
    until.tv_sec += (time_t)(end / SECOND_NS);
    until.tv_nsec = (long)(end % SECOND_NS);
    return pthread_mutex_timedlock(lock, &until) == 0;
}

/* WEFT_ERR_TIMEOUT and WEFT_ERR_PEER without words. */
static weft_status ask(state *s, int pe, request *asked, const void *source, void *dest, uint64_t patience_ns,
                       uint64_t *value)
{
    peer *p = &s->peers[pe];
    reply told = {0};
    int is_late = 0;
    const uint64_t until_ns = end_of(patience_ns);
    asked->world = s->setup->world;
    if (!lock_until(&p->lock, patience_ns)) {
        return WEFT_ERR_TIMEOUT;
    }
    const int is_done = exchange(s, p, asked, source, dest, until_ns, &told, &is_late);
    (void)pthread_mutex_unlock(&p->lock);
    if (is_done && value != NULL) {
        *value = told.value;
    }
    return is_done ? WEFT_OK : is_late ? WEFT_ERR_TIMEOUT : WEFT_ERR_PEER;
}

static weft_status ask_or_fail(state *s, int pe, request *asked, const void *source, void *dest, uint64_t *value)
{
    const weft_status status = ask(s, pe, asked, source, dest, s->setup->deadline_ns, value);
    return status == WEFT_OK            ? status
           : status == WEFT_ERR_TIMEOUT ? fail(s, status, pe, "has not answered by the deadline")
                                        : fail(s, status, pe, "is gone: its connection has ended");
}

static weft_status sockets_put(void *state_, int pe, uint64_t offset, const void *source, size_t bytes)
{
    request asked = {.kind = PUT, .offset = offset, .bytes = bytes};
    return ask_or_fail(state_, pe, &asked, source, NULL, NULL);
}

static weft_status sockets_get(void *state_, int pe, uint64_t offset, void *dest, size_t bytes)
{
    request asked = {.kind = GET, .offset = offset, .bytes = bytes};
    return ask_or_fail(state_, pe, &asked, NULL, dest, NULL);
}

static weft_status sockets_put_signal(void *state_, int pe, uint64_t offset, const void *source, size_t bytes,
                                      uint64_t signal_offset, uint64_t value, weft_signal_op op)
{
    request asked = {
        .kind = PUT_SIGNAL, .op = op, .offset = offset, .bytes = bytes, .signal_offset = signal_offset, .value = value};
    return ask_or_fail(state_, pe, &asked, source, NULL, NULL);
}

static weft_status sockets_amo(void *state_, int pe, uint64_t offset, weft_transport_amo op, int bits, uint64_t value,
                               uint64_t cond, uint64_t *old)
{
    request asked = {.kind = AMO, .op = op, .bits = (uint32_t)bits, .offset = offset, .value = value, .cond = cond};
    return ask_or_fail(state_, pe, &asked, NULL, NULL, old);
}

static weft_status sockets_read_soon(void *state_, int pe, uint64_t offset, uint64_t *value)
{
    request asked = {.kind = AMO, .op = WEFT_TRANSPORT_FETCH, .bits = 64, .offset = offset};
    return ask(state_, pe, &asked, NULL, NULL, SOON_NS, value);
}

/* A connection that has ended: by what came last, or by why it did. */
static weft_transport_fate read_fate(int socket)
{
    reply last = {0};
    ssize_t came;
    do {
        came = recv(socket, &last, sizeof last, MSG_DONTWAIT);
    } while (came == sizeof last && last.number != GOODBYE);
    return last.number == GOODBYE                                      ? WEFT_TRANSPORT_LEFT
           : came < 0 && (errno == ETIMEDOUT || errno == EHOSTUNREACH) ? WEFT_TRANSPORT_SILENT
                                                                       : WEFT_TRANSPORT_ENDED;
}

/* While a thread asks something of the PE, that finds out. */
static weft_transport_fate sockets_fate(void *state_, int pe)
{
    peer *p = &((state *)state_)->peers[pe];
    if (__atomic_load_n(&p->fate, __ATOMIC_ACQUIRE) == WEFT_TRANSPORT_THERE && pthread_mutex_trylock(&p->lock) == 0) {
        struct pollfd ended = {.fd = p->socket, .events = POLLRDHUP};
        if (p->fate == WEFT_TRANSPORT_THERE && p->socket >= 0 && poll(&ended, 1, 0) > 0) {
            __atomic_store_n(&p->fate, read_fate(p->socket), __ATOMIC_RELEASE);
        }
        (void)pthread_mutex_unlock(&p->lock);
    }
    return __atomic_load_n(&p->fate, __ATOMIC_ACQUIRE);
}

static weft_status sockets_settle(void *state_)
{
    (void)state_; /* what has returned has been done */
    return WEFT_OK;
}

/* ---- opening and closing ---- */

/* What has come is served, and the goodbye said, unless the other takes nothing. */
static void end_server(const server *ended)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PARTING_NS;
    until.tv_sec += until.tv_nsec / (long)SECOND_NS;
    until.tv_nsec %= (long)SECOND_NS;
    (void)shutdown(ended->socket, SHUT_RD);
    if (pthread_timedjoin_np(ended->thread, NULL, &until) != 0) {
        (void)shutdown(ended->socket, SHUT_RDWR);
        (void)pthread_join(ended->thread, NULL);
    }
}

static void sockets_close(void *state_)
{
    state *s = state_;
    __atomic_store_n(&s->is_leaving, 1, __ATOMIC_RELEASE);
    if (s->listener >= 0) {
        (void)shutdown(s->listener, SHUT_RDWR);
    }
    if (s->is_accepting) {
        (void)pthread_join(s->acceptor, NULL);
    }
    while (s->servers != NULL) {
        server *ended = s->servers;
        s->servers = ended->next;
        end_server(ended);
        (void)close(ended->socket);
        free(ended);
    }
    if (s->listener >= 0) {
        (void)close(s->listener);
    }
    for (int pe = 0; s->peers != NULL && pe < s->setup->pes; pe++) {
        if (s->peers[pe].socket >= 0) {
            (void)close(s->peers[pe].socket);
        }
        (void)pthread_mutex_destroy(&s->peers[pe].lock);
    }
    free(s->peers);
    free(s);
}

static int listen_at(state *s, struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    const char *host = getenv("SOCKETS_HOST");
    *address = (struct sockaddr_in){.sin_family = AF_INET};
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return s->listener >= 0 && inet_pton(AF_INET, host != NULL ? host : "127.0.0.1", &address->sin_addr) == 1 &&
           bind(s->listener, (const struct sockaddr *)address, sizeof *address) == 0 &&
           listen(s->listener, SOMAXCONN) == 0 && getsockname(s->listener, (struct sockaddr *)address, &length) == 0;
}

static weft_status sockets_open(const weft_transport_setup *setup, void *address, void **opened)
{
    state *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return setup->fail(WEFT_ERR_MEMORY, "no memory for the transport sockets");
    }
    s->setup = setup;
    s->listener = -1;
    s->peers = calloc((size_t)setup->pes, sizeof *s->peers);
    for (int pe = 0; s->peers != NULL && pe < setup->pes; pe++) {
        s->peers[pe].socket = -1;
        (void)pthread_mutex_init(&s->peers[pe].lock, NULL);
    }
    if (s->peers == NULL || !listen_at(s, address)) {
        sockets_close(s);
        return setup->fail(WEFT_ERR_UNREACHABLE, "this host does not listen at SOCKETS_HOST, else 127.0.0.1; set it to "
                                                 "one of the host's IPv4 addresses");
    }
    *opened = s;
    return WEFT_OK;
}

static weft_status sockets_connect(void *state_, const void *all)
{
    state *s = state_;
    const uint64_t each_ns =
        s->setup->deadline_ns / 2 / (uint64_t)s->setup->pes; /* all together in half the deadline */
    for (int pe = 0; pe < s->setup->pes; pe++) {
        memcpy(&s->peers[pe].address, (const char *)all + (size_t)pe * sizeof s->peers[pe].address,
               sizeof s->peers[pe].address);
        if (s->peers[pe].address.sin_family == AF_INET) {
            (void)connect_to(&s->peers[pe], each_ns, s->setup->deadline_ns);
        }
    }
    s->is_accepting = start_thread(&s->acceptor, accept_all, s);
    return s->is_accepting ? WEFT_OK : s->setup->fail(WEFT_ERR_SYSTEM, "no thread for the transport sockets");
}

extern const weft_transport_plugin WEFT_TRANSPORT_PLUGIN_SYMBOL;
const weft_transport_plugin WEFT_TRANSPORT_PLUGIN_SYMBOL = {
    .version = WEFT_TRANSPORT_PLUGIN_VERSION,
    .size = sizeof(weft_transport_plugin),
    .name = "sockets",
    .address_bytes = sizeof(struct sockaddr_in),
    .open = sockets_open,
    .connect = sockets_connect,
    .close = sockets_close,
    .put = sockets_put,
    .get = sockets_get,
    .put_signal = sockets_put_signal,
    .amo = sockets_amo,
    .fence = sockets_settle,
    .quiet = sockets_settle,
    .read_soon = sockets_read_soon,
    .fate = sockets_fate,
};

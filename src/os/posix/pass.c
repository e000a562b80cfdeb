/* os/posix/pass.c: handing a descriptor to other processes of this node.
 *
 * The name is in the abstract space of local sockets: nothing to clean up, gone with the process. Anybody on the node
 * can connect: processes of other users are sent away as soon as the system has told whose they are, and do not take a
 * place of those who may come. A taker shows a token first; one that shows a wrong token, or none in time, is
 * dropped. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "os/os.h"
#include "os/posix/descriptor.h"
#include "os/socket.h"

#define TOKEN_BYTES 16
/* Connections that have not shown their token yet: how many at once, and for how long; where all places are taken,
 * less. */
#define GUESTS_MAX 64
#define GUEST_PATIENCE_NS UINT64_C(1000000000)
#define GUEST_FULL_NS UINT64_C(20000000)
/* How many connections are accepted before the guests and the time are looked at again. */
#define ACCEPTED_MAX 64
/* How long until a watch is first called, and the longest pause between two calls: the pause doubles each time, since
 * where many wait for one process, all of them call it. */
#define WATCH_FIRST_NS UINT64_C(100000000)
#define WATCH_LONGEST_NS UINT64_C(400000000)
/* A taker's pause between attempts to connect. */
#define RETRY_FIRST_NS UINT64_C(20000)
#define RETRY_LONGEST_NS UINT64_C(1000000)

static socklen_t name_address(struct sockaddr_un *address, const unsigned char name[16])
{
    static const char hex[] = "0123456789abcdef";
    static const char prefix[] = "weft-";
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    char *at = address->sun_path + 1; /* the zero before it makes the name abstract */
    memcpy(at, prefix, sizeof prefix - 1);
    at += sizeof prefix - 1;
    for (int i = 0; i < 16; i++) {
        *at++ = hex[name[i] >> 4];
        *at++ = hex[name[i] & 15];
    }
    return (socklen_t)(at - (char *)address);
}

static int open_socket(void)
{
    const int kind = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
    return wefti_fault("socket", EMFILE) ? -1 : wefti_os_descriptor_beyond_standard(socket(AF_UNIX, kind, 0));
}

static int is_later(int error)
{
    return error == EINTR || error == EAGAIN || error == EWOULDBLOCK;
}

/* A wait: its deadline, and the watch that is called meanwhile. */
typedef struct wait {
    uint64_t until_ns;
    const wefti_os_watch *watch; /* NULL: nobody */
    uint64_t pause_ns; /* between the last question and the next */
    uint64_t ask_ns; /* when that is */
} wait;

static wait wait_until(uint64_t until_ns, const wefti_os_watch *watch)
{
    return (wait){.until_ns = until_ns,
                  .watch = watch,
                  .pause_ns = WATCH_FIRST_NS,
                  .ask_ns = watch == NULL ? UINT64_MAX : wefti_os_now_ns() + WATCH_FIRST_NS};
}

static weft_status ask(wait *now)
{
    uint64_t now_ns = wefti_os_now_ns();
    if (now_ns < now->ask_ns) {
        return WEFT_OK;
    }
    now->pause_ns = now->pause_ns * 2 < WATCH_LONGEST_NS ? now->pause_ns * 2 : WATCH_LONGEST_NS;
    now->ask_ns = now_ns + now->pause_ns;
    return now->watch->check(now->watch->context);
}

/* When to look at the time again, or to ask. */
static uint64_t next_ns(const wait *now)
{
    return now->ask_ns < now->until_ns ? now->ask_ns : now->until_ns;
}

/* Milliseconds for poll until `until_ns`, rounded up; 0 when it has passed. */
static int poll_ms(uint64_t until_ns)
{
    uint64_t now_ns = wefti_os_now_ns();
    if (now_ns >= until_ns) {
        return 0;
    }
    uint64_t left_ms = (until_ns - now_ns + 999999) / 1000000;
    return left_ms < 1000 ? (int)left_ms : 1000;
}

static void close_socket(int descriptor)
{
    if (descriptor >= 0) {
        close(descriptor);
    }
}

/* ---- serving ---- */

/* Fails at once also when no descriptor is left for a guest, which would else wait until the deadline. */
weft_status wefti_os_pass_open(wefti_os_pass *pass, const unsigned char name[16])
{
    struct sockaddr_un address;
    socklen_t bytes = name_address(&address, name);
    int listener = open_socket();
    int guest = listener < 0 ? -1 : open_socket();
    if (guest < 0) {
        weft_status status =
            wefti_error(WEFT_ERR_SYSTEM, "cannot open a local socket: %s; look at ulimit -n", strerror(errno));
        close_socket(listener);
        return status;
    }
    close_socket(guest);
    if (wefti_fault("bind", EADDRINUSE) || bind(listener, (struct sockaddr *)&address, bytes) != 0 ||
        wefti_fault("listen", EADDRINUSE) || listen(listener, SOMAXCONN) != 0) {
        weft_status status = wefti_error(WEFT_ERR_SYSTEM,
                                         "cannot listen at a local socket, to offer shared memory: %s; a container's "
                                         "security profile has to allow abstract sockets",
                                         strerror(errno));
        close(listener);
        return status;
    }
    pass->listener = listener;
    return WEFT_OK;
}

void wefti_os_pass_close(wefti_os_pass *pass)
{
    if (pass->listener >= 0) {
        wefti_os_socket_stop(pass->listener);
        pass->listener = -1;
    }
}

/* polls[0] is the listener; polls[1 + i] the guest i, connected at since_ns[i]. */
typedef struct guest_list {
    struct pollfd polls[1 + GUESTS_MAX];
    uint64_t since_ns[GUESTS_MAX];
    int count;
    int is_scarce; /* no descriptor is free: one of the guests gives its own back first */
} guest_list;

static void guest_drop(guest_list *guests, int guest)
{
    int last = --guests->count;
    close(guests->polls[1 + guest].fd);
    guests->polls[1 + guest] = guests->polls[1 + last];
    guests->since_ns[guest] = guests->since_ns[last];
}

static void guests_drop_all(guest_list *guests)
{
    while (guests->count > 0) {
        guest_drop(guests, guests->count - 1);
    }
}

static void guests_drop_silent(guest_list *guests)
{
    uint64_t now_ns = wefti_os_now_ns();
    uint64_t patience_ns = guests->count < GUESTS_MAX ? GUEST_PATIENCE_NS : GUEST_FULL_NS;
    for (int i = guests->count - 1; i >= 0; i--) {
        if (now_ns - guests->since_ns[i] > patience_ns) {
            guest_drop(guests, i);
        }
    }
}

/* Accept the connections that wait, as many as there is room for. */
static weft_status guests_admit(guest_list *guests)
{
    for (int i = 0; i < ACCEPTED_MAX && guests->count < GUESTS_MAX; i++) {
        int guest = wefti_fault("accept", EMFILE) ? -1
                                                  : wefti_os_descriptor_beyond_standard(accept4(
                                                        guests->polls[0].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (guest < 0 && is_later(errno)) {
            return WEFT_OK;
        }
        if (guest < 0 && errno == ECONNABORTED) {
            continue;
        }
        guests->is_scarce = guest < 0 && errno == EMFILE && guests->count > 0;
        if (guests->is_scarce) {
            return WEFT_OK;
        }
        if (guest < 0) {
            return wefti_error(WEFT_ERR_SYSTEM, "cannot accept at a local socket: %s; look at ulimit -n",
                               strerror(errno));
        }
        if (!wefti_os_socket_is_own_user(guest, NULL)) {
            close(guest);
            continue;
        }
        guests->polls[1 + guests->count] = (struct pollfd){.fd = guest, .events = POLLIN};
        guests->since_ns[guests->count] = wefti_os_now_ns();
        guests->count++;
    }
    return WEFT_OK;
}

/* Compare in constant time, so that its duration tells nothing of the token. */
static int is_token(const unsigned char *shown, const unsigned char *token)
{
    unsigned char difference = 0;
    for (int i = 0; i < TOKEN_BYTES; i++) {
        difference |= shown[i] ^ token[i];
    }
    return difference == 0;
}

/* One byte with the descriptor beside it; the byte alone, 0, refuses. */
static ssize_t send_answer(int to, int descriptor)
{
    unsigned char word = descriptor >= 0;
    struct iovec part = {.iov_base = &word, .iov_len = 1};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    }
    return wefti_fault("sendmsg", ENOBUFS) ? -1 : sendmsg(to, &message, MSG_NOSIGNAL);
}

/* Read what a guest sent and answer. *served becomes 1 if it has taken the descriptor. One that is gone is no error. */
static weft_status guest_answer(int guest, const unsigned char *token, int descriptor, int *served)
{
    unsigned char shown[TOKEN_BYTES + 1];
    ssize_t bytes = wefti_fault("recv", ENOBUFS) ? -1 : recv(guest, shown, sizeof shown, 0);
    if (bytes < 0 && errno == ENOBUFS) {
        return wefti_error(
            WEFT_ERR_SYSTEM,
            "cannot read who asks for shared memory at a local socket: %s; the system lacks memory for sockets",
            strerror(errno));
    }
    int known = bytes == TOKEN_BYTES && is_token(shown, token);
    if (send_answer(guest, known ? descriptor : -1) >= 0) {
        *served = known;
        return WEFT_OK;
    }
    if (known && errno != EPIPE && errno != ECONNRESET) {
        return wefti_error(WEFT_ERR_SYSTEM,
                           "cannot send shared memory's descriptor by a local socket: %s; look at ulimit -n, of which "
                           "descriptors on their way are a part",
                           strerror(errno));
    }
    return WEFT_OK;
}

/* Answer the guests that have spoken or gone. */
static weft_status guests_answer(guest_list *guests, const unsigned char *token, int descriptor, int *left)
{
    for (int i = guests->count - 1; i >= 0; i--) {
        if (guests->polls[1 + i].revents == 0) {
            continue;
        }
        int served = 0;
        weft_status status = guest_answer(guests->polls[1 + i].fd, token, descriptor, &served);
        guest_drop(guests, i);
        *left -= served;
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

/* Wait until a connection can be accepted or a guest has sent or gone, and handle it. */
static weft_status serve_once(guest_list *guests, const unsigned char *token, int descriptor, int *left,
                              const wait *now)
{
    int is_full = guests->count == GUESTS_MAX || guests->is_scarce;
    guests->is_scarce = 0;
    guests->polls[0].events = is_full ? 0 : POLLIN;
    uint64_t until_ns = next_ns(now);
    uint64_t due_ns = !is_full ? until_ns : wefti_os_now_ns() + GUEST_FULL_NS;
    int wait_ms = poll_ms(due_ns < until_ns ? due_ns : until_ns);
    int ready = wefti_fault("poll", ENOMEM) ? -1 : poll(guests->polls, 1 + (nfds_t)guests->count, wait_ms);
    if (ready < 0 && errno == EINTR) {
        return WEFT_OK;
    }
    if (ready < 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot wait at a local socket (poll): %s; look at ulimit -n",
                           strerror(errno));
    }
    WEFT_TRY(guests_answer(guests, token, descriptor, left));
    guests_drop_silent(guests);
    return guests->polls[0].revents == 0 ? WEFT_OK : guests_admit(guests);
}

weft_status wefti_os_pass_serve(wefti_os_pass *pass, const unsigned char token[16], int descriptor, int count,
                                uint64_t until_ns, const wefti_os_watch *watch)
{
    guest_list guests = {.polls = {{.fd = pass->listener}}};
    wait now = wait_until(until_ns, watch);
    weft_status status = WEFT_OK;
    int left = count;
    while (status == WEFT_OK && left > 0) {
        if (wefti_os_now_ns() >= until_ns) {
            status = wefti_error(WEFT_ERR_TIMEOUT, "%d of %d processes did not fetch the shared memory in time", left,
                                 count);
            break;
        }
        status = serve_once(&guests, token, descriptor, &left, &now);
        status = status == WEFT_OK && left > 0 ? ask(&now) : status;
    }
    guests_drop_all(&guests);
    return status;
}

/* ---- taking ---- */

/* Connect, again and again while nobody listens at the name yet or the queue is full. */
static weft_status connect_until(int taker, const unsigned char name[16], wait *now)
{
    struct sockaddr_un address;
    socklen_t bytes = name_address(&address, name);
    uint64_t pause_ns = RETRY_FIRST_NS;
    for (;;) {
        if (!wefti_fault("connect", ENOMEM) && connect(taker, (struct sockaddr *)&address, bytes) == 0) {
            return WEFT_OK;
        }
        if (!is_later(errno) && errno != ECONNREFUSED && errno != ENOENT) {
            return wefti_error(WEFT_ERR_SYSTEM,
                               "cannot connect to a local socket, to take shared memory: %s; a container's security "
                               "profile has to allow abstract sockets",
                               strerror(errno));
        }
        if (wefti_os_now_ns() >= now->until_ns) {
            return wefti_error(WEFT_ERR_TIMEOUT, "nobody on this node offered the shared memory in time");
        }
        WEFT_TRY(ask(now));
        wefti_os_sleep_ns(pause_ns);
        pause_ns = pause_ns * 2 < RETRY_LONGEST_NS ? pause_ns * 2 : RETRY_LONGEST_NS;
    }
}

/* Nobody else could have taken the name while it was offered; afterwards anybody can. */
static weft_status check_offerer(int taker)
{
    unsigned user = 0;
    return wefti_os_socket_is_own_user(taker, &user)
               ? WEFT_OK
               : wefti_error(WEFT_ERR_AUTHENTICATION,
                             "the socket at which the shared memory was offered is held by another user, number %u",
                             user);
}

static weft_status show_token(int taker, const unsigned char token[16])
{
    ssize_t sent;
    do {
        sent = wefti_fault("send", ENOBUFS) ? -1 : send(taker, token, TOKEN_BYTES, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
        return wefti_error(WEFT_ERR_PEER, "the process that offers the shared memory is gone");
    }
    if (sent != TOKEN_BYTES) {
        return wefti_error(WEFT_ERR_SYSTEM,
                           "cannot ask for shared memory at a local socket: %s; the system lacks memory for sockets",
                           strerror(errno));
    }
    return WEFT_OK;
}

/* Returns 1 when there is something to read, 0 after an interruption, a deadline or a failure, told by *status. */
static int wait_readable(int taker, wait *now, weft_status *status)
{
    struct pollfd one = {.fd = taker, .events = POLLIN};
    int ready = wefti_fault("poll", ENOMEM) ? -1 : poll(&one, 1, poll_ms(next_ns(now)));
    if (ready > 0) {
        return 1;
    }
    if (ready < 0 && errno != EINTR) {
        *status = wefti_error(WEFT_ERR_SYSTEM, "cannot wait at a local socket (poll): %s; look at ulimit -n",
                              strerror(errno));
    } else if (wefti_os_now_ns() >= now->until_ns) {
        *status = wefti_error(WEFT_ERR_TIMEOUT, "the shared memory was offered but not handed over in time");
    } else {
        *status = ask(now);
    }
    return 0;
}

/* The descriptor that came with a message; -1 where there is none, or more than one, which are closed: room for one has
 * room for two. */
static int only_descriptor(const struct cmsghdr *header)
{
    int all[CMSG_SPACE(sizeof(int)) / sizeof(int)];
    if (header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
        return -1;
    }
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(all, CMSG_DATA(header), count * sizeof(int));
    for (size_t i = 0; i < count && count > 1; i++) {
        close(all[i]);
    }
    return count == 1 ? all[0] : -1;
}

/* Read an answer. Returns what recvmsg does; *descriptor is -1 when none came with it. */
static ssize_t receive_answer(int taker, int *descriptor)
{
    unsigned char word;
    struct iovec part = {.iov_base = &word, .iov_len = 1};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t bytes = wefti_fault("recvmsg", ENOBUFS) ? -1 : recvmsg(taker, &message, MSG_CMSG_CLOEXEC);
    const int came = bytes >= 0 ? only_descriptor(CMSG_FIRSTHDR(&message)) : -1;
    if (bytes == 0) { /* the end, or a message of no bytes, which may have brought something */
        close_socket(came);
        return 0;
    }
    *descriptor = came < 0 ? -1 : wefti_os_descriptor_beyond_standard(came);
    if (came >= 0 && *descriptor < 0) {
        return -1;
    }
    if (*descriptor < 0 && bytes > 0 && (message.msg_flags & MSG_CTRUNC) != 0) { /* there was one, and no room for it */
        errno = EMFILE;
        return -1;
    }
    return bytes;
}

static weft_status take_answer(int taker, wait *now, int *descriptor)
{
    weft_status status = WEFT_OK;
    while (!wait_readable(taker, now, &status)) {
        WEFT_TRY(status);
    }
    int taken;
    ssize_t bytes = receive_answer(taker, &taken);
    if (bytes == 0 || (bytes < 0 && errno == ECONNRESET)) {
        return wefti_error(WEFT_ERR_PEER, "the process that offers the shared memory is gone");
    }
    if (bytes < 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot take the shared memory: %s; look at ulimit -n", strerror(errno));
    }
    if (taken < 0) {
        return wefti_error(WEFT_ERR_AUTHENTICATION,
                           "the process that offers the shared memory did not accept this one's token");
    }
    *descriptor = taken;
    return WEFT_OK;
}

weft_status wefti_os_pass_take(const unsigned char name[16], const unsigned char token[16], uint64_t until_ns,
                               const wefti_os_watch *watch, int *descriptor)
{
    wait now = wait_until(until_ns, watch);
    int taker = open_socket();
    if (taker < 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot open a local socket: %s; look at ulimit -n", strerror(errno));
    }
    weft_status status = connect_until(taker, name, &now);
    if (status == WEFT_OK) {
        status = check_offerer(taker);
    }
    if (status == WEFT_OK) {
        status = show_token(taker, token);
    }
    if (status == WEFT_OK) {
        status = take_answer(taker, &now, descriptor);
    }
    close(taker);
    return status;
}

/* Goal: nobody but a PE of the world says what became of PEs: not who sits at the port of one that has ended and is
 * told how another proves itself, nor another user at its local name, who is told nothing. Method: a watch of one PE,
 * whose other PEs are sockets of the test. */
#include "base/durations.h"
#include "transport/am/watch_link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "os/socket.h"
#include "support/check.h"

#define WORLD UINT64_C(0x1234567890abcdef)
#define PES 3 /* each of a node of its own, or all of one */
#define PATIENCE_MS 60000
#define NOBODY 65534
#define CLOSINGS 640

typedef struct scene {
    wefti_view view;
    wefti_transport_setup world;
    wefti_watch *watch;
    wefti_watch_contact contacts[PES];
    int lost; /* a bit a PE; atomic */
} scene;

static void note_lost(void *context, int pe, wefti_transport_fate fate)
{
    scene *s = context;
    if (fate != WEFTI_FATE_LEFT) {
        (void)__atomic_fetch_or(&s->lost, 1 << pe, __ATOMIC_SEQ_CST);
    }
}

static int is_lost(const scene *s, int pe)
{
    return (__atomic_load_n(&s->lost, __ATOMIC_SEQ_CST) >> pe & 1) != 0;
}

/* The watch of `pe`, whose node has the PEs from `leader` to it. */
static void open_watch(scene *s, int pe, int leader)
{
    static const struct sockaddr_in host = {.sin_family = AF_INET, .sin_addr.s_addr = 0x0100007f};
    memset(s, 0, sizeof *s);
    s->view.near_first = (uint32_t)leader;
    s->view.near_count = (uint32_t)(pe - leader + 1);
    s->world = (wefti_transport_setup){
        .world = WORLD, .pe = pe, .pes = PES, .view = &s->view, .silence_ns = 60 * WEFTI_SECOND_NS};
    const wefti_watch_setup setup = {
        .world = &s->world, .host = (const struct sockaddr *)&host, .lost = note_lost, .context = s};
    CHECK_OK(wefti_watch_create(&setup, &s->watch, &s->contacts[pe]));
    for (int other = 0; other < PES; other++) {
        s->contacts[other].leader = (uint32_t)(other >= leader && other <= pe ? leader : other);
    }
}

static int listen_as(wefti_watch_contact *contact)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &bytes), 0);
    contact->host_bytes = (uint32_t)bytes;
    memcpy(contact->host, &at, bytes);
    return listener;
}

static int connect_to(const wefti_watch_contact *contact)
{
    struct sockaddr_in at;
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    memcpy(&at, contact->host, sizeof at);
    assert_int_equal(connect(descriptor, (struct sockaddr *)&at, sizeof at), 0);
    return descriptor;
}

static int is_readable(int descriptor, int patience_ms)
{
    struct pollfd one = {.fd = descriptor, .events = POLLIN};
    return poll(&one, 1, patience_ms) == 1;
}

static void send_fate(int descriptor, uint64_t proof, uint32_t pe, wefti_transport_fate fate)
{
    const wefti_watch_message message = {.proof = proof, .pe = pe, .fate = (uint32_t)fate};
    (void)send(descriptor, &message, sizeof message, MSG_NOSIGNAL);
}

/* Whether the other end closes, having said nothing. */
static int is_sent_away(int descriptor)
{
    char byte;
    return is_readable(descriptor, PATIENCE_MS) && recv(descriptor, &byte, 1, 0) <= 0;
}

/* PE 1 has ended, and the test is at its port: what PE 0 tells it there makes it no PE at PE 0's own. */
static void test_a_port_that_is_taken_over(void **state)
{
    (void)state;
    scene s;
    wefti_watch_message received;
    open_watch(&s, 0, 0);
    int listener = listen_as(&s.contacts[1]);
    CHECK_OK(wefti_watch_start(s.watch, s.contacts, sizeof s.contacts[0]));
    assert_true(is_readable(listener, PATIENCE_MS));
    int taken = accept(listener, NULL, NULL);
    CHECK(recv(taken, &received, sizeof received, MSG_WAITALL) == sizeof received);
    CHECK(received.proof == wefti_watch_proof(WORLD, 0, 1) && received.pe == 0);
    CHECK(received.proof != WORLD && memcmp(&received.proof, &s.world.world, sizeof received.proof) != 0);
    const uint64_t proof = received.proof;
    CHECK(recv(taken, &received, sizeof received, MSG_WAITALL) == sizeof received); /* it has reached this node */
    CHECK(received.proof == proof && received.pe == 1 && received.fate == WEFTI_FATE_THERE);
    for (uint32_t pe = 1; pe < PES; pe++) {
        const uint64_t proofs[] = {received.proof, WORLD, wefti_watch_proof(WORLD, 0, pe),
                                   wefti_watch_proof(WORLD, pe, pe)};
        for (size_t i = 0; i < sizeof proofs / sizeof *proofs; i++) {
            int caller = connect_to(&s.contacts[0]);
            send_fate(caller, proofs[i], pe, WEFTI_FATE_THERE);
            send_fate(caller, proofs[i], 3 - pe, WEFTI_FATE_ENDED);
            CHECK(is_sent_away(caller));
            (void)close(caller);
        }
    }
    send_fate(taken, received.proof, 1, WEFTI_FATE_THERE); /* nor an echo */
    send_fate(taken, received.proof, 2, WEFTI_FATE_ENDED);
    CHECK(is_sent_away(taken));
    CHECK(wefti_watch_fate(s.watch, 1) == WEFTI_FATE_THERE && wefti_watch_fate(s.watch, 2) == WEFTI_FATE_THERE);
    (void)close(taken);
    int pe = connect_to(&s.contacts[0]);
    send_fate(pe, wefti_watch_proof(WORLD, 1, 0), 1, WEFTI_FATE_THERE);
    send_fate(pe, wefti_watch_proof(WORLD, 1, 0), 2, WEFTI_FATE_ENDED);
    CHECK(is_readable(pe, PATIENCE_MS)); /* who this is, and what it has just learnt */
    /* The fate is stored before lost() is called. */
    for (uint64_t until_ns = wefti_os_now_ns() + 60 * WEFTI_SECOND_NS;
         !is_lost(&s, 2) && wefti_os_now_ns() < until_ns;) {
        wefti_os_sleep_ns(WEFTI_SECOND_NS / 1000);
    }
    CHECK(is_lost(&s, 2) && wefti_watch_fate(s.watch, 2) == WEFTI_FATE_ENDED);
    (void)close(pe);
    (void)close(listener);
    wefti_watch_destroy(s.watch);
}

static socklen_t local_name(const wefti_watch_contact *contact, struct sockaddr_un *at)
{
    memset(at, 0, sizeof *at);
    at->sun_family = AF_UNIX;
    memcpy(at->sun_path + 1, "weft-watch-", 11);
    memcpy(at->sun_path + 12, contact->name, sizeof contact->name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 12 + sizeof contact->name);
}

/* Listens at PE 0's name, and calls PE 1's. Exits with what it was told, a bit each. */
static void be_another_user(const scene *s, int ready)
{
    struct sockaddr_un at;
    char bytes[64];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setresuid(NOBODY, NOBODY, NOBODY) != 0) {
        _exit(64);
    }
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t length = local_name(&s->contacts[0], &at);
    if (bind(listener, (struct sockaddr *)&at, length) != 0 || listen(listener, 8) != 0 || write(ready, "", 1) != 1) {
        _exit(64);
    }
    int got = accept(listener, NULL, NULL);
    int told = recv(got, bytes, sizeof bytes, 0) > 0;
    length = local_name(&s->contacts[1], &at);
    int caller = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(caller, (struct sockaddr *)&at, length) != 0) {
        _exit(32);
    }
    send_fate(caller, wefti_watch_proof(WORLD, 0, 1), 0, WEFTI_FATE_THERE); /* even so */
    told |= (recv(caller, bytes, sizeof bytes, 0) > 0) << 1;
    _exit(told);
}

static void test_other_users_are_told_nothing(void **state)
{
    (void)state;
    scene s;
    int ready[2];
    int result = -1;
    char byte;
    if (geteuid() != 0) {
        print_message("not root: no other users\n");
        skip();
    }
    open_watch(&s, 1, 0);
    CHECK_OK(wefti_os_random(s.contacts[0].name, sizeof s.contacts[0].name));
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        be_another_user(&s, ready[1]);
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    CHECK_OK(wefti_watch_start(s.watch, s.contacts, sizeof s.contacts[0]));
    assert_int_equal(waitpid(child, &result, 0), child);
    CHECK_SAY(result == 0, "the other user's process ended with 0x%x", result);
    CHECK(wefti_watch_fate(s.watch, 2) == WEFTI_FATE_THERE && wefti_watch_fate(s.watch, 0) == WEFTI_FATE_THERE);
    (void)close(ready[0]);
    wefti_watch_destroy(s.watch);
}

/* PEs of which nothing that makes sense was said are watched by nobody, and the others are. */
static void test_contacts_that_make_no_sense(void **state)
{
    (void)state;
    scene s;
    open_watch(&s, 0, 0);
    s.contacts[1] = (wefti_watch_contact){.leader = UINT32_MAX, .host_bytes = UINT32_MAX};
    int listener = listen_as(&s.contacts[2]);
    CHECK_OK(wefti_watch_start(s.watch, s.contacts, sizeof s.contacts[0]));
    CHECK(is_readable(listener, PATIENCE_MS));
    wefti_watch_destroy(s.watch);
    (void)close(listener);
}

/* Whenever a watch is closed, its thread ends: here after 0 to 63 us. The alarm is for one that sleeps on. */
static void test_closed_at_any_time(void **state)
{
    (void)state;
    (void)alarm(PATIENCE_MS / 1000);
    for (int round = 0; round < CLOSINGS; round++) {
        scene s;
        open_watch(&s, 0, 0);
        CHECK_OK(wefti_watch_start(s.watch, s.contacts, sizeof s.contacts[0]));
        for (uint64_t until_ns = wefti_os_now_ns() + (uint64_t)(round % 64) * 1000; wefti_os_now_ns() < until_ns;) {
        }
        wefti_watch_destroy(s.watch);
    }
    (void)alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_a_port_that_is_taken_over), CHECKED_TEST(test_other_users_are_told_nothing),
        CHECKED_TEST(test_contacts_that_make_no_sense), CHECKED_TEST(test_closed_at_any_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Goal: a world that forms by a unique id is disturbed by nobody who does not know the id's secret; ids serve once.
 * Method: PEs are threads; between their arrivals the test itself connects to PE 0's port, on loopback, and misbehaves
 * in each way that a scanner, a broken peer or an attacker without the secret can. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durations.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/tree/link.h"
#include "bootstrap/uid/id.h"
#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/load.h"
#include "support/pes.h"

#ifdef WEFT_HAVE_SODIUM

#define PES 5

/* ---- the world under attack ---- */

typedef struct siege {
    weft_uid uid;
    weft_uid uids[PES]; /* what each PE was given */
    uint64_t deadline_ns;
    uint64_t delays_ns[PES];
    weft_status statuses[PES];
    char texts[PES][WEFTI_ERROR_BYTES];
    void (*attack)(struct siege *siege);
    int stop; /* the attack is over when all PEs are done */
    int done;
    int relay; /* a listener */
    size_t changed; /* the byte that the relay changes, behind the handshake */
} siege;

static wefti_uid_body body_of(const weft_uid *uid)
{
    wefti_uid_body body;
    memcpy(&body, uid->bytes, sizeof body);
    return body;
}

/* What each PE tells the others, and nobody else should hear. */
typedef struct told {
    char text[28];
    int pe;
} told;

#define TEXT "between the PEs of a world"

static weft_status join(int pe, int pes, const weft_uid *uid, uint64_t deadline_ns)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    wefti_bootstrap bootstrap;
    told all[2 * PES_MAX] = {{"", 0}};
    config.bootstrap = WEFT_BOOTSTRAP_UID;
    config.pe = pe;
    config.pes = pes;
    config.uid = uid;
    config.deadline_ns = deadline_ns;
    WEFT_TRY(wefti_bootstrap_open(&config, &bootstrap));
    told mine = {TEXT, 1000 + pe};
    weft_status status = bootstrap.ops->allgather(&bootstrap, &mine, all, sizeof mine);
    for (int i = 0; i < pes && status == WEFT_OK; i++) {
        CHECK(all[i].pe == 1000 + i && strcmp(all[i].text, TEXT) == 0);
    }
    wefti_bootstrap_close(&bootstrap);
    return status;
}

static void defend(int pe, void *context)
{
    siege *s = context;
    if (pe == PES) {
        s->attack(s);
        return;
    }
    wefti_os_sleep_ns(s->delays_ns[pe]);
    s->statuses[pe] = join(pe, PES, &s->uids[pe], s->deadline_ns);
    (void)snprintf(s->texts[pe], sizeof s->texts[pe], "%s", s->statuses[pe] == WEFT_OK ? "" : weft_last_error());
    if (__atomic_add_fetch(&s->done, 1, __ATOMIC_ACQ_REL) == PES) {
        __atomic_store_n(&s->stop, 1, __ATOMIC_RELEASE);
    }
}

/* PE 3 comes after 200 ms: until then the others wait, under attack. */
static void prepare(siege *s, void (*attack)(siege *siege))
{
    memset(s, 0, sizeof *s);
    CHECK_OK(weft_uid_create("lo", &s->uid));
    for (int pe = 0; pe < PES; pe++) {
        s->uids[pe] = s->uid;
    }
    s->attack = attack;
    s->deadline_ns = load_patience_ns(20000 * WEFTI_MILLISECOND_NS);
    s->delays_ns[3] = 200 * WEFTI_MILLISECOND_NS;
}

static void withstand(void (*attack)(siege *siege))
{
    ledger before = ledger_read();
    siege *s = malloc(sizeof *s);
    prepare(s, attack);
    pes_each(PES + 1, defend, s);
    for (int pe = 0; pe < PES; pe++) {
        CHECK_SAY(s->statuses[pe] == WEFT_OK, "PE %d: %s", pe, s->texts[pe]);
    }
    free(s);
    ledger_assert_same(&before);
}

/* ---- the attacker's means ---- */

static int dial(const weft_uid *uid)
{
    wefti_uid_body body = body_of(uid);
    struct sockaddr_storage address;
    socklen_t bytes = wefti_tcp_address_to(&body.contact.addresses[0], wefti_tcp_contact_port(&body.contact), &address);
    int descriptor = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(descriptor, (const struct sockaddr *)&address, bytes) != 0) {
        (void)close(descriptor);
        return -1;
    }
    return descriptor;
}

static int is_over(const siege *s)
{
    return __atomic_load_n(&s->stop, __ATOMIC_ACQUIRE);
}

static void send_bytes(int descriptor, const void *bytes, size_t count)
{
    (void)!send(descriptor, bytes, count, MSG_NOSIGNAL);
}

/* Read exactly; returns 0 when the other end stops before. */
static int read_exactly(int descriptor, void *memory, size_t count)
{
    return recv(descriptor, memory, count, MSG_WAITALL) == (ssize_t)count;
}

static int is_closed_within(int descriptor, int ms)
{
    char rest[256];
    struct pollfd item = {.fd = descriptor, .events = POLLIN};
    while (poll(&item, 1, ms) == 1) {
        if (recv(descriptor, rest, sizeof rest, 0) <= 0) {
            return 1;
        }
    }
    return 0;
}

/* ---- attacks ---- */

static void send_noise(siege *s)
{
    uint64_t random = test_seed();
    while (!is_over(s)) {
        unsigned char bytes[600];
        int descriptor = dial(&s->uid);
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (unsigned char)random_next(&random);
        }
        send_bytes(descriptor, bytes, 1 + random_below(&random, sizeof bytes));
        wefti_os_sleep_ns(WEFTI_MILLISECOND_NS);
        (void)close(descriptor);
    }
}

static void send_wild_headers(siege *s)
{
    static const uint64_t lengths[] = {0, 1, 545, UINT64_C(1) << 32, UINT64_C(1) << 60, UINT64_MAX};
    uint64_t round = 0;
    while (!is_over(s)) {
        wefti_frame_header header = {.type = (uint32_t)(round % 12), .bytes = lengths[round / 12 % 6]};
        unsigned char body[sizeof(wefti_tree_introduction)] = {0};
        int descriptor = dial(&s->uid);
        send_bytes(descriptor, &header, sizeof header);
        send_bytes(descriptor, body, sizeof body);
        (void)close(descriptor);
        round++;
        wefti_os_sleep_ns(WEFTI_MILLISECOND_NS / 4);
    }
}

/* More connections than may be half open, held until the end. */
static void keep_silent(siege *s)
{
    int descriptors[700];
    for (int i = 0; i < 700; i++) {
        descriptors[i] = dial(&s->uid);
    }
    while (!is_over(s)) {
        wefti_os_sleep_ns(WEFTI_MILLISECOND_NS);
    }
    for (int i = 0; i < 700; i++) {
        (void)close(descriptors[i]);
    }
}

static void send_half_a_hello(siege *s)
{
    int descriptors[40];
    wefti_frame_header header = {.type = WEFTI_FRAME_HELLO, .bytes = sizeof(wefti_tree_introduction)};
    for (int i = 0; i < 40; i++) {
        descriptors[i] = dial(&s->uid);
        send_bytes(descriptors[i], &header, i < 20 ? 7 : sizeof header);
        send_bytes(descriptors[i], &header, i < 30 ? 0 : 9);
    }
    while (!is_over(s)) {
        wefti_os_sleep_ns(WEFTI_MILLISECOND_NS);
    }
    for (int i = 0; i < 40; i++) {
        (void)close(descriptors[i]);
    }
}

static void come_and_go(siege *s)
{
    while (!is_over(s)) {
        int descriptor = dial(&s->uid);
        if (descriptor < 0) {
            wefti_os_sleep_ns(WEFTI_MILLISECOND_NS); /* all have come: PE 0 listens no more */
        } else {
            (void)close(descriptor);
        }
    }
}

/* Connections that send without end, as fast as they can, for longer than the deadline of the world. */
static void never_stop_sending(siege *s)
{
    enum { COUNT = 8 };
    static unsigned char bytes[1 << 17];
    int descriptors[COUNT];
    uint64_t until_ns = wefti_os_now_ns() + s->deadline_ns + 2000 * WEFTI_MILLISECOND_NS;
    memset(bytes, 0xff, sizeof bytes);
    for (int i = 0; i < COUNT; i++) {
        descriptors[i] = dial(&s->uid);
    }
    for (int i = 0; !is_over(s) && wefti_os_now_ns() < until_ns; i = (i + 1) % COUNT) {
        ssize_t sent = send(descriptors[i], bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN) {
            (void)close(descriptors[i]);
            descriptors[i] = dial(&s->uid);
        }
    }
    for (int i = 0; i < COUNT; i++) {
        (void)close(descriptors[i]);
    }
}

/* A PE whose id has another secret, with a number that is still free. */
static void guess_the_secret(siege *s)
{
    wefti_uid_body body = body_of(&s->uid);
    weft_uid wrong = s->uid;
    body.secret[31] ^= 1;
    memcpy(wrong.bytes, &body, sizeof body);
    wefti_os_sleep_ns(50 * WEFTI_MILLISECOND_NS);
    uint64_t start_ns = wefti_os_now_ns();
    CHECK_STATUS(join(3, PES, &wrong, 60000 * WEFTI_MILLISECOND_NS), WEFT_ERR_AUTHENTICATION);
    CHECK(wefti_os_now_ns() - start_ns < 30000 * WEFTI_MILLISECOND_NS);
}

/* ---- a relay between PE 3 and PE 0 that records what PE 3 says, and says it again, or changes it ---- */

typedef struct recording {
    unsigned char bytes[4096];
    size_t count;
    size_t changed; /* the byte that is changed, counted from 1; 0: none */
} recording;

static int make_relay(weft_uid *uid)
{
    wefti_uid_body body = body_of(uid);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(listener, (const struct sockaddr *)&address, bytes) == 0 && listen(listener, 8) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &bytes) == 0);
    wefti_tcp_contact_set_port(&body.contact, ntohs(address.sin_port));
    body.tag[0] ^= 1; /* as on another host: PE 0 is found at the port alone */
    memcpy(uid->bytes, &body, sizeof body);
    return listener;
}

/* Move what one side said to the other. Returns 0 at the end. */
static int pass_on(int from, int to, recording *record)
{
    unsigned char bytes[1024];
    ssize_t got = recv(from, bytes, sizeof bytes, 0);
    if (got <= 0) {
        (void)shutdown(to, SHUT_WR);
        return 0;
    }
    if (record != NULL && record->changed > record->count && record->changed <= record->count + (size_t)got) {
        bytes[record->changed - record->count - 1] ^= 0x10;
    }
    send_bytes(to, bytes, (size_t)got);
    if (record != NULL && record->count + (size_t)got <= sizeof record->bytes) {
        memcpy(record->bytes + record->count, bytes, (size_t)got);
        record->count += (size_t)got;
    }
    return 1;
}

static void replay(const siege *s, const recording *record)
{
    int descriptor = dial(&s->uid);
    CHECK(descriptor >= 0);
    send_bytes(descriptor, record->bytes, record->count);
    CHECK_SAY(is_closed_within(descriptor, 2000), "a replayed handshake was not turned away");
    (void)close(descriptor);
}

static void record_and_replay(siege *s)
{
    recording record = {.count = 0};
    int was_replayed = 0;
    int from_pe = accept4(s->relay, NULL, NULL, SOCK_CLOEXEC);
    int to_root = dial(&s->uid);
    int live = 2;
    while (live > 0) {
        struct pollfd items[2] = {{.fd = from_pe, .events = POLLIN}, {.fd = to_root, .events = POLLIN}};
        (void)poll(items, 2, -1);
        if (items[0].revents != 0 && !pass_on(from_pe, to_root, &record)) {
            live = 0;
        }
        if (items[1].revents != 0 && !pass_on(to_root, from_pe, NULL)) {
            live = 0;
        }
        if (!was_replayed && record.count >= sizeof(wefti_frame_header) + sizeof(wefti_tree_introduction)) {
            was_replayed = 1; /* PE 4 has not come, so PE 0 still listens */
            replay(s, &record);
            replay(s, &record);
        }
    }
    CHECK(was_replayed);
    CHECK(record.count > sizeof(wefti_tree_introduction) + sizeof(told)); /* so PE 3 has told it */
    CHECK_SAY(memmem(record.bytes, record.count, TEXT, sizeof TEXT) == NULL, "what PEs tell each other was readable");
    (void)close(from_pe);
    (void)close(to_root);
}

/* Pass everything on, but for one changed byte behind the handshake: of PE 3, or, `of_root`, of PE 0. */
static void change_one_byte(const siege *s, int of_root, size_t which)
{
    recording of_pe = {.changed = 0};
    recording of_other = {.changed = 0};
    const size_t hello = sizeof(wefti_frame_header) + sizeof(wefti_tree_introduction);
    const size_t answer = 2 * sizeof(wefti_frame_header) + sizeof(wefti_tree_challenge) + sizeof(wefti_tree_answer);
    *(of_root ? &of_other.changed : &of_pe.changed) = (of_root ? answer : hello) + 1 + which;
    int from_pe = accept4(s->relay, NULL, NULL, SOCK_CLOEXEC);
    int to_root = dial(&s->uid);
    for (int live = 2; live > 0;) {
        struct pollfd items[2] = {{.fd = from_pe, .events = POLLIN}, {.fd = to_root, .events = POLLIN}};
        (void)poll(items, 2, -1);
        if ((items[0].revents != 0 && !pass_on(from_pe, to_root, &of_pe)) ||
            (items[1].revents != 0 && !pass_on(to_root, from_pe, &of_other))) {
            live = 0;
        }
    }
    (void)close(from_pe);
    (void)close(to_root);
}

static void change_what_the_pe_says(siege *s)
{
    change_one_byte(s, 0, s->changed);
}

static void change_what_the_root_says(siege *s)
{
    change_one_byte(s, 1, s->changed);
}

/* Whoever finds it out tells all: nobody goes on with what somebody else has made of a message. */
static void believes_nothing_that_was_changed(void **state)
{
    (void)state;
    static const size_t places[] = {0, 23, 24, 40, 57}; /* of the header; of the first messages and their ends */
    for (size_t i = 0; i < 2 * sizeof places / sizeof *places; i++) {
        siege *s = malloc(sizeof *s);
        prepare(s, i % 2 == 0 ? change_what_the_pe_says : change_what_the_root_says);
        s->relay = make_relay(&s->uids[3]);
        s->changed = places[i / 2];
        memset(s->delays_ns, 0, sizeof s->delays_ns);
        pes_each(PES + 1, defend, s);
        for (int pe = 0; pe < PES; pe++) {
            CHECK_SAY(s->statuses[pe] == WEFT_ERR_AUTHENTICATION, "byte %zu changed: PE %d: %s: %s", s->changed, pe,
                      weft_status_name(s->statuses[pe]), s->texts[pe]);
        }
        (void)close(s->relay);
        free(s);
    }
}

static void withstands_a_replay(void **state)
{
    (void)state;
    siege *s = malloc(sizeof *s);
    prepare(s, record_and_replay);
    s->relay = make_relay(&s->uids[3]);
    s->delays_ns[3] = 0;
    s->delays_ns[4] = 500 * WEFTI_MILLISECOND_NS;
    pes_each(PES + 1, defend, s);
    for (int pe = 0; pe < PES; pe++) {
        CHECK_SAY(s->statuses[pe] == WEFT_OK, "PE %d: %s", pe, s->texts[pe]);
    }
    (void)close(s->relay);
    free(s);
}

/* ---- an impostor of PE 0, who sends a PE its own proof back ---- */

static void reflect(int who, void *context)
{
    siege *s = context;
    if (who == 1) {
        uint64_t start_ns = wefti_os_now_ns();
        weft_status status = join(1, 2, &s->uids[1], 500 * WEFTI_MILLISECOND_NS);
        CHECK_STATUS(status, WEFT_ERR_TIMEOUT);
        CHECK_NAMES(0);
        uint64_t took_ns = wefti_os_now_ns() - start_ns;
        CHECK(took_ns < load_patience_ns(3000 * WEFTI_MILLISECOND_NS));
        (void)shutdown(s->relay, SHUT_RDWR); /* ends the impostor's accept */
        return;
    }
    for (int from = 0; from >= 0;) {
        wefti_frame_header challenge = {.type = WEFTI_FRAME_CHALLENGE, .bytes = sizeof(wefti_tree_challenge)};
        wefti_frame_header answer = {.type = WEFTI_FRAME_ANSWER, .bytes = sizeof(wefti_tree_answer)};
        wefti_frame_header hello;
        wefti_tree_challenge nonce = {{1, 2, 3}};
        wefti_tree_introduction said;
        wefti_tree_answer reflected = {.pe = 0};
        from = accept4(s->relay, NULL, NULL, SOCK_CLOEXEC);
        send_bytes(from, &challenge, sizeof challenge);
        send_bytes(from, &nonce, sizeof nonce);
        if (read_exactly(from, &hello, sizeof hello) && read_exactly(from, &said, sizeof said)) {
            memcpy(reflected.proof, said.proof, sizeof reflected.proof);
            send_bytes(from, &answer, sizeof answer);
            send_bytes(from, &reflected, sizeof reflected);
        }
        (void)close(from);
    }
}

static void believes_no_impostor(void **state)
{
    (void)state;
    siege *s = malloc(sizeof *s);
    prepare(s, NULL);
    s->relay = make_relay(&s->uids[1]);
    pes_each(2, reflect, s);
    (void)close(s->relay);
    CHECK_OK(weft_uid_discard(&s->uid));
    free(s);
}

/* ---- tests of attacks ---- */

static void withstands_noise(void **state)
{
    (void)state;
    withstand(send_noise);
}

static void withstands_wild_headers(void **state)
{
    (void)state;
    withstand(send_wild_headers);
}

static void withstands_silence(void **state)
{
    (void)state;
    withstand(keep_silent);
}

static void withstands_endless_bytes(void **state)
{
    (void)state;
    withstand(never_stop_sending);
}

static void withstands_halves(void **state)
{
    (void)state;
    withstand(send_half_a_hello);
}

static void withstands_a_crowd(void **state)
{
    (void)state;
    withstand(come_and_go);
}

static void turns_away_a_wrong_secret(void **state)
{
    (void)state;
    withstand(guess_the_secret);
}

/* ---- tests of ids ---- */

static weft_status join_alone(const weft_uid *uid)
{
    return join(0, 1, uid, 1000 * WEFTI_MILLISECOND_NS);
}

static void serves_once(void **state)
{
    (void)state;
    ledger before = ledger_read();
    weft_uid uid;
    CHECK_OK(weft_uid_create("lo", &uid));
    CHECK_OK(join_alone(&uid));
    CHECK_STATUS(join_alone(&uid), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_uid_discard(&uid), WEFT_ERR_ARGUMENT);
    ledger_assert_same(&before);
}

static void is_discarded_once(void **state)
{
    (void)state;
    ledger before = ledger_read();
    weft_uid uid;
    CHECK_OK(weft_uid_create("127.0.0.1", &uid));
    CHECK_OK(weft_uid_discard(&uid));
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* likely with the number of the id's socket */
    CHECK_STATUS(weft_uid_discard(&uid), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(join_alone(&uid), WEFT_ERR_ARGUMENT);
    CHECK(close(other) == 0);
    ledger_assert_same(&before);
}

/* Whether a piece of work done in a child process succeeds. */
static int holds_in_a_child(int (*work)(const weft_uid *uid), const weft_uid *uid)
{
    int wait_status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(work(uid) ? 0 : 1);
    }
    return waitpid(child, &wait_status, 0) == child && wait_status == 0;
}

static int refuses_the_maker_elsewhere(const weft_uid *uid)
{
    return join_alone(uid) == WEFT_ERR_ARGUMENT &&
           strstr(weft_last_error(), "make it in the process of PE 0") != NULL &&
           weft_uid_discard(uid) == WEFT_ERR_ARGUMENT;
}

static void belongs_to_its_process(void **state)
{
    (void)state;
    weft_uid uid;
    CHECK_OK(weft_uid_create("lo", &uid));
    CHECK(holds_in_a_child(refuses_the_maker_elsewhere, &uid));
    CHECK_OK(join_alone(&uid));
}

static void refuses_what_is_no_id(void **state)
{
    (void)state;
    weft_uid uid;
    memset(&uid, 7, sizeof uid);
    CHECK_STATUS(join_alone(&uid), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_uid_discard(&uid), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_uid_discard(NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_uid_create("lo", NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(join(0, 1, NULL, WEFTI_MILLISECOND_NS), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(join(0, 0, &uid, WEFTI_MILLISECOND_NS), WEFT_ERR_ARGUMENT);
}

static void names_the_interfaces_there_are(void **state)
{
    (void)state;
    weft_uid uid;
    CHECK_STATUS(weft_uid_create("nonesuch0", &uid), WEFT_ERR_ARGUMENT);
    CHECK(strstr(weft_last_error(), "nonesuch0") != NULL && strstr(weft_last_error(), "lo") != NULL);
    (void)setenv("WEFT_UID_INTERFACE", "nonesuch1", 1);
    CHECK_STATUS(weft_uid_create(NULL, &uid), WEFT_ERR_ARGUMENT);
    CHECK(strstr(weft_last_error(), "nonesuch1") != NULL);
    (void)unsetenv("WEFT_UID_INTERFACE");
}

/* Members learn within a second that nobody listens any more: they do not wait for their deadline. */
static void says_that_pe_0_is_gone(void **state)
{
    (void)state;
    weft_uid uid;
    CHECK_OK(weft_uid_create("lo", &uid));
    CHECK_OK(weft_uid_discard(&uid));
    uint64_t start_ns = wefti_os_now_ns();
    CHECK_STATUS(join(1, 2, &uid, 60000 * WEFTI_MILLISECOND_NS), WEFT_ERR_PEER);
    CHECK_NAMES(0);
    uint64_t took_ns = wefti_os_now_ns() - start_ns;
    CHECK(took_ns < load_patience_ns(3000 * WEFTI_MILLISECOND_NS));
}

/* ---- tests of worlds ---- */

typedef struct many {
    weft_uid uid;
    int pes;
    int first;
    int is_far; /* all but PE 0 find it at its port alone */
} many;

static void join_many(int pe, void *context)
{
    many *m = context;
    weft_uid own = m->uid;
    if (m->is_far && pe > 0) {
        wefti_uid_body body = body_of(&own);
        body.tag[0] ^= 1;
        memcpy(own.bytes, &body, sizeof body);
    }
    CHECK_OK(join(m->first + pe, m->pes, &own, 60000 * WEFTI_MILLISECOND_NS));
}

/* Half of the PEs: more than a test's crew holds take two crews. */
static void join_half(int which, void *context)
{
    many *m = context;
    many half = *m;
    half.first = which * PES_MAX;
    pes_each(PES_MAX, join_many, &half);
}

static void meets_in_large_numbers(void **state)
{
    (void)state;
    ledger before = ledger_read();
    many m = {.pes = 2 * PES_MAX};
    CHECK_OK(weft_uid_create("lo", &m.uid));
    pes_each(2, join_half, &m);
    ledger_assert_same(&before);
}

static void meets_at(const char *interface, int pes)
{
    many m = {.pes = pes};
    if (weft_uid_create(interface, &m.uid) != WEFT_OK) {
        print_message("no %s here: %s\n", interface, weft_last_error());
        return;
    }
    m.is_far = 1;
    pes_each(pes, join_many, &m);
    m.is_far = 0;
    CHECK_OK(weft_uid_create(interface, &m.uid));
    pes_each(pes, join_many, &m);
}

static void meets_by_either_protocol(void **state)
{
    (void)state;
    meets_at("127.0.0.1", 7);
    meets_at("127.0.0.2", 7);
    meets_at("::1", 7);
}

static int run_group(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(serves_once),
        CHECKED_TEST(is_discarded_once),
        CHECKED_TEST(belongs_to_its_process),
        CHECKED_TEST(refuses_what_is_no_id),
        CHECKED_TEST(names_the_interfaces_there_are),
        CHECKED_TEST(says_that_pe_0_is_gone),
        CHECKED_TEST(meets_by_either_protocol),
        CHECKED_TEST(meets_in_large_numbers),
        CHECKED_TEST(withstands_noise),
        CHECKED_TEST(withstands_wild_headers),
        CHECKED_TEST(withstands_silence),
        CHECKED_TEST(withstands_endless_bytes),
        CHECKED_TEST(withstands_halves),
        CHECKED_TEST(withstands_a_crowd),
        CHECKED_TEST(turns_away_a_wrong_secret),
        CHECKED_TEST(withstands_a_replay),
        CHECKED_TEST(believes_nothing_that_was_changed),
        CHECKED_TEST(believes_no_impostor),
    };
    (void)setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static int run_group(void)
{
    return 77; /* built without libsodium */
}

#endif

int main(void)
{
    return run_group();
}

/* Goal: processes that know RANK, WORLD_SIZE and MASTER_ADDR make worlds: from a shell loop, from torchrun, in any
 * order, one world after another and several at once, by names and both kinds of address, from several hosts; and who
 * does not fit is named to all. Method: the shell loop is the one of weft/bootstrap.h, on the example hello. torchrun
 * itself is used where it is installed; else a stand-in sets what it sets, with a listener at MASTER_PORT as its store
 * is one. The other PEs are processes of this test with an environment of their own. Hosts are network namespaces
 * joined by a pair of virtual interfaces, which needs root; there only the bootstrap is opened, since no transport
 * leads from host to host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durations.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/tree/link.h"
#include "bootstrap/tree/message.h"
#include "os/os.h"
#include "support/check.h"
#include "support/crew.h"
#include "support/load.h"
#include "support/pes.h"
#include "weft.h"

#define HELLO WEFT_BUILD_DIR "/hello"
#define PROCESSES_MAX 12
#define DEADLINE_NS (20000 * WEFTI_MILLISECOND_NS)

/* ---- ports ---- */

static int listen_as(unsigned port, int leaves_it)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &leaves_it, sizeof leaves_it);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 8) != 0) {
        close(listener);
        return -1;
    }
    return listener;
}

static int listen_at(unsigned port)
{
    return listen_as(port, 0);
}

/* A port of which the next is free as well. */
static unsigned free_port(uint64_t *random)
{
    for (;;) {
        unsigned port = 20000 + (unsigned)random_below(random, 10000);
        int first = listen_at(port);
        int second = listen_at(port + 1);
        close(first);
        close(second);
        if (first >= 0 && second >= 0) {
            return port;
        }
    }
}

/* ---- PEs of this test ---- */

typedef struct plan {
    int pes;
    const char *address;
    unsigned port; /* MASTER_PORT */
    const char *secret;
    int is_open; /* WEFT_INSECURE */
    uint64_t late_ns; /* PE 0 comes so late */
    uint64_t deadline_ns;
    int odd; /* this process differs; -1: none */
    const char *odd_name; /* in this variable */
    const char *odd_value;
    const char *hosts; /* by process: the letter of its network namespace; NULL: this one */
    const char *far_address; /* MASTER_ADDR outside the first namespace; NULL: the same */
    weft_status (*act)(const struct plan *p);
} plan;

static void set_number(const char *name, long number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%ld", number);
    (void)setenv(name, text, 1);
}

static void set_environment(const plan *p, int process)
{
    (void)unsetenv("WEFT_LOCAL_JOB");
    (void)setenv("WEFT_LOG", "none", 1);
    set_number("RANK", process);
    set_number("WORLD_SIZE", p->pes);
    set_number("MASTER_PORT", p->port);
    int is_far = p->hosts != NULL && p->far_address != NULL && p->hosts[process] != p->hosts[0];
    (void)setenv("MASTER_ADDR", is_far ? p->far_address : p->address, 1);
    if (p->secret != NULL) {
        (void)setenv("WEFT_SECRET", p->secret, 1);
    }
    set_number("WEFT_INSECURE", p->is_open);
    if (process == p->odd) {
        (void)setenv(p->odd_name, p->odd_value, 1);
    }
}

static void enter_host(char host)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/run/netns/weft%d%c", (int)getppid(), host);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0) {
        _exit(4);
    }
    (void)setenv("WEFT_NODE_ID", path, 1);
}

static void be_process(const crew *c, int process, void *context)
{
    const plan *p = context;
    set_environment(p, process);
    if (p->hosts != NULL) {
        enter_host(p->hosts[process]);
    }
    wefti_os_sleep_ns(process == 0 ? p->late_ns : 0);
    uint64_t start_ns = wefti_os_now_ns();
    crew_tell(c, process, 1, p->act(p), start_ns);
}

/* Returns whether all came back. */
static int run(const plan *p, uint64_t *random, crew_report reports[PROCESSES_MAX])
{
    crew c;
    crew_report report;
    int count = 0;
    uint64_t until_ns = wefti_os_now_ns() + load_patience_ns(60000 * WEFTI_MILLISECOND_NS);
    memset(reports, 0, PROCESSES_MAX * sizeof *reports);
    crew_start(&c, p->pes, random, be_process, (void *)(uintptr_t)p);
    while (count < p->pes && crew_hear(&c, &report, until_ns)) {
        reports[report.pe] = report;
        count++;
    }
    crew_end(&c);
    return CHECK_SAY(count == p->pes, "only %d of %d came back", count, p->pes);
}

static void check_success(const plan *p, uint64_t *random)
{
    crew_report reports[PROCESSES_MAX];
    if (run(p, random, reports)) {
        for (int process = 0; process < p->pes; process++) {
            CHECK_SAY(reports[process].status == WEFT_OK, "MASTER_ADDR=%s: process %d: %s", p->address, process,
                      reports[process].text);
        }
    }
}

static plan plan_of(int pes, const char *address, uint64_t *random, weft_status (*act)(const plan *p))
{
    return (plan){
        .pes = pes, .address = address, .port = free_port(random), .deadline_ns = DEADLINE_NS, .odd = -1, .act = act};
}

/* ---- what they do ---- */

static weft_world_config config_of(const plan *p, const char *name)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    config.name = name;
    config.heap_max_bytes = 1 << 20;
    config.deadline_ns = p->deadline_ns;
    return config;
}

static weft_status use(weft_world *world)
{
    int *from;
    int pe = weft_world_pe(world);
    int pes = weft_world_pes(world);
    WEFT_TRY(weft_calloc(world, 1, sizeof *from, (void **)&from));
    WEFT_TRY(weft_int_p(world, from, pe + 1, (pe + 1) % pes));
    WEFT_TRY(weft_barrier(world));
    int is_right = *from == (pe + pes - 1) % pes + 1;
    WEFT_TRY(weft_free(world, from));
    return is_right ? WEFT_OK : wefti_error(WEFT_ERR_STATE, "PE %d heard from %d", pe, *from);
}

static weft_status make_and_use(const weft_world_config *config)
{
    weft_world *world;
    WEFT_TRY(weft_world_create(config, &world));
    weft_status status = use(world);
    weft_status ended = weft_world_destroy(world);
    return status == WEFT_OK ? ended : status;
}

static weft_status make_one(const plan *p)
{
    weft_world_config config = config_of(p, NULL);
    return make_and_use(&config);
}

/* As a program says that is not to take weftrun's variables, which are set as well. */
static weft_status make_asked(const plan *p)
{
    weft_world_config config = config_of(p, "asked");
    config.bootstrap = WEFT_BOOTSTRAP_ENV;
    (void)setenv("WEFT_LOCAL_JOB", "0", 1);
    return make_and_use(&config);
}

static weft_status make_one_after_another(const plan *p)
{
    static const char *const names[] = {"a", "a", "b", "a", NULL, "b", "b"};
    for (int i = 0; i < 21; i++) {
        weft_world_config config = config_of(p, names[i % 7]);
        WEFT_TRY(make_and_use(&config));
    }
    return WEFT_OK;
}

/* Other numbers than RANK's, and fewer of them: the highest does not take part. PE 0 is everywhere, as all are one
 * host. */
static weft_status make_others(const plan *p)
{
    weft_world_config config = config_of(p, "turned");
    int rank = (int)strtol(getenv("RANK"), NULL, 10);
    config.pes = p->pes - 1;
    config.pe = config.pes - 1 - rank;
    return rank < config.pes ? make_and_use(&config) : WEFT_OK;
}

#define WORLDS_AT_ONCE 6

typedef struct one_of_many {
    const plan *plan;
    weft_status statuses[WORLDS_AT_ONCE];
    char texts[WORLDS_AT_ONCE][WEFTI_ERROR_BYTES];
} one_of_many;

static void make_named(int which, void *context)
{
    one_of_many *all = context;
    char name[16];
    (void)snprintf(name, sizeof name, "world %d", which);
    weft_world_config config = config_of(all->plan, name);
    all->statuses[which] = WEFT_OK;
    for (int i = 0; i < 3 && all->statuses[which] == WEFT_OK; i++) {
        all->statuses[which] = make_and_use(&config);
    }
    (void)snprintf(all->texts[which], sizeof all->texts[which], "%s", weft_last_error());
}

static weft_status make_many_at_once(const plan *p)
{
    one_of_many all = {.plan = p};
    pes_each(WORLDS_AT_ONCE, make_named, &all);
    for (int i = 0; i < WORLDS_AT_ONCE; i++) {
        if (all.statuses[i] != WEFT_OK) {
            return wefti_error_relay(all.statuses[i], all.texts[i]);
        }
    }
    return WEFT_OK;
}

/* Meet, exchange, and leave it at that. */
static weft_status meet(const plan *p)
{
    wefti_bootstrap bootstrap;
    weft_world_config config = config_of(p, NULL);
    int all[PROCESSES_MAX];
    weft_status status = wefti_bootstrap_open(&config, &bootstrap);
    for (int i = 0; i < 20 && status == WEFT_OK; i++) {
        int mine = bootstrap.pe + i;
        status = bootstrap.ops->allgather(&bootstrap, &mine, all, sizeof mine);
        for (int pe = 0; pe < p->pes && status == WEFT_OK; pe++) {
            status = all[pe] == pe + i ? WEFT_OK : wefti_error(WEFT_ERR_STATE, "PE %d said %d", pe, all[pe]);
        }
    }
    wefti_bootstrap_close(&bootstrap);
    return status;
}

/* ---- tests: launchers ---- */

/* Run a script; what it prints must have `wanted` lines that begin with "PE ". */
static void check_script(const char *script, int wanted)
{
    char line[256];
    int count = 0;
    FILE *from = popen(script, "r");
    assert_non_null(from);
    while (fgets(line, sizeof line, from) != NULL) {
        count += strncmp(line, "PE ", 3) == 0 && strstr(line, "heard from") != NULL;
    }
    int code = pclose(from);
    CHECK_SAY(count == wanted && code == 0, "%d lines of %d, exit code %d: %s", count, wanted, code, script);
}

static void test_shell_loop(void **state)
{
    char script[1024];
    for (int late = 0; late < 2; late++) { /* in order, and PE 0 last */
        (void)snprintf(script, sizeof script,
                       "export WEFT_LOG=error; for r in %s; do "
                       "RANK=$r WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=%u %s & sleep %s; done; wait",
                       late ? "3 2 1 0" : "0 1 2 3", free_port(*state), HELLO, late ? "0.1" : "0");
        check_script(script, 4);
    }
}

static void test_torchrun(void **state)
{
    char script[1024];
    unsigned port = free_port(*state);
    int store = -1;
    if (system("command -v torchrun >/dev/null 2>&1") == 0) {
        (void)snprintf(script, sizeof script, "torchrun --no-python --nproc-per-node 4 --master-port %u %s", port,
                       HELLO);
    } else {
        printf("no torchrun here: a stand-in sets its variables\n");
        store = listen_at(port);
        assert_true(store >= 0);
        (void)snprintf(
            script, sizeof script,
            "export WEFT_LOG=error; for r in 0 1 2 3; do "
            "RANK=$r LOCAL_RANK=$r WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 GROUP_RANK=0 ROLE_RANK=$r ROLE_NAME=default "
            "MASTER_ADDR=localhost MASTER_PORT=%u TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=0 "
            "OMP_NUM_THREADS=1 %s & done; wait",
            port, HELLO);
    }
    check_script(script, 4);
    close(store);
}

/* ---- tests: worlds ---- */

static void test_worlds(void **state)
{
    plan p = plan_of(4, "127.0.0.1", *state, make_one_after_another);
    check_success(&p, *state);
    p.act = make_many_at_once;
    check_success(&p, *state);
    p.secret = "a secret of this test";
    check_success(&p, *state);
    p.act = make_others;
    check_success(&p, *state);
    p.act = make_asked;
    check_success(&p, *state);
    p = plan_of(12, "127.0.0.1", *state, make_one);
    p.late_ns = 300 * WEFTI_MILLISECOND_NS;
    check_success(&p, *state);
    p = plan_of(1, "127.0.0.1", *state, make_one);
    check_success(&p, *state);
}

static int has_ipv6(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int one = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int has = one >= 0 && bind(one, (struct sockaddr *)&address, sizeof address) == 0;
    close(one);
    return has;
}

static void test_addresses(void **state)
{
    char name[256];
    plan p = plan_of(5, "localhost", *state, make_one);
    check_success(&p, *state);
    assert_int_equal(gethostname(name, sizeof name), 0);
    p = plan_of(5, name, *state, make_one);
    check_success(&p, *state);
    if (has_ipv6()) {
        p = plan_of(5, "::1", *state, make_one);
        check_success(&p, *state);
    } else {
        printf("no IPv6 on loopback: ::1 is left out\n");
    }
}

/* ---- tests: names ---- */

/* Where no name is known and the name service, once asked, says nothing. */
static int enter_silence(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(53)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0 || system("ip link set lo up") != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("none", "/mnt", "tmpfs", 0, NULL) != 0 ||
        system("echo nameserver 127.0.0.1 >/mnt/resolv; : >/mnt/hosts") != 0 ||
        mount("/mnt/resolv", "/etc/resolv.conf", NULL, MS_BIND, NULL) != 0 ||
        mount("/mnt/hosts", "/etc/hosts", NULL, MS_BIND, NULL) != 0) {
        return 0;
    }
    int server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* stays open */
    return bind(server, (struct sockaddr *)&address, sizeof address) == 0;
}

static weft_status look_for(const char *host, uint64_t *took_ns)
{
    plan p = {.pes = 1, .deadline_ns = 500 * WEFTI_MILLISECOND_NS};
    weft_world_config config = config_of(&p, "silent");
    config.bootstrap = WEFT_BOOTSTRAP_ENV;
    config.pe = 1;
    config.pes = 2;
    (void)setenv("MASTER_ADDR", host, 1);
    (void)setenv("WEFT_PORT", "29000", 1);
    (void)setenv("WEFT_LOG", "none", 1);
    wefti_bootstrap bootstrap;
    uint64_t start_ns = wefti_os_now_ns();
    weft_status status = wefti_bootstrap_open(&config, &bootstrap);
    *took_ns = wefti_os_now_ns() - start_ns;
    return status;
}

/* The exit code: 0 all well, 77 there are no namespaces here, others: the check that failed. */
static int be_silent(void)
{
    uint64_t took_ns;
    if (!enter_silence()) {
        return 77;
    }
    if (look_for("nobody-knows.example", &took_ns) != WEFT_ERR_TIMEOUT ||
        strstr(weft_last_error(), "name service") == NULL) {
        return 1;
    }
    if (took_ns > load_patience_ns(4000 * WEFTI_MILLISECOND_NS)) { /* the system by itself asks for 10 s */
        return 2;
    }
    return look_for("localhost", &took_ns) == WEFT_ERR_TIMEOUT && text_names_pe(weft_last_error(), 0) ? 0 : 3;
}

static void test_silent_names(void **state)
{
    int code = -1;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        _exit(be_silent());
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    if (WIFEXITED(code) && WEXITSTATUS(code) == 77) {
        print_message("not root, or no namespaces here: no silent name service\n");
        skip();
    }
    assert_int_equal(code, 0);
}

/* ---- tests: who does not fit ---- */

static void check_named(plan *p, uint64_t *random, weft_status wanted, int named, weft_status on_odd)
{
    crew_report reports[PROCESSES_MAX];
    if (!run(p, random, reports)) {
        return;
    }
    for (int process = 0; process < p->pes; process++) {
        const crew_report *r = &reports[process];
        weft_status due = process == p->odd ? on_odd : wanted;
        CHECK_SAY(r->status == due, "%s=%s on %d: process %d got %s: %s", p->odd_name, p->odd_value, p->odd, process,
                  weft_status_name(r->status), r->text);
        CHECK_SAY(process == p->odd || text_names_pe(r->text, named),
                  "%s=%s on %d: process %d was not told of PE %d: %s", p->odd_name, p->odd_value, p->odd, process,
                  named, r->text);
        CHECK_SAY(r->status != WEFT_ERR_AUTHENTICATION || strstr(r->text, "WEFT_SECRET") != NULL,
                  "%s=%s: process %d was not told what to set: %s", p->odd_name, p->odd_value, process, r->text);
        CHECK_SAY(r->ns < p->deadline_ns + load_patience_ns(3000 * WEFTI_MILLISECOND_NS),
                  "%s=%s: process %d took %.1f s", p->odd_name, p->odd_value, process, (double)r->ns * 1e-9);
    }
}

static void test_misfits(void **state)
{
    for (int odd = 0; odd < 5; odd += 2) {
        plan p = plan_of(5, "127.0.0.1", *state, make_one);
        p.odd = odd;
        p.odd_name = "WORLD_SIZE";
        p.odd_value = "6";
        check_named(&p, *state, WEFT_ERR_MISMATCH, odd, WEFT_ERR_MISMATCH);
        p.odd_name = "RANK";
        p.deadline_ns = odd == 0 ? load_patience_ns(3000 * WEFTI_MILLISECOND_NS)
                                 : DEADLINE_NS; /* without PE 0 nobody is told sooner */
        p.odd_value = odd == 4 ? "0" : "3";
        check_named(&p, *state, odd == 0 ? WEFT_ERR_TIMEOUT : WEFT_ERR_MISMATCH,
                    odd == 0   ? 0
                    : odd == 4 ? 0
                               : 3,
                    odd == 0 ? WEFT_ERR_TIMEOUT : WEFT_ERR_MISMATCH);
        p.odd_value = "9";
        check_named(&p, *state, odd == 0 ? WEFT_ERR_TIMEOUT : WEFT_ERR_MISMATCH, odd == 0 ? 0 : 9,
                    odd == 0 ? WEFT_ERR_TIMEOUT : WEFT_ERR_MISMATCH);
    }
}

static void test_wrong_secrets(void **state)
{
    plan p = plan_of(5, "127.0.0.1", *state, make_one);
    p.secret = "right";
    p.deadline_ns = load_patience_ns(1500 * WEFTI_MILLISECOND_NS);
    p.odd = 2;
    p.odd_name = "WEFT_SECRET";
    p.odd_value = "wrong";
    check_named(&p, *state, WEFT_ERR_TIMEOUT, 2, WEFT_ERR_AUTHENTICATION);
    p.odd_value = ""; /* none at all */
    check_named(&p, *state, WEFT_ERR_TIMEOUT, 2, WEFT_ERR_AUTHENTICATION);
    p.odd = 0;
    check_named(&p, *state, WEFT_ERR_AUTHENTICATION, 0, WEFT_ERR_TIMEOUT);
}

static void check_port_taken(plan *p, uint64_t *random)
{
    crew_report reports[PROCESSES_MAX];
    if (run(p, random, reports)) {
        for (int process = 0; process < p->pes; process++) {
            CHECK_SAY(reports[process].status == WEFT_ERR_SYSTEM && strstr(reports[process].text, "WEFT_PORT") != NULL,
                      "process %d was told: %s", process, reports[process].text);
        }
    }
}

/* Whoever has the port says nothing. The others wait there when PE 0 comes, and must hear it at its unix socket, also
 * when they have waited for a while. */
static void test_port_taken(void **state)
{
    plan p = plan_of(3, "127.0.0.1", *state, make_one);
    int taken = listen_at(p.port + 1);
    p.late_ns = 500 * WEFTI_MILLISECOND_NS;
    check_port_taken(&p, *state);
    p.deadline_ns = load_patience_ns(4800 * WEFTI_MILLISECOND_NS);
    p.late_ns = p.deadline_ns * 46 / 100;
    check_port_taken(&p, *state);
    close(taken);
}

/* A stranger had the port before PE 0 came, asks for a proof and says nothing more; it keeps the port or leaves it. */
static void challenge_at(unsigned port, uint64_t until_ns)
{
    static const struct {
        wefti_frame_header header;
        unsigned char nonce[WEFTI_TREE_NONCE_BYTES];
    } question = {.header = {.type = WEFTI_FRAME_CHALLENGE, .bytes = WEFTI_TREE_NONCE_BYTES}};
    int listener = listen_as(port, 1);
    (void)fcntl(listener, F_SETFL, O_NONBLOCK);
    while (wefti_os_now_ns() < until_ns) {
        int one = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (one >= 0) {
            (void)!send(one, &question, sizeof question, MSG_NOSIGNAL); /* and stays open */
        }
        wefti_os_sleep_ns(WEFTI_MILLISECOND_NS);
    }
    close(listener);
    for (;;) {
        (void)pause();
    }
}

static void test_challenging_strangers(void **state)
{
    for (int i = 0; i < 4; i++) {
        plan p = plan_of(3, "127.0.0.1", *state, make_one);
        int keeps = i % 2;
        p.secret = i < 2 ? NULL : "that it does not know";
        p.late_ns = 1000 * WEFTI_MILLISECOND_NS;
        pid_t stranger = fork();
        if (stranger == 0) {
            challenge_at(p.port + 1, keeps ? UINT64_MAX : wefti_os_now_ns() + 900 * WEFTI_MILLISECOND_NS);
        }
        wefti_os_sleep_ns(50 * WEFTI_MILLISECOND_NS);
        if (keeps) {
            check_port_taken(&p, *state);
        } else {
            check_success(&p, *state);
        }
        (void)kill(stranger, SIGKILL);
        (void)waitpid(stranger, NULL, 0);
    }
}

/* ---- tests: forks ---- */

typedef struct forking {
    int stop;
    pid_t children[200];
    int count;
} forking;

/* Children that keep what they inherit until the end, as the workers of a Python DataLoader do. */
static void keep_forking(void *context)
{
    forking *now = context;
    while (!__atomic_load_n(&now->stop, __ATOMIC_ACQUIRE) && now->count < 200) {
        pid_t child = fork();
        if (child == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) {
                (void)pause();
            }
        }
        now->children[now->count++] = child;
        wefti_os_sleep_ns(2 * WEFTI_MILLISECOND_NS);
    }
}

static weft_status make_while_forking(const plan *p)
{
    wefti_os_thread *thread;
    forking now = {0};
    WEFT_TRY(wefti_os_thread_start(&thread, keep_forking, &now));
    weft_status status = make_one_after_another(p);
    __atomic_store_n(&now.stop, 1, __ATOMIC_RELEASE);
    wefti_os_thread_join(thread);
    for (int i = 0; i < now.count; i++) {
        (void)kill(now.children[i], SIGKILL);
        (void)waitpid(now.children[i], NULL, 0);
    }
    return status;
}

static void test_forks(void **state)
{
    plan p = plan_of(2, "127.0.0.1", *state, make_while_forking);
    check_success(&p, *state);
    p.secret = "of a process that forks";
    check_success(&p, *state);
}

/* ---- tests: strangers ---- */

static int call_at(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)connect(one, (struct sockaddr *)&address, sizeof address);
    return one;
}

#define STRANGERS 300 /* more than are heard at a time */

/* Connections that say nothing, garbage, or the beginning of a greeting byte by byte, without end. */
static void be_a_nuisance(unsigned port, uint64_t random)
{
    static int connections[STRANGERS];
    for (uint64_t round = 0;; round++) {
        int *one = &connections[round % STRANGERS];
        if (*one == 0 || random_below(&random, 8) == 0) {
            close(*one == 0 ? -1 : *one);
            *one = call_at(port);
        }
        unsigned char garbage[40];
        for (size_t i = 0; i < sizeof garbage; i++) {
            garbage[i] = (unsigned char)random_next(&random);
        }
        unsigned char begin = round / STRANGERS % 16 == 0 ? 2 : 0; /* the type of a greeting, then zeros */
        int manner = *one % 3;
        (void)!send(*one, manner == 0 ? garbage : &begin, manner == 0 ? sizeof garbage : (size_t)(manner == 1),
                    MSG_NOSIGNAL);
        if (round % 50 == 0) {
            wefti_os_sleep_ns(WEFTI_MILLISECOND_NS);
        }
    }
}

static void test_strangers(void **state)
{
    plan p = plan_of(5, "127.0.0.1", *state, make_one_after_another);
    for (int secret = 0; secret < 2; secret++) {
        p.secret = secret ? "that strangers do not know" : NULL;
        pid_t nuisance = fork();
        if (nuisance == 0) {
            be_a_nuisance(p.port + 1, 7);
        }
        check_success(&p, *state);
        (void)kill(nuisance, SIGKILL);
        (void)waitpid(nuisance, NULL, 0);
    }
}

/* ---- tests: hosts ---- */

static int call_ip(const char *format, ...)
{
    char words[256];
    char command[320];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    (void)snprintf(command, sizeof command, "ip %s >/dev/null 2>&1", words);
    return system(command) == 0;
}

static int add_host(char host, int number)
{
    int me = (int)getpid();
    return call_ip("-n weft%d%c addr add 10.99.0.%d/24 dev w%d%c", me, host, number, me, host) &&
           call_ip("-n weft%d%c addr add fd99::%d/64 dev w%d%c nodad", me, host, number, me, host) &&
           call_ip("-n weft%d%c link set w%d%c up", me, host, me, host) &&
           call_ip("-n weft%d%c link set lo up", me, host);
}

static int make_hosts(void)
{
    int me = (int)getpid();
    return call_ip("netns add weft%da", me) && call_ip("netns add weft%db", me) &&
           call_ip("link add w%da netns weft%da type veth peer name w%db netns weft%db", me, me, me, me) &&
           add_host('a', 1) && add_host('b', 2);
}

static void remove_hosts(void)
{
    (void)call_ip("netns del weft%da", (int)getpid());
    (void)call_ip("netns del weft%db", (int)getpid());
}

static void meet_on_hosts(uint64_t *random, const char *near, const char *far)
{
    plan p = plan_of(12, near, random, meet);
    p.hosts = "aababbbbaaab";
    p.far_address = far;
    p.late_ns = 200 * WEFTI_MILLISECOND_NS;
    p.is_open = 1;
    check_success(&p, random);
    p.is_open = 0;
    p.secret = "of hosts";
    check_success(&p, random);
}

/* Who is on another host can prove nothing without a secret. */
static void be_refused_on_hosts(uint64_t *random, const char *address)
{
    plan p = plan_of(2, address, random, meet);
    crew_report reports[PROCESSES_MAX];
    p.hosts = "ab";
    p.deadline_ns = load_patience_ns(3000 * WEFTI_MILLISECOND_NS);
    if (run(&p, random, reports)) {
        CHECK(reports[0].status == WEFT_ERR_TIMEOUT && text_names_pe(reports[0].text, 1));
        CHECK(reports[1].status == WEFT_ERR_AUTHENTICATION);
        for (int pe = 0; pe < 2; pe++) {
            const char *text = reports[pe].text;
            CHECK_SAY(strstr(text, "WEFT_SECRET") != NULL && strstr(text, "WEFT_INSECURE=1") != NULL,
                      "without a secret: %s", text);
        }
    }
}

static void test_hosts(void **state)
{
    if (geteuid() != 0) {
        print_message("not root: no network namespaces\n");
        skip();
    }
    if (!make_hosts()) {
        remove_hosts();
        print_message("ip cannot make network namespaces joined by virtual interfaces here\n");
        skip();
    }
    meet_on_hosts(*state, "10.99.0.1", NULL);
    if (has_ipv6()) {
        meet_on_hosts(*state, "fd99::1", NULL);
    }
    /* A host's own name often leads to loopback there. */
    char name[256];
    assert_int_equal(gethostname(name, sizeof name), 0);
    meet_on_hosts(*state, name, "10.99.0.1");
    be_refused_on_hosts(*state, "10.99.0.1");
    remove_hosts();
}

int main(void)
{
    uint64_t random = test_seed();
#define WITH_RANDOM(test)                                                                                              \
    {                                                                                                                  \
#test, test, check_begin, check_end, &random                                                                   \
    }
    const struct CMUnitTest tests[] = {
        WITH_RANDOM(test_shell_loop), WITH_RANDOM(test_torchrun),
        WITH_RANDOM(test_worlds),     WITH_RANDOM(test_addresses),
        WITH_RANDOM(test_misfits),    WITH_RANDOM(test_wrong_secrets),
        WITH_RANDOM(test_port_taken), WITH_RANDOM(test_challenging_strangers),
        WITH_RANDOM(test_strangers),  WITH_RANDOM(test_hosts),
        WITH_RANDOM(test_forks),      WITH_RANDOM(test_silent_names),
    };
#undef WITH_RANDOM
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Goal: containers. PEs with network namespaces or users of their own share no memory: creation fails on all of them,
 * soon, with a text that names two and says why. Namespaces of processes, mounts and user numbers divide nothing. A
 * node's identity that is wrong (WEFT_NODE_ID) is found out before anybody waits for it. Method: PEs are processes that
 * enter namespaces first; they meet through memory that they share by descent, or through TCP over a pair of virtual
 * interfaces between two namespaces. Deadlines are long, and must not be waited for. Nothing is left: everything is
 * made in namespaces of processes of this test. Skips where those cannot be made. Over a network (libfabric, in builds
 * that have it) the same PEs form worlds of several nodes, if there is a way between them; else creation fails as
 * without. Those without a network leave it out by WEFT_TRANSPORT. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "os/socket.h"
#include "support/check.h"
#include "support/forked.h"
#include "weft.h"

#define PES 3
#define DEADLINE_NS (60 * WEFTI_SECOND_NS)
#define SOON_NS (DEADLINE_NS / 3) /* without load it takes milliseconds */
#define LATE_NS (2 * WEFTI_SECOND_NS)
#define NOBODY 65534

/* ---- PEs ---- */

typedef struct report {
    int is_done;
    int failures; /* of checks */
    weft_status status;
    uint64_t ns;
    char text[512];
} report;

/* Memory that all PEs of a scene have. */
typedef struct ground {
    report reports[PES];
    forked_exchange exchange;
} ground;

typedef struct scene {
    const char *name;
    int pes;
    void (*enter)(int pe); /* in the PE's process, before anything else; ends it when it fails */
    void (*live)(weft_world *world); /* in each PE of a world that came about */
    weft_world_config (*config)(ground *common, int pe, int pes);
    void (*wire)(const pid_t *pids); /* NULL, or in a process of its own */
} scene;

static weft_world_config config_of_exchange(ground *common, int pe, int pes)
{
    static forked_member own; /* of this process */
    static weft_callback_ops ops;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    own = (forked_member){.exchange = &common->exchange, .pe = pe, .pes = pes};
    ops = (weft_callback_ops){.size = sizeof ops, .context = &own, .allgather = forked_allgather};
    config.bootstrap = WEFT_BOOTSTRAP_CALLBACK;
    config.callback = &ops;
    config.pe = pe;
    config.pes = pes;
    return config;
}

/* A namespace cannot be entered: the scene cannot be played. */
static void give_up(const char *what)
{
    fprintf(stderr, "cannot %s: %s\n", what, strerror(errno));
    _exit(77);
}

static void be_pe(const scene *s, ground *common, int pe)
{
    report *mine = &common->reports[pe];
    weft_world *world;
    check_as_pe(pe);
    if (s->enter != NULL) {
        s->enter(pe);
    }
    weft_world_config config = s->config(common, pe, s->pes);
    config.heap_max_bytes = (size_t)16 << 20;
    config.deadline_ns = DEADLINE_NS;
    uint64_t start_ns = wefti_os_now_ns();
    mine->status = weft_world_create(&config, &world);
    mine->ns = wefti_os_now_ns() - start_ns;
    (void)snprintf(mine->text, sizeof mine->text, "%s", mine->status == WEFT_OK ? "" : weft_last_error());
    if (mine->status == WEFT_OK) {
        s->live(world);
        CHECK_OK(weft_world_destroy(world));
    }
    mine->failures = (int)check_failures();
    mine->is_done = 1;
    _exit(0);
}

/* Collect all; when one cannot play the others need not be waited for. Returns whether all could. */
static int collect(const pid_t *pids, int count)
{
    int could = 1;
    for (int left = count; left > 0; left--) {
        int how = 0;
        pid_t ended = wait(&how);
        could &= !WIFEXITED(how) || WEXITSTATUS(how) != 77;
        for (int i = 0; i < count && !could; i++) {
            if (pids[i] != ended) {
                (void)kill(pids[i], SIGKILL);
            }
        }
    }
    return could;
}

static void play(const scene *s, report reports[PES])
{
    ground *common = forked_share(sizeof *common);
    pid_t pids[PES + 1];
    int count = s->pes + (s->wire != NULL);
    for (int i = 0; i < count; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0 && i == s->pes) {
            s->wire(pids);
            _exit(0);
        }
        if (pids[i] == 0) {
            be_pe(s, common, i);
        }
    }
    int could = collect(pids, count);
    memcpy(reports, common->reports, sizeof common->reports);
    (void)munmap(common, sizeof *common);
    if (!could) {
        print_message("%s: not here\n", s->name);
        skip();
    }
}

/* ---- what comes of it ---- */

static void check_world(const scene *s)
{
    report reports[PES] = {0};
    play(s, reports);
    for (int pe = 0; pe < s->pes; pe++) {
        CHECK_SAY(reports[pe].is_done && reports[pe].status == WEFT_OK, "%s: PE %d: %s: %s", s->name, pe,
                  weft_status_name(reports[pe].status), reports[pe].text);
        CHECK(reports[pe].failures == 0);
    }
}

/* Creation fails everywhere, before `soon_ns`, alike, naming PEs `a` and `b` and saying `why`. */
static void check_divided_before(const scene *s, uint64_t soon_ns, int a, int b, const char *why)
{
    report reports[PES] = {0};
    play(s, reports);
    for (int pe = 0; pe < s->pes; pe++) {
        const report *r = &reports[pe];
        CHECK_SAY(r->is_done && r->status == WEFT_ERR_UNREACHABLE, "%s: PE %d: %s: %s", s->name, pe,
                  weft_status_name(r->status), r->text);
        CHECK_SAY(r->ns < soon_ns, "%s: PE %d: after %.1f s", s->name, pe, (double)r->ns / (double)WEFTI_SECOND_NS);
        CHECK_SAY(text_names_pe(r->text, a) && text_names_pe(r->text, b), "%s: PE %d: %s", s->name, pe, r->text);
        CHECK_SAY(strstr(r->text, why) != NULL, "%s: PE %d: no \"%s\" in: %s", s->name, pe, why, r->text);
    }
}

static void check_divided(const scene *s, int a, int b, const char *why)
{
    check_divided_before(s, SOON_NS, a, b, why);
}

static void pass_round(weft_world *world)
{
    int pe = weft_world_pe(world);
    int pes = weft_world_pes(world);
    void *block = NULL;
    if (CHECK_OK(weft_calloc(world, 1, sizeof(int), &block))) {
        CHECK_OK(weft_int_p(world, block, 100 + pe, (pe + 1) % pes));
        CHECK_OK(weft_barrier(world));
        CHECK(*(int *)block == 100 + (pe + pes - 1) % pes);
        CHECK_OK(weft_barrier(world));
    }
}

static void live(weft_world *world)
{
    CHECK(weft_team_pes(weft_team_node(world)) == weft_world_pes(world));
    pass_round(world);
}

/* That PE 0's interface has sent, in its namespace. */
static long packets_sent(void)
{
    char line[256];
    long packets = -1;
    FILE *file = fopen("/proc/self/net/dev", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *at = strstr(line, "weft0:");
        if (at != NULL) { /* eight words of what came, then bytes, packets */
            (void)sscanf(at, "weft0: %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld", &packets);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return packets;
}

/* A reply comes by the connection of its request, so that neither costs a packet that only acknowledges; but for those
 * that the system sends where an end does not run for a while, so the best of some rounds counts. */
static void count_packets(weft_world *world)
{
    void *word = NULL;
    long least = -1;
    CHECK_OK(weft_calloc(world, 1, sizeof(uint64_t), &word));
    CHECK_OK(weft_barrier(world));
    for (int round = 0; round < 10 && weft_world_pe(world) == 0; round++) {
        const long before = packets_sent();
        uint64_t value;
        for (int i = 0; i < 100; i++) {
            CHECK_OK(weft_uint64_atomic_fetch_inc(world, word, 1, &value));
        }
        const long sent = packets_sent() - before;
        least = least < 0 || sent < least ? sent : least;
    }
    CHECK_OK(weft_barrier(world));
    CHECK_SAY(least < 125, "100 requests took %ld packets", least);
}

/* The last PE is a node of its own. */
static void live_apart(weft_world *world)
{
    const int pes = weft_world_pes(world);
    const int is_last = weft_world_pe(world) == pes - 1;
    CHECK(weft_team_pes(weft_team_node(world)) == (is_last ? 1 : pes - 1));
    char map[1024];
    CHECK(weft_world_transport_map(world, map, sizeof map) < sizeof map && strstr(map, "  ofi ") != NULL);
    const char *progress = getenv("WEFT_PROGRESS");
    const int is_inline = progress != NULL && strcmp(progress, "inline") == 0;
    CHECK((strstr(map, "seen to in calls") != NULL) == is_inline);
    for (int round = 0; round < 20; round++) {
        pass_round(world);
    }
}

static void live_in_containers(weft_world *world)
{
    live_apart(world);
    count_packets(world);
}

/* ---- entering ---- */

static void enter_or_give_up(int what, const char *name)
{
    if (unshare(what) != 0) {
        give_up(name);
    }
}

static void write_line(const char *path, const char *line)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, line, strlen(line)) != (ssize_t)strlen(line)) {
        give_up(path);
    }
    close(file);
}

/* Root of a user namespace, as which a user may make other namespaces. */
static void enter_user_numbers(int pe)
{
    char line[64];
    (void)pe;
    (void)snprintf(line, sizeof line, "0 %u 1\n", (unsigned)geteuid());
    enter_or_give_up(CLONE_NEWUSER, "enter a user namespace");
    write_line("/proc/self/uid_map", line);
}

/* As root at once, else by way of a user namespace, which every PE then enters. */
static void become_able(int pe)
{
    if (geteuid() != 0) {
        enter_user_numbers(pe);
    }
}

static void all_own_networks(int pe)
{
    become_able(pe);
    enter_or_give_up(CLONE_NEWNET, "enter a network namespace");
}

static void last_own_network(int pe)
{
    become_able(pe);
    if (pe == PES - 1) {
        enter_or_give_up(CLONE_NEWNET, "enter a network namespace");
    }
}

static void odd_user_numbers(int pe)
{
    if (pe % 2 == 1) {
        enter_user_numbers(pe);
    }
}

static void last_other_user(int pe)
{
    if (geteuid() != 0) {
        errno = EPERM;
        give_up("become another user");
    }
    if (pe == PES - 1 && (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)) {
        give_up("become another user");
    }
}

/* Process 1 of a namespace of processes; the process that began stays outside, to end as its child does. */
static void own_processes(int pe)
{
    int how = 0;
    become_able(pe);
    enter_or_give_up(CLONE_NEWPID, "enter a namespace of processes");
    pid_t child = fork();
    if (child == 0) {
        CHECK(getpid() == 1);
        return;
    }
    if (child < 0 || waitpid(child, &how, 0) != child) {
        give_up("fork");
    }
    _exit(WIFEXITED(how) ? WEXITSTATUS(how) : 1);
}

static void own_mounts(int pe)
{
    become_able(pe);
    enter_or_give_up(CLONE_NEWNS, "enter a namespace of mounts");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("none", "/tmp", "tmpfs", 0, NULL) != 0 ||
        (access("/dev/shm", F_OK) == 0 && mount("none", "/dev/shm", "tmpfs", 0, NULL) != 0)) {
        give_up("mount");
    }
}

static void own_processes_and_mounts(int pe)
{
    own_mounts(pe);
    if (geteuid() == 0) {
        own_processes(pe);
    }
}

static void wrong_node(int pe)
{
    (void)setenv("WEFT_NODE_ID", "one node for all", 1);
    last_own_network(pe);
}

static void wrong_node_of_first(int pe)
{
    (void)setenv("WEFT_NODE_ID", "one node for all", 1);
    become_able(pe);
    if (pe == 0) {
        enter_or_give_up(CLONE_NEWNET, "enter a network namespace");
    }
}

static void wrong_node_of_user(int pe)
{
    (void)setenv("WEFT_NODE_ID", "one node for all", 1);
    last_other_user(pe);
}

/* ---- scenes ---- */

static void test_networks_divide(void **state)
{
    (void)state;
    check_divided(&(scene){"a network namespace each", PES, all_own_networks, live, config_of_exchange, NULL}, 0, 1,
                  "network namespaces");
    check_divided(&(scene){"one in another network namespace", PES, last_own_network, live, config_of_exchange, NULL},
                  0, PES - 1, "network namespaces");
}

static void test_users_divide(void **state)
{
    (void)state;
    check_divided(&(scene){"one is another user", PES, last_other_user, live, config_of_exchange, NULL}, 0, PES - 1,
                  "users (0 and 65534)");
}

static void test_user_numbers_do_not_divide(void **state)
{
    (void)state;
    check_world(&(scene){"user namespaces", PES, odd_user_numbers, live, config_of_exchange, NULL});
}

static void test_processes_do_not_divide(void **state)
{
    (void)state;
    check_world(&(scene){"namespaces of processes", PES, own_processes, live, config_of_exchange, NULL});
}

static void test_mounts_do_not_divide(void **state)
{
    (void)state;
    check_world(&(scene){"namespaces of mounts", PES, own_mounts, live, config_of_exchange, NULL});
    check_world(&(scene){"both", PES, own_processes_and_mounts, live, config_of_exchange, NULL});
}

static void test_a_wrong_identity_is_found_out(void **state)
{
    (void)state;
    check_divided(&(scene){"a wrong hint of the last", PES, wrong_node, live, config_of_exchange, NULL}, 0, PES - 1,
                  "claim one node");
    check_divided(&(scene){"a wrong hint of the first", PES, wrong_node_of_first, live, config_of_exchange, NULL}, 0, 1,
                  "claim one node");
}

static void test_a_wrong_user_is_found_out(void **state)
{
    (void)state;
    check_divided(&(scene){"a wrong hint of a user", PES, wrong_node_of_user, live, config_of_exchange, NULL}, 0,
                  PES - 1, "claim one node");
}

/* ---- users that a namespace does not know ---- */

/* Where a process listens that has entered a user namespace without a map, in which all users are nobody. */
typedef struct door {
    _Atomic unsigned open;
    struct sockaddr_un address;
    socklen_t bytes;
} door;

static void knock(const door *at)
{
    int caller = wefti_os_socket_open(AF_UNIX);
    char byte;
    CHECK(wefti_os_socket_connect(caller, (const struct sockaddr *)&at->address, at->bytes) == 0);
    struct pollfd end = {.fd = caller, .events = POLLIN};
    (void)poll(&end, 1, (int)(DEADLINE_NS / (WEFTI_SECOND_NS / 1000))); /* until it has been looked at */
    (void)!read(caller, &byte, 1);
    _exit(0);
}

/* Whether who comes next is taken for this process's user; -1 if nobody comes. */
static int look_at_next(int listener)
{
    struct pollfd here = {.fd = listener, .events = POLLIN};
    int guest =
        poll(&here, 1, (int)(DEADLINE_NS / (WEFTI_SECOND_NS / 1000))) == 1 ? wefti_os_socket_accept(listener) : -1;
    int is_own = guest < 0 ? -1 : wefti_os_socket_is_own_user(guest, NULL);
    if (guest >= 0) {
        wefti_os_socket_close(guest);
    }
    return is_own;
}

/* First one of this namespace comes, then one from outside. */
static void be_nobody(door *at)
{
    enter_or_give_up(CLONE_NEWUSER, "enter a user namespace");
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    int listener = wefti_os_socket_open(AF_UNIX);
    at->bytes = sizeof at->address;
    CHECK(geteuid() == NOBODY);
    CHECK(wefti_os_socket_bind(listener, (const struct sockaddr *)&any, sizeof any.sun_family) == 0);
    CHECK(wefti_os_socket_listen(listener, 8) == 0);
    CHECK(wefti_os_socket_name(listener, (struct sockaddr *)&at->address, &at->bytes) == 0);
    pid_t child = fork();
    if (child == 0) {
        knock(at);
    }
    CHECK(look_at_next(listener) == 1);
    CHECK(waitpid(child, NULL, 0) == child);
    atomic_store(&at->open, 1);
    CHECK(look_at_next(listener) == 0);
    check_exit(check_failures() != 0);
}

static void test_users_that_a_namespace_does_not_know(void **state)
{
    (void)state;
    door *at = forked_share(sizeof *at);
    int how = 0;
    pid_t nobody = fork();
    if (nobody == 0) {
        be_nobody(at);
    }
    assert_true(nobody > 0);
    pid_t stranger = fork();
    if (stranger == 0) {
        if (geteuid() == 0 && (setresgid(1001, 1001, 1001) != 0 || setresuid(1001, 1001, 1001) != 0)) {
            give_up("become another user");
        }
        if (forked_await(&at->open, 1)) {
            knock(at);
        }
        _exit(1);
    }
    assert_int_equal(waitpid(nobody, &how, 0), nobody);
    (void)kill(stranger, SIGKILL);
    assert_int_equal(waitpid(stranger, NULL, 0), stranger);
    (void)munmap(at, sizeof *at);
    if (WIFEXITED(how) && WEXITSTATUS(how) == 77) {
        skip();
    }
    CHECK_SAY(WIFEXITED(how) && WEXITSTATUS(how) == 0, "who listens ended with 0x%x", how);
}

/* ---- whether a process of another namespace lives ---- */

/* What tells that a PE has ended does so across namespaces of processes, too. */
static void test_ends_are_seen(void **state)
{
    (void)state;
    wefti_os_memory memory;
    _Atomic unsigned *step = forked_share(sizeof *step);
    assert_int_equal(wefti_os_memory_create(&memory, wefti_os_page_bytes()), WEFT_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        own_processes(0); /* from here on in a child of the child */
        wefti_os_memory_sign(&memory, 3);
        atomic_store(step, 1);
        _exit(!forked_await(step, 2));
    }
    assert_true(forked_await(step, 1));
    assert_true(wefti_os_memory_is_signed(&memory, 3));
    atomic_store(step, 2);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(wefti_os_memory_is_signed(&memory, 3));
    (void)munmap((void *)step, sizeof *step);
    wefti_os_memory_fini(&memory);
}

/* ---- two containers and a network between them ---- */

/* The two say when they have their namespaces; who has made the interfaces says so. */
static _Atomic unsigned *wired;

static void run_ip(const char *format, ...) WEFT_PRINTF(1, 2);
static void run_ip(const char *format, ...)
{
    char command[256];
    va_list arguments;
    va_start(arguments, format);
    int used = snprintf(command, sizeof command, "ip ");
    (void)vsnprintf(command + used, sizeof command - (size_t)used, format, arguments);
    va_end(arguments);
    if (system(command) != 0) { /* NOLINT: a fixed command */
        give_up(command);
    }
}

static void enter_wired(int pe)
{
    enter_or_give_up(CLONE_NEWNET, "enter a network namespace");
    atomic_fetch_add(wired, 1);
    if (!forked_await(wired, 3)) {
        give_up("see the interfaces made");
    }
    run_ip("link set lo up");
    run_ip("addr add 10.213.97.%d/24 dev weft%d", 1 + pe, pe);
    run_ip("link set weft%d up", pe);
}

/* PE 1's link carries data some time before the system says that it is up. */
static void enter_wired_late(int pe)
{
    enter_wired(pe);
    if (pe != 1) {
        return;
    }
    run_ip("link set weft1 mode dormant");
    run_ip("link set weft1 down");
    run_ip("link set weft1 up");
    if (fork() == 0) {
        wefti_os_sleep_ns(LATE_NS);
        run_ip("link set weft1 state up");
        _exit(0);
    }
}

/* PE 0 tells UCX's address of an interface that PE 1 has a way to, and where nobody answers it. */
static void enter_wired_to_nobody(int pe)
{
    enter_wired(pe);
    enter_or_give_up(CLONE_NEWNS, "enter a namespace of mounts");
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("sysfs", "/sys", "sysfs", 0, NULL) != 0) {
        give_up("mount");
    }
    if (pe == 0) {
        run_ip("link add weft8 type veth peer name weft9");
        run_ip("link set weft8 up");
        run_ip("addr add 10.213.96.1/24 dev weft9");
        run_ip("link set weft9 up");
    } else {
        run_ip("route add 10.213.96.0/24 dev weft1");
        run_ip("neigh add 10.213.96.1 lladdr 02:00:00:00:00:01 dev weft1 nud permanent");
    }
    (void)setenv("UCX_TLS", "tcp", 1);
    (void)setenv("UCX_NET_DEVICES", pe == 0 ? "weft9" : "weft1", 1);
    (void)setenv("WEFT_TRANSPORT", "ucx", 1);
}

/* In a namespace of this test's own, so that the system's has nothing of it at any time. */
static void make_wire(const pid_t *pids)
{
    enter_or_give_up(CLONE_NEWNET, "enter a network namespace");
    if (!forked_await(wired, 2)) {
        give_up("see both namespaces");
    }
    run_ip("link add weft0 type veth peer name weft1");
    run_ip("link set weft0 netns %d", (int)pids[0]);
    run_ip("link set weft1 netns %d", (int)pids[1]);
    atomic_fetch_add(wired, 1);
}

static weft_world_config config_of_env(ground *common, int pe, int pes)
{
    char number[16];
    (void)common;
    (void)snprintf(number, sizeof number, "%d", pe);
    (void)setenv("RANK", number, 1);
    (void)snprintf(number, sizeof number, "%d", pes);
    (void)setenv("WORLD_SIZE", number, 1);
    (void)setenv("MASTER_ADDR", "10.213.97.1", 1);
    (void)setenv("MASTER_PORT", "29500", 1);
    (void)setenv("WEFT_SECRET", "between the two containers", 1);
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    return config;
}

static void test_two_containers(void **state)
{
    (void)state;
    if (geteuid() != 0 || system("ip -V >/dev/null 2>&1") != 0) { /* NOLINT: a fixed command */
        print_message("two containers need root and iproute2\n");
        skip();
    }
    wired = forked_share(sizeof *wired);
    check_divided(&(scene){"two containers", 2, enter_wired, live, config_of_env, make_wire}, 0, 1,
                  "network namespaces");
    (void)munmap((void *)wired, sizeof *wired);
}

/* ---- over a network ---- */

static void allow_network(void)
{
#ifdef WEFT_HAVE_OFI
    (void)unsetenv("WEFT_TRANSPORT");
#else
    print_message("this build has no network between nodes\n");
    skip();
#endif
}

static int end_with_network(void **state)
{
    return setenv("WEFT_TRANSPORT", "map", 1) != 0 || check_end(state) != 0;
}

static void test_a_network_that_leads_nowhere(void **state)
{
    (void)state;
    allow_network();
    check_divided(&(scene){"a network namespace each", PES, all_own_networks, live, config_of_exchange, NULL}, 0, 1,
                  "network namespaces");
    check_divided(&(scene){"one in another network namespace", PES, last_own_network, live, config_of_exchange, NULL},
                  0, PES - 1, "network namespaces");
}

static void test_users_over_a_network(void **state)
{
    (void)state;
    allow_network();
    check_world(&(scene){"one is another user", PES, last_other_user, live_apart, config_of_exchange, NULL});
}

static void test_two_containers_over_a_network(void **state)
{
    (void)state;
    allow_network();
    if (geteuid() != 0 || system("ip -V >/dev/null 2>&1") != 0) { /* NOLINT: a fixed command */
        print_message("two containers need root and iproute2\n");
        skip();
    }
    wired = forked_share(sizeof *wired);
    check_world(&(scene){"two containers", 2, enter_wired, live_in_containers, config_of_env, make_wire});
    (void)munmap((void *)wired, sizeof *wired);
    wired = forked_share(sizeof *wired);
    (void)setenv("WEFT_PROGRESS", "inline", 1);
    check_world(&(scene){"two containers without a thread", 2, enter_wired, live_apart, config_of_env, make_wire});
    (void)unsetenv("WEFT_PROGRESS");
    (void)munmap((void *)wired, sizeof *wired);
    wired = forked_share(sizeof *wired);
    check_world(&(scene){"a link that is up late", 2, enter_wired_late, live_apart, config_of_env, make_wire});
    (void)munmap((void *)wired, sizeof *wired);
}

/* UCX by itself waits for such a host for as long as the system does, two minutes. */
static void test_a_host_that_does_not_answer(void **state)
{
    (void)state;
#ifndef WEFT_HAVE_UCX
    skip();
#endif
    if (geteuid() != 0 || system("ip -V >/dev/null 2>&1") != 0) { /* NOLINT: a fixed command */
        print_message("two containers need root and iproute2\n");
        skip();
    }
    wired = forked_share(sizeof *wired);
    check_divided_before(&(scene){"UCX to nobody", 2, enter_wired_to_nobody, live, config_of_env, make_wire},
                         DEADLINE_NS / 4 * 3, 0, 1, "UCX"); /* on a machine in use half of the deadline */
    (void)munmap((void *)wired, sizeof *wired);
}

/* ---- whether there are namespaces ---- */

static int can_have_namespaces(void)
{
    int how = 0;
    pid_t child = fork();
    if (child == 0) {
        all_own_networks(0);
        own_mounts(0);
        _exit(0);
    }
    return child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_networks_divide),
        CHECKED_TEST(test_users_divide),
        CHECKED_TEST(test_user_numbers_do_not_divide),
        CHECKED_TEST(test_processes_do_not_divide),
        CHECKED_TEST(test_mounts_do_not_divide),
        CHECKED_TEST(test_users_that_a_namespace_does_not_know),
        CHECKED_TEST(test_ends_are_seen),
        CHECKED_TEST(test_a_wrong_identity_is_found_out),
        CHECKED_TEST(test_a_wrong_user_is_found_out),
        CHECKED_TEST(test_two_containers),
        CHECKED_TEST(test_a_host_that_does_not_answer),
        cmocka_unit_test_setup_teardown(test_a_network_that_leads_nowhere, check_begin, end_with_network),
        cmocka_unit_test_setup_teardown(test_users_over_a_network, check_begin, end_with_network),
        cmocka_unit_test_setup_teardown(test_two_containers_over_a_network, check_begin, end_with_network),
    };
    setenv("WEFT_TRANSPORT", "map", 1);
    setenv("WEFT_LOG", "none", 1);
    unsetenv("WEFT_BOOTSTRAP");
    unsetenv("WEFT_LOCAL_JOB");
    unsetenv("WEFT_NODE_ID");
    if (!can_have_namespaces()) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

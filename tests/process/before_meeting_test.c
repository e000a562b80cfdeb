/* Goal: a PE that fails before it has met the others leaves nobody to a deadline where it can tell them: they get its
 * status and its number at once. Where it cannot, since the system gives it no socket, they name it at their deadline,
 * and it says what it lacks.
 * Method: PEs are processes that find each other by weftrun's variables and by torchrun's; one of them, the first or
 * the last, has a setting that is no number, a config of newer headers, no descriptor free, or a filter of system calls
 * that refuses sockets. Those who can be told have a deadline that is far longer than the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "support/check.h"
#include "support/crew.h"
#include "support/load.h"
#include "weft.h"

#define PES 4
#define LONG_NS (600000 * WEFTI_MILLISECOND_NS)
#define SHORT_NS (1500 * WEFTI_MILLISECOND_NS)
#define DESCRIPTORS 64

typedef struct plan {
    const char *what;
    const char *word; /* of the text that the one PE gets */
    weft_status (*spoil)(
        weft_world_config *config); /* what makes the one PE fail; what cannot be had here is refused */
    weft_status on_it; /* its status */
    weft_status on_others;
    uint64_t deadline_ns;
    int failing;
    unsigned port; /* not 0: torchrun's variables */
} plan;

/* ---- what fails ---- */

static weft_status set_nonsense(weft_world_config *config)
{
    (void)config;
    (void)setenv("WEFT_HEAP_MAX", "much", 1);
    return WEFT_OK;
}

/* A field that this library does not know, and that is not zero. */
static weft_status be_newer(weft_world_config *config)
{
    config->size += sizeof(uint64_t);
    memset((char *)config + config->size - sizeof(uint64_t), 1, sizeof(uint64_t));
    return WEFT_OK;
}

static weft_status use_descriptors(weft_world_config *config)
{
    const struct rlimit limit = {.rlim_cur = DESCRIPTORS, .rlim_max = DESCRIPTORS};
    (void)config;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return WEFT_ERR_UNSUPPORTED;
    }
    while (dup(STDERR_FILENO) >= 0) {
    }
    return WEFT_OK;
}

static weft_status lose_sockets(weft_world_config *config)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof steps / sizeof steps[0], .filter = steps};
    (void)config;
    int has = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
    return has && socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? WEFT_OK : WEFT_ERR_UNSUPPORTED;
}

/* ---- a PE ---- */

static void set_number(const char *name, unsigned number)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%u", number);
    (void)setenv(name, text, 1);
}

static void be_pe(const crew *c, int pe, void *context)
{
    const plan *p = context;
    union {
        weft_world_config config;
        char room[sizeof(weft_world_config) + sizeof(uint64_t)];
    } given = {.config = WEFT_WORLD_CONFIG_INIT};
    weft_world *world;
    weft_status status = WEFT_OK;
    (void)setenv("WEFT_LOG", "none", 1);
    if (p->port != 0) {
        (void)unsetenv("WEFT_LOCAL_JOB");
        (void)setenv("MASTER_ADDR", "127.0.0.1", 1);
        set_number("WEFT_PORT", p->port);
        set_number("RANK", (unsigned)pe);
        set_number("WORLD_SIZE", PES);
    }
    given.config.deadline_ns = p->deadline_ns;
    if (pe == p->failing) {
        status = p->spoil(&given.config);
    }
    uint64_t start_ns = wefti_os_now_ns();
    if (status == WEFT_OK) {
        status = weft_world_create(&given.config, &world);
        CHECK(status != WEFT_OK);
    }
    crew_tell(c, pe, 1, status, start_ns);
}

/* ---- the test ---- */

static void check(const plan *p, const crew_report *r)
{
    int is_it = r->pe == p->failing;
    weft_status wanted = is_it ? p->on_it : p->on_others;
    CHECK_SAY(r->status == wanted, "%s on PE %d: PE %d got %s: %s", p->what, p->failing, r->pe,
              weft_status_name(r->status), r->text);
    CHECK_SAY(is_it ? strstr(r->text, p->word) != NULL : text_names_pe(r->text, p->failing),
              "%s on PE %d: PE %d was told: %s", p->what, p->failing, r->pe, r->text);
}

/* Returns whether the failure could be had here. */
static int run(plan *p, uint64_t *random)
{
    crew c;
    crew_report reports[PES];
    int count = 0;
    int is_possible = 1;
    uint64_t until_ns = wefti_os_now_ns() + load_patience_ns(30000 * WEFTI_MILLISECOND_NS);
    crew_start(&c, PES, random, be_pe, p);
    while (count < PES && is_possible && crew_hear(&c, &reports[count], until_ns)) {
        is_possible = reports[count].status != WEFT_ERR_UNSUPPORTED;
        count++;
    }
    crew_end(&c);
    CHECK_SAY(count == PES || !is_possible, "%s on PE %d: %d of %d came back", p->what, p->failing, count, PES);
    for (int i = 0; i < count && is_possible; i++) {
        check(p, &reports[i]);
    }
    return is_possible;
}

static int run_everywhere(plan p)
{
    uint64_t random = test_seed();
    int is_possible = 1;
    for (int by = 0; by < 2; by++) {
        for (p.failing = 0; p.failing < PES && is_possible; p.failing += PES - 1) {
            p.port = by == 0 ? 0 : crew_free_port();
            is_possible = run(&p, &random);
        }
    }
    return is_possible;
}

static void test_a_wrong_setting(void **state)
{
    (void)state;
    const plan p = {
        "WEFT_HEAP_MAX=much", "WEFT_HEAP_MAX", set_nonsense, WEFT_ERR_ARGUMENT, WEFT_ERR_ARGUMENT, LONG_NS, 0, 0};
    assert_true(run_everywhere(p));
}

static void test_newer_headers(void **state)
{
    (void)state;
    const plan p = {"a newer config", "header", be_newer, WEFT_ERR_ARGUMENT, WEFT_ERR_ARGUMENT, LONG_NS, 0, 0};
    assert_true(run_everywhere(p));
}

static void test_no_descriptor(void **state)
{
    (void)state;
    const plan p = {"no descriptor", "ulimit -n", use_descriptors, WEFT_ERR_SYSTEM, WEFT_ERR_SYSTEM, LONG_NS, 0, 0};
    assert_true(run_everywhere(p));
}

static void test_no_sockets(void **state)
{
    (void)state;
    plan p = {"no sockets", "socket", lose_sockets, WEFT_ERR_SYSTEM, WEFT_ERR_TIMEOUT, 0, 0, 0};
    p.deadline_ns = load_patience_ns(SHORT_NS);
    if (!run_everywhere(p)) {
        print_message("no filter of system calls here\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_wrong_setting, check_begin, check_end),
        cmocka_unit_test_setup_teardown(test_newer_headers, check_begin, check_end),
        cmocka_unit_test_setup_teardown(test_no_descriptor, check_begin, check_end),
        cmocka_unit_test_setup_teardown(test_no_sockets, check_begin, check_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

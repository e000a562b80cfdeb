/* Goal: a MASTER_ADDR that nobody knows, or that no host can have, is told by name, and the search ends in time. A
 * literal address needs no name service, and this host is known by its own name also where the service does not know
 * it. Method: names of the domain that is reserved for no host (RFC 6761), which a resolver may refuse or be silent
 * about. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/env/master.h"
#include "os/os.h"
#include "support/check.h"
#include "support/load.h"

#define LIMIT_NS UINT64_C(300000000)
#define LATE_NS UINT64_C(1000000000)

static weft_status find(const char *name, wefti_env_master *master, uint64_t *took_ns)
{
    (void)setenv("MASTER_ADDR", name, 1);
    (void)setenv("WEFT_PORT", "12345", 1);
    uint64_t start_ns = wefti_os_now_ns();
    weft_status status = wefti_env_master_find(start_ns + LIMIT_NS, master);
    *took_ns = wefti_os_now_ns() - start_ns;
    return status;
}

/* ThreadSanitizer does not know the threads in which the C library looks names up (getaddrinfo_a), and crashes in
 * them. */
static void need_name_service(void)
{
#ifdef __SANITIZE_THREAD__
    printf("ThreadSanitizer cannot follow getaddrinfo_a: left out\n");
    skip();
#endif
}

static void names_that_nobody_has(void **state)
{
    wefti_env_master master;
    uint64_t took_ns;
    (void)state;
    need_name_service();
    weft_status status = find("weft-has-no-such-host.invalid", &master, &took_ns);
    CHECK_SAY(status == WEFT_ERR_UNREACHABLE || status == WEFT_ERR_TIMEOUT, "%s: %s", weft_status_name(status),
              weft_last_error());
    CHECK_SAY(strstr(weft_last_error(), "weft-has-no-such-host.invalid") != NULL, "\"%s\"", weft_last_error());
    CHECK_SAY(took_ns < LIMIT_NS + load_patience_ns(LATE_NS), "it took %.2f s", (double)took_ns * 1e-9);
}

static void a_name_that_is_too_long(void **state)
{
    char name[1000];
    wefti_env_master master;
    uint64_t took_ns;
    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK_STATUS(find(name, &master, &took_ns), WEFT_ERR_ARGUMENT);
    CHECK_SAY(strstr(weft_last_error(), "MASTER_ADDR=nnn") != NULL, "\"%s\"", weft_last_error());
}

static void literals_are_known(void **state)
{
    static const char *const literals[] = {"127.0.0.1", "::1", "localhost"};
    wefti_env_master master;
    uint64_t took_ns;
    (void)state;
    for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
        CHECK_OK(find(literals[i], &master, &took_ns));
        CHECK_SAY(master.is_loopback && wefti_env_master_is_here(&master), "%s", literals[i]);
    }
}

/* As in a container without /etc/hosts, with MASTER_ADDR=$(hostname). */
static void this_host_by_a_name_that_nobody_knows(void **state)
{
    static const char name[] = "weft-is-here-only.invalid";
    wefti_env_master master;
    uint64_t took_ns;
    (void)state;
    need_name_service();
    if (unshare(CLONE_NEWUTS) != 0 || sethostname(name, strlen(name)) != 0) {
        printf("this user may not name the host: left out\n");
        skip();
    }
    CHECK_OK(find(name, &master, &took_ns));
    CHECK(!master.is_loopback && wefti_env_master_is_here(&master)); /* others may reach it elsewhere */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(names_that_nobody_has),
        CHECKED_TEST(a_name_that_is_too_long),
        CHECKED_TEST(literals_are_known),
        CHECKED_TEST(this_host_by_a_name_that_nobody_knows),
    };
    (void)setenv("WEFT_LOG", "none", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

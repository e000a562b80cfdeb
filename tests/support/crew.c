/* support/crew.c: PEs as processes of a cmocka test. */
#include "support/crew.h"
#include "base/durations.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "support/check.h"
#include "support/load.h"

/* A name and a secret that no other job has. */
static void set_job(crew *c, uint64_t *random)
{
    char count[16];
    (void)snprintf(c->job, sizeof c->job, "crew-%d-%08x:", (int)getpid(), (unsigned)random_next(random));
    for (int i = 0; i < 64; i++) {
        char digit[2] = {"0123456789abcdef"[random_below(random, 16)], '\0'};
        (void)strcat(c->job, digit);
    }
    (void)snprintf(count, sizeof count, "%d", c->pes);
    setenv("WEFT_LOCAL_JOB", c->job, 1);
    setenv("WEFT_LOCAL_PES", count, 1);
}

void crew_start(crew *c, int pes, uint64_t *random, void (*body)(const crew *c, int pe, void *context), void *context)
{
    memset(c, 0, sizeof *c);
    c->pes = pes;
    set_job(c, random);
    assert_int_equal(pipe(c->pipe), 0);
    for (int pe = 0; pe < pes; pe++) {
        c->pids[pe] = fork();
        assert_true(c->pids[pe] >= 0);
        if (c->pids[pe] == 0) {
            char number[16];
            (void)snprintf(number, sizeof number, "%d", pe);
            (void)setenv("WEFT_LOCAL_PE", number, 1);
            check_as_pe(pe);
            body(c, pe, context);
            check_exit(0);
        }
    }
}

void crew_tell(const crew *c, int pe, int is_end, weft_status status, uint64_t start_ns)
{
    crew_report report = {.pe = pe, .is_end = is_end, .status = status, .ns = wefti_os_now_ns() - start_ns};
    (void)snprintf(report.text, sizeof report.text, "%s", weft_last_error());
    if (write(c->pipe[1], &report, sizeof report) != sizeof report) {
        _exit(3);
    }
}

int crew_hear(const crew *c, crew_report *report, uint64_t until_ns)
{
    struct pollfd one = {.fd = c->pipe[0], .events = POLLIN};
    uint64_t now = wefti_os_now_ns();
    int left_ms = now < until_ns ? (int)((until_ns - now) / WEFTI_MILLISECOND_NS) + 1 : 0;
    return poll(&one, 1, left_ms) == 1 && read(c->pipe[0], report, sizeof *report) == sizeof *report;
}

uint64_t crew_late_ns(void)
{
    return load_patience_ns(1000 * WEFTI_MILLISECOND_NS);
}

unsigned crew_free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(descriptor, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(getsockname(descriptor, (struct sockaddr *)&at, &bytes), 0);
    (void)close(descriptor);
    return ntohs(at.sin_port);
}

void crew_end(crew *c)
{
    for (int pe = 0; pe < c->pes; pe++) {
        (void)kill(c->pids[pe], SIGKILL);
        (void)waitpid(c->pids[pe], NULL, 0);
    }
    close(c->pipe[0]);
    close(c->pipe[1]);
}

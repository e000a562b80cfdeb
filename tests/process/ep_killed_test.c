/* Goal: a rank that is killed in an update, a dispatch or a combine is named on every other rank within the deadline
 * and a second; the group is dead from then on and can be destroyed.
 *
 * Method: this program starts itself as the PEs of a job (weftrun --keep-going). One PE kills itself after a random
 * time, wherever it is then; the others call until a call fails, and say "survived" when all is as it should be. In one
 * domain, and in domains of two ranks and of three and one, where the one that is killed is a forwarder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ep_group.h"
#include "support/load.h"
#include "weft.h"
#include "weft_ep.h"

#define PES 4
#define RUNS 3
#define DEADLINE_NS UINT64_C(2000000000) /* these two where nothing else runs */
#define LATE_NS UINT64_C(1000000000)
#define TOKENS 64
#define TOPK 3
#define HIDDEN 256
#define EXPERTS 16

/* ---- a PE ---- */

typedef struct layer {
    uint64_t deadline_ns;
    weft_world *world;
    weft_ep *ep;
    weft_ep_route *route;
    int32_t ids[TOKENS * TOPK];
    _Alignas(64) float in[TOKENS * HIDDEN];
    _Alignas(64) float received[PES * TOKENS * HIDDEN];
} layer;

static layer here;

static void *kill_later(void *argument)
{
    uint64_t random = wefti_os_now_ns();
    (void)argument;
    wefti_os_sleep_ns(UINT64_C(1000000) + random_below(&random, 100000000));
    (void)raise(SIGKILL);
    return NULL;
}

static int make_layer(int domains)
{
    static const int unequal[PES] = {5, 5, 5, 1};
    weft_world_config world_config = WEFT_WORLD_CONFIG_INIT;
    here.deadline_ns = load_patience_ns(DEADLINE_NS);
    world_config.deadline_ns = here.deadline_ns;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = EXPERTS;
    config.tokens_max = TOKENS;
    config.topk_max = TOPK;
    config.row_bytes_max = sizeof(float) * HIDDEN;
    config.domain_ranks = domains == 2 ? 2 : 0;
    config.domain_of = domains == 3 ? unequal : NULL;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = TOPK;
    for (int i = 0; i < TOKENS * TOPK; i++) {
        here.ids[i] = (i * 7 + i / 5) % EXPERTS;
    }
    return CHECK_OK(weft_world_create(&world_config, &here.world)) &&
           ep_group_open(here.world, &config, &plan, &here.ep, &here.route);
}

static weft_ep_rows rows_at(float *data)
{
    return ep_rows(data, WEFT_EP_F32, HIDDEN);
}

static weft_status step(int number)
{
    weft_ep_rows in = rows_at(here.in);
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    received.rows = rows_at(here.received);
    received.rows_capacity = (size_t)PES * TOKENS;
    if (number % 3 == 0) {
        weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
        choices.tokens = TOKENS;
        choices.ids = here.ids;
        WEFT_TRY(weft_ep_route_update(here.route, &choices, NULL));
    }
    WEFT_TRY(weft_ep_dispatch(here.route, &in, &received, NULL));
    return weft_ep_combine(here.route, &received.rows, &in, 0, NULL);
}

/* Call until it fails. */
static void survive(int victim)
{
    weft_status status = WEFT_OK;
    uint64_t start_ns = 0;
    for (int i = 0; status == WEFT_OK; i++) {
        start_ns = wefti_os_now_ns();
        status = step(i);
    }
    uint64_t took_ns = wefti_os_now_ns() - start_ns;
    CHECK_STATUS(status, WEFT_ERR_TIMEOUT);
    CHECK_NAMES(victim);
    CHECK_SAY(took_ns < here.deadline_ns + load_patience_ns(LATE_NS), "it took %.3f s", (double)took_ns * 1e-9);
    start_ns = wefti_os_now_ns();
    CHECK_STATUS(step(0), WEFT_ERR_TIMEOUT);
    ep_group_close(here.ep, here.route);
    CHECK_OK(weft_world_destroy(here.world));
    took_ns = wefti_os_now_ns() - start_ns;
    CHECK_SAY(took_ns < load_patience_ns(LATE_NS), "the end took %.3f s", (double)took_ns * 1e-9);
}

static int be_pe(int victim, int domains)
{
    pthread_t killer;
    if (!make_layer(domains)) {
        return 1;
    }
    int pe = weft_world_pe(here.world);
    check_as_pe(pe);
    if (pe == victim && pthread_create(&killer, NULL, kill_later, NULL) != 0) {
        return 1;
    }
    survive(victim);
    if (check_failures() == 0) {
        printf("survived\n");
    }
    return check_failures() != 0;
}

/* ---- the job ---- */

/* Run the job with this victim, in 1 domain, 2 equal ones or (3) unequal ones, and count the PEs that say that they
 * survived. */
static int run_job(int victim, int domains)
{
    char command[4200];
    char self[2048];
    char line[1024];
    int survivors = 0;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    snprintf(command, sizeof command, "WEFT_LOG=none '%s/weftrun' --keep-going --timeout 300 -n %d '%s' %d %d",
             WEFT_BUILD_DIR, PES, self, victim, domains);
    FILE *job = popen(command, "r");
    assert_non_null(job);
    while (fgets(line, sizeof line, job) != NULL) {
        survivors += strstr(line, "survived") != NULL;
    }
    int status = pclose(job);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL);
    return survivors;
}

static void killed_anywhere(void **state)
{
    (void)state;
    if (access(WEFT_BUILD_DIR "/weftrun", X_OK) != 0) {
        skip();
    }
    for (int i = 0; i < RUNS; i++) {
        assert_int_equal(run_job(i % PES, 1), PES - 1);
    }
}

static void a_forwarder_is_killed(void **state)
{
    (void)state;
    if (access(WEFT_BUILD_DIR "/weftrun", X_OK) != 0) {
        skip();
    }
    assert_int_equal(run_job(1, 2), PES - 1);
    assert_int_equal(run_job(3, 3), PES - 1); /* it forwards for all of the three others */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_anywhere), cmocka_unit_test(a_forwarder_is_killed)};
    if (argc == 3) {
        return be_pe(atoi(argv[1]), atoi(argv[2]));
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

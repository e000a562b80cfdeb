/* Goal: the bootstraps pmi1 and pmi2 conform, over PMI's protocols, with launchers that take names and those that do
 * not; and what a launcher says is bounded and checked.
 * Method: the suite of all bootstraps, with a launcher of the tests' own (support/pmi_server) and one connection a PE;
 * then launchers that say what none should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/conformance.h"
#include "bootstrap/pmi/store.h"
#include "support/check.h"
#include "support/load.h"
#include "support/pes.h"
#include "support/pmi_server.h"
#include "support/torture.h"

#define SHORT_NS load_patience_ns(UINT64_C(400000000))
/* With a fault, an answer is awaited that does not come. */
#define JOIN_NS (torture_is_failing() ? SHORT_NS : UINT64_C(60000000000))

typedef struct meeting {
    pmi_server *server;
    int pes;
    weft_status joined[PES_MAX];
    wefti_pmi_job jobs[PES_MAX];
} meeting;

static int version;
static unsigned manners;

static weft_status join(meeting *m, int rank)
{
    wefti_pmi_store *store = &m->jobs[rank].store;
    store->rank = rank;
    store->size = m->pes;
    WEFT_TRY(wefti_pmi_wire_join(store, pmi_server_socket(m->server, rank), version, wefti_os_now_ns() + JOIN_NS));
    return wefti_pmi_job_init(&m->jobs[rank], wefti_os_now_ns() + JOIN_NS);
}

static void leave(meeting *m)
{
    for (int rank = 0; rank < m->pes; rank++) {
        wefti_pmi_wire_leave(&m->jobs[rank].store);
        wefti_pmi_job_fini(&m->jobs[rank]);
        (void)close(pmi_server_socket(m->server, rank));
    }
    (void)pmi_server_stop(m->server);
    free(m);
}

static weft_status begin(int pes, weft_world_config *shared)
{
    meeting *m = calloc(1, sizeof *m);
    weft_status status = WEFT_OK;
    m->pes = pes;
    m->server = pmi_server_start(pes, manners);
    for (int rank = 0; rank < pes && status == WEFT_OK; rank++) {
        status = join(m, rank);
    }
    if (status != WEFT_OK) {
        leave(m);
        return status;
    }
    shared->bootstrap = version == 1 ? WEFT_BOOTSTRAP_PMI1 : WEFT_BOOTSTRAP_PMI2;
    shared->bootstrap_argument = m; /* carried to open_in_place */
    return WEFT_OK;
}

static void end(weft_world_config *shared)
{
    leave((meeting *)(uintptr_t)shared->bootstrap_argument);
}

static weft_status open_in_place(int place, const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    meeting *m = (meeting *)(uintptr_t)config->bootstrap_argument;
    return wefti_job_open(&m->jobs[place].job, config, bootstrap, wefti_os_now_ns() + config->deadline_ns);
}

/* PMI-1 with a launcher that takes names, PMI-2 with one that does not. */
static int run_suite(void)
{
    int failed = 0;
    for (version = 1; version <= 2; version++) {
        const unsigned nameless = BOOTSTRAP_NO_DEADLINES; /* who does not come to a barrier is not named */
        bootstrap_subject subject = {
            .limits = BOOTSTRAP_MEETING_REUSED | BOOTSTRAP_NAMES_APART | (version == 1 ? 0 : nameless),
            .begin = begin,
            .end = end,
            .open = open_in_place,
        };
        manners = version == 1 ? 0 : PMI_REFUSES_TWICE | PMI_NO_NAMES;
        failed |= bootstrap_conformance_run(&subject);
    }
    return failed;
}

/* ---- launchers that lie ---- */

/* What a launcher says, whatever it is asked, and what the text then has in it. */
typedef struct liar {
    int version;
    const char *says; /* NULL: it closes the connection */
    weft_status status;
    const char *text;
} liar;

static char flood[8000]; /* of no line's end */

static void believes_no_liar(void **state)
{
    (void)state;
    const liar liars[] = {
        {1, NULL, WEFT_ERR_SYSTEM, "start each program by srun"},
        {1, "", WEFT_ERR_TIMEOUT, "in time"},
        {1, flood, WEFT_ERR_SYSTEM, "no answer of PMI-1"},
        {1, "cmd=barrier_out\n", WEFT_ERR_SYSTEM, "something else"},
        {1, "hello\n", WEFT_ERR_SYSTEM, "something else"},
        {1, "cmd=response_to_init pmi_version=1 rc=-1\n", WEFT_ERR_SYSTEM, "does not speak PMI-1"},
        {1, "cmd=response_to_init rc=0\ncmd=my_kvsname\n", WEFT_ERR_SYSTEM, "no name"},
        {2, "cmd=response_to_init pmi_version=1 rc=0\n", WEFT_ERR_SYSTEM, "does not speak PMI-2"},
        {2, "cmd=response_to_init pmi_version=2 rc=0\nabcdefcmd=x;", WEFT_ERR_SYSTEM, "no answer of PMI-2"},
        {2, "cmd=response_to_init pmi_version=2 rc=0\n999999cmd=x;", WEFT_ERR_SYSTEM, "no answer of PMI-2"},
        {2, "cmd=response_to_init pmi_version=2 rc=0\n     0", WEFT_ERR_SYSTEM, "no answer of PMI-2"},
        {2, "cmd=response_to_init pmi_version=2 rc=0\n    40cmd=fullinit-response;rank=1;size=1;rc=0;", WEFT_ERR_SYSTEM,
         "cannot be"},
        {2, "cmd=response_to_init pmi_version=2 rc=0\n    49cmd=fullinit-response;rank=0;size=99999999999;rc=0;",
         WEFT_ERR_SYSTEM, "cannot be"},
    };
    memset(flood, 'x', sizeof flood - 1);
    for (size_t i = 0; i < sizeof liars / sizeof *liars; i++) {
        int ends[2];
        wefti_pmi_store store = {.size = 1};
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        if (liars[i].says == NULL) {
            (void)close(ends[0]);
        } else {
            assert_int_equal(send(ends[0], liars[i].says, strlen(liars[i].says), 0), strlen(liars[i].says));
        }
        const uint64_t wait_ns = liars[i].status == WEFT_ERR_TIMEOUT ? UINT64_C(50000000) : JOIN_NS;
        const weft_status status = wefti_pmi_wire_join(&store, ends[1], liars[i].version, wefti_os_now_ns() + wait_ns);
        CHECK_SAY(status == liars[i].status && strstr(weft_last_error(), liars[i].text) != NULL, "liar %zu: %s: %s", i,
                  weft_status_name(status), weft_last_error());
        assert_null(store.state);
        assert_true(store.broken[0] != '\0');
        (void)(liars[i].says == NULL ? 0 : close(ends[0]));
        (void)close(ends[1]);
    }
}

/* What a store has for an id that is none. */
static void believes_no_id(void **state)
{
    (void)state;
    static const char *const values[] = {"00", "xyz", ""};
    for (version = 1; version <= 2; version++) {
        weft_world_config config = WEFT_WORLD_CONFIG_INIT;
        manners = PMI_NO_NAMES;
        CHECK_OK(begin(2, &config));
        meeting *m = (meeting *)(uintptr_t)config.bootstrap_argument;
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            wefti_pmi_store *store = &m->jobs[0].store;
            const wefti_job_ops *ops = m->jobs[1].job.ops;
            char key[WEFTI_JOB_KEY_BYTES];
            weft_uid uid;
            (void)snprintf(key, sizeof key, "key%zu", i);
            CHECK_OK(store->ops->put(store, key, values[i], wefti_os_now_ns() + JOIN_NS));
            assert_int_equal(ops->is_other(&m->jobs[1].job, key, wefti_os_now_ns() + JOIN_NS, &uid), 0);
        }
        end(&config);
    }
}

/* ---- PE 0 has no id ---- */

typedef struct opening {
    weft_world_config config;
    weft_status statuses[PES_MAX];
    char texts[PES_MAX][WEFTI_ERROR_BYTES];
} opening;

static void open_as(int pe, void *context)
{
    opening *o = context;
    wefti_bootstrap bootstrap = {0};
    o->statuses[pe] = open_in_place(pe, &o->config, &bootstrap);
    (void)snprintf(o->texts[pe], sizeof o->texts[pe], "%s", weft_last_error());
}

/* The others have its status and its text, and do not wait for their deadline. */
static void tells_why_there_is_no_id(void **state)
{
    (void)state;
    (void)setenv("WEFT_UID_INTERFACE", "nonesuch0", 1);
    for (version = 1; version <= 2; version++) {
        opening o = {.config = WEFT_WORLD_CONFIG_INIT};
        manners = version == 1 ? 0 : PMI_NO_NAMES;
        CHECK_OK(begin(3, &o.config));
        o.config.deadline_ns = UINT64_C(60000000000);
        const uint64_t start_ns = wefti_os_now_ns();
        pes_each(3, open_as, &o);
        CHECK(wefti_os_now_ns() - start_ns < load_patience_ns(UINT64_C(5000000000)));
        for (int pe = 0; pe < 3; pe++) {
            CHECK_SAY(o.statuses[pe] == WEFT_ERR_ARGUMENT && strstr(o.texts[pe], "\"nonesuch0\"") != NULL &&
                          strstr(o.texts[pe], "there are: ") != NULL &&
                          (pe == 0 || strstr(o.texts[pe], "PE 0") != NULL),
                      "PE %d: %s: %s", pe, weft_status_name(o.statuses[pe]), o.texts[pe]);
        }
        end(&o.config);
    }
    (void)unsetenv("WEFT_UID_INTERFACE");
}

/* ---- who does not come ---- */

/* A process that does not come to the barrier, and what is asked afterwards. */
static void says_that_somebody_did_not_come(void **state)
{
    (void)state;
    for (version = 1; version <= 2; version++) {
        weft_world_config config = WEFT_WORLD_CONFIG_INIT;
        wefti_bootstrap bootstrap = {0};
        manners = PMI_NO_NAMES;
        CHECK_OK(begin(3, &config));
        config.pes = 2;
        config.pe = 1;
        config.deadline_ns = UINT64_C(50000000);
        assert_int_equal(open_in_place(1, &config, &bootstrap), WEFT_ERR_TIMEOUT);
        CHECK_SAY(strstr(weft_last_error(), "did not come") != NULL &&
                      strstr(weft_last_error(), "config.pes is 2") != NULL,
                  "%s", weft_last_error());
        assert_int_equal(open_in_place(1, &config, &bootstrap), WEFT_ERR_STATE);
        CHECK_SAY(strstr(weft_last_error(), "any more") != NULL, "%s", weft_last_error());
        end(&config);
    }
}

/* A launcher that has no name of PE 0, and whose next answer does not come before the deadline. */
static void names_who_is_missing_and_not_the_launcher(void **state)
{
    (void)state;
    static const char says[] = "cmd=response_to_init pmi_version=1 pmi_subversion=0 rc=0\n"
                               "cmd=my_kvsname kvsname=kvs\n"
                               "cmd=publish_result info=ok\n"
                               "cmd=unpublish_result info=ok\n"
                               "cmd=lookup_result info=fail\n";
    int ends[2];
    wefti_pmi_job pmi = {.store = {.size = 2, .rank = 1}};
    weft_uid uid;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(send(ends[0], says, strlen(says), 0), strlen(says));
    CHECK_OK(wefti_pmi_wire_join(&pmi.store, ends[1], 1, wefti_os_now_ns() + JOIN_NS));
    CHECK_OK(wefti_pmi_job_init(&pmi, wefti_os_now_ns() + JOIN_NS));
    CHECK_STATUS(pmi.job.ops->fetch(&pmi.job, "key", wefti_os_now_ns() + SHORT_NS, &uid), WEFT_ERR_TIMEOUT);
    CHECK_SAY(strstr(weft_last_error(), "PE 0 did not come") != NULL, "%s", weft_last_error());
    wefti_pmi_wire_leave(&pmi.store);
    wefti_pmi_job_fini(&pmi);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(believes_no_liar, check_begin, check_end),
        cmocka_unit_test_setup_teardown(believes_no_id, check_begin, check_end),
        cmocka_unit_test_setup_teardown(tells_why_there_is_no_id, check_begin, check_end),
        cmocka_unit_test_setup_teardown(says_that_somebody_did_not_come, check_begin, check_end),
        cmocka_unit_test_setup_teardown(names_who_is_missing_and_not_the_launcher, check_begin, check_end),
    };
    (void)setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests_name("pmi", tests, NULL, NULL) | run_suite();
}

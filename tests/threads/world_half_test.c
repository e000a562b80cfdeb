/* Goal: a PE may fail in an exchange of creation in which the others of its process succeed; then nobody uses what it
 * frees, and nothing stays behind.
 * Method: PEs are threads that exchange by a callback of this test. In each exchange of creation in turn, each PE in
 * turn is told that it failed, after all have the data; those that come to the next exchange are told so there, since
 * one is missing. AddressSanitizer sees what is used after it was freed, the ledger what was not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/pes.h"

#define PES 3
#define BYTES_MAX 2048

typedef struct circle {
    wefti_os_monitor *monitor;
    int exchange; /* how many are over */
    int arrived;
    int is_broken; /* one has failed and will not come any more */
    int failing_exchange;
    int failing_pe;
    unsigned char all[2][PES * BYTES_MAX];
} circle;

typedef struct member {
    circle *circle;
    int pe;
} member;

/* Deposit and wait for the others; inside the monitor. */
static int exchange(circle *c, int pe, const void *mine, void *all, size_t bytes)
{
    int now = c->exchange;
    unsigned char *place = c->all[now % 2];
    memcpy(place + (size_t)pe * bytes, mine, bytes);
    if (++c->arrived == PES) {
        c->arrived = 0;
        c->exchange++;
        wefti_os_monitor_notify_all(c->monitor);
    }
    while (c->exchange == now && !c->is_broken) {
        (void)wefti_os_monitor_wait(c->monitor, UINT64_MAX);
    }
    if (c->exchange == now) {
        return -1;
    }
    memcpy(all, place, PES * bytes);
    if (now == c->failing_exchange && pe == c->failing_pe) {
        c->is_broken = 1;
        wefti_os_monitor_notify_all(c->monitor);
        return -1;
    }
    return 0;
}

static int allgather(void *context, const void *mine, void *all, size_t bytes)
{
    const member *me = context;
    if (bytes > BYTES_MAX) {
        return -1;
    }
    wefti_os_monitor_enter(me->circle->monitor);
    int result = exchange(me->circle, me->pe, mine, all, bytes);
    wefti_os_monitor_leave(me->circle->monitor);
    return result;
}

/* Returns how many exchanges the creation had. */
static int create_failing(int failing_exchange, int failing_pe)
{
    static circle c;
    member members[PES];
    weft_callback_ops ops[PES];
    weft_world_config configs[PES];
    pes_outcome outcomes[PES];
    memset(&c, 0, sizeof c);
    c.failing_exchange = failing_exchange;
    c.failing_pe = failing_pe;
    CHECK_OK(wefti_os_monitor_create(&c.monitor));
    for (int pe = 0; pe < PES; pe++) {
        members[pe] = (member){.circle = &c, .pe = pe};
        ops[pe] = (weft_callback_ops){.size = sizeof ops[pe], .context = &members[pe], .allgather = allgather};
        configs[pe] = pes_config(NULL, pe, PES);
        configs[pe].bootstrap = WEFT_BOOTSTRAP_CALLBACK;
        configs[pe].callback = &ops[pe];
        configs[pe].deadline_ns = UINT64_C(3000000000);
    }
    pes_create(configs, PES, outcomes);
    for (int pe = 0; pe < PES; pe++) {
        int may_succeed = failing_exchange < 0 || (failing_exchange == c.exchange - 1 && pe != failing_pe);
        CHECK_SAY(outcomes[pe].status != WEFT_OK || may_succeed, "PE %d has a world that PE %d has not", pe,
                  failing_pe);
        CHECK_SAY(outcomes[pe].status == WEFT_OK || failing_exchange >= 0, "PE %d: %s", pe, outcomes[pe].text);
        CHECK_OK(weft_world_destroy(outcomes[pe].world));
    }
    wefti_os_monitor_destroy(c.monitor);
    return c.exchange;
}

static void test_one_fails_where_others_succeed(void **state)
{
    (void)state;
    int exchanges = create_failing(-1, -1);
    CHECK(exchanges > 2);
    ledger before = ledger_read();
    for (int at = 0; at < exchanges; at++) {
        for (int pe = 0; pe < PES; pe++) {
            (void)create_failing(at, pe);
            ledger_assert_same(&before);
        }
    }
}

static int be_quiet(void **state)
{
    (void)state;
    return setenv("WEFT_LOG", "none", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(test_one_fails_where_others_succeed)};
    return cmocka_run_group_tests(tests, be_quiet, NULL);
}

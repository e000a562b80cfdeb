/* Goal: ranks that do not come to a call are named, all of them, on every rank that did; an abort ends a call; in both
 * cases the group is dead, says so, and can be destroyed by each rank alone.
 *
 * Method: PEs as threads with a short deadline; some stay away from a call of each kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ep_group.h"
#include "support/load.h"
#include "support/pes.h"
#include "weft_ep.h"

#define PES 5
#define TOKENS 3
#define HIDDEN 8
#define DEADLINE_NS load_patience_ns(300000000) /* of calls to which some do not come */

typedef enum call_kind { CALL_UPDATE, CALL_DISPATCH, CALL_COMBINE, CALL_KINDS } call_kind;

typedef struct absence_case {
    call_kind kind; /* of the call that some do not come to */
    int is_abort; /* one of them aborts instead */
    int made; /* how many PEs have what they need */
    uint64_t deadline_ns;
} absence_case;

typedef struct absent_rig {
    weft_ep *ep;
    weft_ep_route *route;
    _Alignas(16) float in[TOKENS * HIDDEN];
    _Alignas(16) float received[PES * TOKENS * HIDDEN];
} absent_rig;

static int is_absent(int pe)
{
    return pe == 1 || pe >= 3;
}

static weft_ep_rows rows_at(float *data)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = WEFT_EP_F32;
    rows.hidden = HIDDEN;
    return rows;
}

static weft_status call(absent_rig *rig, call_kind kind)
{
    static const int32_t ids[TOKENS] = {0, 3, 4};
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_rows in = rows_at(rig->in);
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    out.rows = rows_at(rig->received);
    out.rows_capacity = (size_t)PES * TOKENS;
    choices.tokens = TOKENS;
    choices.ids = ids;
    switch (kind) {
    case CALL_UPDATE:
        return weft_ep_route_update(rig->route, &choices, NULL);
    case CALL_DISPATCH:
        return weft_ep_dispatch(rig->route, &in, &out, NULL);
    default:
        return weft_ep_combine(rig->route, &out.rows, &in, 0, NULL);
    }
}

static void check_names_absent(void)
{
    for (int pe = 0; pe < PES; pe++) {
        CHECK_SAY(text_names_pe(weft_last_error(), pe) == is_absent(pe), "\"%s\" on PE %d", weft_last_error(), pe);
    }
}

static void make(weft_world *world, absent_rig *rig)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    memset(rig, 0, sizeof *rig);
    config.experts = PES;
    config.tokens_max = TOKENS;
    config.topk_max = 1;
    config.row_bytes_max = HIDDEN * sizeof(float);
    plan.topk = 1;
    (void)ep_group_open(world, &config, &plan, &rig->ep, &rig->route);
    CHECK_OK(call(rig, CALL_UPDATE));
}

/* All PEs: the abort is not to meet one that is still at its first call. */
static void await_made(absence_case *absence)
{
    (void)__atomic_add_fetch(&absence->made, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&absence->made, __ATOMIC_ACQUIRE) < PES) {
        wefti_os_sleep_ns(1000000);
    }
}

static void stay_away(weft_world *world, void *context)
{
    absence_case *absence = context;
    weft_status wanted = absence->is_abort ? WEFT_ERR_ABORTED : WEFT_ERR_TIMEOUT;
    absent_rig rig;
    make(world, &rig);
    await_made(absence);
    if (!absence->is_abort) {
        (void)pes_set_deadline(world, absence->deadline_ns);
    }
    if (!is_absent(weft_world_pe(world))) {
        CHECK_STATUS(call(&rig, absence->kind), wanted);
        if (!absence->is_abort) {
            check_names_absent();
        }
        for (call_kind kind = CALL_UPDATE; kind < CALL_KINDS; kind++) {
            CHECK_STATUS(call(&rig, kind), wanted);
        }
    } else if (absence->is_abort && weft_world_pe(world) == 1) {
        CHECK_OK(weft_world_abort(world, 7));
    }
    CHECK_OK(weft_ep_route_destroy(rig.route));
    if (!is_absent(weft_world_pe(world))) {
        CHECK_OK(weft_ep_destroy(rig.ep));
    } else {
        /* Its own group is alive; the others destroy theirs alone, so that it waits for them in vain or sees the
         * abort. */
        weft_status status = weft_ep_destroy(rig.ep);
        CHECK_SAY(status == (absence->is_abort ? WEFT_OK : WEFT_ERR_TIMEOUT) || status == WEFT_ERR_ABORTED,
                  "the absent PE's group ended with %s", weft_status_name(status));
    }
}

static void run(absence_case *absence)
{
    weft_world_config configs[PES];
    pes_outcome outcomes[PES];
    weft_world *worlds[PES];
    weft_threads *threads = pes_meeting(PES);
    for (int pe = 0; pe < PES; pe++) {
        configs[pe] = pes_config(threads, pe, PES);
    }
    pes_create(configs, PES, outcomes);
    for (int pe = 0; pe < PES; pe++) {
        assert_int_equal(outcomes[pe].status, WEFT_OK);
        worlds[pe] = outcomes[pe].world;
    }
    weft_threads_destroy(threads);
    pes_run_in(PES, worlds, stay_away, absence);
    pes_destroy_world(PES, worlds);
}

static void absent(void **state)
{
    (void)state;
    for (call_kind kind = CALL_UPDATE; kind < CALL_KINDS; kind++) {
        absence_case absence = {.kind = kind, .deadline_ns = DEADLINE_NS};
        run(&absence);
    }
}

static void aborted(void **state)
{
    (void)state;
    for (call_kind kind = CALL_UPDATE; kind < CALL_KINDS; kind++) {
        absence_case absence = {.kind = kind, .is_abort = 1};
        run(&absence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(absent), CHECKED_TEST(aborted)};
    (void)setenv("WEFT_LOG", "none", 0); /* timeouts are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

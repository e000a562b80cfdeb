/* Goal: the host is told the counts of each routing that a captured graph makes, numbered on from launch to launch,
 * also where the graph itself attaches the route to memory, and of kernels for few ranks and for many. Method:
 * gpu/support/ep_rig.h; a graph of the fake driver is what was captured, done once more by each replay. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/support/ep_rig.h"
#include "weft.h"

enum { REPLAYS = 5, PLACES = 2 };

/* Where counts are told, in symmetric host memory. */
typedef struct told {
    uint64_t generation[2];
    int64_t rows[2];
    int64_t rows_of_expert[2][EP_RIG_LOCAL_EXPERTS];
    int64_t rows_of_source[2][EP_RIG_PES];
} told;

static void *driver_function(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *found = library != NULL ? dlsym(library, name) : NULL;
    CHECK(found != NULL);
    return found;
}

static void set_capture(int on)
{
    void (*capture)(int);
    *(void **)&capture = driver_function("fakeCapture");
    capture(on);
}

static void replay(void)
{
    void (*launch)(void);
    *(void **)&launch = driver_function("fakeReplay");
    launch();
}

static told *tell(const ep_rig *rig)
{
    void *memory = NULL;
    weft_ep_count_arrays arrays = WEFT_EP_COUNT_ARRAYS_INIT;
    CHECK_OK(weft_calloc(rig->world, 1, sizeof(told), &memory));
    told *there = memory;
    arrays.generation = there->generation;
    arrays.type = WEFT_EP_INT64;
    arrays.rows = there->rows;
    arrays.rows_of_expert = there->rows_of_expert;
    arrays.rows_of_source = there->rows_of_source;
    CHECK_OK(weft_ep_route_counts_to(rig->route, &arrays));
    return there;
}

/* The first `tokens` tokens of each rank go to the second expert of the other rank, the rest nowhere. */
static void choose(ep_rig *rig, int tokens)
{
    for (int i = 0; i < EP_RIG_TOKENS * EP_RIG_TOPK; i++) {
        rig->ids[i] =
            i % EP_RIG_TOPK == 0 && i / EP_RIG_TOPK < tokens ? (1 - rig->rank) * EP_RIG_LOCAL_EXPERTS + 1 : -1;
    }
}

static void check(const ep_rig *rig, const told *there, uint64_t generation, int tokens)
{
    const size_t slot = generation % 2;
    CHECK_OK(weft_ep_route_counts_wait(rig->route, generation));
    CHECK_STATUS(weft_ep_route_counts_wait(rig->route, generation - 1), generation - 1 == 0 ? WEFT_ERR_RANGE : WEFT_OK);
    CHECK(there->rows_of_expert[slot][0] == 0 && there->rows_of_expert[slot][1] == tokens);
    CHECK(there->rows_of_source[slot][rig->rank] == 0 && there->rows_of_source[slot][1 - rig->rank] == tokens);
    CHECK(generation < 2 || there->generation[1 - slot] == generation - 1);
    CHECK(rig->route->plan.layout >= WEFT_EP_SLOTS_SOURCE || there->rows[slot] == tokens);
}

/* which: the layout; 4 and more: the route is attached to two places in turn, by the graph. */
static void counts_of_a_graph(weft_world *world, int which)
{
    ep_rig rig;
    void *places[PLACES] = {NULL};
    size_t bytes = 0;
    const int attaches = which >= 4;
    uint64_t generation = 0;
    _Alignas(64) ep_rig_row sums[EP_RIG_TOKENS];
    const weft_ep_rows out = ep_rig_rows(sums);
    ep_rig_open(&rig, world, (weft_ep_layout)(which % 4), 0);
    told *there = tell(&rig);
    CHECK_OK(weft_ep_route_bytes(rig.ep, &rig.route->plan, &bytes));
    for (int place = 0; place < PLACES && attaches; place++) {
        CHECK_OK(weft_device_malloc(world, bytes, &places[place]));
        memset(places[place], EP_RIG_MARK, bytes); /* as other routes leave it */
    }
    choose(&rig, 1);
    set_capture(1);
    for (int place = 0; place < PLACES; place++) {
        if (attaches) {
            CHECK_OK(weft_ep_route_attach(rig.route, places[place], bytes, WEFT_EP_CONTENTS_NONE, NULL));
        }
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        CHECK_OK(weft_ep_combine(rig.route, &rig.received.rows, &out, 0, NULL));
        generation++;
        check(&rig, there, generation, 1);
    }
    set_capture(0);
    for (int i = 0; i < REPLAYS; i++) {
        const int tokens = (i * 3 + 2) % (EP_RIG_TOKENS + 1);
        choose(&rig, tokens);
        CHECK_OK(weft_barrier(world)); /* nobody's ids change while another's kernel runs */
        replay();
        generation += PLACES;
        check(&rig, there, generation, tokens);
        CHECK_OK(weft_barrier(world));
    }
    CHECK_STATUS(weft_ep_failure(rig.ep), WEFT_OK);
    CHECK_OK(weft_ep_route_counts_to(rig.route, NULL));
    ep_rig_close(&rig);
    for (int place = 0; place < PLACES && attaches; place++) {
        CHECK_OK(weft_device_free(world, places[place]));
    }
    CHECK_OK(weft_free(world, there));
}

static void graphs(void **state)
{
    static const ep_rig_case cases[] = {{counts_of_a_graph, 8}};
    (void)state;
    ep_rig_run(&(ep_rig_cases){cases, 1});
}

static void graphs_of_many(void **state)
{
    assert_int_equal(setenv("WEFT_EP_FEW_RANKS", "0", 1), 0);
    graphs(state);
    assert_int_equal(unsetenv("WEFT_EP_FEW_RANKS"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(graphs), CHECKED_TEST(graphs_of_many)};
    (void)setenv("WEFT_FAKE_SMS", "4", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

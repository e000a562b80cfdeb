/* Goal: a route may lie in memory that the stream of its calls still uses: what was enqueued there before the route was
 * made finds its bytes, the route's first call finds none of them, and no later call loses the routing. Method: two PEs
 * as threads on the fake driver, whose copies are late: they are done when their stream is named again. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/driver.h"
#include "gpu/support/ep_rig.h"
#include "support/pes.h"

enum { STEPS = 3, FIRST_TAG = 2 }; /* of a group's first call: src/cuda/ep/README.md, "Flags" */

typedef CUresult (*copy_function)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);

static copy_function find_copy(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    copy_function copy = NULL;
    if (driver != NULL) {
        *(void **)&copy = dlsym(driver, "cuMemcpyAsync");
        (void)dlclose(driver); /* the library has it */
    }
    return copy;
}

/* The worst that may be there: words that the route's first call would take for its own. */
static void spoil(uint64_t *words, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *words; i++) {
        words[i] = (uint64_t)FIRST_TAG << 32 | (i + 1);
    }
}

static void step(ep_rig *rig, int expert)
{
    weft_ep_rows out;
    ep_rig_row sums[EP_RIG_TOKENS];
    for (int i = 0; i < EP_RIG_TOKENS; i++) {
        for (int h = 0; h < EP_RIG_HIDDEN; h++) {
            rig->tokens[i][h] = (float)(rig->rank * EP_RIG_TOKENS + i + 1);
        }
    }
    out = ep_rig_rows(sums);
    rig->in = ep_rig_rows(rig->tokens);
    ep_rig_choose(rig, expert);
    CHECK_OK(weft_ep_route_update(rig->route, &rig->choices, NULL));
    for (int i = 0; i < STEPS; i++) {
        weft_ep_host_counts counts;
        memset(sums, EP_RIG_MARK, sizeof sums);
        CHECK_OK(weft_ep_dispatch(rig->route, &rig->in, &rig->received, NULL));
        CHECK_OK(weft_ep_route_query(rig->route, NULL, &counts));
        CHECK(counts.status == WEFT_OK && counts.rows == EP_RIG_TOKENS);
        CHECK(rig->there[0][0] == (float)((1 - rig->rank) * EP_RIG_TOKENS + 1));
        CHECK_OK(weft_ep_combine(rig->route, &rig->received.rows, &out, 0, NULL));
        CHECK_STATUS(ep_rig_status(rig), WEFT_OK);
        CHECK(memcmp(sums, rig->tokens, sizeof sums) == 0);
    }
}

static void body(weft_world *world, void *context)
{
    const copy_function copy = find_copy();
    const weft_ep_config config = ep_rig_config();
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    ep_rig *rig = aligned_alloc(64, (sizeof *rig + 63) / 64 * 64);
    size_t bytes = 0;
    void *block = NULL;
    (void)context;
    if (rig == NULL || !CHECK(copy != NULL) || !ep_rig_attach(world)) {
        abort();
    }
    ep_rig_open_with(rig, world, WEFT_EP_RANK_MAJOR, &config, 0);
    CHECK_OK(weft_ep_route_destroy(rig->route));
    plan.topk = EP_RIG_TOPK;
    CHECK_OK(weft_ep_route_bytes(rig->ep, &plan, &bytes));
    if (!CHECK_OK(weft_device_malloc(world, 2 * bytes, &block))) {
        abort();
    }
    uint64_t *memory = block;
    unsigned char *kept = (unsigned char *)block + bytes;
    unsigned char *before = malloc(bytes);
    spoil(memory, bytes);
    memcpy(before, memory, bytes);
    CHECK(copy((CUdeviceptr)(uintptr_t)kept, (CUdeviceptr)(uintptr_t)memory, bytes, NULL) == CUDA_SUCCESS);
    CHECK_OK(weft_ep_route_create(rig->ep, &plan, memory, &rig->route));
    CHECK_OK(weft_barrier(world));
    step(rig, EP_RIG_LOCAL_EXPERTS * (1 - rig->rank));
    CHECK(memcmp(kept, before, bytes) == 0);
    step(rig, EP_RIG_LOCAL_EXPERTS * (1 - rig->rank) + 1);
    ep_rig_close(rig);
    free(before);
    free(rig);
}

static void in_use(void **state)
{
    (void)state;
    pes_run(EP_RIG_PES, body, NULL);
}

/* Of a group of several domains, whose route has another inside. */
static void in_use_between(void **state)
{
    (void)state;
    assert_int_equal(setenv("WEFT_CUDA_DOMAIN", "1", 1), 0);
    pes_run(EP_RIG_PES, body, NULL);
    assert_int_equal(unsetenv("WEFT_CUDA_DOMAIN"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(in_use), CHECKED_TEST(in_use_between)};
    (void)setenv("WEFT_FAKE_SMS", "4", 0);
    (void)setenv("WEFT_FAKE_LATE", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

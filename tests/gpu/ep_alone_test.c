/* Goal: a rank, or blocks of this rank itself, that do not come end a call with the deadline and leave the group
 * usable; so does a fault that something else has latched. Method: gpu/support/ep_rig.h; words that a kernel of the
 * other rank would write are written by the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/ep/host/domains.h"
#include "gpu/support/ep_rig.h"

/* Whether the rig's groups have the kernels of groups of many ranks. */
static int is_of_many(void)
{
    return getenv("WEFT_EP_FEW_RANKS") != NULL;
}

/* ---- a rank that does not come ---- */

/* The routing that the others did not agree on is none when they go on. */
static void go_on_alone(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_host_counts counts;
    const weft_ep_layout layout = (weft_ep_layout)(which % 4);
    const int asks = which < 4; /* before it masks */
    ep_rig_open(&rig, world, layout, 0);
    ep_rig_choose(&rig, 0);
    CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    CHECK_OK(weft_device_deadline(world, UINT64_C(200000000)));
    CHECK_OK(weft_barrier(world));
    if (rig.rank == 0) {
        ep_rig_choose(&rig, 2);
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        if (asks) {
            CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), WEFT_ERR_TIMEOUT);
        }
        CHECK_OK(weft_ep_mask(rig.ep, 1, 0));
        CHECK_STATUS(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL), WEFT_ERR_STATE);
        ep_rig_choose(&rig, 0);
        CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    }
    ep_rig_close_alone(&rig);
}

/* A combine that the other rank does not come to: its deadline, who it was, and no row of it. */
static void combine_alone(weft_world *world, int which)
{
    ep_rig rig;
    _Alignas(64) ep_rig_row out[EP_RIG_TOKENS];
    ep_rig_row marked[EP_RIG_TOKENS];
    const weft_ep_layout layout = which == 0 ? WEFT_EP_SLOTS_SOURCE : WEFT_EP_SLOTS_EXPERT;
    ep_rig_open(&rig, world, layout, 0);
    ep_rig_expect_step(&rig);
    memset(marked, EP_RIG_MARK, sizeof marked);
    memcpy(out, marked, sizeof out);
    CHECK_OK(weft_device_deadline(world, UINT64_C(200000000)));
    CHECK_OK(weft_barrier(world));
    if (rig.rank == 0) {
        const weft_ep_rows rows = ep_rig_rows(out);
        weft_ep_host_counts counts;
        CHECK_OK(weft_ep_combine(rig.route, &rig.received.rows, &rows, 0, NULL));
        CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), WEFT_ERR_TIMEOUT);
        CHECK(strstr(weft_last_error(), " 1") != NULL);
        CHECK(memcmp(out, marked, sizeof out) == 0);
        CHECK_OK(weft_ep_mask(rig.ep, 1, 0));
    }
    ep_rig_close_alone(&rig);
}

/* An earlier call, still on its stream when send was called, meets its deadline before recv: that has nothing to wait
 * for, and a rank can be masked. The fake driver's launches return when they are complete, so that the kernel's word is
 * written here. */
static void fail_between_halves(weft_world *world, int which)
{
    ep_rig rig;
    (void)which;
    ep_rig_open(&rig, world, WEFT_EP_SLOTS_SOURCE, 0);
    if (rig.rank == 0) {
        weft_ep_host_counts counts;
        uint64_t *failed = &rig.ep->device->host_status[WEFTI_CUDA_EP_HOST_STATUS_FAILED];
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
        __atomic_store_n(failed, UINT64_C(2) << 32 | (uint32_t)-WEFT_ERR_TIMEOUT, __ATOMIC_RELEASE);
        CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), WEFT_ERR_TIMEOUT);
        CHECK_STATUS(weft_ep_dispatch_recv(rig.route, NULL), WEFT_ERR_TIMEOUT);
        CHECK_OK(weft_ep_mask(rig.ep, 1, 0));
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    }
    ep_rig_close_alone(&rig);
}

/* All blocks of the other rank's call have begun, and after a while one of its next call. */
static void *begin_later(void *argument)
{
    ep_rig *rig = argument;
    const struct timespec rest = {0, 150000000};
    __atomic_store_n(&rig->later->epoch, rig->later->epoch + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&rig->later->begun, 0, __ATOMIC_RELAXED);
    (void)nanosleep(&rest, NULL);
    __atomic_store_n(&rig->later->begun, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* Where rank 1's area is, which it tells: both ranks are threads. */
static uint64_t area_of_other;

static void tell_area(const ep_rig *rig)
{
    if (rig->rank == 1) {
        area_of_other = wefti_cuda_ep_own_area(rig->ep, 0);
    }
    CHECK_OK(weft_barrier(rig->world));
}

/* Words of a call header in a rank's memory. */
static size_t header_words(const wefti_cuda_ep_group *group)
{
    return WEFTI_CUDA_EP_HEADER_WORDS + (is_of_many() ? 1 + (size_t)group->at.local_max : EP_RIG_PES);
}

/* Of rank 0's words in the memory of rank 1, those that are not 0: of both call headers, and, of many ranks, of its
 * answer. */
static int words_left(const ep_rig *rig)
{
    const wefti_cuda_ep_group *group = wefti_cuda_ep_group_of(rig->ep);
    const uint64_t *headers = (const uint64_t *)(uintptr_t)(area_of_other + group->at.headers);
    const uint64_t *answer = (const uint64_t *)(uintptr_t)(area_of_other + group->at.counts);
    const size_t count = header_words(group);
    const size_t answered = is_of_many() ? WEFTI_CUDA_EP_REPLY_WORDS + (size_t)group->at.local_max : 0;
    int left = 0;
    for (size_t i = 0; i < count; i++) {
        left += headers[i] != 0;
        left += headers[EP_RIG_PES * count + i] != 0;
    }
    for (size_t i = 0; i < answered; i++) {
        left += answer[i] != 0;
    }
    return left;
}

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* As if a block of rank 1 were in the call that fails here now, on rank 0. */
static wefti_cuda_ep_control *fail_beside(ep_rig *rig)
{
    weft_ep_host_counts counts;
    const wefti_cuda_ep_group *group = wefti_cuda_ep_group_of(rig->ep);
    wefti_cuda_ep_control *theirs = (wefti_cuda_ep_control *)(uintptr_t)(area_of_other + group->at.control);
    CHECK_OK(weft_ep_dispatch(rig->route, &rig->in, &rig->received, NULL));
    CHECK_STATUS(weft_ep_route_query(rig->route, NULL, &counts), WEFT_ERR_TIMEOUT);
    theirs->begun = 1;
    return theirs;
}

/* A rank is masked that is seen to be in the call which failed here: the mask waits until that has ended there. It does
 * so by its own failure (which 0) or by a later call (1), or is taken to have ended (2). Without a deadline it ends by
 * a later call (3). Its words are written here. */
static void masked_in_a_call(weft_world *world, int which)
{
    static const uint64_t deadlines_ns[] = {UINT64_C(100000000000), UINT64_C(100000000000), UINT64_C(200000000),
                                            WEFT_FOREVER};
    const int is_later = which == 1 || which == 3;
    ep_rig rig;
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    ep_rig_expect_step(&rig);
    CHECK_OK(weft_device_deadline(world, UINT64_C(200000000)));
    tell_area(&rig);
    if (rig.rank == 0) {
        wefti_cuda_ep_control *theirs = fail_beside(&rig);
        wefti_cuda_ep_control before = *theirs;
        before.begun = 0;
        if (which == 0) {
            theirs->failed = (uint32_t)-WEFT_ERR_TIMEOUT;
        } else if (is_later) {
            rig.later = theirs;
            CHECK(pthread_create(&rig.thread, NULL, begin_later, &rig) == 0);
        }
        CHECK_OK(weft_device_deadline(world, deadlines_ns[which]));
        CHECK(words_left(&rig) > 0);
        const double start = now_s();
        CHECK_OK(weft_ep_mask(rig.ep, 1, 0));
        const double took = now_s() - start;
        CHECK(words_left(&rig) == 0);
        CHECK(which == 2 ? took >= 0.6 : took < 20);
        CHECK(!is_later || took >= 0.1);
        CHECK(!is_later || pthread_join(rig.thread, NULL) == 0);
        *theirs = before;
    }
    ep_rig_close_alone(&rig);
}

/* A mask that waits without an end for a kernel that does not end, until the other rank aborts the world. */
static void aborted_in_a_mask(weft_world *world, int which)
{
    ep_rig rig;
    (void)which;
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    ep_rig_expect_step(&rig);
    CHECK_OK(weft_device_deadline(world, UINT64_C(200000000)));
    tell_area(&rig);
    if (rig.rank == 0) {
        int masked = -1;
        (void)fail_beside(&rig);
        CHECK_OK(weft_device_deadline(world, WEFT_FOREVER));
        CHECK_OK(weft_barrier(world));
        CHECK_STATUS(weft_ep_mask(rig.ep, 1, 0), WEFT_ERR_ABORTED);
        CHECK_NAMES(1);
        CHECK_OK(weft_ep_mask_query(rig.ep, NULL, &masked));
        CHECK(masked == 0);
    } else {
        const struct timespec rest = {0, 150000000};
        CHECK_OK(weft_barrier(world));
        (void)nanosleep(&rest, NULL);
        CHECK_OK(weft_world_abort(world, 7));
    }
    CHECK_OK(weft_ep_route_destroy(rig.route));
    CHECK_OK(weft_ep_destroy(rig.ep));
}

/* A rank that was masked between two calls is not waited for, and comes back when it has missed some. which: layouts,
 * and with one pair or two. */
static void back_in_step(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_host_counts counts;
    static uint64_t calls; /* told by rank 0 */
    uint64_t own;
    weft_ep_config config = ep_rig_config();
    const int pairs = 1 + which / 2 % 2;
    config.pairs_max = pairs;
    ep_rig_open_with(&rig, world, (weft_ep_layout)(which % 2), &config, 0);
    ep_rig_expect_step(&rig);
    for (int i = 0; i < which / 4; i++) { /* the next call is of the other bank */
        CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    }
    CHECK_OK(weft_device_deadline(world, UINT64_C(200000000)));
    CHECK_OK(weft_barrier(world));
    if (rig.rank == 0) {
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), WEFT_ERR_TIMEOUT);
        CHECK_OK(weft_device_deadline(world, UINT64_C(100000000000)));
        const double start = now_s();
        CHECK_OK(weft_ep_mask(rig.ep, 1, 0));
        ep_rig_choose(&rig, 0);
        for (int i = 0; i < 2; i++) {
            CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
            CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
            CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
        }
        CHECK(now_s() - start < 50);
        CHECK_OK(weft_ep_calls(rig.ep, &calls));
        CHECK_OK(weft_ep_mask(rig.ep, 1, 1));
    }
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_device_deadline(world, UINT64_C(30000000000)));
    if (rig.rank == 1) {
        CHECK_OK(weft_ep_calls(rig.ep, &own));
        CHECK(pairs == 2 ? own < calls : own + 3 == calls);
        CHECK_STATUS(weft_ep_rejoin(rig.ep, pairs == 2 ? own - 2 : own - 1), WEFT_ERR_ARGUMENT); /* of one bank */
        CHECK_OK(weft_ep_mask(rig.ep, 0, 0)); /* as it may have; joining takes it back */
        CHECK_OK(weft_ep_rejoin(rig.ep, calls));
        CHECK_STATUS(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL), WEFT_ERR_STATE);
    }
    CHECK_OK(weft_barrier(world));
    for (int i = 0; i < 3; i++) {
        ep_rig_expect_step(&rig);
    }
    ep_rig_close(&rig);
}

/* ---- blocks of this rank itself that do not come ---- */

#define OWN_DEADLINE_NS UINT64_C(300000000)

typedef struct own_header {
    uint64_t words[WEFTI_CUDA_EP_HEADER_WORDS + 1 + EP_RIG_LOCAL_EXPERTS];
    size_t count;
    uint64_t *there;
    pthread_t thread;
} own_header;

static void *put_back(void *argument)
{
    own_header *header = argument;
    const struct timespec rest = {0, OWN_DEADLINE_NS / 2 * 3};
    (void)nanosleep(&rest, NULL);
    for (size_t i = 0; i < header->count; i++) {
        __atomic_store_n(&header->there[i], header->words[i], __ATOMIC_RELAXED);
    }
    return NULL;
}

/* As if the block that posts this rank's call header to itself had not come yet. */
static void take_own_header(const ep_rig *rig, own_header *header)
{
    const wefti_cuda_ep_group *group = wefti_cuda_ep_group_of(rig->ep);
    const uint64_t parity = ep_rig_control(rig)->epoch & 1;
    header->count = header_words(group);
    header->there = (uint64_t *)(uintptr_t)(wefti_cuda_ep_own_area(rig->ep, 0) + group->at.headers) +
                    (parity * EP_RIG_PES + (uint64_t)rig->rank) * header->count;
    CHECK(header->count <= sizeof header->words / sizeof header->words[0]);
    memcpy(header->words, header->there, header->count * sizeof *header->words);
    memset(header->there, 0, header->count * sizeof *header->words);
}

/* They come between the first and the second deadline (which 0): the call is right; or never (1): it names nobody, and
 * the group goes on. */
static void own_blocks_late(weft_world *world, int which)
{
    ep_rig rig;
    own_header header;
    weft_ep_host_counts counts;
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    ep_rig_choose(&rig, 2 * (1 - rig.rank));
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
    CHECK_OK(weft_device_deadline(world, OWN_DEADLINE_NS));
    take_own_header(&rig, &header);
    CHECK_OK(weft_barrier(world));
    if (which == 0) {
        CHECK(pthread_create(&header.thread, NULL, put_back, &header) == 0);
    }
    CHECK_OK(weft_ep_dispatch_recv(rig.route, NULL));
    if (which == 0) {
        CHECK(pthread_join(header.thread, NULL) == 0);
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
        CHECK(ep_rig_rows_written(&rig) == EP_RIG_TOKENS);
    } else {
        CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), WEFT_ERR_TIMEOUT);
        CHECK(strstr(weft_last_error(), "two deadlines") != NULL);
        CHECK_OK(weft_barrier(world));
        CHECK_OK(weft_ep_mask(rig.ep, 1 - rig.rank, 1));
    }
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_device_deadline(world, UINT64_C(30000000000)));
    CHECK_OK(weft_barrier(world));
    ep_rig_expect_step(&rig);
    ep_rig_close(&rig);
}

/* ---- a fault that something else has latched ---- */

/* A call fails with it on every rank that has it, also if none of its waits is long; and does not write. */
static void after_a_fault(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_host_counts counts;
    ep_rig_open(&rig, world, which == 0 ? WEFT_EP_RANK_MAJOR : WEFT_EP_SLOTS_SOURCE, 0);
    ep_rig_expect_step(&rig);
    CHECK_OK(weft_barrier(world));
    memset(rig.there, EP_RIG_MARK, EP_RIG_ROWS * sizeof(ep_rig_row));
    if (rig.rank == 0) {
        const uint64_t fault = WEFTI_DEV_FAULT_SET | (uint32_t)-WEFT_ERR_RANGE;
        wefti_u64 *latched = &rig.ep->device->group[0].dev.control->fault;
        CHECK_OK(weft_ep_mask(rig.ep, 1, 0)); /* nobody to wait for */
        ep_rig_choose(&rig, 0);
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        __atomic_store_n(latched, fault, __ATOMIC_RELAXED);
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        __atomic_store_n(latched, 0, __ATOMIC_RELAXED);
        CHECK_STATUS(weft_ep_failure(rig.ep), WEFT_ERR_RANGE);
        CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), WEFT_ERR_RANGE);
        CHECK_STATUS(weft_ep_mask(rig.ep, 1, 0), WEFT_ERR_STATE);
        CHECK(ep_rig_rows_written(&rig) == 0);
    }
    ep_rig_close_alone(&rig);
}

/* The same in a group of several domains, where a call fails though all that it waits for is there: the other rank's
 * call came first, whose deadline ends it. */
static void after_a_fault_between(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_host_counts counts;
    _Alignas(64) ep_rig_row out[EP_RIG_TOKENS];
    ep_rig_row marked[EP_RIG_TOKENS];
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    ep_rig_expect_step(&rig);
    memset(rig.there, EP_RIG_MARK, EP_RIG_ROWS * sizeof(ep_rig_row));
    memset(marked, EP_RIG_MARK, sizeof marked);
    memcpy(out, marked, sizeof out);
    CHECK_OK(weft_device_deadline(world, UINT64_C(200000000)));
    for (int rank = 1; rank >= 0; rank--) {
        wefti_u64 *latched = &rig.ep->between->group.dev.control->fault;
        const weft_status wanted = rank == 0 ? WEFT_ERR_RANGE : WEFT_ERR_TIMEOUT;
        const weft_ep_rows to = ep_rig_rows(out);
        const wefti_cuda_ep_domains_control *control = rig.ep->between->group.control;
        const uint32_t sent = control->sent[0][1];
        CHECK_OK(weft_barrier(world));
        if (rank != rig.rank) {
            continue;
        }
        __atomic_store_n(latched, rank == 0 ? WEFTI_DEV_FAULT_SET | (uint32_t)-WEFT_ERR_RANGE : 0, __ATOMIC_RELAXED);
        if (which == 0) {
            CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        } else {
            CHECK_OK(weft_ep_combine(rig.route, &rig.received.rows, &to, 0, NULL));
        }
        __atomic_store_n(latched, 0, __ATOMIC_RELAXED);
        CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), wanted);
        CHECK(ep_rig_rows_written(&rig) == 0);
        CHECK(memcmp(out, marked, sizeof out) == 0);
        CHECK(rank != 0 || control->sent[0][1] == sent); /* nothing crosses */
    }
    CHECK_OK(weft_device_deadline(world, UINT64_C(30000000000)));
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_ep_route_destroy(rig.route));
    CHECK_OK(weft_ep_destroy(rig.ep));
    CHECK_OK(weft_barrier(world));
}

static void alone(void **state)
{
    static const ep_rig_case cases[] = {{go_on_alone, 8},     {combine_alone, 2},    {fail_between_halves, 1},
                                        {own_blocks_late, 2}, {masked_in_a_call, 4}, {after_a_fault, 2},
                                        {back_in_step, 8}};
    (void)state;
    ep_rig_run(&(ep_rig_cases){cases, sizeof cases / sizeof cases[0]});
}

static void alone_of_many(void **state)
{
    static const ep_rig_case cases[] = {
        {own_blocks_late, 2}, {masked_in_a_call, 4}, {after_a_fault, 2}, {back_in_step, 8}};
    (void)state;
    (void)setenv("WEFT_EP_FEW_RANKS", "0", 1);
    ep_rig_run(&(ep_rig_cases){cases, sizeof cases / sizeof cases[0]});
    (void)unsetenv("WEFT_EP_FEW_RANKS");
}

static void alone_between(void **state)
{
    static const ep_rig_case cases[] = {{after_a_fault_between, 2}};
    (void)state;
    (void)setenv("WEFT_CUDA_DOMAIN", "1", 1);
    ep_rig_run(&(ep_rig_cases){cases, 1});
    (void)unsetenv("WEFT_CUDA_DOMAIN");
}

static void aborted(void **state)
{
    static const ep_rig_case cases[] = {{aborted_in_a_mask, 1}};
    (void)state;
    ep_rig_run(&(ep_rig_cases){cases, 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(alone), CHECKED_TEST(alone_of_many), CHECKED_TEST(alone_between),
                                       CHECKED_TEST(aborted)};
    (void)setenv("WEFT_FAKE_SMS", "4", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Goal: a run is decided by its seed, ends as it should, and says why when it does not.
 * Method: worlds in the simulator; traces kept as text and compared; PEs that wait for ever, fail, are killed, stall.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/durations.h"
#include "os/os.h"
#include "weft.h"
#include "weft/protocol/mem.h"
#include "weft_sim.h"

static void must(weft_status status, const char *what)
{
    if (status != WEFT_OK) {
        weft_sim_fail("%s: %s: %s", what, weft_status_name(status), weft_last_error());
    }
}

static weft_world *make_world(uint64_t deadline_ns)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    if (deadline_ns > 0) {
        config.deadline_ns = deadline_ns;
    }
    must(weft_world_create(&config, &world), "create");
    return world;
}

/* ---- determinism ---- */

typedef struct text {
    char *bytes;
    size_t used;
    size_t capacity;
} text;

static void keep_line(void *context, const char *line)
{
    text *kept = context;
    size_t bytes = strlen(line);
    if (kept->used + bytes + 2 > kept->capacity) {
        kept->capacity = 2 * kept->capacity + bytes + 2;
        kept->bytes = realloc(kept->bytes, kept->capacity);
    }
    memcpy(kept->bytes + kept->used, line, bytes);
    kept->used += bytes;
    kept->bytes[kept->used++] = '\n';
    kept->bytes[kept->used] = '\0';
}

static void ring_of_puts(void *argument)
{
    weft_world *world = make_world(0);
    uint64_t *block;
    int pe = weft_world_pe(world);
    int pes = weft_world_pes(world);
    (void)argument;
    must(weft_calloc(world, 4, sizeof *block, (void **)&block), "calloc");
    for (uint64_t round = 1; round <= 3; round++) {
        uint64_t value = round * 100 + (uint64_t)pe;
        must(weft_putmem_signal(world, &block[0], &value, sizeof value, &block[1], round, WEFT_SIGNAL_SET,
                                (pe + 1) % pes),
             "put");
        must(weft_signal_wait_until(world, &block[1], WEFT_CMP_EQ, round, NULL), "wait");
        if (block[0] != round * 100 + (uint64_t)((pe + pes - 1) % pes)) {
            weft_sim_fail("round %d: %d came", (int)round, (int)block[0]);
        }
        must(weft_barrier(world), "barrier");
    }
    must(weft_free(world, block), "free");
    must(weft_world_destroy(world), "destroy");
}

static weft_status run_ring(uint64_t seed, int domain_pes, text *kept, weft_sim_result *result)
{
    weft_sim_config config = WEFT_SIM_CONFIG_INIT;
    config.seed = seed;
    config.domain_pes = domain_pes;
    config.result = result;
    if (kept != NULL) {
        config.trace = keep_line;
        config.trace_context = kept;
    }
    return weft_sim_run(&config, 6, ring_of_puts, NULL);
}

/* ---- memory that nobody has reserved ---- */

static void use_unreserved(void *argument)
{
    wefti_os_memory memory;
    uint64_t word = 1;
    if (wefti_os_memory_create(&memory, 3 * 4096) != WEFT_OK ||
        wefti_os_memory_reserve(&memory, 4096, 4096) != WEFT_OK) {
        weft_sim_fail("no memory");
    }
    unsigned char *page = memory.base + 4096;
    switch (*(int *)argument) {
    case 0:
        wefti_st64(page - 8, 1, WEFTI_RELEASE);
        break;
    case 1:
        (void)wefti_ld64(page + 4096, WEFTI_RELAXED);
        break;
    case 2:
        (void)wefti_add64(page + 4096, 1);
        break;
    case 3:
        wefti_copy(page + 4092, &word, sizeof word);
        break;
    case 4:
        wefti_zero(page - 8, 16);
        break;
    case 5:
        wefti_os_memory_release(&memory, 4096, 4096);
        (void)wefti_ld64(page, WEFTI_RELAXED);
        break;
    default:
        wefti_copy(&word, page + 4088, sizeof word);
        wefti_copy(page, &word, sizeof word);
        break;
    }
    wefti_os_memory_fini(&memory);
}

static void test_unreserved_memory(void **state)
{
    (void)state;
    for (int way = 0; way <= 6; way++) {
        weft_sim_result result;
        weft_sim_config config = WEFT_SIM_CONFIG_INIT;
        config.seed = (uint64_t)way + 1;
        config.silent = 1;
        config.result = &result;
        assert_int_equal(weft_sim_run(&config, 1, use_unreserved, &way), way < 6 ? WEFT_ERR_STATE : WEFT_OK);
        assert_int_equal(strstr(result.text, "which nobody has reserved") != NULL, way < 6);
    }
}

static void test_equal_seeds_give_equal_traces(void **state)
{
    (void)state;
    uint64_t last_hash = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        int domain_pes = seed % 2 == 0 ? 2 : 0;
        text one = {0};
        text two = {0};
        weft_sim_result first;
        weft_sim_result second;
        assert_int_equal(run_ring(seed, domain_pes, &one, &first), WEFT_OK);
        free(malloc(seed * 1000)); /* addresses may differ */
        assert_int_equal(run_ring(seed, domain_pes, &two, &second), WEFT_OK);
        assert_int_equal(one.used, two.used);
        assert_memory_equal(one.bytes, two.bytes, one.used);
        assert_int_equal(first.trace_hash, second.trace_hash);
        assert_int_not_equal(first.trace_hash, last_hash);
        last_hash = first.trace_hash;
        free(one.bytes);
        free(two.bytes);
    }
}

static void test_worlds_of_several_shapes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        weft_sim_result result;
        assert_int_equal(run_ring(seed, (int)(seed % 7), NULL, &result), WEFT_OK);
        assert_int_equal(result.messages > 0, seed % 7 > 0 && seed % 7 < 6);
    }
}

static void test_a_fresh_seed_is_told(void **state)
{
    (void)state;
    weft_sim_result first;
    weft_sim_result again;
    assert_int_equal(run_ring(0, 3, NULL, &first), WEFT_OK);
    assert_int_not_equal(first.seed, 0);
    assert_int_equal(run_ring(first.seed, 3, NULL, &again), WEFT_OK);
    assert_int_equal(first.trace_hash, again.trace_hash);
}

/* ---- ends ---- */

static void wait_for_nobody(void *argument)
{
    weft_world *world = make_world(5000 * WEFTI_MILLISECOND_NS);
    uint64_t *word;
    (void)argument;
    must(weft_calloc(world, 1, sizeof *word, (void **)&word), "calloc");
    if (weft_world_pe(world) == 1) {
        weft_status status = weft_signal_wait_until(world, word, WEFT_CMP_NE, 0, NULL);
        if (status != WEFT_ERR_TIMEOUT || weft_sim_now_ns() < 5000 * WEFTI_MILLISECOND_NS) {
            weft_sim_fail("waited to no end: %s", weft_status_name(status));
        }
    }
    must(weft_world_destroy(world), "destroy");
}

static void test_a_deadlock_is_found_or_waited_out(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        weft_sim_result result;
        weft_sim_config config = WEFT_SIM_CONFIG_INIT;
        config.seed = seed;
        config.silent = 1;
        config.result = &result;
        assert_int_equal(weft_sim_run(&config, 3, wait_for_nobody, NULL), WEFT_ERR_TIMEOUT);
        assert_non_null(strstr(result.text, "deadlock: 1 of 3 PEs"));
        config.deadlock = WEFT_SIM_DEADLOCK_ADVANCE;
        assert_int_equal(weft_sim_run(&config, 3, wait_for_nobody, NULL), WEFT_OK);
        assert_string_equal(result.text, "");
    }
}

static void fail_on_two(void *argument)
{
    weft_world *world = make_world(0);
    (void)argument;
    if (weft_world_pe(world) == 2) {
        weft_sim_fail("the answer is %d", 42);
    }
    must(weft_barrier(world), "barrier");
}

static void test_a_failure_names_the_pe(void **state)
{
    (void)state;
    weft_sim_result result;
    weft_sim_config config = WEFT_SIM_CONFIG_INIT;
    config.seed = 7;
    config.silent = 1;
    config.result = &result;
    assert_int_equal(weft_sim_run(&config, 4, fail_on_two, NULL), WEFT_ERR_STATE);
    assert_int_equal(result.culprit_pe, 2);
    assert_string_equal(result.text, "the answer is 42");
}

static void spin(void *argument)
{
    (void)argument;
    for (;;) {
        wefti_os_yield();
        weft_sim_note("spin", 1);
    }
}

static void test_a_livelock_ends(void **state)
{
    (void)state;
    weft_sim_config config = WEFT_SIM_CONFIG_INIT;
    config.seed = 7;
    config.silent = 1;
    config.events_max = 1000;
    assert_int_equal(weft_sim_run(&config, 2, spin, NULL), WEFT_ERR_TIMEOUT);
}

/* ---- faults ---- */

static void survive(void *argument)
{
    int killed = *(const int *)argument;
    weft_world *world = make_world(100 * WEFTI_MILLISECOND_NS);
    int pe = weft_world_pe(world);
    int first = weft_sim_pes() > 1 && killed == 0 ? 1 : 0;
    /* The PE may be killed before others have left this barrier. */
    weft_status status = weft_barrier(world);
    if (pe == first) {
        must(status, "first barrier");
        weft_sim_kill(killed);
    }
    if (pe == killed) {
        weft_sim_sleep_ns(1000 * WEFTI_MILLISECOND_NS);
    }
    status = status == WEFT_OK ? weft_barrier(world) : status;
    if (status != WEFT_ERR_TIMEOUT && status != WEFT_ERR_PEER && pe != killed) {
        weft_sim_fail("PE %d was killed, but the barrier gave %s", killed, weft_status_name(status));
    }
    must(weft_world_destroy(world), "destroy");
}

static void test_survivors_are_told(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        int killed = (int)(seed % 5);
        weft_sim_config config = WEFT_SIM_CONFIG_INIT;
        config.seed = seed;
        config.deadlock = WEFT_SIM_DEADLOCK_ADVANCE;
        config.domain_pes = seed % 3 == 0 ? 2 : 0;
        weft_status status = weft_sim_run(&config, 5, survive, &killed);
        assert_int_equal(status, WEFT_OK);
    }
}

static void be_stalled(void *argument)
{
    uint64_t stall_ns = *(const uint64_t *)argument;
    weft_world *world = make_world(1000 * WEFTI_MILLISECOND_NS);
    must(weft_barrier(world), "barrier");
    if (weft_world_pe(world) == 0) {
        weft_sim_stall(1, stall_ns);
    }
    must(weft_barrier(world), "barrier");
    must(weft_barrier(world), "barrier");
    must(weft_world_destroy(world), "destroy");
}

static void test_a_stalled_pe_is_awaited(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        uint64_t stall_ns = 900 * WEFTI_MILLISECOND_NS;
        weft_sim_result result;
        weft_sim_config config = WEFT_SIM_CONFIG_INIT;
        config.seed = seed;
        config.result = &result;
        assert_int_equal(weft_sim_run(&config, 4, be_stalled, &stall_ns), WEFT_OK);
        assert_true(result.virtual_ns >= stall_ns && result.virtual_ns < 2 * stall_ns);
    }
}

/* ---- threads that the library starts ---- */

static void read_clock(void *argument)
{
    *(uint64_t *)argument = wefti_os_now_ns();
}

/* What one thread of a PE has noted another can compare with its own clock. */
static void compare_clocks(void *argument)
{
    wefti_os_thread *thread;
    uint64_t there_ns = 0;
    const uint64_t before_ns = wefti_os_now_ns();
    (void)argument;
    must(wefti_os_thread_start(&thread, read_clock, &there_ns), "thread");
    wefti_os_thread_join(thread);
    if (there_ns < before_ns || there_ns > wefti_os_now_ns()) {
        weft_sim_fail("a thread has another clock than its PE");
    }
}

static void test_threads_have_one_clock(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        weft_sim_config config = WEFT_SIM_CONFIG_INIT;
        config.seed = seed;
        assert_int_equal(weft_sim_run(&config, 3, compare_clocks, NULL), WEFT_OK);
    }
}

static void create_many(void *argument)
{
    weft_threads *threads;
    weft_world_config configs[3];
    weft_world *worlds[3];
    (void)argument;
    must(weft_threads_create(3, &threads), "threads");
    for (int i = 0; i < 3; i++) {
        configs[i] = (weft_world_config)WEFT_WORLD_CONFIG_INIT;
        weft_sim_world_config(&configs[i]);
        configs[i].threads = threads;
        configs[i].pe = i;
        configs[i].pes = 3;
    }
    must(weft_world_create_many(configs, 3, worlds), "create_many");
    for (int i = 0; i < 3; i++) {
        must(weft_world_destroy(worlds[i]), "destroy");
    }
    weft_threads_destroy(threads);
}

static void test_one_pe_makes_several(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        weft_sim_config config = WEFT_SIM_CONFIG_INIT;
        config.seed = seed;
        assert_int_equal(weft_sim_run(&config, 2, create_many, NULL), WEFT_OK);
    }
}

static const int no_pe[] = {-1, 2, 1000000, INT32_MAX, INT32_MIN};

/* Every call of weft_sim.h with what cannot be; tests/input/names.py has the list of them. */
static void call_badly(void)
{
    for (size_t i = 0; i < sizeof no_pe / sizeof no_pe[0]; i++) {
        weft_sim_kill(no_pe[i]);
        weft_sim_stall(no_pe[i], 1000);
        assert_int_equal(weft_sim_cut(no_pe[i]), 0);
        assert_int_equal(weft_sim_is_dead(no_pe[i]), 0);
        assert_int_equal(weft_sim_same_process(no_pe[i], 0), 0);
        assert_int_equal(weft_sim_same_process(0, no_pe[i]), 0);
    }
    weft_sim_world_config(NULL);
    weft_sim_counts_query(NULL);
    assert_int_equal(weft_sim_random(0), 0);
    weft_sim_sleep_ns(0);
    weft_sim_note("nothing", 0);
}

static void live_on(void *unused)
{
    (void)unused;
    call_badly();
    must(weft_sim_run(NULL, 1, live_on, NULL) == WEFT_ERR_ARGUMENT ? WEFT_OK : WEFT_ERR_STATE, "a run inside a run");
    weft_sim_sleep_ns(1000);
}

static void test_bad_input(void **state)
{
    (void)state;
    weft_sim_config unsized = WEFT_SIM_CONFIG_INIT;
    weft_sim_counts counts = {.loads = 11};
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    unsized.size = 0;
    assert_int_equal(weft_sim_run(&unsized, 2, live_on, NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_sim_run(NULL, 0, live_on, NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_sim_run(NULL, INT32_MIN, live_on, NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_sim_run(NULL, 2, NULL, NULL), WEFT_ERR_ARGUMENT);
    call_badly();
    weft_sim_counts_query(&counts);
    weft_sim_world_config(&config);
    assert_int_equal(counts.loads, 0);
    assert_int_equal(config.pes, 0);
    assert_int_equal(weft_sim_pe(), -1);
    assert_int_equal(weft_sim_pes(), -1);
    assert_int_equal(weft_sim_now_ns(), 0);
    unsized = (weft_sim_config)WEFT_SIM_CONFIG_INIT;
    unsized.seed = 7;
    assert_int_equal(weft_sim_run(&unsized, 2, live_on, NULL), WEFT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unreserved_memory),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_equal_seeds_give_equal_traces),
        cmocka_unit_test(test_worlds_of_several_shapes),
        cmocka_unit_test(test_a_fresh_seed_is_told),
        cmocka_unit_test(test_a_deadlock_is_found_or_waited_out),
        cmocka_unit_test(test_a_failure_names_the_pe),
        cmocka_unit_test(test_a_livelock_ends),
        cmocka_unit_test(test_survivors_are_told),
        cmocka_unit_test(test_a_stalled_pe_is_awaited),
        cmocka_unit_test(test_threads_have_one_clock),
        cmocka_unit_test(test_one_pe_makes_several),
    };
    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}

/* Goal: weft_ep_bytes tells the memory that a group takes.
 *
 * Method: groups of several limits; what the heap says is taken beside what was told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/pes.h"
#include "weft_ep.h"

enum { PES = 3, LIMITS = 6 };
#define ROUNDING 4096 /* of a block of the heap */

static weft_ep_config config_of(int number)
{
    static const int table[PES] = {0, 9, 3};
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = 12;
    config.tokens_max = 64 * number;
    config.topk_max = 1 + number;
    config.row_bytes_max = (size_t)1024 << (number < 5 ? number : 2);
    config.rows_max = number == 2 ? 100 : 0;
    config.pairs_max = number == 2 ? 2 : 0;
    config.slot_tokens_max = number == 3 ? 8 : 0;
    config.experts_of_rank = number == 4 ? table : NULL;
    config.domain_ranks = number == 5 ? 1 : 0;
    return config;
}

/* Rings between domains are told, too, and what one domain needs is not more. */
static void compare_domains(const weft_ep_config *config, const weft_ep_memory *told)
{
    weft_ep_config one = *config;
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    one.domain_ranks = 0;
    CHECK_OK(weft_ep_bytes(&one, PES, &memory));
    CHECK((memory.symmetric_bytes < told->symmetric_bytes) == (config->domain_ranks != 0));
    CHECK((memory.private_bytes < told->private_bytes) == (config->domain_ranks != 0));
}

static void run(weft_world *world, void *context)
{
    size_t last = 0;
    (void)context;
    for (int number = 0; number < LIMITS; number++) {
        weft_ep_config config = config_of(number);
        weft_counters before;
        weft_counters after;
        weft_ep *ep = NULL;
        weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
        CHECK_OK(weft_ep_bytes(&config, PES, &memory));
        compare_domains(&config, &memory);
        config.flags = number % 2 == 0 ? WEFT_EP_ROWS_WITH_SEND : 0; /* nothing, on the host */
        CHECK_OK(weft_world_counters(world, &before));
        if (!CHECK_OK(weft_ep_create(weft_team_world(world), &config, &ep))) {
            return;
        }
        CHECK_OK(weft_world_counters(world, &after));
        size_t taken = (size_t)(after.heap_bytes_used - before.heap_bytes_used);
        CHECK_SAY(taken >= memory.symmetric_bytes && taken < memory.symmetric_bytes + ROUNDING,
                  "limits %d: %zu bytes were taken, and %zu told", number, taken, memory.symmetric_bytes);
        CHECK(memory.staging_bytes < memory.symmetric_bytes && memory.low_latency_bytes == 0);
        CHECK(memory.staging_bytes >=
              (config.rows_max != 0 ? config.rows_max : (size_t)PES * 64 * (size_t)number) * config.row_bytes_max);
        CHECK(memory.private_bytes > last); /* grows with each of these */
        last = number == 2 || number == 4 ? 0 : memory.private_bytes;
        CHECK_OK(weft_barrier(world));
        CHECK_OK(weft_ep_destroy(ep));
    }
}

static void what_is_told_is_taken(void **state)
{
    (void)state;
    pes_run(PES, run, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(what_is_told_is_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

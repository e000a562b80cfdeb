/* Goal: without a deadline who waits for a PE that is gone is told so, however soon that one has ended and on whatever
 * node, also while those leave that would tell it; who has been silent itself is not believed; who waits for one that
 * is only late waits on; an abort ends what is asked of who stands still; who is in another call is told of at the
 * deadline; a rank that has left and cannot be asked has gone on without this one; and what a thread has only proposed
 * does not make a heap full.
 * Method: simulated worlds over messages, and PEs and threads that make single steps themselves, and stop there. Each
 * test runs on several seeds, and fails on nearly all of them without what it is for; that of leaving on a third. The
 * argument, if any, says which tests. */
#include "sim/inner/gone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "testing/sim/sanitizer.h"
#include "weft_sim.h"

typedef struct scene {
    const char *text;
    int pes;
    int domain_pes;
    int messages;
    int variants;
    uint64_t seeds;
    void (*pe_main)(void *argument);
} scene;

static const scene all[] = {
#define SCENE_ROW(name, pes, domain_pes, messages, variants, seeds, drawn, text)                                       \
    {text, pes, domain_pes, messages, variants, seeds, gone_##name},
    GONE_TABLE(SCENE_ROW)
#undef SCENE_ROW
};

#define COUNT (sizeof all / sizeof *all)

/* With AddressSanitizer a run takes nine times as long: a quarter of the seeds, of each scene and variant. */
#define SHARE (WEFTI_ASAN ? 4 : 1)

static void run(void **state)
{
    const scene *one = *state;
    const uint64_t seeds = (one->seeds + SHARE - 1) / SHARE;
    gone_missed = 0;
    for (int variant = 0; variant < one->variants; variant++) {
        for (uint64_t seed = 1; seed <= seeds; seed++) {
            weft_sim_config config = WEFT_SIM_CONFIG_INIT;
            config.seed = seed;
            config.domain_pes = one->domain_pes;
            config.process_pes = 1;
            config.messages = one->messages;
            config.deadlock = WEFT_SIM_DEADLOCK_ADVANCE;
            gone_begin(variant);
            assert_int_equal(weft_sim_run(&config, one->pes, one->pe_main, NULL), WEFT_OK);
        }
    }
    assert_in_range(gone_missed, 0, seeds / 5); /* of six times as many */
}

int main(int count, char **arguments)
{
    struct CMUnitTest tests[COUNT];
    (void)setenv("WEFT_LOG", "none", 1);
    if (count > 1) {
        cmocka_set_test_filter(arguments[1]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        tests[i] =
            (struct CMUnitTest){.name = all[i].text, .test_func = run, .initial_state = (void *)(uintptr_t)&all[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

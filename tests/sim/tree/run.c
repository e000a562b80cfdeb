/* sim/tree/run.c: scenes as tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "sim/tree/fake_net.h"
#include "sim/tree/scenes.h"

#define SEEDS 40

typedef struct scene {
    const char *text;
    scenes of;
    int pes;
    void (*pe_main)(void *argument);
} scene;

static const scene all[] = {
#define SCENE_ROW(name, of, pes, text) {text, SCENES_##of, pes, scene_##name},
    SCENE_TABLE(SCENE_ROW)
#undef SCENE_ROW
};

#define COUNT (sizeof all / sizeof *all)

static void run(void **state)
{
    const scene *one = *state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        weft_sim_config config = WEFT_SIM_CONFIG_INIT;
        config.seed = seed;
        config.deadlock = WEFT_SIM_DEADLOCK_ADVANCE;
        config.same_speed = 1;
        fake_reset();
        assert_int_equal(weft_sim_run(&config, one->pes, one->pe_main, NULL), WEFT_OK);
    }
}

int scenes_test(scenes of)
{
    struct CMUnitTest tests[COUNT];
    int failed = 0;
    (void)setenv("WEFT_LOG", "none", 1);
    for (size_t i = 0; i < COUNT; i++) {
        tests[0] =
            (struct CMUnitTest){.name = all[i].text, .test_func = run, .initial_state = (void *)(uintptr_t)&all[i]};
        failed += all[i].of == of ? _cmocka_run_group_tests(all[i].text, tests, 1, NULL, NULL) : 0;
    }
    return failed;
}

/* sim/played.c: trees with PEs that say what honest ones would not, or say it at another time: of the scenes of
 * sim/tree/scenes.h one, drawn. And PEs that end, leave or stand still at one moment: of those of sim/inner/gone.h. */
#include "sim/cases.h"
#include "sim/inner/gone.h"
#include "sim/tree/fake_net.h"
#include "sim/tree/scenes.h"

/* ---- trees ---- */

typedef struct tree_scene {
    int pes;
    void (*pe_main)(void *argument);
} tree_scene;

static const tree_scene trees[] = {
#define SCENE_ROW(name, of, pes, text) {pes, scene_##name},
    SCENE_TABLE(SCENE_ROW)
#undef SCENE_ROW
};

void case_tree(void *argument)
{
    case_run *run = argument;
    uint64_t common = run->seed;
    const tree_scene *one = &trees[common_below(&common, (int)(sizeof trees / sizeof *trees))];
    if (run->board[0]++ == 0) { /* nobody has given way yet */
        fake_reset();
    }
    if (weft_sim_pe() < one->pes) {
        one->pe_main(NULL);
    }
}

/* ---- who is gone ---- */

typedef struct gone_scene {
    int pes;
    int domain_pes;
    int messages;
    int variants;
    int weight;
    void (*pe_main)(void *argument);
} gone_scene;

static const gone_scene gone[] = {
#define SCENE_ROW(name, pes, domain_pes, messages, variants, seeds, drawn, text)                                       \
    {pes, domain_pes, messages, drawn, (drawn) * (seeds), gone_##name},
    GONE_TABLE(SCENE_ROW)
#undef SCENE_ROW
};

/* As often as tests make it, which is the more the more it depends on what comes first. */
static const gone_scene *draw_gone(uint64_t *common)
{
    int sum = 0;
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        sum += gone[i].weight;
    }
    const gone_scene *one = gone;
    for (int left = common_below(common, sum); left >= one->weight; one++) {
        left -= one->weight;
    }
    return one;
}

void shape_gone(case_run *run, weft_sim_config *config)
{
    uint64_t common = run->seed;
    const gone_scene *one = draw_gone(&common);
    run->pes = one->pes;
    run->messages = one->messages;
    config->domain_pes = one->domain_pes;
    config->domain_of = NULL;
    config->round_robin = 0;
    config->process_pes = 1;
    config->messages = one->messages;
    gone_begin(common_below(&common, one->variants));
}

void case_gone(void *argument)
{
    const case_run *run = argument;
    uint64_t common = run->seed;
    draw_gone(&common)->pe_main(NULL);
}

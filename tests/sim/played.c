/* sim/played.c: trees with PEs that say what honest ones would not, or say it at another time: of the scenes of
 * sim/tree/scenes.h one, drawn. */
#include "sim/cases.h"
#include "sim/tree/fake_net.h"
#include "sim/tree/scenes.h"

typedef struct scene {
    int pes;
    void (*pe_main)(void *argument);
} scene;

static const scene all[] = {
#define SCENE_ROW(name, of, pes, text) {pes, scene_##name},
    SCENE_TABLE(SCENE_ROW)
#undef SCENE_ROW
};

void case_tree(void *argument)
{
    case_run *run = argument;
    uint64_t common = run->seed;
    const scene *one = &all[common_below(&common, (int)(sizeof all / sizeof *all))];
    if (run->board[0]++ == 0) { /* nobody has given way yet */
        fake_reset();
    }
    if (weft_sim_pe() < one->pes) {
        one->pe_main(NULL);
    }
}

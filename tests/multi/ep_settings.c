/* PES: 2 */
/* Goal: a variable of groups of expert parallelism that must be equal on all ranks is, or every rank is told its name.
 * Method: of each such variable one rank has another value while a group is created; then all have that value. */
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "ep/tuning.h"
#include "support/check.h"
#include "support/pe_main.h"
#include "weft_ep.h"

static const struct {
    wefti_env_id id;
    const char *other; /* not the default's effect */
} settings[] = {
#define ROW(field, id, read, other) {WEFTI_ENV_##id, other},
    WEFTI_EP_SETTINGS_TABLE(ROW)
#undef ROW
};

static weft_status create(weft_world *world, weft_ep **ep)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = 4;
    config.tokens_max = 8;
    config.topk_max = 2;
    config.row_bytes_max = 64;
    return weft_ep_create(weft_team_world(world), &config, ep);
}

int main(void)
{
    weft_world *world;
    (void)setenv("WEFT_LOG", "none", 0);
    if (!CHECK_OK(weft_world_create(NULL, &world))) {
        return 1;
    }
    const int me = weft_world_pe(world);
    check_as_pe(me);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *name = wefti_env_entry_of(settings[i].id)->name;
        weft_ep *ep = NULL;
        (void)unsetenv(name);
        if (me == 1) {
            (void)setenv(name, settings[i].other, 1);
        }
        CHECK_STATUS(create(world, &ep), WEFT_ERR_MISMATCH);
        CHECK_SAY(strstr(weft_last_error(), name) != NULL, "%s is not named: %s", name, weft_last_error());
        (void)setenv(name, settings[i].other, 1);
        CHECK_OK(create(world, &ep));
        CHECK_OK(weft_ep_destroy(ep));
    }
    CHECK_OK(weft_world_destroy(world));
    return check_failures() != 0;
}

/* tools/weft-info/trial.c: the world that weft-info looks at. */
#include "tools/weft-info/trial.h"

#include <stdio.h>
#include <stdlib.h>

#include "weft/coll.h"

void info_trial_open(info_trial *trial)
{
    trial->status = weft_world_create(NULL, &trial->world);
    if (trial->status != WEFT_OK) {
        const char *number = getenv("WEFT_LOCAL_PE"); /* one PE prints, also when there is no world */
        trial->pe = number != NULL ? atoi(number) : 0;
        (void)snprintf(trial->error, sizeof trial->error, "%s: %s", weft_status_name(trial->status), weft_last_error());
        return;
    }
    trial->pe = weft_world_pe(trial->world);
}

int info_trial_close(info_trial *trial)
{
    if (trial->world != NULL) {
        trial->status = weft_barrier(trial->world); /* PE 0 is still reading what the others have */
        (void)weft_world_destroy(trial->world);
    }
    return trial->status != WEFT_OK;
}

/* tools/weft-info/trial.h: the world that weft-info looks at. */
#ifndef WEFT_INFO_TRIAL_H
#define WEFT_INFO_TRIAL_H

#include "weft/world.h"

typedef struct info_trial {
    weft_world *world; /* NULL: none was needed, or it could not be created */
    int pe;
    weft_status status; /* of its creation */
    char error[512];
} info_trial;

void info_trial_open(info_trial *trial);
/* 0, or 1 when something was wrong with the world. */
int info_trial_close(info_trial *trial);

#endif

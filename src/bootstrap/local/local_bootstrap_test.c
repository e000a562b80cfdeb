/* Goal: the local bootstrap conforms. Method: the suite of all bootstraps, in a job like one of weftrun's. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bootstrap/conformance.h"

static weft_status begin(int pes, weft_world_config *shared)
{
    char job[128];
    (void)pes;
    (void)snprintf(job, sizeof job, "test%d:%064d", (int)getpid(), (int)getpid());
    shared->bootstrap = WEFT_BOOTSTRAP_LOCAL;
    (void)setenv("WEFT_LOCAL_JOB", job, 1);
    return WEFT_OK;
}

int main(void)
{
    static const bootstrap_subject subject = {.limits = BOOTSTRAP_NAMES_APART | BOOTSTRAP_MEETING_REUSED,
                                              .begin = begin};
    return bootstrap_conformance_run(&subject);
}

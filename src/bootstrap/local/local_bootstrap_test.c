/* Goal: the local bootstrap conforms. Method: the suite of all bootstraps, in a job like one of weftrun's. */
#include <stdlib.h>

#include "bootstrap/conformance.h"

static weft_status begin(int pes, weft_world_config *shared)
{
    (void)pes;
    shared->bootstrap = WEFT_BOOTSTRAP_LOCAL;
    (void)setenv("WEFT_LOCAL_JOB", "local_test:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", 1);
    return WEFT_OK;
}

int main(void)
{
    static const bootstrap_subject subject = {.limits = BOOTSTRAP_NAMES_APART | BOOTSTRAP_MEETING_REUSED,
                                              .begin = begin};
    return bootstrap_conformance_run(&subject);
}

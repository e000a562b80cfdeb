/* Goal: the self bootstrap conforms. Method: the suite of all bootstraps, for a world of one. */
#include "bootstrap/conformance.h"

static weft_status begin(int pes, weft_world_config *shared)
{
    (void)pes;
    (void)shared; /* AUTO, without a launcher */
    return WEFT_OK;
}

int main(void)
{
    static const bootstrap_subject subject = {.limits = BOOTSTRAP_ALONE, .begin = begin};
    return bootstrap_conformance_run(&subject);
}

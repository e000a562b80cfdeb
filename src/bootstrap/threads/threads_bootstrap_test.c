/* Goal: the threads bootstrap conforms. Method: the suite of all bootstraps. */
#include "bootstrap/conformance.h"

static weft_status begin(int pes, weft_world_config *shared)
{
    shared->bootstrap = WEFT_BOOTSTRAP_THREADS;
    return weft_threads_create(pes, &shared->threads);
}

static void end(weft_world_config *shared)
{
    weft_threads_destroy(shared->threads);
}

int main(void)
{
    static const bootstrap_subject subject = {
        .limits = BOOTSTRAP_MEETING_REUSED | BOOTSTRAP_NO_CHECK, .begin = begin, .end = end};
    return bootstrap_conformance_run(&subject);
}

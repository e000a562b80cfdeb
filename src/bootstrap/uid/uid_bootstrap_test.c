/* Goal: the uid bootstrap conforms. Method: the suite of all bootstraps, on loopback. */
#include <stdlib.h>

#include "bootstrap/conformance.h"

static weft_status begin(int pes, weft_world_config *shared)
{
    (void)pes;
    weft_uid *uid = malloc(sizeof *uid);
    shared->bootstrap = WEFT_BOOTSTRAP_UID;
    shared->uid = uid;
    weft_status status = weft_uid_create("lo", uid);
    if (status != WEFT_OK) {
        free(uid);
    }
    return status;
}

static void end(weft_world_config *shared)
{
    (void)weft_uid_discard(shared->uid); /* an error if a world has used it */
    free((void *)(uintptr_t)shared->uid);
}

int main(void)
{
    static const bootstrap_subject subject = {.begin = begin, .end = end};
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    if (begin(1, &config) == WEFT_ERR_UNSUPPORTED) {
        return 77; /* built without libsodium */
    }
    end(&config);
    return bootstrap_conformance_run(&subject);
}

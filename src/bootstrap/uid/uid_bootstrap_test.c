/* Goal: the uid bootstrap conforms, over TCP and by unix sockets. Method: the suite of all bootstraps, on loopback. */
#include <stdlib.h>

#include "bootstrap/conformance.h"

static const char *interface;

static weft_status begin(int pes, weft_world_config *shared)
{
    (void)pes;
    weft_uid *uid = malloc(sizeof *uid);
    shared->bootstrap = WEFT_BOOTSTRAP_UID;
    shared->uid = uid;
    weft_status status = weft_uid_create(interface, uid);
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
    interface = "unix";
    int failed = bootstrap_conformance_run(&subject);
    interface = "lo"; /* where libsodium is missing the same again */
    return failed | bootstrap_conformance_run(&subject);
}

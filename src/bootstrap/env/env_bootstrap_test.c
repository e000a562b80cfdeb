/* Goal: the bootstrap env conforms, without a secret and with one. Method: the suite of all bootstraps, on loopback, at
 * a port of this process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/conformance.h"
#include "bootstrap/crypto/sodium.h"

static weft_status begin(int pes, weft_world_config *shared)
{
    char port[16];
    (void)pes;
    (void)snprintf(port, sizeof port, "%d", 10000 + (int)getpid() % 20000);
    shared->bootstrap = WEFT_BOOTSTRAP_ENV;
    (void)setenv("MASTER_ADDR", "127.0.0.1", 1);
    (void)setenv("WEFT_PORT", port, 1);
    return WEFT_OK;
}

int main(void)
{
    static const bootstrap_subject subject = {.limits = BOOTSTRAP_NAMES_APART | BOOTSTRAP_MEETING_REUSED,
                                              .begin = begin};
    wefti_sodium sodium;
    (void)unsetenv("WEFT_SECRET");
    int failed = bootstrap_conformance_run(&subject);
    if (wefti_sodium_open(&sodium) == WEFT_OK) { /* else there are no secrets */
        wefti_sodium_close(&sodium);
        (void)setenv("WEFT_SECRET", "a text that only this test knows", 1);
        failed += bootstrap_conformance_run(&subject);
    }
    return failed;
}

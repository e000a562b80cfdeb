/* bootstrap/conformance.h: the suite that every bootstrap passes. See conformance.c. */
#ifndef WEFTI_BOOTSTRAP_CONFORMANCE_H
#define WEFTI_BOOTSTRAP_CONFORMANCE_H

#include "bootstrap/bootstrap.h"

/* What a backend leaves to others. */
typedef enum bootstrap_limits {
    BOOTSTRAP_ALONE = 1, /* a world of one PE only */
    BOOTSTRAP_NO_DEADLINES = 2, /* missing and failing PEs are noticed, and named, by somebody else */
    BOOTSTRAP_NAMES_APART = 4, /* worlds of other names do not meet at all */
    BOOTSTRAP_SIZE_TRUSTED = 8, /* a PE that does not fit its own size cannot take part */
    BOOTSTRAP_MEETING_REUSED = 16, /* one meeting serves many worlds, one after another */
    BOOTSTRAP_NO_CHECK = 32 /* who quits is seen in exchanges only */
} bootstrap_limits;

/* How PEs meet in the tests. */
typedef struct bootstrap_subject {
    unsigned limits;
    /* Prepare a meeting of `pes` PEs: set what the configs of all of them have in common. */
    weft_status (*begin)(int pes, weft_world_config *shared);
    /* The PE in place `place` gets what it needs by itself; its config.pe may lie. NULL: nothing. */
    void (*fit)(int place, weft_world_config *config);
    void (*end)(weft_world_config *shared); /* NULL: nothing to do */
    /* Open what a process has once, in place `place`, which a test has once a PE. NULL: wefti_bootstrap_open. */
    weft_status (*open)(int place, const weft_world_config *config, wefti_bootstrap *bootstrap);
} bootstrap_subject;

/* Run the whole suite: what a bootstrap's test returns from main. */
int bootstrap_conformance_run(const bootstrap_subject *subject);

#endif

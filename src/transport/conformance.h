/* transport/conformance.h: the suite that every transport passes. See conformance.c. */
#ifndef WEFTI_TRANSPORT_CONFORMANCE_H
#define WEFTI_TRANSPORT_CONFORMANCE_H

#include "transport/transport.h"

typedef enum conformance_reach {
    CONFORMANCE_REACHES_SELF, /* must reach its own PE, and no other */
    CONFORMANCE_REACHES_ALL /* must reach every PE */
} conformance_reach;

/* Run the whole suite: what a transport's test returns from main. */
int conformance_run(const wefti_transport_ops *ops, conformance_reach reach);

#endif

/* Goal: `self` keeps the contract of transport/transport.h, and reaches its own PE alone.
 * Method: the conformance suite. */
#include "transport/conformance.h"

int main(void)
{
    return conformance_run(&wefti_transport_self, CONFORMANCE_REACHES_SELF);
}

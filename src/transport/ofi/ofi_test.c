/* Goal: `ofi` keeps the contract of transport/transport.h, and reaches every PE.
 * Method: the conformance suite, over the network of this machine. */
#include "transport/conformance.h"

int main(void)
{
    return conformance_run(&wefti_transport_ofi, CONFORMANCE_REACHES_ALL);
}

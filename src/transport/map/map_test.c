/* Goal: `map` keeps the contract of transport/transport.h, and reaches every PE of the link domain.
 * Method: the conformance suite. */
#include "transport/conformance.h"

int main(void)
{
    return conformance_run(&wefti_transport_map, CONFORMANCE_REACHES_ALL);
}

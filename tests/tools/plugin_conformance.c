/* Goal: the library that WEFT_TRANSPORT names keeps the contract of transport/transport.h, and reaches every PE.
 * Method: the conformance suite, over what weft makes of it. tests/tools/transport_plugin.sh builds the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "transport/conformance.h"
#include "world/world.h"

int main(void)
{
    uint32_t networks = 0;
    if (wefti_world_networks(&networks) != WEFT_OK || networks != WEFTI_NETWORK_PLUGIN) {
        fprintf(stderr, "plugin_conformance: WEFT_TRANSPORT names no transport: %s\n", weft_last_error());
        return 1;
    }
    return conformance_run(wefti_network_ops(WEFTI_NETWORK_PLUGIN), CONFORMANCE_REACHES_ALL);
}

/* Goal: a transport that is written to weft/transport.h may be one of the library's own, as docs/changing.md says, and
 * keeps the contract of transport/transport.h.
 *
 * Method: the example over TCP as a file of this program, made a transport by two lines, and the conformance suite. */
#include "../../examples/transport_plugin/sockets.c" /* before cmocka.h, which has a macro `fail` */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transport/conformance.h"
#include "transport/plugin/table.h"

static const wefti_transport_table in_tree = {.functions = &WEFT_TRANSPORT_PLUGIN_SYMBOL,
                                              .path = "examples/transport_plugin"};
static const wefti_transport_ops sockets_ops = WEFTI_TRANSPORT_OF_TABLE("sockets", in_tree);

int main(void)
{
    return conformance_run(&sockets_ops, CONFORMANCE_REACHES_ALL);
}

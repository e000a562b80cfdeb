/* Goal: `ofi` keeps the contract of transport/transport.h, and reaches every PE; also where the provider asks all that
 * it may ask.
 * Method: the conformance suite, over the network of this machine; with the argument "strict" by way of the library in
 * tests/provider, which the environment puts in place of libfabric. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/library.h"
#include "transport/conformance.h"

static int is_strict(void)
{
    int (*find)(void);
    void *library = wefti_library_open("libfabric.so.1");
    return library != NULL && wefti_library_find(library, "strict_provider", &find);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "strict") == 0 && !is_strict()) {
        fprintf(stderr, "ofi_test: libfabric.so.1 is not the strict one; look at LD_LIBRARY_PATH\n");
        return 1;
    }
    return conformance_run(&wefti_transport_ofi, CONFORMANCE_REACHES_ALL);
}

/* A launcher's PMI, for tests: PMI-1 and PMI-2 over sockets, in a thread. See pmi_server.c. */
#ifndef WEFT_TESTS_PMI_SERVER_H
#define WEFT_TESTS_PMI_SERVER_H

#include "support/pes.h"

typedef struct pmi_server pmi_server;

/* What it does otherwise than a launcher should, or need not. */
typedef enum pmi_manners {
    PMI_NO_NAMES = 1, /* names are not taken */
    PMI_REFUSES_TWICE = 2 /* a name or key that is there is refused; else it is ignored */
} pmi_manners;

pmi_server *pmi_server_start(int processes, unsigned manners);
/* The other end of process `rank`'s connection. The caller closes it, at the latest after pmi_server_stop. */
int pmi_server_socket(const pmi_server *server, int rank);
/* End the thread, close what is the server's. Returns how many processes took leave. */
int pmi_server_stop(pmi_server *server);

#endif

/* fuzz/wire.h: a network of one PE whose other ends say what a file says. Stands in for os/socket.h and for the clock.
 *
 * A file is a byte for the role and one for the number of PEs, then records: whose connection, how many bytes, the
 * bytes. What a connection says is what its records have, one after another; each record comes by itself. Time passes
 * when nothing more comes, so that deadlines cost nothing. */
#ifndef FUZZ_WIRE_H
#define FUZZ_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define WIRE_CONNECTIONS 8

/* Start over with these records. */
void wire_begin(const uint8_t *records, size_t bytes);
/* The name of a unix socket that the system lists, until wire_begin. */
void wire_list(const char *name);
/* How many descriptors are open. */
int wire_open_count(void);

#endif

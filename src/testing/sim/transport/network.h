/* testing/sim/transport/network.h: what the sim transport wants of the simulator: a network between PEs. The simulator
 * implements it (src/testing/sim/network.c). Messages are split, delayed and reordered as far as transport.h allows. */
#ifndef WEFTI_TRANSPORT_SIM_NETWORK_H
#define WEFTI_TRANSPORT_SIM_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

/* PE `pe` of world `world` has the `bytes` bytes at `slot` from now on. Returns its port. */
int wefti_network_attach(uint64_t world, int pe, unsigned char *slot, size_t bytes);
void wefti_network_detach(int port);
/* The port of a PE; -1 when it is not attached, or dead. */
int wefti_network_find(uint64_t world, int pe);

/* Send `bytes` bytes; they arrive any time. Returns a number by which a signal can be made to follow them. */
uint32_t wefti_network_put(int port, uint64_t offset, const void *source, size_t bytes);
/* Set or add to a word once what was sent as `operation` has arrived; `after_all`: all sent to this port before. */
void wefti_network_signal(int port, uint64_t offset, uint64_t value, weft_signal_op op, uint32_t operation,
                          int after_all);
/* A round trip: read, or an atomic. Returns 0 when the peer died before the answer came. */
int wefti_network_get(int port, uint64_t offset, void *dest, size_t bytes);
int wefti_network_amo(int port, uint64_t offset, wefti_amo_op op, int bits, uint64_t value, uint64_t cond,
                      uint64_t *old);
void wefti_network_fence(void);
/* Wait until all this thread sent has arrived. */
void wefti_network_quiet(void);

#endif

/* support/am_rig.h: a PE's half of a transport by messages, of which a test plays the wire: without a thread, addresses
 * or connections. */
#ifndef SUPPORT_AM_RIG_H
#define SUPPORT_AM_RIG_H

#include "transport/am/am.h"

/* Of am, peers[setup->pes] and the wire's functions: every other PE is known and has all credits, and there are so many
 * messages for requests, at most WEFTI_AM_REQUESTS_OUT. No PE shares a processor. One at a time in a process. Whether
 * it is open; the lock is to be closed by am_rig_close. */
int am_rig_open(wefti_am *am, wefti_am_peer *peers, const wefti_transport_setup *setup, const wefti_wire_ops *ops,
                int messages);
void am_rig_close(wefti_am *am);

#endif

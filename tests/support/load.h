/* support/load.h: how much longer things take here and now than on a machine that does nothing else. A test that judges
 * by time multiplies its deadlines and what it allows by this. */
#ifndef SUPPORT_LOAD_H
#define SUPPORT_LOAD_H

#include <stdint.h>

/* This long when nothing else runs. Longer by a quarter for each more task to a processor, now or over the last minute:
 * who waits mostly sleeps, and has its turn soon when it wakes. */
uint64_t load_patience_ns(uint64_t alone_ns);

#endif

/* transport/tester_conformance.h: what the files of the suite of transports have in common: a PE with the
 * transport under test, and the tests of each file. conformance.c opens and closes it and runs the tests. */
#ifndef WEFTI_TRANSPORT_TESTER_CONFORMANCE_H
#define WEFTI_TRANSPORT_TESTER_CONFORMANCE_H

#include <stddef.h>
#include <stdint.h>

#include "support/check.h"
#include "support/pes.h"
#include "transport/conformance.h"

#define PES 3
#define INBOX_BYTES ((size_t)512 << 10) /* one a sender */
#define WORDS 64 /* 64-bit words behind the inboxes */
#define PATIENCE_NS UINT64_C(30000000000)

extern const wefti_transport_ops *conformance_ops; /* the transport under test */
extern conformance_reach conformance_reached; /* whom it must reach */

/* A PE with the transport under test, and its block: PES inboxes, then WORDS words, zeroed. */
typedef struct tester {
    wefti_transport transport;
    weft_world *world;
    int pe;
    int pes;
    unsigned char *slot;
    unsigned char *block;
    uint64_t *words;
} tester;

/* X(name): conformance_NAME in moves_conformance.c, which every PE runs with a block of its own. */
#define CONFORMANCE_OF_MOVES(X)                                                                                        \
    X(reaches)                                                                                                         \
    X(put)                                                                                                             \
    X(get)                                                                                                             \
    X(whole_words)                                                                                                     \
    X(signal_set)                                                                                                      \
    X(signal_add)                                                                                                      \
    X(empty_signal)                                                                                                    \
    X(signal_in_data)                                                                                                  \
    X(flag)                                                                                                            \
    X(fence)                                                                                                           \
    X(quiet)                                                                                                           \
    X(left_alone)                                                                                                      \
    X(few_left_alone)                                                                                                  \
    X(small_in_order)                                                                                                  \
    X(threads)
/* The same of a transport that has get_nbi. */
#define CONFORMANCE_OF_GETS(X)                                                                                         \
    X(get_nbi)                                                                                                         \
    X(get_nbi_threads)
/* The same in atomics_conformance.c. */
#define CONFORMANCE_OF_ATOMICS(X)                                                                                      \
    X(amo_values)                                                                                                      \
    X(amo_contended)

#define CONFORMANCE_DECLARE(name) void conformance_##name(tester *t);
CONFORMANCE_OF_MOVES(CONFORMANCE_DECLARE)
CONFORMANCE_OF_GETS(CONFORMANCE_DECLARE)
CONFORMANCE_OF_ATOMICS(CONFORMANCE_DECLARE)

static inline unsigned char *inbox(const tester *t, int from)
{
    return t->block + (size_t)from * INBOX_BYTES;
}

static inline uint64_t offset_of(const tester *t, const void *address)
{
    return (uint64_t)((const unsigned char *)address - t->slot);
}

static inline int must_reach(int from, int to)
{
    return conformance_reached == CONFORMANCE_REACHES_ALL || from == to;
}

static inline weft_status put(tester *t, int pe, const void *dest, const void *source, size_t bytes)
{
    return conformance_ops->put(&t->transport, pe, offset_of(t, dest), source, bytes);
}

static inline weft_status amo(tester *t, int pe, const void *word, wefti_amo_op op, int bits, uint64_t value,
                              uint64_t cond, uint64_t *old)
{
    return conformance_ops->amo(&t->transport, pe, offset_of(t, word), op, bits, value, cond, old);
}

#endif

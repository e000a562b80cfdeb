/* support/ledger.h: what this process holds, so that a test can show that nothing is left behind. */
#ifndef SUPPORT_LEDGER_H
#define SUPPORT_LEDGER_H

typedef struct ledger {
    long descriptors;
    long threads;
    long maps; /* of weft's shared memory */
    long allocations; /* of the library; 0 in builds without WEFT_FAULTS */
    long all_maps; /* also those of the C library and the sanitizers, which come and go: compare with slack */
    long pages; /* of address space, likewise */
} ledger;

ledger ledger_read(void);

/* Fail the cmocka test when descriptors, threads, maps or allocations differ. A thread that was joined may be seen for
 * a moment longer, so this looks again for a second before it fails. */
void ledger_assert_same(const ledger *before);

#endif

/* provider/library.h: what stand-ins for libfabric.so.1 have in common: the library that is there, which they call, and
 * those of its functions that they export as they are. PROVIDER, a string, names the stand-in in messages. */
#ifndef WEFT_TESTS_PROVIDER_LIBRARY_H
#define WEFT_TESTS_PROVIDER_LIBRARY_H

#include <rdma/fabric.h>
#include <stdint.h>

typedef struct real_library {
    int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
    void (*freeinfo)(struct fi_info *);
    struct fi_info *(*dupinfo)(const struct fi_info *);
    int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
    const char *(*strerror)(int);
} real_library;

/* libfabric's own functions, from the first call of `load_once` on; any thread may call that. */
extern real_library real;
void load_once(void);

/* Ends the process with what did not hold. */
void expect(int holds, const char *what);

#endif

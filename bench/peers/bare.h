/* bench/peers/bare.h: bare calls of a network's library, beside which network.c measures weft: as fast as that library
 * lets a program be that waits by looking. One implementation a library (ofi.c, ucx.c), a process uses it once, and
 * every failure ends the process. */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <stddef.h>
#include <stdint.h>

#define BARE_PES_MAX 4
#define BARE_MEMORY ((size_t)2 << 20) /* that others read and write; what is moved lies in it on both sides */
#define BARE_MESSAGE_BYTES 72 /* what a put of weft's of 8 bytes is at least */
#define BARE_OPEN_MAX 8 /* operations under way; more make no difference */

typedef struct bare_contact {
    unsigned char bytes[1024];
} bare_contact;

extern const char *const bare_library;
extern const size_t bare_piece; /* of a bulk transfer, divides 1 MiB: the fastest of 4 KiB to 1 MiB */

/* Opens the library and fills in what others need to know. */
void bare_open(bare_contact *mine);
void bare_connect(int pe, const bare_contact *at);
unsigned char *bare_memory(void); /* zeroed */
void bare_look(void); /* at what has happened */
/* Begin an operation; BARE_OPEN_MAX may be under way. `at` counts in the memory of the PE. */
void bare_put(int pe, size_t at, const void *from, size_t bytes);
void bare_get(int pe, size_t at, void *to, size_t bytes);
void bare_fetch_add(int pe, size_t at, const uint64_t *value, uint64_t *before);
void bare_settle(int open); /* at most `open` are still under way */
void bare_flush(int pe); /* what was put to it is in its memory */
/* A message of BARE_MESSAGE_BYTES to the PE has been sent, or one has come from it. */
void bare_send(int pe);
void bare_receive(void);

void bare_fail(const char *what, const char *why); /* network.c */

#endif

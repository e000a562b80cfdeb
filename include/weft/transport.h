/* weft/transport.h: a transport between nodes of your own: a library that needs this header and nothing else of weft.
 *
 *     cc -shared -fPIC -o mine.so mine.c $(pkg-config --cflags weft)
 *     WEFT_TRANSPORT=/path/mine.so ./program             only that; /path/mine.so,ofi: else libfabric
 *
 * To start from: examples/transport_plugin/sockets.c, a whole one over TCP. How to build, try and test one:
 * docs/changing.md, "A transport of your own". The library exports one constant of type weft_transport_plugin, named
 * WEFT_TRANSPORT_PLUGIN_SYMBOL.
 *
 * What happens, in order, on each PE of a world of several nodes:
 *   1. open      listens, say, and writes into `address` how the others reach this PE
 *   2.           weft brings every PE the addresses of all
 *   3. connect   gets them; it may connect now, or later when a PE is first used
 *   4. put, get, put_signal, amo, fence, quiet, read_soon, fate, by any threads at once, mostly to PEs of other nodes
 *   5. close
 * Meanwhile the plugin also serves the others: what they put goes into this PE's memory (setup->memory), what they get
 * comes from there, by a thread of the plugin or by the network itself, while the PE computes and calls nothing. That
 * a PE waits for a word to change needs nothing of the plugin: weft looks at the PE's own memory.
 *
 * Limits: a process has one such library, which stays loaded. All PEs of a world need the same one, known by its name;
 * the path may differ. A program with more rights than its user (setuid, capabilities) follows no such path.
 * Where a plugin cannot tell that a PE is gone (`fate`), who waits for one that has ended waits until the deadline.
 *
 * Stability: none is promised across versions, since this is the table of the library's own transports with less in it.
 * One whose `version` or `size` is another than the library's is refused: compile it again. */
#ifndef WEFT_TRANSPORT_H
#define WEFT_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "weft/compare.h"
#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_TRANSPORT_PLUGIN_VERSION 2u
#define WEFT_TRANSPORT_PLUGIN_SYMBOL weft_transport_plugin_ops
#define WEFT_TRANSPORT_PLUGIN_NAME_BYTES 32
#define WEFT_TRANSPORT_PLUGIN_ADDRESS_BYTES_MAX 2048

typedef enum weft_transport_amo {
    WEFT_TRANSPORT_FETCH = 0, /* value and cond mean nothing */
    WEFT_TRANSPORT_SET,
    WEFT_TRANSPORT_SWAP,
    WEFT_TRANSPORT_COMPARE_SWAP, /* `value` is stored if the word is `cond` */
    WEFT_TRANSPORT_ADD,
    WEFT_TRANSPORT_AND,
    WEFT_TRANSPORT_OR,
    WEFT_TRANSPORT_XOR
} weft_transport_amo;

/* What has become of a PE. */
typedef enum weft_transport_fate {
    WEFT_TRANSPORT_THERE = 0, /* as far as is known: it may be stopped */
    WEFT_TRANSPORT_LEFT, /* it has called `close` */
    WEFT_TRANSPORT_ENDED, /* its process has ended without */
    WEFT_TRANSPORT_SILENT /* its host gives no sign of life any more */
} weft_transport_fate;

/* What a transport learns of its world when it is opened. It is weft's, and lives until `close`. */
typedef struct weft_transport_setup {
    uint64_t world; /* equal on all PEs of this world, and on those of no other: a key to the world for messages */
    int pe;
    int pes;
    /* This PE's memory for the others: an `offset` of the operations counts from its first byte. It has *memory_bytes
     * bytes, a number that grows (read it atomically, with acquire). Refuse what others ask for beyond. */
    unsigned char *memory;
    const uint64_t *memory_bytes;
    uint64_t deadline_ns; /* how long an operation may block; UINT64_MAX: for ever */
    /* An operation that fails ends with `return setup->fail(status, text);`, with a text for the program's user that
     * names the PE and the remedy. It returns `status`. Any thread. */
    weft_status (*fail)(weft_status status, const char *text);
} weft_transport_setup;

/* Operations are called between connect and close. Arguments have been checked: `pe` is a PE of the world, perhaps this
 * one, the bytes lie in its memory, words are aligned. They return WEFT_OK, WEFT_ERR_TIMEOUT after the deadline, or
 * WEFT_ERR_PEER when the PE is gone.
 *
 * Rules for what is stored and loaded at the target:
 *   - a put or get of exactly one aligned word of 1, 2, 4 or 8 bytes stores or loads it whole (__atomic_store_n)
 *   - atomics are atomic against __atomic operations of the target's processors too, since PEs of that node use these
 *     on the same words: by the target's CPU, say, sequentially consistent
 *   - a PE that computes and calls nothing is served all the same
 * Threads of a plugin block all signals: the program's handlers are not theirs to run. */
typedef struct weft_transport_plugin {
    uint32_t version; /* WEFT_TRANSPORT_PLUGIN_VERSION */
    uint32_t size; /* sizeof(weft_transport_plugin) */
    char name[WEFT_TRANSPORT_PLUGIN_NAME_BYTES];
    size_t address_bytes; /* of what each PE tells the others, at most WEFT_TRANSPORT_PLUGIN_ADDRESS_BYTES_MAX */
    /* Once, by the creating thread: set *state, and fill in `address`, which is zeroed. On failure, as with
     * WEFT_ERR_UNREACHABLE where the network is not there, nothing is left behind. */
    weft_status (*open)(const weft_transport_setup *setup, void *address, void **state);
    /* Once, afterwards: all + i * address_bytes is what PE i filled in; zeroes, if its open failed. May block. */
    weft_status (*connect)(void *state, const void *all);
    /* Once, after the last operation, also where connect failed or was not called. It waits for no PE that is gone. */
    void (*close)(void *state);
    /* The source may be reused on return; the data may arrive later, without a further call, and puts may overtake each
     * other. bytes > 0. */
    weft_status (*put)(void *state, int pe, uint64_t offset, const void *source, size_t bytes);
    /* The data is in `dest` on return. It has what this PE put there before, if a quiet or fence came in between. */
    weft_status (*get)(void *state, int pe, uint64_t offset, void *dest, size_t bytes);
    /* As put, and behind the data the 64-bit word at signal_offset is set, or `value` added to it: who sees the new
     * value by an acquire sees the data. bytes may be 0: then it comes behind all earlier puts to this PE instead. */
    weft_status (*put_signal)(void *state, int pe, uint64_t offset, const void *source, size_t bytes,
                              uint64_t signal_offset, uint64_t value, weft_signal_op op);
    /* `bits` is 32 or 64. *old is the value before. old NULL: nobody needs it, and it may arrive later, as a put. */
    weft_status (*amo)(void *state, int pe, uint64_t offset, weft_transport_amo op, int bits, uint64_t value,
                       uint64_t cond, uint64_t *old);
    /* At each target, what this PE issued before, by whichever thread, is delivered before what it issues after. */
    weft_status (*fence)(void *state);
    /* Blocks until all that this PE issued, by whichever thread, is visible at its targets. */
    weft_status (*quiet)(void *state);
    /* A get of the 64-bit word at `offset` by which weft looks which PEs are late: it gives up within some hundred
     * milliseconds, with WEFT_ERR_TIMEOUT and without a call of `fail`. */
    weft_status (*read_soon)(void *state, int pe, uint64_t offset, uint64_t *value);
    /* What has become of a PE: asked again and again by what waits for it, so it must not block. The first answer but
     * WEFT_TRANSPORT_THERE stays: nothing more is waited for from that PE, what does ends with WEFT_ERR_PEER. NULL:
     * nothing is known, and what waits for a PE of another node that is gone ends at the deadline. */
    weft_transport_fate (*fate)(void *state, int pe);
} weft_transport_plugin;

#ifdef __cplusplus
}
#endif
#endif

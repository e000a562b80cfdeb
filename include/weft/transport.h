/* weft/transport.h: a transport between nodes of somebody else's, in a library of its own, which needs this header and
 * nothing of weft at run time.
 *
 *     cc -shared -fPIC -o mine.so mine.c $(pkg-config --cflags weft)
 *     WEFT_TRANSPORT=/path/mine.so ./program             only that; /path/mine.so,ofi: else libfabric
 *
 * The library exports one constant weft_transport_plugin as WEFT_TRANSPORT_PLUGIN_SYMBOL; examples/transport_plugin is
 * a whole one. A process has one such library, which stays loaded. A program with more rights than its user (setuid,
 * capabilities) loads none that a variable names. All PEs of a world need the same one, known by its name; the path may
 * differ.
 *
 * Stability: none is promised across versions, since this is the table of the library's own transports with less in it.
 * What comes new stands at its end: a table of version 1, which ends before `fate`, is taken as it is. One whose
 * `version` or `size` is otherwise another than the library's is refused: compile it again. */
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

/* What a transport learns of its world. It is the library's, and lives until `close`. */
typedef struct weft_transport_setup {
    uint64_t world; /* equal on all PEs of this world, and on those of no other: what messages prove that they know */
    int pe;
    int pes;
    /* This PE's memory for the others, from offset 0 on. It has *memory_bytes bytes, which grow (read them atomically,
     * with acquire); what lies beyond is not to be touched, whoever asks for it. */
    unsigned char *memory;
    const uint64_t *memory_bytes;
    uint64_t deadline_ns; /* of what blocks, or UINT64_MAX */
    /* Decide an error: keeps the text for the program, and returns `status`. What fails calls it, names the PE and the
     * remedy, and returns what it returns. Any thread. */
    weft_status (*fail)(weft_status status, const char *text);
} weft_transport_setup;

/* Any thread may call any operation, several at once, between connect and close. Arguments have been checked: the PE is
 * one of the world, another or the own one, the bytes lie in its memory, words are aligned. Statuses: WEFT_OK,
 * WEFT_ERR_TIMEOUT after the deadline, WEFT_ERR_PEER when the PE is gone.
 *
 * What is stored at a PE: an aligned word of 1, 2, 4 or 8 bytes that a put or get moves by itself is stored, or loaded,
 * whole. Atomics are atomic also against those of the CPU (__atomic, sequentially consistent), since PEs of the node
 * use these on the same words. A PE that computes and calls nothing is served all the same, by a thread or by the
 * network. Threads of a plugin hold all signals back. */
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
    /* Once, after the last operation, also where connect failed or was not called. Waits for nobody who is gone. */
    void (*close)(void *state);
    /* The source can be reused on return. Delivered soon, in any order. bytes > 0. */
    weft_status (*put)(void *state, int pe, uint64_t offset, const void *source, size_t bytes);
    /* The data is in `dest` on return; of puts of this PE before, what a quiet or a fence has covered. */
    weft_status (*get)(void *state, int pe, uint64_t offset, void *dest, size_t bytes);
    /* As put, and then the 64-bit word at signal_offset is set or added to: who sees its new value by an acquire sees
     * the data. bytes may be 0, and then it also comes behind all earlier puts to this PE. */
    weft_status (*put_signal)(void *state, int pe, uint64_t offset, const void *source, size_t bytes,
                              uint64_t signal_offset, uint64_t value, weft_signal_op op);
    /* The word has 32 or 64 bits. *old is the value before; NULL: nobody needs it, and it is delivered as a put. */
    weft_status (*amo)(void *state, int pe, uint64_t offset, weft_transport_amo op, int bits, uint64_t value,
                       uint64_t cond, uint64_t *old);
    /* What this PE issued before, by whichever thread, is delivered, at each PE, before what it issues after. */
    weft_status (*fence)(void *state);
    /* Blocks until all that this PE issued, by whichever thread, is visible at its targets. */
    weft_status (*quiet)(void *state);
    /* The 64-bit word at `offset`, for who looks for PEs that are late: gives up within some hundred milliseconds, with
     * WEFT_ERR_TIMEOUT and without a call of `fail`. */
    weft_status (*read_soon)(void *state, int pe, uint64_t offset, uint64_t *value);
    /* Since version 2. What has become of a PE: asked again and again by what waits for it, so it must not block. The
     * first answer but WEFT_TRANSPORT_THERE stays: nothing more is waited for from that PE, what does ends with
     * WEFT_ERR_PEER. NULL, or a table of version 1: nothing is known, and what waits for a PE of another node that is
     * gone ends at the deadline. */
    weft_transport_fate (*fate)(void *state, int pe);
} weft_transport_plugin;

#ifdef __cplusplus
}
#endif
#endif

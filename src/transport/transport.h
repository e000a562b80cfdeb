/* transport/transport.h: the seam between one-sided operations and what carries them. One backend a folder.
 *
 * Only the out-of-line half of the library comes here: PEs in the same link domain are accessed inline. Callers have
 * checked all arguments: the PE is reached by this transport, the bytes lie in its heap, words are aligned. Offsets
 * count from the first byte of a slot. Any thread may call any operation, several at once. */
#ifndef WEFTI_TRANSPORT_TRANSPORT_H
#define WEFTI_TRANSPORT_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "weft/protocol/wait.h"
#include "weft/rma.h"
#include "weft/status.h"

typedef struct wefti_transport wefti_transport;

/* What is known of a PE of another node. */
typedef enum wefti_transport_fate {
    WEFTI_FATE_THERE, /* as far as is known: it may be stopped */
    WEFTI_FATE_LEFT, /* it has left the world */
    WEFTI_FATE_ENDED, /* its process has ended */
    WEFTI_FATE_SILENT, /* its host gives no sign of life any more */
    WEFTI_FATES,
} wefti_transport_fate;

/* How the PEs of a world tell each other something while it is created: as a bootstrap's allgather. */
typedef struct wefti_transport_exchange {
    weft_status (*allgather)(void *context, const void *mine, void *all, size_t bytes);
    void *context;
} wefti_transport_exchange;

/* Whom to ask which GPU a PE will have (device/device.h), and with which config, NULL if it has none yet. */
typedef struct wefti_transport_gpu {
    int (*find_pci)(const struct weft_device_config *config, char *text, int bytes);
    const struct weft_device_config *config;
} wefti_transport_gpu;

/* What a transport learns about its world when it is opened; all but `exchange` and `gpu` lives as long as the
 * transport. */
typedef struct wefti_transport_setup {
    uint64_t world; /* equal on all PEs of this world, and on those of no other */
    int pe;
    int pes;
    unsigned char *slot; /* this PE's slot of the window, which its heap is part of */
    const wefti_view *view; /* the world's, with the link domain filled in */
    const unsigned *pes_per_core; /* PEs that share a core of this one; 0: that is not known yet */
    uint64_t deadline_ns; /* of what blocks, or WEFT_FOREVER */
    uint64_t silence_ns; /* after which the PEs of a host that gives no sign of life are gone, or WEFT_FOREVER */
    const wefti_transport_gpu *gpu; /* which GPU the PE will have, only while it is opened; NULL: none is known */
    /* Asked by what blocks, by each operation from 50 ms on and about every 50 ms, with no lock held: what is not
     * WEFT_OK ends the operation with that status. NULL: nothing does. */
    weft_status (*check)(void *context);
    void *check_context;
    int progress_inline; /* calls see to what comes; while there are none it may wait for some milliseconds */
    const wefti_transport_exchange *exchange; /* of a transport between nodes; only while it is opened */
} wefti_transport_setup;

typedef struct wefti_transport_ops {
    const char *name;
    const struct wefti_transport_table *table; /* of one that is written to weft/transport.h (plugin/table.h) */
    /* Once, by the PE's creating thread. May block. One between nodes makes one exchange, which it does not leave out
     * when it fails before. On failure nothing is left behind. */
    weft_status (*open)(wefti_transport *transport, const wefti_transport_setup *setup);
    /* Once, after the last operation. Waits for nobody who is gone; may take two seconds to deliver what this PE has
     * sent, and to say that it leaves. */
    void (*close)(wefti_transport *transport);
    /* Whether it can carry every operation to `pe`. Constant between open and close; does not block. */
    int (*reaches)(const wefti_transport *transport, int pe);
    /* What it uses, for the transport map: a few words, without a newline. NULL: nothing to tell. */
    void (*describe)(const wefti_transport *transport, char *text, size_t bytes);
    /* The source can be reused on return. May block at most the world's deadline (WEFT_ERR_TIMEOUT). Delivered soon, in
     * any order; the bytes of one put may be delivered apart. WEFT_ERR_PEER when the peer is gone. */
    weft_status (*put)(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes);
    /* The data is in `dest` on return. Blocking and statuses as put. */
    weft_status (*get)(wefti_transport *transport, int pe, uint64_t offset, void *dest, size_t bytes);
    /* As get, but it may return before the data is in `dest`, which may be written until end_gets returns. It blocks
     * where too much is under way, or where a puts' order asks for it. After a failure nothing of it is written any
     * more. NULL: as get. */
    weft_status (*get_nbi)(wefti_transport *transport, int pe, uint64_t offset, void *dest, size_t bytes);
    /* Behind a quiet, whose status it is given: blocks until all that this PE began by get_nbi before, by whichever
     * thread, is in its `dest`, or has failed, and is written no more. A thread that has begun some since its last call
     * is told of all failures since; any other of those of which no thread was told yet. After a quiet that failed it
     * returns that status, without an error text of its own, and after one that met the deadline it does not wait.
     * Blocking and statuses as put. NULL, as get_nbi is then: there is nothing to wait for. */
    weft_status (*end_gets)(wefti_transport *transport, weft_status of_quiet);
    /* As put, and then the 64-bit word at signal_offset is set or added to: who sees the word's new value by an acquire
     * sees the data. bytes may be 0, and then also orders all earlier puts to this PE. */
    weft_status (*put_signal)(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes,
                              uint64_t signal_offset, uint64_t value, weft_signal_op op);
    /* The library's own 64-bit word at `offset` is set as by put_signal without data. Its PE awaits it, so that quiet
     * need not. NULL: as put_signal. */
    weft_status (*flag)(wefti_transport *transport, int pe, uint64_t offset, uint64_t value);
    /* Atomic against every other amo on that word by this transport and by the link domain. *old is the value before.
     * Without `old` nobody needs it, and it is delivered as a put. */
    weft_status (*amo)(wefti_transport *transport, int pe, uint64_t offset, wefti_amo_op op, int bits, uint64_t value,
                       uint64_t cond, uint64_t *old);
    /* Between two looks of a PE at a word that another will store: see to what has come over the network. If nothing
     * has, give way: let another thread run if sleep_ns is 0, else sleep so long, or until something comes. NULL:
     * nothing needs it. */
    void (*pause)(wefti_transport *transport, uint64_t sleep_ns);
    /* The 64-bit word at `offset`, by which a call looks which PEs are late without being late itself: gives up soon,
     * in less time where nothing has come from the PE for long, and at once where it has given up before and nothing
     * came since. Without an error text. NULL: amo takes no time. */
    weft_status (*read_soon)(wefti_transport *transport, int pe, uint64_t offset, uint64_t *value);
    /* Find out which of these PEs do not answer, all at the same time: read_soon gives up on them at once. NULL: as
     * read_soon. */
    void (*find_silent)(wefti_transport *transport, const int *pes, int count);
    /* What has become of a PE that it reaches; does not block. An end of a process is known after some milliseconds, a
     * silent host after silence_ns; nothing more is waited for from either. NULL: nothing is known. */
    wefti_transport_fate (*fate)(const wefti_transport *transport, int pe);
    /* What this PE issued before, by whichever thread, is delivered, at each PE, before what it issues after. Does not
     * wait for it. */
    weft_status (*fence)(wefti_transport *transport);
    /* Blocks until all that this PE issued, by whichever thread, is visible at its targets; what it gets is end_gets'.
     * Blocking and statuses as put. */
    weft_status (*quiet)(wefti_transport *transport);
} wefti_transport_ops;

struct wefti_transport {
    const wefti_transport_ops *ops;
    wefti_transport_setup setup;
    void *state; /* the backend's; NULL when closed */
};

/* `self`: this PE. `map`: PEs of the link domain, by load and store. */
extern const wefti_transport_ops wefti_transport_self;
extern const wefti_transport_ops wefti_transport_map;

/* Transports between nodes, in the order in which they are tried unless WEFT_TRANSPORT has another; this table is the
 * only place. X(ID, name, whether this build has it): its functions are wefti_transport_NAME of transport/NAME, and
 * WEFT_TRANSPORT says NAME. A list of networks (world/world.h) has room for three beside a library that is named. None
 * that calls the system is in the simulator (WEFT_SIM). */
#ifdef WEFT_HAVE_OFI
#define WEFTI_HAS_OFI(ops) (ops)
#else
#define WEFTI_HAS_OFI(ops) NULL
#endif
#ifdef WEFT_HAVE_UCX
#define WEFTI_HAS_UCX(ops) (ops)
#else
#define WEFTI_HAS_UCX(ops) NULL
#endif
#define WEFTI_NETWORK_TABLE(X)                                                                                         \
    X(OFI, ofi, WEFTI_HAS_OFI)                                                                                         \
    X(UCX, ucx, WEFTI_HAS_UCX)

/* A network's number; `plugin` is the library that WEFT_TRANSPORT names by its path (plugin/plugin.h). */
enum {
    WEFTI_NETWORK_MAP, /* not between nodes */
#define WEFTI_NETWORK_NUMBER(id, name, has) WEFTI_NETWORK_##id,
    WEFTI_NETWORK_TABLE(WEFTI_NETWORK_NUMBER)
#undef WEFTI_NETWORK_NUMBER
        WEFTI_NETWORK_SIM,
    WEFTI_NETWORK_PLUGIN,
    WEFTI_NETWORK_SIM_FIRST /* of a simulation, tried before the other */
};
#define WEFTI_NETWORK_OPS(id, name, has) extern const wefti_transport_ops wefti_transport_##name;
WEFTI_NETWORK_TABLE(WEFTI_NETWORK_OPS)
#undef WEFTI_NETWORK_OPS

/* `sim`: all PEs of a simulation, by a network that is modelled as a whole; `messages`: those of other nodes, by the
 * protocol of ofi and ucx over a wire that is modelled. */
#ifdef WEFT_SIM
extern const wefti_transport_ops wefti_transport_sim;
extern const wefti_transport_ops wefti_transport_sim_messages;
extern const wefti_transport_ops wefti_transport_sim_first; /* likewise; a PE may lack it */
int wefti_network_has_messages(void); /* whether this run has them */
int wefti_network_has_two(void); /* and both of them */
#endif

#endif

/* weft/world.h: worlds.
 *
 * A weft_world is one PE's membership of one world: a set of PEs, numbered from 0, that share a symmetric heap. A
 * process may hold any number of them, of any sizes, created and destroyed in any order; two PEs of one world in one
 * process hold two handles. What a world needs hangs on its handle. What belongs to the process is little
 * (docs/architecture.md): its membership of a launcher's job, and, of its GPUs, the claims of multiprocessors and the
 * library's own streams. */
#ifndef WEFT_WORLD_H
#define WEFT_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "weft/bootstrap.h"
#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_world weft_world;

#define WEFT_PROGRAM_BYTES 20

/* How to create a world. Zero is the default of every field but `size`; start from WEFT_WORLD_CONFIG_INIT.
 * All but `pe`, `bootstrap` and what belongs to it, the deadlines and `interrupted` must be equal on all PEs; creation
 * compares them before it maps memory and names the PE that differs. The strings and objects pointed to are read during
 * creation only. */
typedef struct weft_world_config {
    size_t size; /* sizeof(weft_world_config) */
    /* Tells apart worlds that meet through one launcher or address; at most 63 bytes. NULL: "world". */
    const char *name;
    /* How the PEs find each other; WEFT_BOOTSTRAP_AUTO takes WEFT_BOOTSTRAP, else the launcher found in the
     * environment, else a world of one PE (weft/bootstrap.h). */
    weft_bootstrap_kind bootstrap;
    /* This PE's number and the number of PEs. pes 0: both come from the bootstrap (a launcher knows them). */
    int pe;
    int pes;
    const weft_uid *uid; /* WEFT_BOOTSTRAP_UID */
    weft_threads *threads; /* WEFT_BOOTSTRAP_THREADS */
    const weft_callback_ops *callback; /* WEFT_BOOTSTRAP_CALLBACK; the ops are copied */
    /* The most the symmetric heap of one PE can grow to, in bytes: address space, not memory. 0: WEFT_HEAP_MAX, else
     * half of the machine's memory, at most 64 GiB, less when thousands of PEs share a node. */
    size_t heap_max_bytes;
    /* Reserved at creation, in bytes. 0: WEFT_HEAP, else nothing: the heap grows as it is used. */
    size_t heap_bytes;
    /* Deadline of every blocking step, in ns, at most 11 days. 0: WEFT_DEADLINE (seconds), else 60 s. WEFT_FOREVER
     * (WEFT_DEADLINE=inf): none; see below. */
    uint64_t deadline_ns;
    /* After this long a waiting PE logs whom it waits for, in ns. 0: WEFT_WARN (seconds), else 10 s. WEFT_FOREVER:
     * never. */
    uint64_t warn_ns;
    /* Not NULL: give the world a device heap as weft_device_attach would, which see (weft/device.h). */
    const struct weft_device_config *device;
    /* So many bytes at the start of the heap, a part of the caller's own, which no allocation gets: it reads as zero
     * and has memory only where it has been written. Not counted in heap_max_bytes; rounded up to pages. See
     * weft_world_sparse. 0: none. */
    size_t sparse_bytes;
    /* What the PEs' program is, the build id of an executable say: WEFT_ERR_MISMATCH, showing both, where PEs
     * differ. */
    unsigned char program[WEFT_PROGRAM_BYTES];
    const void *mpi_comm; /* WEFT_BOOTSTRAP_MPI: the address of an MPI_Comm; NULL: MPI_COMM_WORLD */
    const char *bootstrap_plugin; /* WEFT_BOOTSTRAP_PLUGIN: a library's path; NULL: WEFT_BOOTSTRAP_PLUGIN */
    const void *bootstrap_argument; /* for WEFT_BOOTSTRAP_PLUGIN: handed to it */
    /* NULL, or asked by the world's calls that wait, on the thread that waits, from 50 ms on and about every 50 ms;
     * creation does not ask. What is not 0 aborts the world with that code, as weft_world_abort does, and so ends the
     * wait: an interpreter serves its signals here. It calls nothing of this world. */
    int (*interrupted)(void *context);
    void *interrupted_context;
} weft_world_config;

/* No deadline. A wait then fails only when a PE that it needs is gone, with WEFT_ERR_PEER and its
 * name: a collective call, when a member has ended, or left the world, before it did its part; a lock, when the PE that
 * holds it or stands before this one has; a wait for a variable, when any PE of the world has ended without destroying
 * its world, since nobody knows who would have written it. Of a PE of another node that has left the world nobody knows
 * whether it did its part before: it is waited for. Creation waits for those that have not come, and ends when one that
 * came is gone. A kernel cannot see who is gone: a thread of the library looks for those of a PE with a device, and
 * they end when any PE of the world has ended. An abort ends all waits, as always. */
#define WEFT_FOREVER UINT64_MAX

#define WEFT_WORLD_CONFIG_INIT WEFTI_SIZED(weft_world_config)

/* Create this PE's membership of a world.
 * Collective: every PE of the world calls it, in its own thread or process (one thread that holds several PEs calls
 * weft_world_create_many). Blocks until all have come, at most the deadline, and where a PE is lost then, as
 * long again. `config` may be NULL: all defaults.
 * On success *world belongs to the caller, who ends it with weft_world_destroy.
 * Errors are the same on every PE that takes part: WEFT_ERR_TIMEOUT names the PEs that did not come,
 * WEFT_ERR_MISMATCH the PE whose configuration differs or whose number is taken, WEFT_ERR_UNREACHABLE a pair that
 * nothing connects, WEFT_ERR_ARGUMENT the PE that has a setting that cannot be, WEFT_ERR_MEMORY or WEFT_ERR_SYSTEM the
 * PE that lacked something, WEFT_ERR_UNSUPPORTED the PE whose program has newer headers than its library, WEFT_ERR_PEER
 * one that is gone. WEFT_ERR_AUTHENTICATION is that of a PE with another secret alone: the others miss it. (OpenSHMEM
 * 1.5, 9.1.1.) */
WEFT_INLINE weft_status weft_world_create(const weft_world_config *config, weft_world **world) WEFT_MUST_CHECK;

/* Create several PEs of one or more worlds from one thread: PE i of `count` as weft_world_create(&configs[i],
 * &worlds[i]) would. Either all are created, or none and the first failure is returned.
 * Temporary threads stand in for the caller while the PEs meet; none is left when the call returns. */
WEFT_INLINE weft_status weft_world_create_many(const weft_world_config *configs, size_t count,
                                               weft_world **worlds) WEFT_MUST_CHECK;

/* End a membership and free all that hangs on it: teams, groups and the heap's mapping. Local: never waits for peers,
 * who may be gone; where there are several nodes it delivers what this PE has sent and tells the others, for about two
 * seconds at most. NULL is allowed. A peer that still works in the world reads and writes the destroyed PE's heap as
 * before; a collective call there meets its deadline. The caller's other threads must have left the world. In builds
 * with assertions a call on a world that was destroyed lately gives WEFT_ERR_ARGUMENT, as for NULL, and one on its
 * predefined teams WEFT_ERR_STATE. Other builds give these only until the memory is used again: do not rely on it. In a
 * process that was forked from the PE's this does nothing and is WEFT_OK, as the end of all other handles is, and
 * other calls are WEFT_ERR_STATE: see docs/processes.md. */
WEFT_API weft_status weft_world_destroy(weft_world *world);

/* Make every blocking call of every PE of this world return WEFT_ERR_ABORTED, now and ever after, naming this PE and
 * `code`. Any thread, at any time, also while other threads are inside calls on this world. Does not wait. */
WEFT_API weft_status weft_world_abort(weft_world *world, int code);

/* The latched fault of this world: WEFT_OK while there is none. On a fault *culprit_pe (if not NULL) is the PE that
 * caused it, or -1. Any thread. */
WEFT_API weft_status weft_world_fault(const weft_world *world, int *culprit_pe);

/* This PE's number, and the number of PEs. Any thread. -1 for a NULL world. (OpenSHMEM 1.5, 9.1.3, 9.1.4.) */
WEFT_API int weft_world_pe(const weft_world *world);
WEFT_API int weft_world_pes(const weft_world *world);

/* The sparse part of a heap, and the file whose pages it is, of which other mappings can be made: what is stored there
 * is what every PE finds in this PE's heap. */
typedef struct weft_sparse {
    void *address; /* of this PE's; a multiple of the size of a page */
    size_t bytes;
    int descriptor; /* the world's, who closes it; close-on-exec */
    uint64_t offset; /* in the file, of the part's first byte */
} weft_sparse;

/* Where config.sparse_bytes lie. Local; any thread. *out is written on success only. A page there gets memory when it
 * is first written, by whomever, so that lack of it is no status; mappings that the caller makes stay after the world's
 * end, and what is in them does. Errors: WEFT_ERR_ARGUMENT, WEFT_ERR_UNSUPPORTED where the world was made with
 * sparse_bytes 0. */
WEFT_API weft_status weft_world_sparse(const weft_world *world, weft_sparse *out) WEFT_MUST_CHECK;

/* Phases of creation, in the order in which they happened. */
typedef struct weft_world_phase {
    const char *name; /* static text */
    uint64_t ns;
} weft_world_phase;

/* Copy at most `capacity` phases of this world's creation to `phases` and return how many there are. Any thread. */
WEFT_API size_t weft_world_phases(const weft_world *world, weft_world_phase *phases, size_t capacity);

/* Write the transport map as text: which PEs this one reaches by what, a line for each transport. At most `bytes`
 * bytes with the final zero; returns the length of the whole text, as snprintf does. A NULL text gives the length only,
 * a NULL world 0 and an empty text. Any thread. */
WEFT_API size_t weft_world_transport_map(const weft_world *world, char *text, size_t bytes);

/* Counters of this world, X(name, what is counted). Puts, gets, atomics and waits that load and store alone did are not
 * counted: they are inline. WEFT_COUNTERS=1 prints the counters of each PE when its world is destroyed. */
#define WEFT_COUNTER_TABLE(X)                                                                                          \
    X(create_ns, "time that creation took, in ns")                                                                     \
    X(heap_allocs, "symmetric allocations")                                                                            \
    X(heap_frees, "symmetric frees")                                                                                   \
    X(heap_bytes_used, "bytes allocated in the symmetric heap, now")                                                   \
    X(heap_bytes_reserved, "bytes of memory reserved for the symmetric heap, now")                                     \
    X(teams_created, "teams created")                                                                                  \
    X(waits_slow, "waits that outlasted their spinning")                                                               \
    X(waits_warned, "waits so long that a warning was logged")                                                         \
    X(waits_expired, "waits that met their deadline")                                                                  \
    X(remote_puts, "puts through a transport other than load and store")                                               \
    X(remote_put_bytes, "bytes of these and of the next")                                                              \
    X(remote_put_signals, "puts with a signal through a transport other than load and store")                          \
    X(remote_gets, "gets through a transport other than load and store")                                               \
    X(remote_get_bytes, "bytes of these")                                                                              \
    X(remote_atomics, "atomics through a transport other than load and store")                                         \
    X(device_accesses, "puts, gets and atomics of the host on device memory")                                          \
    X(barriers, "barriers and syncs, of all teams, as the following")                                                  \
    X(broadcasts, "broadcasts")                                                                                        \
    X(collects, "collects")                                                                                            \
    X(fcollects, "fcollects")                                                                                          \
    X(alltoalls, "alltoalls of blocks")                                                                                \
    X(strided_alltoalls, "alltoalls with strides")                                                                     \
    X(reduces, "reductions")                                                                                           \
    X(reduce_scatters, "reductions whose result is scattered")                                                         \
    X(scans, "scans")                                                                                                  \
    X(ep_updates, "expert-parallel routings")                                                                          \
    X(ep_dispatches, "expert-parallel dispatches")                                                                     \
    X(ep_combines, "expert-parallel combines")                                                                         \
    X(ep_rows_sent, "rows sent by dispatches: a token once to each rank, the own included")                            \
    X(ep_rows_received, "tokens received by dispatches, from each source, the own included")                           \
    X(ep_bytes_sent, "bytes of the rows sent")                                                                         \
    X(ep_bytes_received, "bytes of the rows received")

typedef struct weft_counters {
#define WEFT_COUNTER_FIELD(name, text) uint64_t name;
    WEFT_COUNTER_TABLE(WEFT_COUNTER_FIELD)
#undef WEFT_COUNTER_FIELD
} weft_counters;

/* Read the counters. Any thread; each value is whole, the set is not a snapshot. */
WEFT_API weft_status weft_world_counters(const weft_world *world, weft_counters *out);

/* Counter number `index` from 0 up: returns its name, static text, and gives its *value; NULL beyond the last. For
 * those who do not compile the table in. Any thread. */
WEFT_API const char *weft_world_counter(const weft_world *world, size_t index, uint64_t *value);

#ifdef __cplusplus
}
#endif

#include "weft/inline/world.h"

#endif

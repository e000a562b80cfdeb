/* testing/sim/sim.h: what hangs on a simulation, and what its parts offer each other.
 *
 * A simulation runs in one thread, which has one pointer to it: wefti_sim_current. All other state hangs on that. A
 * fiber is a coroutine with all that belongs to a thread: a PE's, or one that the library started. */
#ifndef WEFTI_SIM_SIM_H
#define WEFTI_SIM_SIM_H

#include <stddef.h>
#include <stdint.h>

#include "os/os.h"
#include "testing/sim/atomics.h"
#include "testing/sim/coroutine.h"
#include "testing/sim/flow.h"
#include "testing/sim/lines.h"
#include "testing/sim/random.h"
#include "testing/sim/reads.h"
#include "testing/sim/socket.h"
#include "testing/sim/trace.h"
#include "weft_sim.h"

typedef struct wefti_record wefti_record;

typedef enum wefti_fiber_state {
    WEFTI_FIBER_READY = 0,
    WEFTI_FIBER_SLEEPING,
    WEFTI_FIBER_PAUSED, /* until something commits at its line */
    WEFTI_FIBER_ENTERING, /* a monitor */
    WEFTI_FIBER_WAITING, /* in a monitor */
    WEFTI_FIBER_JOINING,
    WEFTI_FIBER_DELIVERING, /* until its messages are delivered */
    WEFTI_FIBER_DONE,
    WEFTI_FIBER_DEAD
} wefti_fiber_state;

/* Reads that must not be undone: a line, and for each of its words the commit up to which this fiber has seen it. */
typedef struct wefti_seen {
    uint64_t line; /* + 1; 0: empty */
    uint64_t seq[WEFTI_LINE_WORDS];
} wefti_seen;

#define WEFTI_SEEN_COUNT 64
#define WEFTI_STREAM_ENDS 16

/* A fiber's own slot of a world. */
typedef struct wefti_owned {
    uint64_t offset;
    uint64_t bytes;
} wefti_owned;

#define WEFTI_OWNED_COUNT 8

struct wefti_fiber {
    int number;
    int pe;
    wefti_fiber_state state;
    uint32_t timer_index; /* + 1; 0: no timer */
    uint64_t wake_ns;
    int timed_out;
    uint64_t stalled_until_ns;
    int stalling; /* it sleeps for that, whatever else it waits for */
    uint32_t stall_gap; /* not 0: once it runs, at its next access but so many, it is stalled */
    uint64_t stall_until_ns;
    int is_stalled_soon; /* it runs until then */
    const wefti_os_memory_left *memory_left; /* as a test says; NULL: plenty */
    uint64_t memory_ns; /* what it takes to find that out */
    uint32_t rest_steps; /* that are left until it stands still as a test asked for; 0: it does not */
    uint64_t rest_ns; /* for so long */
    uint32_t edge; /* events that are left in which it rests often */
    uint32_t speed; /* of 256: how often it runs when drawn */
    uint64_t skew_ns; /* its clock is so far ahead */
    wefti_coroutine coroutine;
    wefti_stacks own_stack; /* of a started thread */
    void (*body)(void *argument);
    void *argument;
    wefti_fiber *joiner;

    /* What it waits for. */
    const char *what;
    uint64_t what_at; /* offset in the arena, WEFTI_NOWHERE if none */
    uint64_t watched; /* line + 1; 0: none */
    int notified;
    wefti_fiber *next_watcher;
    wefti_os_monitor *monitor;
    wefti_fiber *next_in_monitor;
    int held; /* monitors */
    int doomed; /* dies when it holds none */
    int is_polling; /* sleeps until something happens at a socket */

    /* Memory. */
    wefti_flow stores;
    wefti_flow messages;
    uint64_t horizon; /* commits up to this one are seen */
    weft_sim_counts counts;
    uint64_t fence_seq; /* commits up to this one come before what is stored since the last release fence */
    wefti_seen seen[WEFTI_SEEN_COUNT];
    uint64_t forgotten; /* commits up to this one are no longer in `seen`: all count as seen */
    uint32_t stream; /* number of the stores past the caches to its own memory that are not ended; they begin with 1 */
    int stream_is_open; /* there are such stores */
    uint64_t stream_ends[WEFTI_STREAM_ENDS]; /* the commit at which a number was ended, by number */
    wefti_reads reads;
    wefti_owned owned[WEFTI_OWNED_COUNT]; /* the first owned_count */
    unsigned owned_count;

    wefti_thread_state thread_state;
    wefti_event_ring events;
};

#define WEFTI_NOWHERE UINT64_MAX
#define WEFTI_SIM_PAGE_BYTES 4096

/* The config with everything drawn. */
/* Where the PEs of a run rest. */
typedef enum wefti_sim_rests {
    WEFTI_RESTS_ANYWHERE,
    WEFTI_RESTS_BEFORE_ATOMICS,
    WEFTI_RESTS_AFTER_RELEASES,
    WEFTI_RESTS
} wefti_sim_rests;

typedef struct wefti_sim_rates {
    uint32_t stale; /* thresholds */
    uint32_t delay;
    uint32_t split;
    uint32_t commit;
    uint32_t rest; /* a threshold: of events, or of atomics */
    wefti_sim_rests rests;
    uint32_t switch_one_in;
    unsigned buffer_entries;
    weft_sim_order order;
} wefti_sim_rates;

/* A part of the arena that was handed out as a wefti_os_memory. */
typedef struct wefti_region {
    uint64_t offset;
    uint64_t bytes;
    int users; /* 0: free */
    int *signers; /* [signer_count] by number: a PE + 1; 0: nobody */
    size_t signer_count;
} wefti_region;

/* Where the sim transport finds PEs. */
typedef struct wefti_port {
    uint64_t world;
    int pe;
    int fiber;
    unsigned char *slot;
    int open;
    uint32_t next; /* in its bucket: a port + 1 */
} wefti_port;

#define WEFTI_PORT_BUCKETS 4096
#define WEFTI_ROUNDS_BITS 26

/* A name under which a descriptor is handed out. */
typedef struct wefti_offer {
    unsigned char name[16];
    unsigned char token[16];
    int descriptor;
    int left; /* takers still to come */
    int listener;
} wefti_offer;

struct wefti_sim {
    weft_sim_config config;
    int pes;
    void (*pe_main)(void *arg);
    void *arg;
    uint64_t seed;
    wefti_random random;
    wefti_sim_rates rates;

    /* Fibers. */
    wefti_coroutine main;
    wefti_stacks stacks;
    wefti_fiber **fibers;
    size_t fiber_count;
    size_t fiber_capacity;
    wefti_fiber *running; /* NULL: the thread itself */
    wefti_fiber **ready; /* a ring of ready_count from ready_first on, with ready_mask + 1 places */
    size_t ready_first;
    size_t ready_count;
    size_t ready_mask;
    wefti_fiber **timers; /* a heap */
    size_t timer_count;
    size_t alive; /* fibers that are neither done nor dead */
    size_t sleepers;
    uint32_t gap; /* accesses until the next event */
    int rests_left;
    int may_not_rest; /* for now */

    uint64_t now_ns;
    uint64_t progress; /* counts what could end a wait */
    uint64_t looked; /* progress when all paused fibers were last made to look */

    wefti_atomics atomics;

    /* Memory. */
    unsigned char *arena;
    uint64_t arena_bytes;
    uint64_t arena_used;
    wefti_region *regions;
    size_t region_count;
    size_t region_capacity;
    unsigned char *reserved; /* [arena_bytes / WEFTI_SIM_PAGE_BYTES] bits: pages that may be used */
    uint64_t settled; /* commits up to this one are seen by all */
    size_t publishers; /* fibers that have stored a word since a read, without a release */
    uint64_t seq; /* of the last commit */
    wefti_lines lines;
    wefti_entry_pool entries;
    uint32_t *rounds; /* [1 << WEFTI_ROUNDS_BITS] by line, hashed: the rounds of who last stored a flag there */
    uint32_t *pending; /* [pending_count] flows with stores that have not committed: fiber * 2, + 1 for its messages */
    size_t pending_count;

    wefti_port *ports;
    size_t port_count;
    size_t port_capacity;
    uint32_t port_buckets[WEFTI_PORT_BUCKETS]; /* a port + 1; 0: none */
    struct wefti_wire_end **wire_ends; /* [wire_end_count] */
    size_t wire_end_count;
    wefti_offer *offers;
    size_t offer_count;
    wefti_sockets *sockets; /* NULL: nobody has made one */
    weft_threads *threads; /* where the PEs meet */
    wefti_record *records; /* of several PEs of a process */
    uint64_t last_record;

    uint64_t events;
    uint64_t switches;
    uint64_t commits;
    uint64_t message_count;
    uint64_t trace_hash;

    weft_status failed;
    int culprit;
    char text[512];
};

/* The simulation of this thread, while it runs. */
extern _Thread_local wefti_sim *wefti_sim_current;

static inline uint64_t wefti_sim_offset(const wefti_sim *sim, const void *address)
{
    uint64_t offset = (uint64_t)((uintptr_t)address - (uintptr_t)sim->arena);
    return offset < sim->arena_bytes ? offset : WEFTI_NOWHERE;
}

/* ---- scheduler.c ---- */

void wefti_scheduler_fini(wefti_sim *sim);
wefti_fiber *wefti_fiber_create(wefti_sim *sim, int pe, unsigned char *stack, size_t stack_bytes);
void wefti_fiber_ready(wefti_sim *sim, wefti_fiber *fiber);
/* Run until all fibers are done, or the run has failed. From the thread itself. */
void wefti_scheduler_run(wefti_sim *sim);
/* Let others run; the running fiber stays ready. */
void wefti_sim_yield(wefti_sim *sim);
/* Suspend the running fiber in `state`; at the latest it is ready again at wake_ns (UINT64_MAX: no limit). Returns 1
 * when the time has passed, else 0. */
int wefti_sim_block(wefti_sim *sim, wefti_fiber_state state, uint64_t wake_ns);
/* Make a suspended fiber ready. */
void wefti_sim_wake(wefti_sim *sim, wefti_fiber *fiber);
/* An event is due: something may commit, another fiber may run. */
void wefti_sim_event(wefti_sim *sim);
void wefti_sim_before_atomic(wefti_sim *sim);
void wefti_sim_after_release(wefti_sim *sim);
/* The run has failed with sim->text: back to the thread itself, for good. From a fiber only. */
void wefti_sim_stop(wefti_sim *sim, weft_status status) __attribute__((noreturn));
/* PE `pe` has done what must not be: the run ends as failed at the next event. From anywhere. */
void wefti_sim_refuse(wefti_sim *sim, int pe, const char *format, ...) WEFT_PRINTF(3, 4);
void wefti_sim_end_fiber(wefti_sim *sim, wefti_fiber_state state) __attribute__((noreturn));

/* End another fiber, or this one. */
void wefti_sim_kill_fiber(wefti_sim *sim, wefti_fiber *fiber);

/* Let the scheduler choose before each access to symmetric memory. */
static inline void wefti_sim_step(wefti_sim *sim)
{
    if (--sim->gap == 0) {
        wefti_sim_event(sim);
    }
}

/* ---- memory.c ---- */

/* Let one waiting store of a flow commit; `any`: a drawn one that may, else the oldest. */
void wefti_memory_commit_one(wefti_sim *sim, uint32_t flow, int any);
/* Let all stores of a fiber commit: its buffer, those past the caches too; its messages. */
void wefti_memory_drain(wefti_sim *sim, wefti_fiber *fiber);
void wefti_memory_drain_messages(wefti_sim *sim, wefti_fiber *fiber, int target, uint32_t below_group);
void wefti_memory_drain_all(wefti_sim *sim);
/* All that the fiber stored past the caches comes before what it stores from now on. */
void wefti_memory_end_streams(wefti_sim *sim, wefti_fiber *fiber);
/* Make `bytes` new bytes visible at `offset`, inside one line. `sync`: commits up to this one are seen by who acquires
 * them; UINT64_MAX: this one too. */
void wefti_memory_commit(wefti_sim *sim, int writer, uint64_t offset, const void *data, size_t bytes, uint64_t sync);
/* A store waits in `fiber`'s buffer or among its messages. */
void wefti_memory_enqueue(wefti_sim *sim, wefti_fiber *fiber, int is_message, const wefti_entry *entry);
/* What an acquire of everything gives: a lock was taken. */
void wefti_memory_acquire_all(wefti_sim *sim, wefti_fiber *fiber);
/* A flag was stored, or seen, at `offset`: its reader gets the rounds of its writer plus one. */
void wefti_memory_flag_stored(wefti_sim *sim, const wefti_fiber *fiber, uint64_t offset);
void wefti_memory_flag_seen(wefti_sim *sim, wefti_fiber *fiber, uint64_t offset);
/* Forget an earlier watch; watch the line of `offset` from now on, or anew. */
void wefti_memory_watch(wefti_sim *sim, wefti_fiber *fiber, uint64_t offset);
void wefti_memory_unwatch(wefti_sim *sim, wefti_fiber *fiber);
/* PE `pe` uses memory in the line of `offset`: the run fails if nobody has reserved it. */
void wefti_memory_check_reserved(wefti_sim *sim, uint64_t offset, int pe);
/* Read the newest bytes, which changes what no fiber has seen. */
void wefti_memory_peek(const wefti_sim *sim, uint64_t offset, void *out, size_t bytes);

/* ---- region.c ---- */

/* Whether the page may be used. */
int wefti_sim_is_reserved(const wefti_sim *sim, uint64_t offset);

void wefti_sim_regions_fini(wefti_sim *sim);

/* ---- wire.c ---- */

void wefti_sim_wire_ends_fini(wefti_sim *sim);

/* ---- thread.c ---- */

/* Whether nobody is inside. */
int wefti_sim_monitor_is_free(const wefti_os_monitor *monitor);

/* ---- record.c ---- */

void wefti_sim_records_fini(wefti_sim *sim);

/* ---- trace.c ---- */

void wefti_sim_record(wefti_sim *sim, wefti_fiber *fiber, wefti_event_kind kind, uint64_t at, uint64_t value);
void wefti_sim_report(const wefti_sim *sim);

#endif

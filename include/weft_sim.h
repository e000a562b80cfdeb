/* weft_sim.h: the seeded simulator: a world of PEs in one thread, under orders of events drawn from a seed.
 *
 * Programs that use it are compiled with WEFT_SIM and linked to weft_sim, which is the library's own code with memory,
 * time, threads and transports behind seams. weft_sim_run runs pe_main once a PE, each on its own coroutine. Everything
 * that happens is decided by the seed: the same seed gives the same trace, byte for byte.
 *
 * Memory. Stores to symmetric memory wait in a buffer of their PE and land late, in any order that overlap, release,
 * fences and quiet allow; bulk copies land in pieces. A load that is no acquire of what it depends on may return a
 * value that has been overwritten. Plain accesses of the program itself are immediate. Time is virtual: it jumps
 * when all PEs sleep, so that deadlines cost nothing. Sockets. PEs that meet over sockets (WEFT_BOOTSTRAP_LOCAL,
 * _UID) do so on a network of the simulator: bytes come late and in parts, calls are interrupted or find nothing,
 * connections come in any order. A run that leaves a socket open, or uses one that is closed, fails. Faults. PEs can
 * be killed and stalled, connections cut, allocations made to fail, and messages between link domains are split,
 * delayed and reordered. */
#ifndef WEFT_SIM_H
#define WEFT_SIM_H

#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"
#include "weft/world.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What happens when no PE can run, no store can become visible and no message can arrive. */
typedef enum weft_sim_deadlock {
    WEFT_SIM_DEADLOCK_FAIL = 0, /* the run fails at once and prints who waits for what */
    WEFT_SIM_DEADLOCK_ADVANCE = 1 /* the clock jumps, so that deadlines expire */
} weft_sim_deadlock;

/* Who runs next. */
typedef enum weft_sim_order {
    WEFT_SIM_ORDER_DRAWN = 0, /* one of the others, by the seed */
    WEFT_SIM_ORDER_RANDOM,
    WEFT_SIM_ORDER_FIFO,
    WEFT_SIM_ORDER_LIFO
} weft_sim_order;

/* A rate "one in N": 0 is drawn from the seed, so that each seed explores another corner. */
#define WEFT_SIM_NEVER UINT32_MAX

/* How a run ended. */
typedef struct weft_sim_result {
    uint64_t seed;
    uint64_t trace_hash; /* over all events; equal for equal seeds */
    uint64_t events;
    uint64_t switches;
    uint64_t landings; /* stores and pieces of copies that became visible */
    uint64_t messages; /* puts, signals, atomics and gets between link domains */
    uint64_t virtual_ns;
    int culprit_pe; /* the PE that failed, or -1 */
    char text[512]; /* why the run failed; "" when it did not */
} weft_sim_result;

typedef struct weft_sim_config {
    size_t size; /* sizeof(weft_sim_config) */
    uint64_t seed; /* 0: a fresh one, printed */

    /* Link domains: PE p is in domain_of[p] if given; else in p / domain_pes, or p % domains when round_robin is set.
     * domain_pes 0: one domain. Inside a domain PE p belongs to a process of process_pes PEs (0: all). */
    int domain_pes;
    int round_robin;
    const int *domain_of;
    int process_pes;

    uint32_t switch_one_in; /* an access switches to another PE */
    uint32_t delay_one_in; /* a store waits in the buffer */
    uint32_t stale_one_in; /* a load that may return an old value does */
    uint32_t split_one_in; /* a piece of a copy is cut in two */
    uint32_t land_one_in; /* an event lets a waiting store land */
    unsigned buffer_entries; /* stores that a PE's buffer holds; 0: drawn */
    weft_sim_order order;
    int same_speed; /* not 0: no PE is slower than others */

    weft_sim_deadlock deadlock;
    size_t stack_bytes; /* of a PE; 0: 128 KiB, more under sanitizers */
    uint64_t events_max; /* a run with more events fails; 0: 2^36 */

    int count_rounds; /* not 0: fill in weft_sim_counts.rounds */
    void (*trace)(void *context, const char *line); /* each event as a line; may be NULL */
    void *trace_context;
    int silent; /* not 0: a failing run prints nothing */
    weft_sim_result *result; /* may be NULL */
    int messages; /* not 0: between link domains run the messages of the library's networks, over a simulated wire */
    uint32_t rest_one_in; /* at an access or before an atomic a PE rests for up to 0.3 ms; 16 times at most */
} weft_sim_config;

#define WEFT_SIM_CONFIG_INIT WEFTI_SIZED(weft_sim_config)

/* Run pe_main(arg) on `pes` PEs until all have returned. One simulation a thread at a time; those of different threads
 * are independent. config NULL: all defaults.
 * Returns WEFT_OK; WEFT_ERR_STATE when a PE called weft_sim_fail; WEFT_ERR_TIMEOUT on a deadlock or too many events;
 * WEFT_ERR_ARGUMENT, WEFT_ERR_MEMORY or WEFT_ERR_SYSTEM when it could not start. */
WEFT_API weft_status weft_sim_run(const weft_sim_config *config, int pes, void (*pe_main)(void *arg),
                                  void *arg) WEFT_MUST_CHECK;

/* ---- inside pe_main --------------------------------------------------------------------------------------------- */

/* Outside of it, and for a PE that the run does not have, the calls below do nothing and give 0 where nothing else is
 * said; weft_sim_fail ends the process then. */

/* This PE's number and the number of PEs; -1 outside a simulation. */
WEFT_API int weft_sim_pe(void);
WEFT_API int weft_sim_pes(void);

/* Fill in what finds the other PEs: bootstrap, pe, pes, a small heap_max_bytes and deadline. Other fields stay. */
WEFT_API void weft_sim_world_config(weft_world_config *config);

/* A number below `bound`, decided by the seed; 0 for a bound of 0. */
WEFT_API uint64_t weft_sim_random(uint64_t bound);

/* Virtual time since the start of the run. PEs' own clocks differ from it. */
WEFT_API uint64_t weft_sim_now_ns(void);

/* Sleep in virtual time: the consumer that is slow. */
WEFT_API void weft_sim_sleep_ns(uint64_t ns);

/* End the run as failed: the text is printed with the seed and the last events of each PE. Does not return. */
WEFT_API void weft_sim_fail(const char *format, ...) WEFT_PRINTF(1, 2) __attribute__((noreturn));

/* What this PE has done so far. */
typedef struct weft_sim_counts {
    uint64_t loads; /* calls of wefti_ld and copies out of symmetric memory */
    uint64_t stores; /* calls of wefti_st, atomics, copies into symmetric memory */
    uint64_t messages; /* between link domains */
    uint64_t rounds; /* the longest chain of flags, each stored after the one before was seen, that ends here */
} weft_sim_counts;
WEFT_API void weft_sim_counts_query(weft_sim_counts *out);

/* A line in the trace. `text` is static. */
WEFT_API void weft_sim_note(const char *text, uint64_t value);

/* ---- faults ----------------------------------------------------------------------------------------------------- */

/* PE `pe` never runs again; what it stored before still becomes visible, and its sockets are closed. Does not return
 * when it is this PE. */
WEFT_API void weft_sim_kill(int pe);

/* PE `pe` does not run for `ns` of virtual time. */
WEFT_API void weft_sim_stall(int pe, uint64_t ns);

/* One connection of PE `pe`, drawn, breaks: both ends see a reset, and what was on its way is lost. Returns 0 when it
 * has none. */
WEFT_API int weft_sim_cut(int pe);

/* Whether two PEs are in one process; killing one of them leaves the others alive. */
WEFT_API int weft_sim_same_process(int a, int b);

/* Whether PE `pe` has been killed. */
WEFT_API int weft_sim_is_dead(int pe);

#ifdef __cplusplus
}
#endif
#endif

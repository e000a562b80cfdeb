/* world/world.h: what hangs on a weft_world. */
#ifndef WEFTI_WORLD_WORLD_H
#define WEFTI_WORLD_WORLD_H

#include "common/gone.h"
#include "common/timeline.h"
#include "device/device.h"
#include "heap/blocks.h"
#include "heap/window.h"
#include "transport/transport.h"
#include "weft/inline/view.h"
#include "weft/protocol/layout.h"
#include "weft/protocol/wait.h"
#include "weft/world.h"
#include "world/membership.h"
#include "world/tuning.h"

#define WEFTI_WORLD_NAME_BYTES 64
#define WEFTI_WORLD_PHASES_MAX 12
#define WEFTI_WORLD_TRANSPORTS_MAX 4
#define WEFTI_WORLD_MAGIC 0x77656674776f726cu /* "weftworl" */
#define WEFTI_OWNER_LIBRARY 0u /* of blocks of the heap that no user frees */
#define WEFTI_WORLD_ENDED 0x77656674656e6465u /* "weftende" */

/* It lies in memory that a forked process finds zeroed: there the test of inline accesses fails, since the heap has no
 * bytes, and so does the test of `magic` out of line. */
struct weft_world {
    wefti_view view; /* first: inline code reads it */
    uint64_t magic; /* WEFTI_WORLD_MAGIC while alive, then WEFTI_WORLD_ENDED; 0 in a forked process */
    int owner; /* the process that made it, for systems where a fork copies all memory */

    char name[WEFTI_WORLD_NAME_BYTES];
    uint64_t key; /* tells this world from all others */
    uint64_t deadline_ns;
    uint64_t warn_ns;
    uint64_t silence_ns; /* after so long without a sign of life the PEs of another host are gone; or WEFT_FOREVER */
    int progress_inline; /* calls serve messages of other nodes; no thread does */

    /* Memory. The window is shared by the PEs of this process; its slots belong to the PEs of the node, in ascending
     * order. */
    wefti_window *window;
    size_t slot;
    int64_t *delta; /* what view.delta points to; NULL if the node's PEs are consecutive */
    wefti_head *head; /* of the window */
    wefti_control *control; /* this PE's, at the start of its slot */
    unsigned char *heap; /* this PE's */
    uint64_t heap_max_bytes; /* with the sparse part, which comes first */
    uint64_t sparse_bytes;
    wefti_os_placement_made placement; /* of this PE's slot */
    wefti_os_monitor *heap_lock;
    wefti_blocks blocks;
    struct wefti_retry *retries; /* calls that have to try again: see src/team/retry.c */

    int oversubscribed; /* the node has more PEs than processors */
    unsigned pes_per_core; /* PEs that share a processor with this one, itself included; rounded up */
    wefti_preferences preferences; /* of collective algorithms */

    wefti_device *device; /* NULL until weft_device_attach */

    wefti_transport transports[WEFTI_WORLD_TRANSPORTS_MAX];
    size_t transport_count;
    int knows_fates; /* the transport between nodes tells which PEs of other nodes are gone */

    struct weft_team team_world;
    struct weft_team team_node;
    struct weft_team team_same_slot;
    struct weft_team team_link; /* the node's members, but a team of its own; shares its list */
    int32_t *link_domain; /* [pes] the lowest PE of each one's link domain; NULL: all are in one */
    uint32_t teams_made; /* the highest number of a team */
    wefti_attachment *attachments; /* teams and what else was made later and ends with the world; heap_lock */
    void *late_frees[WEFTI_LATE_FREES]; /* what was destroyed last, for wefti_world_free_late; heap_lock */
    uint64_t late_free_count;

    uint64_t fault; /* 0, or the first fault: see fault.c */
    uint64_t tells_until_ns; /* until when this PE tells others that it aborts; 0: it does not. Atomic */

    weft_world_phase phases[WEFTI_WORLD_PHASES_MAX];
    size_t phase_count;
    uint64_t phase_start_ns;

    uint64_t any_first_look; /* where calls that look for any of several variables begin: see src/rma/words.c */

    weft_counters counters;
    int prints_counters; /* by weft_world_destroy */
    int (*interrupted)(void *context); /* weft_world_config's */
    void *interrupted_context;
    weft_status (*check_call)(void *world); /* wefti_world_check_call, for transports */
    struct wefti_timeline *timeline; /* NULL: not traced */
};

/* Whether calls may use this world: not NULL, not destroyed, made by this process. */
static inline int wefti_world_is_alive(const weft_world *world)
{
    return WEFTI_LIKELY(world != NULL && world->magic == WEFTI_WORLD_MAGIC);
}

/* Whether calls may use this team, dead or not. */
static inline int wefti_team_is_alive(const weft_team *team)
{
    return WEFTI_LIKELY(team != NULL && !team->destroyed && wefti_world_is_alive(team->world));
}

/* ---- handle.c: what calls return for a handle that they may not use ---- */

/* WEFT_ERR_STATE for a world that this process has by a fork, WEFT_ERR_ARGUMENT for one that is NULL or destroyed. */
weft_status wefti_world_refuse(const weft_world *world, const char *call);
static inline weft_status wefti_world_expect(const weft_world *world, const char *call)
{
    return wefti_world_is_alive(world) ? WEFT_OK : wefti_world_refuse(world, call);
}

/* The same for a team; one that is destroyed is WEFT_ERR_STATE. */
weft_status wefti_team_refuse(const weft_team *team, const char *call);
static inline weft_status wefti_team_expect(const weft_team *team, const char *call)
{
    return wefti_team_is_alive(team) ? WEFT_OK : wefti_team_refuse(team, call);
}

/* Add to a counter of this world; any thread. */
#define WEFTI_COUNT(world, name, amount)                                                                               \
    ((void)__atomic_fetch_add(&(world)->counters.name, (uint64_t)(amount), __ATOMIC_RELAXED))
#define WEFTI_COUNT_SET(world, name, amount)                                                                           \
    __atomic_store_n(&(world)->counters.name, (uint64_t)(amount), __ATOMIC_RELAXED)

/* Count a call that a team makes together. One thread at a time uses a team, so that those that always exist, and are
 * used most, count without an atomic access. */
static inline void wefti_team_count(weft_team *team, wefti_counter call)
{
    if (WEFTI_LIKELY(team->predefined)) {
        uint64_t *calls = &team->calls[call - WEFTI_COUNTER_barriers];
        __atomic_store_n(calls, __atomic_load_n(calls, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
    } else {
        wefti_world_count(team->world, call, 1);
    }
}

/* ---- timeline.c ---- */

/* A span of a call of this team: one test when the world is not traced. */
static inline wefti_span wefti_team_span_begin(const weft_team *team, const char *call)
{
    return WEFTI_LIKELY(team->world->timeline == NULL) ? (wefti_span){.world = NULL}
                                                       : wefti_span_begin(team->world, call);
}

/* Ends it and returns the call's status. */
static inline weft_status wefti_team_span_end(const weft_team *team, const wefti_span *span, size_t bytes,
                                              weft_status status)
{
    if (WEFTI_UNLIKELY(span->world != NULL)) {
        wefti_span_end(span, (wefti_span_details){.members = team->pes, .bytes = bytes, .status = status});
    }
    return status;
}

/* ---- counters.c ---- */

/* Print them, if WEFT_COUNTERS asked for it at creation. */
void wefti_world_counters_print(const weft_world *world);

/* ---- config.c: a config with the environment and the defaults filled in ---- */

typedef struct wefti_world_settings {
    /* Deadline, warn and bootstrap resolved; name set. The deadline is the meeting's: finite. */
    weft_world_config config;
    uint64_t deadline_ns; /* the world's; may be WEFT_FOREVER */
    uint64_t warn_ns; /* likewise */
    uint64_t silence_ns; /* likewise */
    int progress_inline;
    uint64_t heap_max_bytes; /* 0: by the least of the nodes' memory, once they are known */
    uint64_t heap_bytes;
    uint64_t spins; /* 0: by PEs and cores */
    uint32_t networks; /* a list of networks.c: what may connect this PE with other nodes */
    int can_meet; /* the others can be met with this config, also to tell them that something is wrong */
    wefti_preferences preferences;
    uint64_t trace_events_max;
    uint64_t tells_nvtx;
    uint64_t prints_counters;
} wefti_world_settings;

/* ---- networks.c: what may connect nodes ---- */

/* A list has one network (WEFTI_NETWORK_TABLE) a byte: the first to be tried in the lowest; 0 ends it. */
/* The networks of this build, and a library that WEFT_TRANSPORT names, as far as WEFT_TRANSPORT allows them. */
weft_status wefti_world_networks(uint32_t *networks);
/* Its transport; NULL: not in this build, or the simulator's, which is open already. */
const wefti_transport_ops *wefti_network_ops(uint32_t network);
/* The list with one more network at its end, unless it has it already. */
uint32_t wefti_networks_append(uint32_t list, uint32_t network);
/* Those of `list` that are in `other`, too. */
uint32_t wefti_networks_common(uint32_t list, uint32_t other);
/* Whether, by WEFT_PROGRESS, calls take in messages of other nodes, and no thread does. */
weft_status wefti_world_progress(int *is_inline);

/* On failure settings->config is good for meeting the others if can_meet says so. */
weft_status wefti_world_settings_init(wefti_world_settings *settings, const weft_world_config *config);

/* ---- fault.c: the latched fault ---- */

/* Latch the first fault; later ones are ignored. culprit_pe -1: not known. */
void wefti_world_latch(weft_world *world, weft_status status, int culprit_pe);
/* WEFT_OK, or the latched fault as this thread's error: checks the abort word too. `call` begins the text. */
weft_status wefti_world_check(weft_world *world, const char *call);
/* Ask config.interrupted, and abort the world if it says so. */
weft_status wefti_world_ask(weft_world *world);
/* Both, for a call that waits for other nodes (transport.h). `world` is a weft_world. */
weft_status wefti_world_check_call(void *world);

/* ---- wait.c ---- */

/* The word of this PE at `variable`, with acquire; in device memory by a copy. */
weft_status wefti_world_look(weft_world *world, const void *variable, wefti_word_kind kind, uint64_t *value);

/* ---- presence.c: who is still there; of PEs of other nodes, what their transport knows ---- */

/* come: this PE is there from now on. leave: it is not any more. */
void wefti_world_come(weft_world *world);
void wefti_world_leave(weft_world *world); /* safe before `come` */
/* has_ended: the process of `pe` has ended while it was there. has_left: `pe` destroys its world, or has done so. */
int wefti_world_has_ended(const weft_world *world, int pe);
/* Whether `pe`, another one, is a thread of this process. */
int wefti_world_shares_process(const weft_world *world, int pe);
/* is_unreachable: the host of `pe` gives no sign of life. is_lost: that, or `pe` has ended. */
int wefti_world_is_unreachable(const weft_world *world, int pe);
/* Whether any PE is lost. */
int wefti_world_has_lost(const weft_world *world);
/* For the end of an error's text: "; PE 3 has ended; PEs 1, 2 have left the world", or "". */
#define WEFTI_GONE_BYTES 660
const char *wefti_world_gone_text(const weft_world *world, char text[WEFTI_GONE_BYTES]);

/* ---- route.c: which transport carries what to whom ---- */

weft_status wefti_world_transports_open(weft_world *world);
/* The one between nodes, in a world that has several: the first of the list that opens on all PEs. Every PE calls it
 * with the same list. `gpu`: as its setup has it. */
weft_status wefti_world_network_open(weft_world *world, uint32_t networks, const wefti_transport_exchange *exchange,
                                     const wefti_transport_gpu *gpu);
/* A pause of a waiter by the transport between nodes, which sees to what has come meanwhile; returns 0 if there is
 * none. */
int wefti_world_pause(weft_world *world, uint64_t waited_ns, uint64_t left_ns);
void wefti_world_transports_close(weft_world *world);
/* The transport that reaches `pe`, which is in range; NULL if none does. */
wefti_transport *wefti_world_transport(weft_world *world, int pe);

/* ---- phases ---- */

/* End the phase that began at the last call, under this static name. */
void wefti_world_phase(weft_world *world, const char *name);
/* Make a world, without a device; `settings` becomes what its config and the environment say. `find_pci`: of the
 * backend of devices (device/device.h), or NULL; a network asks which GPU it will be. */
weft_status wefti_world_make(const weft_world_config *config, const wefti_headers *headers,
                             int (*find_pci)(const weft_device_config *config, char *text, int bytes),
                             wefti_world_settings *settings, weft_world **world);
/* End it: local. Safe on a half-made one, and on NULL. */
void wefti_world_free(weft_world *world);

/* ---- reach.c: the library's own words on other PEs, near or far, which may lie before the heap ---- */

/* The head's record of the PE in slot `slot` of the node. */
static inline wefti_presence *wefti_world_presence(const weft_world *world, size_t slot)
{
    return (wefti_presence *)(void *)(world->head + 1) + slot;
}

/* Where an address of this PE's slot lies in it, and so in every PE's: what transports are given. */
static inline uint64_t wefti_slot_offset(const weft_world *world, const void *address)
{
    return (uint64_t)((uintptr_t)address - (uintptr_t)world->control);
}

/* The slot of a near PE. */
size_t wefti_world_slot(const weft_world *world, int pe);

/* Copy `bytes` bytes (may be 0) to `dest` on `pe`, then store `value` in its 64-bit word `flag`, with release. */
weft_status wefti_world_put_flag(weft_world *world, void *dest, const void *source, size_t bytes, uint64_t *flag,
                                 uint64_t value, int pe);
/* Set the 64-bit word `flag` of `pe`, which awaits it, with release. */
weft_status wefti_world_flag(weft_world *world, uint64_t *flag, uint64_t value, int pe);
/* Read the 64-bit word `word` of `pe`, with acquire; of a near one it may lie in the head. */
weft_status wefti_world_read(weft_world *world, const uint64_t *word, int pe, uint64_t *value);
/* The same, for finding out who is late: a far PE that does not answer is waited for only shortly. */
weft_status wefti_world_read_soon(weft_world *world, const uint64_t *word, int pe, uint64_t *value);
/* Before a series of such reads: find out for all these PEs at once which do not answer. */
void wefti_world_find_silent(weft_world *world, const int *pes, int count);
/* Set the 64-bit word `word` of `pe` from 0 to `value`, if it is 0. */
weft_status wefti_world_set_once(weft_world *world, uint64_t *word, uint64_t value, int pe);

#endif

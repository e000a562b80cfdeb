/* testing/sim/flow.h: stores on their way: one fiber's store buffer, or its messages to other link domains, in the
 * order in which they were issued.
 *
 * An entry may commit before earlier ones unless
 *   it overlaps one of them;
 *   it is of a later group to the same target (a release fence, or a transport's fence, begins a group);
 *   it is a release, which commits after all earlier ones (of the flow; a message: to its target);
 *   it is the signal of an operation whose data is among them.
 * A store past the caches keeps back only what overlaps it, not even a release, until the fiber ends such stores. */
#ifndef WEFTI_SIM_FLOW_H
#define WEFTI_SIM_FLOW_H

#include <stddef.h>
#include <stdint.h>

#define WEFTI_ENTRY_BYTES 64
#define WEFTI_ENTRY_NONE UINT32_MAX

typedef enum wefti_entry_kind {
    WEFTI_ENTRY_RELAXED,
    WEFTI_ENTRY_RELEASE,
    WEFTI_ENTRY_AFTER_OPERATION,
    WEFTI_ENTRY_STREAM /* relaxed, past the caches */
} wefti_entry_kind;

typedef struct wefti_entry {
    uint64_t offset; /* in the arena */
    uint32_t bytes; /* inside one line */
    wefti_entry_kind kind;
    int is_add; /* a 64-bit addition instead of a store */
    int target; /* of a message: a port; else -1 */
    uint32_t group;
    uint32_t operation;
    uint32_t next;
    uint32_t previous;
    unsigned char data[WEFTI_ENTRY_BYTES];
} wefti_entry;

/* All entries of a simulation. */
typedef struct wefti_entry_pool {
    wefti_entry *all;
    uint32_t capacity;
    uint32_t free; /* a list through `next` */
} wefti_entry_pool;

void wefti_entry_pool_init(wefti_entry_pool *pool);
void wefti_entry_pool_fini(wefti_entry_pool *pool);

typedef struct wefti_flow {
    uint32_t first;
    uint32_t last;
    uint32_t count;
    uint32_t group; /* of what is issued now */
    uint32_t operation;
    uint32_t pending_index; /* + 1 in the simulation's list of flows that are not empty */
    uint32_t speed; /* of 256: how often an entry commits when this flow is drawn */
} wefti_flow;

void wefti_flow_init(wefti_flow *flow);
/* Copies *entry; group and operation are set by the caller. Returns its index. */
uint32_t wefti_flow_append(wefti_flow *flow, wefti_entry_pool *pool, const wefti_entry *entry);
void wefti_flow_remove(wefti_flow *flow, wefti_entry_pool *pool, uint32_t index);
/* Whether the entry may commit now. */
int wefti_flow_may_commit(const wefti_flow *flow, const wefti_entry_pool *pool, uint32_t index);
/* The entry at `place` from the oldest on. */
uint32_t wefti_flow_at(const wefti_flow *flow, const wefti_entry_pool *pool, uint32_t place);

/* Whether a relaxed store of these bytes by the owner of a store buffer may pass all that waits there. */
int wefti_flow_may_pass(const wefti_flow *flow, const wefti_entry_pool *pool, uint64_t offset, size_t bytes);

/* From here on what is stored later comes after the stores past the caches, as after any. */
void wefti_flow_end_streams(const wefti_flow *flow, wefti_entry_pool *pool);

/* Put what waits for these bytes over `out`, oldest first: a fiber sees its own stores. */
void wefti_flow_forward(const wefti_flow *flow, const wefti_entry_pool *pool, uint64_t offset, size_t bytes,
                        unsigned char *out);

#endif

/* protocol/layout.h: what lies where in symmetric memory that the library itself uses.
 *
 * A node's window is   head | slot 0 | slot 1 | ...   with a slot for each PE of the node. The head holds, close
 * together, what each PE reads of every other: a page of it is about many PEs, while a word in a slot costs whoever
 * reads it a page of page table, since slots are aligned to more than such a page maps. So a slot is touched only by
 * who uses it.
 *
 * A PE's slot is   control block | areas of the world, node, same-slot and link teams | (page) heap
 * and a team made later has its area in the heap. All offsets in a slot are equal on all PEs of a world. */
#ifndef WEFTI_PROTOCOL_LAYOUT_H
#define WEFTI_PROTOCOL_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "weft/protocol/mem.h"

/* Rounds of a dissemination among n members: the least r with 2^r >= n. */
static inline unsigned wefti_rounds(unsigned members)
{
    unsigned rounds = 0;
    while (((uint64_t)1 << rounds) < members) {
        rounds++;
    }
    return rounds;
}

typedef struct wefti_line {
    uint64_t word;
    uint64_t unused[7];
} wefti_line;

/* How far a member has come with a team's calls, zero before first use. Written by itself; read by who waits too long.
 *   sync, agree   the step of a dissemination, or of an agreement, at which it has arrived
 *   arrived       the step of a sync by counting that it has counted itself in
 *   published     a word for the others to read between two agreements */
typedef struct wefti_epochs {
    uint64_t sync;
    uint64_t agree;
    uint64_t arrived;
    uint64_t published;
    uint64_t unused[4];
} wefti_epochs;

/* A PE in the head of its node's window. `proof` follows from the secret of the world, which the PEs have through the
 * bootstrap: who reads it in mapped memory can load and store here. */
typedef struct wefti_presence {
    unsigned char proof[16];
    uint64_t pe;
    uint64_t process; /* equal for the PEs of one process */
    uint64_t left; /* 1 once this PE has destroyed its world */
    uint64_t unseen; /* 1 where the system does not tell when this PE's process ends */
    uint64_t unused[2];
    wefti_epochs world; /* of the world's team, if it has no members on other nodes */
    wefti_epochs node;
    wefti_epochs link;
} wefti_presence;

/* First in the window. `abort` is 0, or WEFTI_ABORT_SET | pe << 32 | code of the first abort that came to this node.
 * After it comes a wefti_presence for each PE of the node. */
typedef struct wefti_head {
    uint64_t abort;
    uint64_t unused[7];
} wefti_head;

/* First in every slot. */
typedef struct wefti_control {
    uint64_t device_fault; /* written by this PE's kernels: 0, or the first fault (see weft/device/dev.h) */
    uint64_t reserved; /* bytes of this slot that have memory, from its start; written by its PE */
    uint64_t unused[6];
    uint64_t abort; /* as the head's: where PEs of other nodes write it */
    uint64_t unused_abort[7];
} wefti_control;

#define WEFTI_ABORT_SET ((uint64_t)1 << 63)

/* What members tell each other when they agree: the extremes over all of them. Each field merges by itself, in any
 * order and any number of times. */
typedef struct wefti_vote {
    uint64_t key_low; /* hash of the call and its arguments; differs from key_high when members disagree */
    uint64_t key_high;
    uint64_t offset_low; /* proposed offset in the heap */
    uint64_t offset_high;
    uint64_t reserved_low; /* bytes of the heap reserved so far, least of all members */
    uint32_t key_low_pe;
    uint32_t key_high_pe;
    int32_t status; /* the most negative */
    uint32_t status_pe;
} wefti_vote;

typedef struct wefti_vote_line {
    wefti_vote vote;
    uint64_t flag;
} wefti_vote_line;

/* Members that agree by counting do so in groups of at most so many, and groups of groups. */
#define WEFTI_GROUP_PLACES 16

/* Levels of groups above n members: the least l with places^l >= n. */
static inline unsigned wefti_group_levels(unsigned members)
{
    unsigned levels = 0;
    for (uint64_t reach = 1; reach < members; reach *= WEFTI_GROUP_PLACES) {
        levels++;
    }
    return levels;
}

static inline unsigned wefti_group_places(unsigned members)
{
    return members < WEFTI_GROUP_PLACES ? members : WEFTI_GROUP_PLACES;
}

/* One member's words of a team, each in its own cache line, zero before first use.
 *   epochs            unless the team's lie in the head
 *   count             the first member's only: how often members have counted themselves in
 *   result            the first member's only: what members agreed on by counting, and the epoch as its flag
 *   sync[r]           flag of round r: the epoch of the member 2^r before; only it writes
 *   vote[parity][r]   what that member knows in round r of an agreement, and then its epoch as the flag. Two parities:
 *                     a member can be one epoch ahead, never two, since an agreement ends only when all have entered
 *                     it.
 *   group[level]      the first member's of a group only: how often votes have come to it, and a place for each */
typedef struct wefti_team_area {
    wefti_epochs epochs;
    wefti_line count;
    wefti_vote_line result;
    /* then: rounds lines of sync flags, 2 * rounds vote lines, for each level a wefti_group */
} wefti_team_area;

typedef struct wefti_group {
    wefti_line count;
    /* then: wefti_group_places(members) vote lines */
} wefti_group;

static inline size_t wefti_group_bytes(unsigned members)
{
    return sizeof(wefti_group) + wefti_group_places(members) * sizeof(wefti_vote_line);
}

static inline size_t wefti_team_area_bytes(unsigned members)
{
    return sizeof(wefti_team_area) + 3 * (size_t)wefti_rounds(members) * sizeof(wefti_line) +
           wefti_group_levels(members) * wefti_group_bytes(members);
}

static inline uint64_t *wefti_team_sync_flag(wefti_team_area *area, unsigned round)
{
    return &((wefti_line *)(void *)(area + 1))[round].word;
}

static inline wefti_vote_line *wefti_team_vote_line(wefti_team_area *area, unsigned rounds, unsigned parity,
                                                    unsigned round)
{
    return (wefti_vote_line *)(void *)&((wefti_line *)(void *)(area + 1))[rounds + parity * rounds + round];
}

static inline wefti_group *wefti_team_group(wefti_team_area *area, unsigned members, unsigned level)
{
    wefti_line *groups = (wefti_line *)(void *)(area + 1) + 3 * (size_t)wefti_rounds(members);
    return (wefti_group *)(void *)((unsigned char *)groups + level * wefti_group_bytes(members));
}

static inline wefti_vote *wefti_group_vote(wefti_group *group, uint64_t place)
{
    return &((wefti_vote_line *)(void *)(group + 1))[place].vote;
}

/* Bytes before the first slot, for so many PEs of a node. */
static inline size_t wefti_layout_head(size_t node_pes)
{
    return sizeof(wefti_head) + node_pes * sizeof(wefti_presence);
}

/* Offsets in a slot. */
static inline size_t wefti_layout_world_area(void)
{
    return sizeof(wefti_control);
}

static inline size_t wefti_layout_node_area(unsigned pes)
{
    return wefti_layout_world_area() + wefti_team_area_bytes(pes);
}

static inline size_t wefti_layout_same_slot_area(unsigned pes)
{
    return wefti_layout_node_area(pes) + wefti_team_area_bytes(pes);
}

static inline size_t wefti_layout_link_area(unsigned pes)
{
    return wefti_layout_same_slot_area(pes) + wefti_team_area_bytes(pes);
}

static inline size_t wefti_layout_heap(unsigned pes, size_t page_bytes)
{
    size_t end = wefti_layout_link_area(pes) + wefti_team_area_bytes(pes);
    return (end + page_bytes - 1) / page_bytes * page_bytes;
}

#endif

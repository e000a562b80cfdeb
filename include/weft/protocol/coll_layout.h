/* protocol/coll_layout.h: the scratch of a team's data collectives, one block of equal offset on every member.
 *
 *   scratch:  | area | of member 0 | of member 1 | ... |        of a member:  | lines | slots | words |
 *
 * Member s writes only into what is its own at each other member, or, where all read one message, in its own scratch:
 * in step e, line e mod the number of lines when the call's messages fit in a cache line with their flag, else slot e
 * mod WEFTI_COLL_SLOTS; of messages that are a word each and whose sender runs ahead, word e mod the number of lines:
 * what is in a cache line together comes together. Steps are numbered from 1 by the team's epoch, equally on all
 * members. Each is used again once its readers' `done` say that they have left the earlier step: the more of them, the
 * further ahead a sender may run that need not wait. Lines, words and the flags of slots are zero before first use. */
#ifndef WEFTI_PROTOCOL_COLL_LAYOUT_H
#define WEFTI_PROTOCOL_COLL_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "weft/protocol/mem.h"

#define WEFTI_COLL_LINES 64u
#define WEFTI_COLL_LINES_MAX 512u /* of the world where PEs share processors: who runs ahead spares turns of them */
#define WEFTI_COLL_LINES_IN_ALL 4096u /* unless the members are many */
#define WEFTI_COLL_SLOTS 8u
#define WEFTI_COLL_MARKS 4u
#define WEFTI_COLL_SLOT_BYTES_MAX ((size_t)2048 + WEFTI_CACHE_LINE)
#define WEFTI_COLL_SLOTS_BYTES_MAX ((size_t)512 << 10) /* unless the members are too many for a line each */

/* All words are the member's own: others read them. `entered`: the last step it has begun, and `marks`: the flags of
 * the first steps of its last calls, for those who wait too long: another's call of the same step is another call if
 * its flag differs. `done`: the last step of which it has read all that it had to, in slots and in others' buffers.
 * `source`, `dest`, `call`: of a call whose members move each other's blocks: where this member's buffers lie in its
 * slot of the window, and the call's flag. `moved`: how often others have moved its blocks, which they add to. `came`:
 * the first member's: a bit each, turned over as a member comes. */
typedef struct wefti_coll_area {
    uint64_t entered;
    uint64_t marks[WEFTI_COLL_MARKS]; /* by the step */
    uint64_t unused_entered[3];
    uint64_t done;
    uint64_t unused_done[7];
    uint64_t source;
    uint64_t dest;
    uint64_t call;
    uint64_t unused_call[5];
    uint64_t moved;
    uint64_t unused_moved[7];
    uint64_t came;
    uint64_t unused_came[7];
} wefti_coll_area;

/* flag: the step in the low WEFTI_COLL_EPOCH_BITS, what tells calls apart above. Written last. */
typedef struct wefti_coll_slot {
    uint64_t flag;
    uint64_t word; /* a count, or where the sender's buffer lies in its slot of the window */
    /* then: the data */
} wefti_coll_slot;

#define WEFTI_COLL_EPOCH_BITS 48
#define WEFTI_COLL_EPOCH_MASK (((uint64_t)1 << WEFTI_COLL_EPOCH_BITS) - 1)

#define WEFTI_COLL_LINE_DATA_BYTES (WEFTI_CACHE_LINE - sizeof(wefti_coll_slot))

static inline size_t wefti_coll_slot_bytes(unsigned members)
{
    size_t share = WEFTI_COLL_SLOTS_BYTES_MAX / ((size_t)members * WEFTI_COLL_SLOTS);
    size_t bytes = share < WEFTI_COLL_SLOT_BYTES_MAX ? share : WEFTI_COLL_SLOT_BYTES_MAX;
    bytes = bytes / WEFTI_CACHE_LINE * WEFTI_CACHE_LINE;
    return bytes < WEFTI_CACHE_LINE ? WEFTI_CACHE_LINE : bytes;
}

/* Where the messages of a call go. */
typedef enum wefti_coll_ring { WEFTI_COLL_IN_LINES = 0, WEFTI_COLL_IN_SLOTS, WEFTI_COLL_IN_WORDS } wefti_coll_ring;

typedef struct wefti_coll_shape {
    unsigned lines; /* a power of two; as many words */
    size_t slot_bytes;
    size_t member_bytes; /* what belongs to one sender */
    size_t bytes; /* of the scratch */
} wefti_coll_shape;

static inline wefti_coll_shape wefti_coll_shape_of(unsigned members, int has_many_lines)
{
    wefti_coll_shape shape;
    shape.lines = has_many_lines ? WEFTI_COLL_LINES_MAX : WEFTI_COLL_LINES;
    while (shape.lines > WEFTI_COLL_LINES && shape.lines * members > WEFTI_COLL_LINES_IN_ALL) {
        shape.lines /= 2;
    }
    shape.slot_bytes = wefti_coll_slot_bytes(members);
    shape.member_bytes =
        shape.lines * (WEFTI_CACHE_LINE + sizeof(wefti_coll_slot)) + WEFTI_COLL_SLOTS * shape.slot_bytes;
    shape.bytes = sizeof(wefti_coll_area) + (size_t)members * shape.member_bytes;
    return shape;
}

/* The line, slot or word of member `source` for step `epoch`, in the scratch that begins at `area`. */
static inline wefti_coll_slot *wefti_coll_slot_of(wefti_coll_area *area, const wefti_coll_shape *shape, unsigned source,
                                                  uint64_t epoch, wefti_coll_ring ring)
{
    unsigned char *lines = (unsigned char *)(area + 1) + source * shape->member_bytes;
    unsigned char *slots = lines + shape->lines * (size_t)WEFTI_CACHE_LINE;
    size_t line = (size_t)(epoch & (shape->lines - 1));
    switch (ring) {
    case WEFTI_COLL_IN_SLOTS:
        return (wefti_coll_slot *)(void *)(slots + (epoch % WEFTI_COLL_SLOTS) * shape->slot_bytes);
    case WEFTI_COLL_IN_WORDS:
        return (wefti_coll_slot *)(void *)(slots + WEFTI_COLL_SLOTS * shape->slot_bytes) + line;
    default:
        return (wefti_coll_slot *)(void *)(lines + line * WEFTI_CACHE_LINE);
    }
}

static inline void *wefti_coll_slot_data(wefti_coll_slot *slot)
{
    return slot + 1;
}

#endif

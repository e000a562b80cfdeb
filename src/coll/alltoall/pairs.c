/* Alltoall where members share processors: of two members the one that comes later moves both of their blocks, straight
 * from source to dest, and tells the other. Nobody waits in order to be read, so that a member needs one turn of its
 * processor a call, and a block is copied once.
 *
 * Who is later is decided by one word of the first member, in which each member has a bit that it turns over when it
 * comes: up in odd calls, down in even ones. Its value before says who had come. Where a member's buffers are it has
 * stored before. Whoever has moved a member's blocks adds one to that member's `moved`, which is awaited: one line for
 * all of them. */
#include "coll/alltoall/alltoall.h"

/* Say where this member's buffers are and that it has come: the members that had come before, a bit each. */
static uint64_t come(wefti_step *step, const wefti_alltoall *a)
{
    wefti_coll *coll = step->coll;
    uint64_t bit = (uint64_t)1 << step->team->pe;
    uint64_t everyone = ((uint64_t)1 << step->team->pes) - 1;
    uint64_t *came = wefti_peer_address(step->team->world, &coll->area->came, wefti_member(step->team, 0));
    wefti_st64(&coll->area->source, wefti_slot_offset(step->team->world, a->source), WEFTI_RELAXED);
    wefti_st64(&coll->area->dest, wefti_slot_offset(step->team->world, a->dest), WEFTI_RELAXED);
    wefti_st64(&coll->area->call, step->epoch | step->signature, WEFTI_RELAXED);
    coll->parity = !coll->parity;
    uint64_t before = wefti_add64(came, coll->parity ? bit : 0 - bit);
    return (coll->parity ? before : ~before) & everyone;
}

static const wefti_coll_area *area_of(const wefti_step *step, int member)
{
    return wefti_step_view(step, member, wefti_slot_offset(step->team->world, step->coll->area));
}

/* Whether all of the members `early` make this call. One that does not finds that out as it waits. */
static weft_status compare(wefti_step *step, uint64_t early)
{
    for (int i = 0; i < step->team->pes; i++) {
        if ((early >> i & 1) != 0 &&
            wefti_ld64(&area_of(step, i)->call, WEFTI_RELAXED) != (step->epoch | step->signature)) {
            return wefti_step_refuse(step, i);
        }
    }
    return WEFT_OK;
}

/* Both blocks of this member and `with`, which waits for them. */
static weft_status move_both(wefti_step *step, const wefti_alltoall *a, int with)
{
    const wefti_coll_area *theirs = area_of(step, with);
    uint64_t mine = (uint64_t)step->team->pe * a->count;
    uint64_t other = (uint64_t)with * a->count;
    uint64_t *moved = wefti_peer_address(step->team->world, &step->coll->area->moved, wefti_member(step->team, with));
    WEFT_TRY(wefti_step_pull(step, with, a->dest + other, wefti_ld64(&theirs->source, WEFTI_RELAXED) + mine, a->count));
    WEFT_TRY(wefti_step_push(step, with, wefti_ld64(&theirs->dest, WEFTI_RELAXED) + mine, a->source + other, a->count));
    (void)wefti_add64(moved, 1);
    return WEFT_OK;
}

/* So many later members have moved their blocks and this one's. */
static weft_status await_moved(wefti_step *step, uint64_t later)
{
    const uint64_t *moved = &step->coll->area->moved;
    step->coll->moved += later;
    int one = step->team->pe; /* of those that are awaited: each in turn */
    while (wefti_ld64(moved, WEFTI_ACQUIRE) < step->coll->moved) {
        one = one + 1 < step->team->pes ? one + 1 : 0;
        WEFT_TRY(wefti_step_pause(step, one, moved));
    }
    wefti_step_all_came(step);
    return WEFT_OK;
}

weft_status wefti_alltoall_pairs(wefti_step *step, const wefti_alltoall *a)
{
    int pes = step->team->pes;
    size_t mine = (size_t)step->team->pe * a->count;
    uint64_t later = 0;
    uint64_t early = come(step, a);
    WEFT_TRY(compare(step, early));
    for (int i = 1; i < pes; i++) {
        int with = wefti_step_after(step, i);
        if ((early >> with & 1) != 0) {
            WEFT_TRY(move_both(step, a, with));
        } else {
            later++;
        }
    }
    wefti_step_copy(a->dest + mine, a->source + mine, a->count);
    WEFT_TRY(await_moved(step, later));
    wefti_step_leave(step);
    return WEFT_OK;
}

/* Collect: each sends all others the size of its block with the block itself, or where it lies when it is too large for
 * a slot. Blocks are placed in the order of the members, as their sizes become known. */
#include "base/error.h"
#include "coll/step.h"

typedef struct collecting {
    unsigned char *dest;
    const void *source;
    size_t bytes;
    size_t place; /* of the next block */
    weft_status status; /* once the blocks so far leave the heap; the members still need this one */
} collecting;

static weft_status post_all(wefti_step *step, const collecting *c)
{
    uint64_t offset = wefti_slot_offset(step->team->world, c->source);
    int large = c->bytes > step->coll->slot_data_bytes;
    wefti_step_share(step);
    return wefti_step_post_all(step, c->bytes, large ? &offset : c->source, large ? sizeof offset : c->bytes);
}

/* Make room for the next block; whether there is some to be filled. */
static int has_place(wefti_step *step, collecting *c, size_t bytes)
{
    if (c->status == WEFT_OK) {
        c->status =
            wefti_coll_check_buffer(step->team, step->call, "destination of all blocks", c->dest, c->place + bytes, 1);
    }
    return c->status == WEFT_OK && bytes > 0;
}

static weft_status take(wefti_step *step, collecting *c, int from)
{
    wefti_coll_slot *slot;
    WEFT_TRY(wefti_step_await(step, from, &slot));
    size_t bytes = (size_t)wefti_ld64(&slot->word, WEFTI_RELAXED);
    if (has_place(step, c, bytes)) {
        if (bytes <= step->coll->slot_data_bytes) {
            wefti_step_copy(c->dest + c->place, wefti_coll_slot_data(slot), bytes);
        } else {
            uint64_t offset = wefti_ld64(wefti_coll_slot_data(slot), WEFTI_RELAXED);
            WEFT_TRY(wefti_step_pull(step, from, c->dest + c->place, offset, bytes));
        }
    }
    c->place += bytes;
    return WEFT_OK;
}

static weft_status run(wefti_step *step, collecting *c)
{
    wefti_step_carry(step, SIZE_MAX); /* the receivers do not know the size */
    WEFT_TRY(post_all(step, c));
    for (int from = 0; from < step->team->pes; from++) {
        if (from != step->team->pe) {
            WEFT_TRY(take(step, c, from));
        } else {
            if (has_place(step, c, c->bytes)) {
                wefti_step_copy(c->dest + c->place, c->source, c->bytes);
            }
            c->place += c->bytes;
        }
    }
    wefti_step_leave(step);
    if (c->bytes > step->coll->slot_data_bytes) {
        WEFT_TRY(wefti_step_await_all_left(step));
    }
    return c->status;
}

weft_status weft_collectmem(weft_team *team, void *dest, const void *source, size_t bytes)
{
    static const char call[] = "weft_collect";
    collecting c = {.dest = dest, .source = source, .bytes = bytes};
    WEFT_TRY(wefti_coll_check_buffer(team, call, "source", source, bytes, 1));
    WEFT_TRY(wefti_coll_check_buffer(team, call, "destination", dest, bytes, 1));
    const wefti_call_arguments arguments = {.kind = WEFTI_COLL_COLLECT};
    wefti_step step;
    WEFT_TRY(wefti_step_begin(&step, team, call, &arguments));
    step.count = bytes;
    return wefti_step_end(&step, 1, run(&step, &c));
}

/* Broadcast of a message that fits in a slot, down a tree so wide that small teams hear from the root itself. Members
 * are numbered from the root on: the children of v are v * WIDTH + 1 ... v * WIDTH + WIDTH. */
#include "coll/broadcast/broadcast.h"

#define WIDTH 16

/* What is sent on: what fits in the message's word is there, the rest is its data. */
typedef struct parcel {
    uint64_t word;
    const void *data;
    size_t bytes;
} parcel;

static weft_status post_children(wefti_step *step, const wefti_broadcast *b, int place, const parcel *p)
{
    int pes = step->team->pes;
    if (step->shared) { /* all read it at the root */
        return place == 0 ? wefti_step_post_all(step, p->word, p->data, p->bytes) : WEFT_OK;
    }
    for (int64_t child = (int64_t)place * WIDTH + 1; child <= (int64_t)place * WIDTH + WIDTH && child < pes; child++) {
        int to = (int)((child + b->root) % pes);
        WEFT_TRY(wefti_step_post(step, to, p->word, p->data, p->bytes));
    }
    return WEFT_OK;
}

weft_status wefti_broadcast_push(wefti_step *step, const wefti_broadcast *b)
{
    int pes = step->team->pes;
    int place = (step->team->pe - b->root + pes) % pes;
    int is_word = b->bytes <= sizeof(uint64_t);
    parcel p = {.data = b->source, .bytes = is_word ? 0 : b->bytes};
    if (is_word) {
        wefti_step_carry_words(step);
    } else {
        wefti_step_carry(step, b->bytes);
    }
    wefti_step_share(step);
    if (place != 0) {
        wefti_coll_slot *slot;
        int parent = step->shared ? 0 : (place - 1) / WIDTH;
        WEFT_TRY(wefti_step_await(step, (parent + b->root) % pes, &slot));
        p.word = wefti_ld64(&slot->word, WEFTI_RELAXED);
        p.data = wefti_coll_slot_data(slot);
    } else if (is_word) {
        wefti_step_copy(&p.word, b->source, b->bytes);
    }
    WEFT_TRY(post_children(step, b, place, &p));
    wefti_step_copy(b->dest, is_word ? &p.word : p.data, b->bytes);
    wefti_step_leave(step);
    return WEFT_OK;
}

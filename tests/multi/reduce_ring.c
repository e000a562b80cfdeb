/* PES: 1 2 3 5 */
/* Goal: what docs/changing.md says about a new algorithm of a collective is enough to write one: a reduce by a ring.
 *
 * Method: the file of such an algorithm, whole, as it would lie in src/coll/reduce, and a call that begins and ends as
 * wefti_reduce does. Vectors of lengths about those at which blocks are empty, a piece is full or a rule ends, in place
 * and not, beside sums that every member knows; the source is overwritten as soon as a call returns. */
#include <string.h>

#include "coll/reduce/reduce.h"
#include "support/check.h"
#include "support/pe_main.h"

/* ---- the algorithm ---- */

/* Members are a circle, and each reads from the one before. In the first P - 1 hops the block of `pe - hop - 1` comes
 * by with what the members that it has passed have added; then it is the sum, and in the next P - 1 hops it is copied
 * on. A hop is a step: its message says that the sender's block of this hop is ready.
 *
 * Nobody writes a block that another still reads: the message of a hop says through the whole circle that the member
 * after this one has left the hop in which it read that block. Only the last hop has none behind it, so that its end is
 * waited for. */
typedef struct ring_block {
    size_t first; /* elements */
    size_t last;
} ring_block;

static int before(const wefti_step *step, int distance)
{
    return wefti_step_after(step, step->team->pes - distance);
}

/* The block that this member reads in a hop of either half. */
static ring_block block_of(const wefti_step *step, const wefti_reduction *r, int distance)
{
    ring_block block;
    const int member = distance == 0 ? step->team->pe : before(step, distance);
    wefti_slice_of(step, member, r->count, r->fold.element, &block.first, &block.last);
    return block;
}

static weft_status add_block(wefti_step *step, const wefti_reduction *r, ring_block block, uint64_t from_offset)
{
    const size_t element = r->fold.element;
    const size_t piece = WEFTI_FOLD_BYTES / element;
    for (size_t first = block.first; first < block.last; first += piece) {
        const size_t count = block.last - first < piece ? block.last - first : piece;
        const size_t at = first * element;
        const void *part;
        WEFT_TRY(wefti_slice_part(step, before(step, 1), from_offset + at, count * element, wefti_step_chunk(step, 1),
                                  &part));
        wefti_fold_chunk(&r->fold, r->dest + at, part, r->source + at, count);
    }
    return WEFT_OK;
}

static weft_status copy_block(wefti_step *step, const wefti_reduction *r, ring_block block)
{
    const size_t at = block.first * r->fold.element;
    const size_t bytes = (block.last - block.first) * r->fold.element;
    const uint64_t offset = wefti_slot_offset(step->team->world, r->dest) + at;
    return bytes > 0 ? wefti_step_pull(step, before(step, 1), r->dest + at, offset, bytes) : WEFT_OK;
}

/* Say that this member's block is ready, and wait for that of the one before. */
static weft_status begin_hop(wefti_step *step)
{
    wefti_coll_slot *slot;
    WEFT_TRY(wefti_step_post(step, wefti_step_after(step, 1), 0, NULL, 0));
    return wefti_step_await(step, before(step, 1), &slot);
}

static weft_status wefti_reduce_ring(wefti_step *step, const wefti_reduction *r)
{
    const int hops = step->team->pes - 1;
    if (hops == 0) {
        wefti_step_copy(r->dest, r->source, r->count * r->fold.element);
        wefti_step_leave(step);
        return WEFT_OK;
    }
    wefti_slice_sign(step, r);
    for (int hop = 0; hop < 2 * hops; hop++) {
        if (hop > 0) {
            wefti_step_next(step);
        }
        WEFT_TRY(begin_hop(step));
        if (hop < hops) {
            const void *from = hop == 0 ? (const void *)r->source : r->dest;
            WEFT_TRY(add_block(step, r, block_of(step, r, hop + 1), wefti_slot_offset(step->team->world, from)));
        } else {
            WEFT_TRY(copy_block(step, r, block_of(step, r, hop - hops)));
        }
    }
    wefti_step_leave(step);
    return wefti_step_await_left(step, wefti_step_after(step, 1));
}

/* ---- the call ---- */

static weft_status reduce(weft_team *team, wefti_op op, wefti_type type, void *dest, const void *source, size_t count)
{
    static const char call[] = "reduce by a ring";
    wefti_reduction r = {.dest = dest, .source = source, .count = count};
    WEFT_TRY(wefti_reduction_init(&r, call, op, type));
    const wefti_call_arguments arguments = {
        .kind = WEFTI_COLL_REDUCE, .count = count, .more = (uint64_t)op << 8 | (uint64_t)type};
    wefti_step step;
    WEFT_TRY(wefti_step_begin(&step, team, call, &arguments));
    return wefti_step_end(&step, r.fold.element, wefti_reduce_ring(&step, &r));
}

/* ---- the test ---- */

#define COUNT_MAX 20000
#define ROUNDS 4

static int64_t value_of(int pe, size_t i, int round)
{
    return (int64_t)(i * 7 + (size_t)round) % 101 - 50 + pe * 1000;
}

static void check_length(weft_world *world, int64_t *dest, int64_t *source, size_t count)
{
    const int pes = weft_world_pes(world);
    size_t wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t *to = round % 2 == 0 ? dest : source;
        for (size_t i = 0; i < count; i++) {
            source[i] = value_of(weft_world_pe(world), i, round);
        }
        CHECK_OK(reduce(weft_team_world(world), WEFTI_OP_SUM, WEFTI_TYPE_INT64, to, source, count));
        for (size_t i = 0; i < count; i++) {
            wrong += to[i] != pes * value_of(0, i, round) + 500 * pes * (pes - 1);
        }
        memset(source, 0x5a, count * sizeof *source);
    }
    CHECK_SAY(wrong == 0, "%zu sums of %zu are wrong", wrong, count);
}

static void run(weft_world *world)
{
    static const size_t about[] = {0, 1, 8, 64, 256, 1024, 1536, 2048, 5120, COUNT_MAX - 1};
    int64_t *source = pe_poisoned(world, COUNT_MAX * sizeof *source);
    int64_t *dest = pe_poisoned(world, COUNT_MAX * sizeof *dest);
    for (size_t i = 0; i < sizeof about / sizeof *about; i++) {
        check_length(world, dest, source, about[i] > 0 ? about[i] - 1 : 0);
        check_length(world, dest, source, about[i]);
        check_length(world, dest, source, about[i] + 1);
    }
    CHECK_OK(weft_free(world, dest));
    CHECK_OK(weft_free(world, source));
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, run);
}

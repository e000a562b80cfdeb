/* sim/strided.c: strided and block accesses, contexts on teams that are no more, waits for vectors of values, and long
 * strided alltoalls. What comes of each is compared word by word with what it should be, gaps among it. */
#include <stdlib.h>
#include <string.h>

#include "sim/cases.h"

#define AREA 800 /* words */
#define ROUNDS 4
#define VALUES 7

/* What a word holds: of which PE it is, in which round it was written there, and whether it is `moved` or lies where
 * others are to be put. */
static uint32_t word_of(int pe, int round, int is_moved, size_t i)
{
    return (uint32_t)(pe + 1) << 24 | (uint32_t)round << 18 | (uint32_t)is_moved << 17 | (uint32_t)i;
}

static void fill(uint32_t *words, int pe, int round, int is_moved)
{
    for (size_t i = 0; i < AREA; i++) {
        words[i] = word_of(pe, round, is_moved, i);
    }
}

/* An access as it is drawn: strides and blocks in elements, these in words. */
typedef struct shape {
    ptrdiff_t dest_stride;
    ptrdiff_t source_stride;
    size_t block;
    size_t blocks;
    size_t element;
    int is_blocks;
    int is_get;
    int by_context;
} shape;

static shape draw_shape(uint64_t *common)
{
    shape s = {.is_blocks = common_below(common, 2),
               .is_get = common_below(common, 2),
               .by_context = common_below(common, 3) == 0,
               .blocks = 1 + (size_t)common_below(common, 20),
               .element = 1 + (size_t)common_below(common, 4)};
    s.block = s.is_blocks ? 1 + (size_t)common_below(common, 3) : 1;
    s.dest_stride = (ptrdiff_t)s.block + common_below(common, 4);
    s.source_stride = (ptrdiff_t)s.block + common_below(common, 4);
    return s;
}

/* The word of the source that comes to word `at` of the destination; AREA: none does. */
static size_t source_of(const shape *s, size_t at)
{
    const size_t step = (size_t)s->dest_stride * s->element;
    const size_t rest = at % step;
    const int is_hit = at / step < s->blocks && rest < s->block * s->element;
    return is_hit ? at / step * (size_t)s->source_stride * s->element + rest : AREA;
}

static void check_words(const uint32_t *words, const shape *s, int from, int round)
{
    const int pe = weft_sim_pe();
    for (size_t i = 0; i < AREA; i++) {
        const size_t at = source_of(s, i);
        const uint32_t expected = at < AREA ? word_of(from, round, 1, at) : word_of(pe, round, 0, i);
        if (words[i] != expected) {
            weft_sim_fail("PE %d: word %zu is %x instead of %x after %zu blocks of %zu elements of %zu words, %td and "
                          "%td apart, were %s PE %d",
                          pe, i, words[i], expected, s->blocks, s->block, s->element, s->dest_stride, s->source_stride,
                          s->is_get ? "got from" : "put by", from);
        }
    }
}

static weft_status put_by(weft_world *world, weft_ctx *ctx, const shape *s, uint32_t *dest, const uint32_t *source,
                          int pe)
{
    const size_t bytes = s->element * sizeof *dest;
    if (s->is_blocks && s->by_context) {
        return weft_ctx_ibputmem(ctx, dest, source, s->dest_stride, s->source_stride, s->block, s->blocks, bytes, pe);
    }
    if (s->is_blocks) {
        return weft_ibputmem(world, dest, source, s->dest_stride, s->source_stride, s->block, s->blocks, bytes, pe);
    }
    if (s->by_context) {
        return weft_ctx_iputmem(ctx, dest, source, s->dest_stride, s->source_stride, s->blocks, bytes, pe);
    }
    return weft_iputmem(world, dest, source, s->dest_stride, s->source_stride, s->blocks, bytes, pe);
}

static weft_status get_by(weft_world *world, weft_ctx *ctx, const shape *s, uint32_t *dest, const uint32_t *source,
                          int pe)
{
    const size_t bytes = s->element * sizeof *dest;
    if (s->is_blocks && s->by_context) {
        return weft_ctx_ibgetmem(ctx, dest, source, s->dest_stride, s->source_stride, s->block, s->blocks, bytes, pe);
    }
    if (s->is_blocks) {
        return weft_ibgetmem(world, dest, source, s->dest_stride, s->source_stride, s->block, s->blocks, bytes, pe);
    }
    if (s->by_context) {
        return weft_ctx_igetmem(ctx, dest, source, s->dest_stride, s->source_stride, s->blocks, bytes, pe);
    }
    return weft_igetmem(world, dest, source, s->dest_stride, s->source_stride, s->blocks, bytes, pe);
}

/* Each PE puts to the one `distance` further on, or gets from it. */
static void move_strided(weft_world *world, weft_ctx *ctx, uint32_t *words, uint64_t *common, int round)
{
    uint32_t local[AREA];
    const int pe = weft_world_pe(world);
    const int pes = weft_world_pes(world);
    const int distance = common_below(common, pes);
    const int to = (pe + distance) % pes;
    const shape s = draw_shape(common);
    fill(words, pe, round, s.is_get);
    fill(local, pe, round, !s.is_get);
    MUST(weft_barrier(world));
    if (s.is_get) {
        MUST(get_by(world, ctx, &s, local, words, to));
        check_words(local, &s, to, round);
    } else {
        MUST(put_by(world, ctx, &s, words, local, to));
    }
    MUST(weft_barrier(world));
    if (!s.is_get) {
        check_words(words, &s, (pe + pes - distance) % pes, round);
    }
}

/* ---- at the end of the heap ---- */

/* The bytes from `words` on that can be read of a PE, to the last one. */
static size_t bytes_behind(weft_world *world, const uint32_t *words, int pe)
{
    unsigned char byte;
    size_t inside = AREA * sizeof *words;
    size_t outside = (size_t)1 << 40;
    while (outside - inside > 1) {
        const size_t middle = inside + (outside - inside) / 2;
        const weft_status status = weft_getmem(world, &byte, (const unsigned char *)words + middle - 1, 1, pe);
        if (status != WEFT_OK && status != WEFT_ERR_RANGE) {
            must(status, "a get of one byte");
        }
        *(status == WEFT_OK ? &inside : &outside) = middle;
    }
    return inside;
}

/* Each word of the blocks that lie so far apart is what PE `pe` has there, or becomes that. */
static void set_blocks(uint32_t *words, const shape *s, ptrdiff_t stride, int pe)
{
    for (size_t i = 0; i < s->blocks * s->block * s->element; i++) {
        const size_t width = s->block * s->element;
        words[i / width * (size_t)stride * s->element + i % width] = word_of(pe, ROUNDS, 1, i);
    }
}

static void check_blocks(const uint32_t *words, const shape *s, ptrdiff_t stride, int pe)
{
    for (size_t i = 0; i < s->blocks * s->block * s->element; i++) {
        const size_t width = s->block * s->element;
        const uint32_t seen = words[i / width * (size_t)stride * s->element + i % width];
        if (seen != word_of(pe, ROUNDS, 1, i)) {
            weft_sim_fail("PE %d: word %zu of blocks of PE %d is %x", weft_sim_pe(), i, pe, seen);
        }
    }
}

/* How long the side that lies in the heap is. */
typedef enum end_of_heap { WELL_INSIDE, TO_THE_END, BEYOND, ENDS } end_of_heap;

/* The other side of what lies well inside is longer than all that follows in the heap, of `elements`. */
static shape shape_at_end(uint64_t *common, end_of_heap where, size_t room_bytes)
{
    shape s = draw_shape(common);
    s.blocks++;
    s.is_get |= where == TO_THE_END; /* nobody writes to what nobody has allocated */
    const size_t elements = room_bytes / (s.element * sizeof(uint32_t));
    const ptrdiff_t longest = (ptrdiff_t)((elements - s.block) / (s.blocks - 1)); /* stride that lies inside */
    ptrdiff_t *stride = s.is_get == (where == WELL_INSIDE) ? &s.dest_stride : &s.source_stride;
    *stride = longest + (where == TO_THE_END ? 0 : 1 + common_below(common, 3));
    return s;
}

/* Strides of source and destination that differ as much as the heap allows: what counts for WEFT_ERR_RANGE is the side
 * that lies in the heap, which ends where it just may, or further on, or well inside. */
static void move_at_end(weft_world *world, weft_ctx *ctx, uint32_t *words, uint64_t *common)
{
    const int pe = weft_world_pe(world);
    const int pes = weft_world_pes(world);
    const int distance = common_below(common, pes);
    const int to = (pe + distance) % pes;
    const end_of_heap where = (end_of_heap)common_below(common, ENDS);
    MUST(weft_barrier(world)); /* nobody allocates */
    const size_t room_bytes = bytes_behind(world, words, to);
    const shape s = shape_at_end(common, where, room_bytes);
    const ptrdiff_t local_stride = s.is_get ? s.dest_stride : s.source_stride;
    const ptrdiff_t heap_stride = s.is_get ? s.source_stride : s.dest_stride;
    uint32_t *local = calloc(((s.blocks - 1) * (size_t)local_stride + s.block) * s.element, sizeof *local);
    if (local == NULL) {
        weft_sim_fail("no memory for a case");
    }
    if (!s.is_get) {
        set_blocks(local, &s, local_stride, pe);
    } else if (where == WELL_INSIDE) {
        set_blocks(words, &s, heap_stride, pe);
    }
    MUST(weft_barrier(world));
    const weft_status status =
        s.is_get ? get_by(world, ctx, &s, local, words, to) : put_by(world, ctx, &s, words, local, to);
    if (status != (where == BEYOND ? WEFT_ERR_RANGE : WEFT_OK)) {
        weft_sim_fail("PE %d: %zu blocks of %zu elements of %zu words, %td and %td apart, %s PE %d, with %zu bytes: %s",
                      pe, s.blocks, s.block, s.element, s.dest_stride, s.source_stride,
                      s.is_get ? "got from" : "put to", to, room_bytes, weft_status_name(status));
    }
    MUST(weft_barrier(world));
    if (where == WELL_INSIDE && s.is_get) {
        check_blocks(local, &s, local_stride, to);
    } else if (where == WELL_INSIDE) {
        check_blocks(words, &s, heap_stride, (pe + pes - distance) % pes);
    }
    free(local);
}

/* Two contexts of one team, of which one ends, then the team, while another team takes its memory: the other context
 * still knows its members, and that its team is gone. */
static void outlive_team(weft_world *world, uint64_t *common)
{
    int order[64];
    weft_team *team;
    weft_team *next;
    weft_ctx *contexts[2];
    uint64_t *words;
    const int pe = weft_world_pe(world);
    const int pes = weft_world_pes(world);
    const int kept = common_below(common, 2);
    for (int i = 0; i < pes; i++) {
        const int other = common_below(common, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    MUST(weft_calloc(world, (size_t)pes, sizeof *words, (void **)&words));
    MUST(weft_team_create(weft_team_world(world), order, pes, &team));
    for (int i = 0; i < 2; i++) {
        MUST(weft_ctx_create(team, 0, &contexts[i]));
    }
    MUST(weft_ctx_destroy(contexts[!kept]));
    if (weft_ctx_team(contexts[kept]) != team) {
        weft_sim_fail("a context has forgotten its team as another one of it has ended");
    }
    MUST(weft_team_destroy(team));
    MUST(weft_team_split_strided(weft_team_world(world), pes - 1, -1, pes, &next));
    if (weft_ctx_team(contexts[kept]) != NULL) {
        weft_sim_fail("a context takes itself for one of a team that has been destroyed");
    }
    for (int i = 0; i < pes; i++) {
        MUST(weft_ctx_uint64_p(contexts[kept], &words[pe], (uint64_t)(i + 1), i));
    }
    MUST(weft_ctx_quiet(contexts[kept]));
    MUST(weft_barrier(world));
    for (int from = 0; from < pes; from++) {
        if (words[from] == 0 || order[words[from] - 1] != pe) {
            weft_sim_fail("PE %d of a context is PE %d, and PE %d was put to", (int)words[from] - 1,
                          words[from] == 0 ? -1 : order[words[from] - 1], pe);
        }
    }
    MUST(weft_ctx_destroy(contexts[kept]));
    MUST(weft_team_destroy(next));
    MUST(weft_free(world, words));
}

/* Words that become what they should, each another number, in any order. */
static void wait_for_values(weft_world *world, uint64_t *common)
{
    uint64_t *words;
    uint64_t values[VALUES];
    size_t found[VALUES] = {0};
    size_t count = 0;
    const int next = (weft_world_pe(world) + 1) % weft_world_pes(world);
    const int first = common_below(common, VALUES);
    const int way = common_below(common, 3);
    MUST(weft_calloc(world, VALUES, sizeof *words, (void **)&words));
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = 1 + (uint64_t)common_below(common, 1000);
    }
    for (int i = 0; i < VALUES; i++) {
        const int k = (first + i) % VALUES;
        dawdle(4, 2000);
        MUST(weft_uint64_p(world, &words[k], values[k], next));
    }
    if (way == 0) {
        MUST(weft_uint64_wait_until_all_vector(world, words, VALUES, NULL, WEFT_CMP_EQ, values));
    } else if (way == 1) {
        count = 1;
        MUST(weft_uint64_wait_until_any_vector(world, words, VALUES, NULL, WEFT_CMP_EQ, values, found));
    } else {
        MUST(weft_uint64_wait_until_some_vector(world, words, VALUES, NULL, WEFT_CMP_EQ, values, found, &count));
    }
    for (size_t i = 0; i < (way == 0 ? VALUES : count); i++) {
        const size_t k = way == 0 ? i : found[i];
        uint64_t seen = 0;
        MUST(weft_uint64_g(world, &words[k < VALUES ? k : 0], weft_world_pe(world), &seen));
        if (k >= VALUES || seen != values[k]) {
            weft_sim_fail("word %zu is found, which is %d", k, (int)seen);
        }
    }
    MUST(weft_barrier(world));
    MUST(weft_free(world, words));
}

/* Blocks of about a chunk or of several, with gaps. */
static void exchange_long(weft_world *world, uint64_t *common)
{
    const int pe = weft_world_pe(world);
    const int pes = weft_world_pes(world);
    const ptrdiff_t source_stride = 1 + common_below(common, 3);
    const ptrdiff_t dest_stride = 1 + common_below(common, 3);
    const size_t count = 900 + (size_t)common_below(common, 2100);
    const size_t words = count * (size_t)pes;
    uint64_t *source;
    uint64_t *dest;
    MUST(weft_malloc(world, words * (size_t)source_stride * sizeof *source, (void **)&source));
    MUST(weft_malloc(world, words * (size_t)dest_stride * sizeof *dest, (void **)&dest));
    memset(source, 0xff, words * (size_t)source_stride * sizeof *source);
    memset(dest, 0xee, words * (size_t)dest_stride * sizeof *dest);
    for (size_t i = 0; i < words; i++) {
        source[i * (size_t)source_stride] = case_value(pe, (int)(i / count), i % count);
    }
    MUST(weft_uint64_alltoalls(weft_team_world(world), dest, source, dest_stride, source_stride, count));
    for (size_t i = 0; i < words * (size_t)dest_stride; i++) {
        const size_t k = i / (size_t)dest_stride;
        const int is_gap = i % (size_t)dest_stride != 0;
        const uint64_t expected = is_gap ? UINT64_C(0xeeeeeeeeeeeeeeee) : case_value((int)(k / count), pe, k % count);
        if (dest[i] != expected) {
            weft_sim_fail("PE %d: word %zu of %zu from each, %td and %td apart, is %llx instead of %llx", pe, i, count,
                          dest_stride, source_stride, (unsigned long long)dest[i], (unsigned long long)expected);
        }
    }
    MUST(weft_free(world, dest));
    MUST(weft_free(world, source));
}

void case_strided(void *argument)
{
    const case_run *run = argument;
    uint64_t common = run->seed;
    const int is_long = run->pes > 1 && run->pes <= 5 && common_below(&common, 4) == 0;
    uint32_t *words;
    weft_ctx *ctx;
    if (is_long) {
        (void)setenv("WEFT_COLL", "alltoalls:pull", 1);
    }
    weft_world *world = case_world("strided");
    (void)unsetenv("WEFT_COLL"); /* all have read it */
    MUST(weft_ctx_create(weft_team_world(world), 0, &ctx));
    MUST(weft_malloc(world, AREA * sizeof *words, (void **)&words));
    for (int round = 0; round < ROUNDS; round++) {
        move_strided(world, ctx, words, &common, round);
    }
    move_at_end(world, ctx, words, &common);
    if (common_below(&common, 2) == 0) {
        outlive_team(world, &common);
    }
    wait_for_values(world, &common);
    if (is_long) {
        exchange_long(world, &common);
    }
    MUST(weft_ctx_destroy(ctx));
    MUST(weft_world_destroy(world));
}

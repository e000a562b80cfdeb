/* Goal: puts and gets of blocks that lie apart move exactly those blocks.
 * Method: every shape of block, strides and number of blocks up to a few, and every size of an element; each byte names
 * its sender and its place, and what lies between and behind the blocks must still be poison. */
#include <string.h>

#include "support/check.h"
#include "support/pattern.h"
#include "support/pe_main.h"

#define ROOM ((size_t)4096)
#define LARGEST 5 /* blocks, elements of one, and strides */

typedef struct shape {
    size_t element;
    size_t block;
    size_t blocks;
    ptrdiff_t dest_stride;
    ptrdiff_t source_stride;
} shape;

typedef struct place {
    weft_world *world;
    weft_ctx *ctx;
    unsigned char *inbox; /* symmetric: the left neighbour puts here */
    unsigned char *outbox; /* symmetric, this PE's pattern */
    int me;
    int left;
    int right;
} place;

/* What lies at `at` when blocks of `from`'s outbox have come. */
static void check_blocks(const unsigned char *at, const shape *s, int from, const char *what)
{
    const size_t bytes = s->block * s->element;
    size_t end = 0;
    for (size_t i = 0; i < s->blocks; i++) {
        const size_t begin = i * (size_t)s->dest_stride * s->element;
        poison_check(at + end, begin - end, what);
        pattern_check(at + begin, bytes, from, i * (size_t)s->source_stride * s->element, what);
        end = begin + bytes;
    }
    poison_check(at + end, 64, what);
}

static void move(const place *p, const shape *s, int with_ctx)
{
    unsigned char local[ROOM];
    memset(p->inbox, POISON, ROOM);
    memset(local, POISON, ROOM);
    CHECK_OK(weft_barrier(p->world));
    if (with_ctx) {
        CHECK_OK(weft_ctx_ibputmem(p->ctx, p->inbox, p->outbox, s->dest_stride, s->source_stride, s->block, s->blocks,
                                   s->element, p->right));
        CHECK_OK(weft_ctx_ibgetmem(p->ctx, local, p->outbox, s->dest_stride, s->source_stride, s->block, s->blocks,
                                   s->element, p->right));
    } else {
        CHECK_OK(weft_ibputmem(p->world, p->inbox, p->outbox, s->dest_stride, s->source_stride, s->block, s->blocks,
                               s->element, p->right));
        CHECK_OK(weft_ibgetmem(p->world, local, p->outbox, s->dest_stride, s->source_stride, s->block, s->blocks,
                               s->element, p->right));
    }
    check_blocks(local, s, p->right, "got blocks");
    CHECK_OK(weft_barrier(p->world));
    check_blocks(p->inbox, s, p->left, "put blocks");
    CHECK_OK(weft_barrier(p->world));
}

static void body(weft_world *world)
{
    const int pes = weft_world_pes(world);
    place p = {.world = world, .me = weft_world_pe(world)};
    p.left = (p.me + pes - 1) % pes;
    p.right = (p.me + 1) % pes;
    p.inbox = pe_poisoned(world, ROOM);
    p.outbox = pe_poisoned(world, ROOM);
    pattern_fill(p.outbox, ROOM, p.me, 0);
    CHECK_OK(weft_ctx_create(weft_team_world(world), 0, &p.ctx));
    int cases = 0;
    for (size_t element = 1; element <= 16; element *= 2) {
        for (size_t block = 0; block <= 3; block++) {
            for (ptrdiff_t stride = (ptrdiff_t)block + (block == 0); stride <= LARGEST; stride++) {
                const shape s = {.element = element,
                                 .block = block,
                                 .blocks = (size_t)stride % 4,
                                 .dest_stride = stride,
                                 .source_stride =
                                     LARGEST + 1 - stride < (ptrdiff_t)block ? stride : LARGEST + 1 - stride};
                move(&p, &s, cases++ & 1);
            }
        }
    }
    /* blocks that overlap themselves are refused */
    CHECK_STATUS(weft_ibputmem(world, p.inbox, p.outbox, 2, 3, 3, 1, 1, p.right), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ibgetmem(world, p.inbox, p.outbox, 3, 2, 3, 1, 1, p.right), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_ctx_destroy(p.ctx));
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, p.outbox));
    CHECK_OK(weft_free(world, p.inbox));
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, body);
}

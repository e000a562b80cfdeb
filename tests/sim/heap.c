/* sim/heap.c: blocks are where all agree, apart from each other, zeroed when asked for, and keep what is put there. */
#include <string.h>

#include "os/os.h"
#include "sim/cases.h"

#define BLOCKS 6
#define BYTES_MAX 5000

typedef struct heap_block {
    unsigned char *at;
    size_t bytes;
    int filler; /* the PE whose number fills it, or -1: zeros */
} heap_block;

/* Every byte of a block names who filled it and where it is. */
static unsigned char mark(int filler, int owner, size_t index)
{
    return filler < 0 ? 0 : (unsigned char)(filler * 37 + owner * 11 + (int)(index % 7) + 1);
}

static void check(const heap_block *block, int owner)
{
    for (size_t i = 0; i < block->bytes; i++) {
        if (block->at[i] != mark(block->filler, owner, i)) {
            weft_sim_fail("byte %zu of a block of %zu filled by %d is %d", i, block->bytes, block->filler,
                          block->at[i]);
        }
    }
}

static void fill(weft_world *world, heap_block *block, int filler)
{
    unsigned char bytes[BYTES_MAX];
    block->filler = filler;
    if (weft_world_pe(world) == filler) {
        for (int to = 0; to < weft_world_pes(world); to++) {
            for (size_t i = 0; i < block->bytes; i++) {
                bytes[i] = mark(filler, to, i);
            }
            MUST(weft_putmem(world, block->at, bytes, block->bytes, to));
        }
    }
}

/* An agreement: when it ends, what anybody put before is seen by all, on every PE. Either the block becomes smaller, or
 * nothing is freed. */
static void agree(weft_world *world, heap_block *block, int cut_bytes, int from)
{
    unsigned char seen[BYTES_MAX];
    void *same = block->at;
    if (cut_bytes % 2 == 0) {
        block->bytes -= (size_t)cut_bytes;
        MUST(weft_realloc(world, block->at, block->bytes, &same));
    } else {
        MUST(weft_free(world, NULL));
    }
    if (same != block->at) {
        weft_sim_fail("a block that became smaller moved");
    }
    const heap_block there = {.at = seen, .bytes = block->bytes, .filler = block->filler};
    MUST(weft_getmem(world, seen, block->at, block->bytes, from));
    check(&there, from);
}

/* A block that becomes larger moves, and has its contents on each PE when the call returns there: then others may write
 * to it, also at once. */
static void grow(weft_world *world, heap_block *block, int more, int filler)
{
    const size_t kept = block->bytes;
    MUST(weft_realloc(world, block->at, kept + (size_t)more, (void **)&block->at));
    if (more % 2 == 0) {
        check(block, weft_world_pe(world));
        MUST(weft_sync(world));
    }
    block->bytes += (size_t)more;
    fill(world, block, filler);
    MUST(weft_barrier(world));
    check(block, weft_world_pe(world));
    MUST(weft_sync(world));
}

/* Blocks for which the heap grows, on a team that is drawn, so that PEs come to have different amounts of memory: when
 * a PE has its block, it may put to the last word of the others'. */
static void grow_heap(weft_world *world, uint64_t *common)
{
    weft_team *team = NULL;
    int pes = weft_world_pes(world);
    uint64_t *words;
    int start = common_below(common, pes);
    size_t count = 1000 + (size_t)common_below(common, 20000);
    MUST(weft_team_split_strided(weft_team_world(world), start, 1, 1 + common_below(common, pes - start), &team));
    if (team == NULL) {
        return;
    }
    uint64_t *last;
    int next = (weft_team_pe(team) + 1) % weft_team_pes(team);
    int before = (weft_team_pe(team) + weft_team_pes(team) - 1) % weft_team_pes(team);
    MUST(weft_team_malloc(team, count * sizeof *words, (void **)&words));
    last = words + count - 1;
    MUST(weft_uint64_p(world, last, case_value(weft_team_pe(team), next, count),
                       weft_team_translate(team, next, weft_team_world(world))));
    MUST(weft_team_barrier(team));
    if (*last != case_value(before, weft_team_pe(team), count)) {
        weft_sim_fail("the last word of %zu is %llx", count, (unsigned long long)*last);
    }
    MUST(weft_team_free(team, words));
    MUST(weft_team_destroy(team));
}

/* A block of an alignment has it, on this PE and, blocks being symmetric, on all. */
static void align(weft_world *world, uint64_t *common)
{
    const size_t alignment = (size_t)1 << (4 + common_below(common, 13)); /* up to pages, and more */
    void *small;
    void *block;
    MUST(weft_malloc(world, 1 + (size_t)common_below(common, 200), &small));
    MUST(weft_align(world, alignment, 1 + (size_t)common_below(common, 5000), &block));
    if ((uintptr_t)block % alignment != 0) {
        weft_sim_fail("a block at %p is not aligned to %zu", block, alignment);
    }
    MUST(weft_free(world, small));
    MUST(weft_free(world, block));
}

/* A block that is freed without a barrier while puts to it may be on their way: what is allocated there next is not
 * written to by them. */
static void free_behind_puts(weft_world *world, uint64_t *common)
{
    unsigned char bytes[600];
    unsigned char seen[600];
    unsigned char *block;
    int pes = weft_world_pes(world);
    size_t size = 1 + (size_t)common_below(common, (int)sizeof bytes);
    int to = (weft_world_pe(world) + 1 + common_below(common, pes)) % pes;
    memset(bytes, 0xff, sizeof bytes);
    MUST(weft_malloc(world, size, (void **)&block));
    MUST(weft_putmem(world, block, bytes, size, to));
    MUST(weft_free(world, block));
    MUST(weft_calloc(world, 1, size, (void **)&block));
    for (int look = 0; look < 2; look++) {
        dawdle(2, 3000);
        MUST(weft_getmem(world, seen, block, size, to));
        for (size_t i = 0; i < size; i++) {
            if (seen[i] != 0) {
                weft_sim_fail("byte %zu of a new block of %zu is %d: a put to one that was freed", i, size, seen[i]);
            }
        }
        MUST(weft_sync(world));
    }
    MUST(weft_free(world, block));
}

/* All that was allocated is free again. */
static void check_used(const weft_world *world, uint64_t before)
{
    if (heap_used(world) != before) {
        weft_sim_fail("all blocks are free, and %lld bytes more are in use than before",
                      (long long)(heap_used(world) - before));
    }
}

/* A block that shrinks stays where it is, and what is behind it is free. */
static void shrink(weft_world *world, heap_block *block)
{
    void *at;
    MUST(weft_sync(world));
    MUST(weft_realloc(world, block->at, block->bytes / 2, &at));
    if (at != block->at) {
        weft_sim_fail("a block of %zu bytes that shrinks has moved", block->bytes);
    }
    block->bytes /= 2;
}

/* A team of this PE alone. */
static weft_team *own_team(weft_world *world)
{
    weft_team *own = NULL;
    for (int i = 0; i < weft_world_pes(world); i++) {
        weft_team *team;
        MUST(weft_team_split_strided(weft_team_world(world), i, 1, 1, &team));
        own = team != NULL ? team : own;
    }
    return own;
}

#define OWN_BLOCKS 160
#define SMALL_BYTES ((size_t)512 << 10)

/* Each PE fills its heap with blocks of its own and frees some of them, so that what is free on all is hard to find, or
 * nothing is. What is found is memory of the heap on every PE, and no other block's; at last all is free again. */
static void fill_up(weft_world *world, uint64_t *common)
{
    weft_team *own = own_team(world);
    unsigned char *blocks[OWN_BLOCKS];
    unsigned char *block;
    int count = 0;
    int pe = weft_world_pe(world);
    const uint64_t used = heap_used(world);
    while (count < OWN_BLOCKS && weft_team_malloc(own, 1 + weft_sim_random(8000), (void **)&blocks[count]) == WEFT_OK) {
        *blocks[count++] = 0xee;
    }
    for (int i = 0; i < count; i++) {
        if (weft_sim_random(2) == 0) {
            MUST(weft_team_free(own, blocks[i]));
            blocks[i] = NULL;
        }
    }
    for (int i = 0; i < 3; i++) {
        size_t bytes = 1 + (size_t)common_below(common, 6000);
        weft_status status = weft_malloc(world, bytes, (void **)&block);
        if (status == WEFT_OK && !weft_addr_accessible(world, block, pe)) {
            weft_sim_fail("a block of %zu bytes at %p is not in the heap", bytes, (void *)block);
        }
        if (status == WEFT_OK) {
            memset(block, 0x11, bytes);
            MUST(weft_free(world, block));
        } else if (status != WEFT_ERR_MEMORY) {
            must(status, "to allocate in a small heap");
        }
    }
    for (int i = 0; i < count; i++) {
        if (blocks[i] != NULL && *blocks[i] != 0xee) {
            weft_sim_fail("a block was given out twice");
        }
        if (blocks[i] != NULL) {
            MUST(weft_team_free(own, blocks[i]));
        }
    }
    check_used(world, used);
    MUST(weft_malloc(world, SMALL_BYTES / 4, (void **)&block));
}

static weft_world *small_world(void)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    config.heap_max_bytes = SMALL_BYTES;
    MUST(weft_world_create(&config, &world));
    return world;
}

static void fill_a_world(uint64_t *common)
{
    weft_world *world = small_world();
    fill_up(world, common);
    MUST(weft_world_destroy(world));
}

/* ---- threads ---- */

#define THREADS 3
#define ROUNDS 5
#define LAST_ROUNDS 20

/* A thread of each PE has a team of all of them. */
typedef struct allocator {
    wefti_os_thread *thread;
    case_run *run;
    weft_team *team;
    int number;
    size_t bytes; /* of each block; take_the_last alone */
} allocator;

/* What a thread's call gave on each PE is the same: each tells it beside weft in a place of its own, plus 1. */
static void compare_statuses(const allocator *one, int round, weft_status status)
{
    uint64_t *places = &one->run->board[(one->number * ROUNDS + round) * 32];
    places[weft_sim_pe()] = (uint64_t)(1 - (int)status);
    for (int pe = 0; pe < one->run->pes; pe++) {
        if (places[pe] != 0 && places[pe] != places[weft_sim_pe()]) {
            weft_sim_fail("thread %d, round %d: PE %d is told %s, and PE %d another status", one->number, round,
                          weft_sim_pe(), weft_status_name(status), pe);
        }
    }
}

/* Blocks of which not all threads find room at once: each has it, or is told so, on all PEs alike. */
static void allocate_some(void *argument)
{
    const allocator *one = argument;
    uint64_t common = one->run->seed + (uint64_t)one->number * 1000;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *block = NULL;
        const size_t bytes = 1 + (size_t)common_below(&common, SMALL_BYTES / 2);
        const int value = 1 + one->number * ROUNDS + round;
        dawdle(3, 3000);
        const weft_status status = weft_team_malloc(one->team, bytes, (void **)&block);
        compare_statuses(one, round, status);
        if (status == WEFT_ERR_MEMORY) {
            continue;
        }
        must(status, "to allocate beside other threads");
        block[0] = block[bytes - 1] = block[bytes / 2] = (unsigned char)value;
        dawdle(3, 3000);
        if (block[0] != value || block[bytes - 1] != value || block[bytes / 2] != value) {
            weft_sim_fail("a block of thread %d has been given to another: it holds %d, %d and %d, not %d", one->number,
                          block[0], block[bytes / 2], block[bytes - 1], value);
        }
        MUST(weft_team_free(one->team, block));
    }
}

/* Blocks of one size, of which the heap has just as many as there are threads: each finds room, however often others
 * propose the same places meanwhile, or have given theirs back on some PEs and not yet on others. */
static void take_the_last(void *argument)
{
    const allocator *one = argument;
    for (int round = 0; round < LAST_ROUNDS; round++) {
        unsigned char *block = NULL;
        const int value = 1 + one->number * LAST_ROUNDS + round;
        dawdle(3, round % 2 == 0 ? 500 : 3000);
        must(weft_team_malloc(one->team, one->bytes, (void **)&block), "to take one of as many blocks as threads");
        block[0] = block[one->bytes - 1] = (unsigned char)value;
        dawdle(3, round % 2 == 0 ? 500 : 3000);
        if (block[0] != value || block[one->bytes - 1] != value) {
            weft_sim_fail("a block of thread %d has been given to another: it holds %d and %d, not %d", one->number,
                          block[0], block[one->bytes - 1], value);
        }
        MUST(weft_team_free(one->team, block));
    }
}

/* How many bytes a block may have of which so many fit. */
static size_t share_of_rest(weft_world *world, int count)
{
    enum { UNIT = 1024 };
    void *blocks[THREADS];
    size_t bytes = (SMALL_BYTES - (size_t)heap_used(world)) / (size_t)count / UNIT * UNIT + UNIT;
    int made = 0;
    while (made < count) {
        bytes -= UNIT;
        for (made = 0; made < count && weft_malloc(world, bytes, &blocks[made]) == WEFT_OK; made++) {
        }
        for (int i = 0; i < made; i++) {
            MUST(weft_free(world, blocks[i]));
        }
    }
    return bytes;
}

static void allocate_together(case_run *run)
{
    const int is_tight = run->seed / 16 % 2 == 0;
    allocator all[THREADS];
    weft_world *world = small_world();
    void *block;
    for (int i = 0; i < THREADS; i++) {
        all[i] = (allocator){.run = run, .number = i};
        MUST(weft_team_split_strided(weft_team_world(world), 0, 1, run->pes, &all[i].team));
    }
    const uint64_t used = heap_used(world);
    const size_t share = is_tight ? share_of_rest(world, THREADS) : 0;
    MUST(weft_sync(world));
    for (int i = 0; i < THREADS; i++) {
        all[i].bytes = share;
        MUST(wefti_os_thread_start(&all[i].thread, is_tight ? take_the_last : allocate_some, &all[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        wefti_os_thread_join(all[i].thread);
    }
    check_used(world, used);
    MUST(weft_malloc(world, SMALL_BYTES / 4, &block));
    MUST(weft_world_destroy(world));
}

/* ---- a thread that allocates for its PE alone, beside one that allocates with all ---- */

#define OWN_ROUNDS 8
#define OWN_KEPT 4

/* What the two have. */
typedef struct beside {
    allocator with_all; /* its thread */
    weft_team *own;
    size_t bytes; /* of each block; 0: drawn */
    int has_room; /* all of its own are to be had, and none with all */
} beside;

static void allocate_with_all(void *argument)
{
    const beside *both = argument;
    const allocator *one = &both->with_all;
    uint64_t common = one->run->seed ^ 0xa11;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *block = NULL;
        const size_t bytes = both->bytes > 0 ? both->bytes : 1 + (size_t)common_below(&common, 6000);
        dawdle(3, 3000);
        const weft_status status = weft_team_malloc(one->team, bytes, (void **)&block);
        compare_statuses(one, round, status);
        if (status == WEFT_ERR_MEMORY) {
            continue;
        }
        must(status, "to allocate with all PEs");
        if (both->has_room) {
            weft_sim_fail("a block of %zu bytes at %p is free on all PEs where no PE has room beside another", bytes,
                          (void *)block);
        }
        memset(block, 0x11, bytes);
        dawdle(3, 3000);
        MUST(weft_team_free(one->team, block));
    }
}

/* Blocks of this PE alone; a few stay for some time. */
static void allocate_alone(const beside *both)
{
    struct {
        unsigned char *at;
        size_t bytes;
    } kept[OWN_KEPT] = {{NULL, 0}};
    const int slots = both->has_room ? 1 : OWN_KEPT;
    for (int round = 0; round < OWN_ROUNDS + slots; round++) {
        const int slot = round % slots;
        unsigned char *old = kept[slot].at;
        if (old != NULL && (old[0] != 0xee || old[kept[slot].bytes - 1] != 0xee)) {
            weft_sim_fail("a block of this PE alone has been given to all");
        }
        if (old != NULL) {
            MUST(weft_team_free(both->own, old));
        }
        kept[slot].at = NULL;
        dawdle(4, 2000);
        if (round >= OWN_ROUNDS) {
            continue;
        }
        kept[slot].bytes = both->bytes > 0 ? both->bytes : 1 + (size_t)weft_sim_random(5000);
        const weft_status status = weft_team_malloc(both->own, kept[slot].bytes, (void **)&kept[slot].at);
        if (status != WEFT_ERR_MEMORY || both->has_room) {
            must(status, "to allocate for one PE beside calls of all");
            kept[slot].at[0] = kept[slot].at[kept[slot].bytes - 1] = 0xee;
        }
    }
}

/* A place of `bytes` bytes is left on each PE, low or high in its heap, and no two PEs of which one is odd and one even
 * have the same: returns what fills the rest. */
static void *leave_a_place(weft_team *own, int pe, size_t bytes)
{
    void *low;
    void *high;
    MUST(weft_team_malloc(own, bytes, &low));
    if (pe % 2 == 0) {
        return low;
    }
    MUST(weft_team_malloc(own, bytes, &high));
    MUST(weft_team_free(own, low));
    return high;
}

/* What others have proposed is not what is in use: a PE that has a place for its block gets it, whatever is agreed on
 * meanwhile by all. And where holes differ from PE to PE and come and go, each call ends. */
static void allocate_beside(case_run *run, uint64_t *common)
{
    weft_world *world = small_world();
    weft_team *all = NULL;
    void *blocks[OWN_BLOCKS] = {NULL};
    void *block;
    beside both = {.own = own_team(world), .has_room = run->pes > 1 && common_below(common, 2) == 0};
    MUST(weft_team_split_strided(weft_team_world(world), 0, 1, run->pes, &all));
    both.with_all = (allocator){.run = run, .team = all};
    const uint64_t used = heap_used(world);
    if (both.has_room) {
        both.bytes = (SMALL_BYTES - (size_t)used) * 2 / 5;
        blocks[0] = leave_a_place(both.own, weft_world_pe(world), both.bytes);
    } else {
        const size_t most = 2000 + (size_t)common_below(common, 6000);
        int count = 0;
        while (count < OWN_BLOCKS && weft_team_malloc(both.own, 1 + weft_sim_random(most), &blocks[count]) == WEFT_OK) {
            count++;
        }
        for (int i = 0; i < count; i++) {
            if (weft_sim_random(2) == 0) {
                MUST(weft_team_free(both.own, blocks[i]));
                blocks[i] = NULL;
            }
        }
    }
    MUST(weft_sync(world));
    MUST(wefti_os_thread_start(&both.with_all.thread, allocate_with_all, &both));
    allocate_alone(&both);
    wefti_os_thread_join(both.with_all.thread);
    for (int i = 0; i < OWN_BLOCKS; i++) {
        if (blocks[i] != NULL) {
            MUST(weft_team_free(both.own, blocks[i]));
        }
    }
    check_used(world, used);
    MUST(weft_malloc(world, SMALL_BYTES / 4, &block));
    MUST(weft_world_destroy(world));
}

void case_heap(void *argument)
{
    case_run *run = argument;
    uint64_t common = run->seed;
    const int which = common_below(&common, 10);
    if (which == 0) {
        fill_a_world(&common);
        return;
    }
    if (which >= 8 && run->pes <= 12) {
        allocate_beside(run, &common);
        return;
    }
    if (which <= 2 && run->pes <= 12) {
        allocate_together(run);
        return;
    }
    weft_world *world = case_world("heap");
    heap_block blocks[BLOCKS];
    memset(blocks, 0, sizeof blocks);
    for (int times = common_below(&common, 4); times > 0; times--) {
        grow_heap(world, &common);
    }
    free_behind_puts(world, &common);
    align(world, &common);
    const uint64_t used = heap_used(world);
    for (int step = 0; step < 12; step++) {
        (void)heap_used(world); /* the records are sound */
        heap_block *block = &blocks[common_below(&common, BLOCKS)];
        if (block->at != NULL) {
            check(block, weft_world_pe(world));
            if (block->bytes <= 2900 && common_below(&common, 3) == 0) {
                MUST(weft_sync(world));
                grow(world, block, 1 + common_below(&common, 2000), common_below(&common, run->pes));
                continue;
            }
            if (block->bytes > 1 && common_below(&common, 4) == 0) {
                shrink(world, block);
                continue;
            }
            MUST(weft_free(world, block->at));
            block->at = NULL;
            continue;
        }
        block->bytes = 1 + (size_t)common_below(&common, 2900);
        block->filler = -1;
        MUST(weft_calloc(world, 1, block->bytes, (void **)&block->at));
        if (common_below(&common, 4) > 0) {
            fill(world, block, common_below(&common, run->pes));
            if (common_below(&common, 2) == 0) {
                agree(world, block, common_below(&common, (int)block->bytes), common_below(&common, run->pes));
            } else {
                MUST(weft_barrier(world));
            }
        }
        check(block, weft_world_pe(world));
        MUST(weft_sync(world)); /* nobody fills a block that another still checks */
    }
    for (int i = 0; i < BLOCKS; i++) {
        MUST(weft_free(world, blocks[i].at));
    }
    check_used(world, used);
    MUST(weft_world_destroy(world));
}

/* Goal: the areas of a group's memory do not overlap, for any limits, and words have the alignment they need.
 *
 * Method: lay out random limits and walk over the areas in their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/check.h"
#include "weft/protocol/ep_layout.h"

static void assert_area(size_t *end, size_t at, size_t bytes)
{
    assert_true(at >= *end);
    assert_int_equal(at % WEFTI_EP_CACHE_LINE_BYTES, 0);
    *end = at + bytes;
}

static void assert_layout(const wefti_ep_limits *limits)
{
    wefti_ep_layout layout = wefti_ep_layout_of(limits);
    int last = (int)limits->ranks - 1;
    size_t end = 0;
    assert_area(&end, layout.epoch, 8);
    assert_area(&end, layout.calls, 64 * limits->ranks);
    assert_true(wefti_ep_call_at(&layout, last) + 64 <= end);
    assert_area(&end, layout.replies, 64 * limits->ranks);
    assert_true(wefti_ep_reply_at(&layout, last) + 64 <= end);
    assert_area(&end, layout.marks, 8 * limits->ranks);
    assert_true(wefti_ep_mark_at(&layout, last) + 8 <= end);
    assert_area(&end, layout.dones, 8 * limits->ranks);
    assert_true(wefti_ep_done_at(&layout, last) + 8 <= end);
    size_t slots = limits->ring.lines * limits->ring.slots;
    assert_area(&end, layout.chunk_flags, 8 * slots);
    assert_area(&end, layout.ask_flags, 8 * slots);
    assert_area(&end, layout.credits, 8 * limits->ring.domains);
    size_t handed = limits->ring.domains > 0 ? limits->ranks : 0;
    assert_area(&end, layout.notice_flags, 8 * limits->ring.lines);
    assert_area(&end, layout.handed_flags, 8 * handed);
    assert_true(handed == 0 || wefti_ep_handed_flag_at(&layout, last) + 8 <= end);
    assert_true(end <= layout.words_bytes);
    assert_true(layout.counts >= layout.words_bytes);
    assert_area(&end, layout.counts, limits->ranks * layout.counts_pitch);
    assert_true(layout.counts_pitch >=
                4 * (1 + (limits->direct ? limits->ranks + limits->experts : limits->local_experts_max)));
    assert_true(layout.notice_pitch >= 64 + 4 * limits->notice_words && layout.notice_pitch % 64 == 0);
    assert_area(&end, layout.notices, limits->ring.lines * layout.notice_pitch);
    assert_true(layout.handed_pitch >= 64 + layout.counts_pitch && layout.handed_pitch % 64 == 0);
    assert_area(&end, layout.handed, handed * layout.handed_pitch);
    assert_true(handed == 0 || wefti_ep_handed_at(&layout, last) + layout.handed_pitch <= end);
    assert_area(&end, layout.bases, 4 * (limits->ranks + limits->experts));
    assert_area(&end, layout.recount, 4 * (1 + limits->local_experts_max));
    assert_area(&end, layout.records, limits->received_max * wefti_ep_record_bytes(limits->topk_max));
    assert_area(&end, layout.choices, limits->received_max * 4 * limits->topk_max);
    assert_area(&end, layout.rows, limits->received_max * (limits->row_bytes_max + limits->row_bytes_max / 128 * 4));
    end = end > layout.rows + limits->received_max * (limits->row_bytes_max + limits->scale_bytes_max)
              ? end
              : layout.rows + limits->received_max * (limits->row_bytes_max + limits->scale_bytes_max);
    assert_area(&end, layout.chunks, slots * limits->ring.chunk_bytes);
    assert_area(&end, layout.asks, slots * limits->ring.ask_bytes);
    assert_true(end <= layout.bytes);
}

/* Rings hold the widest chunk of the most tokens, and no more than they may, unless two chunks of a row are more. */
static wefti_ep_ring_shape draw_ring(uint64_t *random, const wefti_ep_limits *limits)
{
    size_t domains = 2 + random_below(random, 16);
    size_t sources = 1 + random_below(random, 4);
    size_t pitch = wefti_ep_row_pitch_max(limits->row_bytes_max, limits->scale_bytes_max);
    size_t tokens = random_below(random, 5000);
    wefti_ep_ring_shape none = {0, 0, 0, 0, 0, 0};
    if (random_below(random, 2) == 0) {
        return none;
    }
    wefti_ep_ring_shape ring =
        wefti_ep_ring_shape_of(domains, domains * sources, sources, pitch, limits->topk_max, tokens);
    size_t entry = wefti_ep_chunk_entry_bytes(limits->topk_max, limits->topk_max);
    assert_true(ring.chunk_bytes >= sizeof(wefti_ep_chunk_header) + ring.tokens * (entry + pitch));
    assert_true(ring.ask_bytes >= sizeof(wefti_ep_chunk_header) + ring.tokens * (4 + 12 * limits->topk_max));
    assert_true(ring.tokens >= 1 && ring.slots >= 2 && ring.lines >= domains);
    assert_true(ring.slots * ring.chunk_bytes * sources <= WEFTI_EP_RING_BYTES || ring.slots == 2);
    return ring;
}

/* A chunk is outstanding in no more slots than there are, and credits are never given for one that was not taken. */
static void rings_are_bounded(void **state)
{
    (void)state;
    wefti_ep_ring_shape ring = {2, 2, 4, 1, 64, 64};
    uint32_t credit = 0;
    uint32_t sent = 0;
    for (uint32_t taken = 0; taken < 100; taken++) {
        while (wefti_ep_ring_has_room(&ring, sent, credit)) {
            sent++;
        }
        assert_true(sent > taken && sent - taken <= ring.slots);
        uint64_t word = wefti_ep_ring_word(7, taken + 1);
        assert_int_equal(wefti_ep_ring_credit(word, 7), taken + 1);
        assert_int_equal(wefti_ep_ring_credit(word, 8), 0);
        credit = wefti_ep_ring_gives_credit(&ring, taken + 1) ? wefti_ep_ring_credit(word, 7) : credit;
    }
    assert_int_equal(wefti_ep_ring_credit(0, 0), 0);
}

static void random_limits(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    for (int i = 0; i < 10000; i++) {
        wefti_ep_limits limits;
        limits.ranks = 1 + random_below(&random, 5000);
        limits.experts = 1 + random_below(&random, 5000);
        limits.local_experts_max = 1 + random_below(&random, (unsigned)limits.experts);
        limits.received_max = random_below(&random, 100000);
        limits.topk_max = 1 + random_below(&random, 64);
        limits.direct = random_below(&random, 100) == 0;
        limits.unstaged = 0;
        limits.row_bytes_max = 16 * (1 + (size_t)random_below(&random, 2000));
        limits.scale_bytes_max = 4 * (size_t)random_below(&random, 1024);
        limits.ring = draw_ring(&random, &limits);
        limits.notice_words = random_below(&random, 300);
        assert_layout(&limits);
    }
}

/* O(R + E) words a rank when experts are spread evenly, whatever R. */
static void grows_linearly(void **state)
{
    (void)state;
    for (size_t ranks = 16; ranks <= 65536; ranks *= 16) {
        wefti_ep_limits limits = {ranks, 2 * ranks, 2, 0, 8, 16384, 0, 0, 0, {0, 0, 0, 0, 0, 0}, 0};
        assert_true(wefti_ep_layout_of(&limits).bytes <= 512 + ranks * (64 + 64 + 8 + 8 + 16 + 12 + 4));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_limits), cmocka_unit_test(grows_linearly),
                                       cmocka_unit_test(rings_are_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

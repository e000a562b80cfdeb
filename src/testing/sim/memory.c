/* testing/sim/memory.c: the seam of protocol/mem.h: store buffers and a history of old values.
 *
 * Commits are numbered. A fiber's horizon is a commit up to which it has seen everything; a load may return what a
 * place held at any moment since, but nothing older than this fiber has read or written there before. Acquiring a
 * commit that was a release moves the horizon to it. This is a multi-copy-atomic model: what one fiber acquires, all
 * later acquires of that value know too. What a fiber stores past the caches into its own memory is left out of its
 * releases until it ends such stores. */
#include "weft/protocol/mem.h"

#include <inttypes.h>
#include <string.h>

#include "common/mix.h"
#include "testing/sim/sim.h"

#define STREAM_ONE_IN 16 /* of the draws of a store past the caches: it commits before others that may */
#define WINDOW 16 /* an entry commits before at most so many older ones */
#define LINE WEFTI_LINE_BYTES
#define UNDO_MAX 8

/* The simulation, when `p` is symmetric memory and a fiber runs. */
static wefti_sim *sim_of(const void *p, uint64_t *offset)
{
    wefti_sim *sim = wefti_sim_current;
    if (sim == NULL || sim->running == NULL) {
        return NULL;
    }
    *offset = wefti_sim_offset(sim, p);
    return *offset == WEFTI_NOWHERE ? NULL : sim;
}

void wefti_memory_check_reserved(wefti_sim *sim, uint64_t offset, int pe)
{
    if (!wefti_sim_is_reserved(sim, offset)) {
        wefti_sim_refuse(sim, pe, "PE %d uses memory at offset 0x%" PRIx64 ", which nobody has reserved", pe, offset);
    }
}

void wefti_memory_peek(const wefti_sim *sim, uint64_t offset, void *out, size_t bytes)
{
    memcpy(out, sim->arena + offset, bytes);
}

/* ---- what a fiber has seen ---- */

/* The commit up to which the fiber has seen one of these bytes, which are inside one line. */
static uint64_t seen_of(const wefti_fiber *fiber, uint64_t offset, size_t bytes)
{
    const wefti_seen *seen = &fiber->seen[offset / LINE % WEFTI_SEEN_COUNT];
    uint64_t seq = fiber->forgotten;
    if (seen->line == offset / LINE + 1) {
        for (uint64_t word = offset % LINE / 8; word <= (offset % LINE + bytes - 1) / 8; word++) {
            seq = seen->seq[word] > seq ? seen->seq[word] : seq;
        }
    }
    return seq;
}

static void raise_horizon(wefti_fiber *fiber, uint64_t seq)
{
    if (seq > fiber->horizon) {
        fiber->horizon = seq;
    }
}

/* An entry that is replaced counts as seen everywhere from then on, which orders more than needed, never less. */
static void set_seen(wefti_fiber *fiber, uint64_t offset, size_t bytes, uint64_t seq)
{
    uint64_t line = offset / LINE;
    wefti_seen *seen = &fiber->seen[line % WEFTI_SEEN_COUNT];
    if (seen->line != line + 1) {
        for (int word = 0; word < WEFTI_LINE_WORDS; word++) {
            raise_horizon(fiber, seen->seq[word]);
            fiber->forgotten = seen->seq[word] > fiber->forgotten ? seen->seq[word] : fiber->forgotten;
        }
        *seen = (wefti_seen){.line = line + 1};
    }
    for (uint64_t word = offset % LINE / 8; word <= (offset % LINE + bytes - 1) / 8; word++) {
        seen->seq[word] = seq > seen->seq[word] ? seq : seen->seq[word];
    }
}

void wefti_memory_acquire_all(wefti_sim *sim, wefti_fiber *fiber)
{
    raise_horizon(fiber, sim->seq);
}

/* ---- rounds ---- */

static uint32_t *rounds_at(const wefti_sim *sim, uint64_t offset)
{
    return &sim->rounds[wefti_mix(offset / 8) >> (64 - WEFTI_ROUNDS_BITS)];
}

void wefti_memory_flag_stored(wefti_sim *sim, const wefti_fiber *fiber, uint64_t offset)
{
    uint32_t *rounds = rounds_at(sim, offset);
    *rounds = fiber->counts.rounds + 1 > *rounds ? (uint32_t)fiber->counts.rounds + 1 : *rounds;
}

void wefti_memory_flag_seen(wefti_sim *sim, wefti_fiber *fiber, uint64_t offset)
{
    uint64_t rounds = *rounds_at(sim, offset);
    fiber->counts.rounds = rounds > fiber->counts.rounds ? rounds : fiber->counts.rounds;
}

/* ---- watching ---- */

void wefti_memory_unwatch(wefti_sim *sim, wefti_fiber *fiber)
{
    if (fiber->watched == 0) {
        return;
    }
    uint32_t index = wefti_lines_find(&sim->lines, fiber->watched - 1);
    wefti_fiber **link = &sim->lines.all[index].watchers;
    while (*link != fiber) {
        link = &(*link)->next_watcher;
    }
    *link = fiber->next_watcher;
    fiber->watched = 0;
    fiber->notified = 0;
    wefti_lines_settle(&sim->lines, index);
}

/* Commits from now on notify the fiber, so it must see all those before. */
void wefti_memory_watch(wefti_sim *sim, wefti_fiber *fiber, uint64_t offset)
{
    uint64_t line = offset / LINE;
    if (fiber->watched == line + 1) {
        fiber->notified = 0;
        set_seen(fiber, offset, 1, sim->seq);
        return;
    }
    wefti_memory_unwatch(sim, fiber);
    uint32_t index = wefti_lines_get(&sim->lines, line);
    fiber->next_watcher = sim->lines.all[index].watchers;
    sim->lines.all[index].watchers = fiber;
    fiber->watched = line + 1;
    set_seen(fiber, offset, 1, sim->seq);
}

static void notify(wefti_sim *sim, uint32_t index)
{
    for (wefti_fiber *at = sim->lines.all[index].watchers; at != NULL; at = at->next_watcher) {
        at->notified = 1;
        if (at->state == WEFTI_FIBER_PAUSED) {
            wefti_sim_wake(sim, at);
        }
    }
}

/* ---- commit ---- */

void wefti_memory_commit(wefti_sim *sim, int writer, uint64_t offset, const void *data, size_t bytes, uint64_t sync)
{
    unsigned char *memory = sim->arena + offset;
    if (sim->publishers > 0 && writer >= 0) {
        wefti_reads_check(sim, sim->fibers[writer], offset, bytes);
    }
    sim->seq++;
    sim->commits++;
    sim->progress++;
    if (sim->lines.commits != NULL) {
        wefti_commit *commit = wefti_lines_keep(&sim->lines, offset / LINE);
        commit->seq = sim->seq;
        commit->sync = sync == UINT64_MAX ? sim->seq : sync;
        commit->writer = writer;
        commit->stream = 0;
        commit->from = (uint8_t)(offset % LINE);
        commit->bytes = (uint8_t)bytes;
        memcpy(commit->old_data, memory, bytes);
        memcpy(commit->new_data, data, bytes);
    }
    memcpy(memory, data, bytes);
    uint32_t index = wefti_lines_find(&sim->lines, offset / LINE);
    if (index != WEFTI_LINE_NONE && sim->lines.all[index].watchers != NULL) {
        notify(sim, index);
    }
}

static wefti_flow *flow_of(wefti_sim *sim, uint32_t number)
{
    wefti_fiber *fiber = sim->fibers[number / 2];
    return (number & 1) != 0 ? &fiber->messages : &fiber->stores;
}

static void leave_pending(wefti_sim *sim, wefti_flow *flow)
{
    uint32_t at = flow->pending_index - 1;
    uint32_t last = sim->pending[--sim->pending_count];
    sim->pending[at] = last;
    flow_of(sim, last)->pending_index = at + 1;
    flow->pending_index = 0;
}

/* When the last store before a release fence has committed, stores after the fence synchronise with that commit. */
static void pass_fence(wefti_sim *sim, wefti_fiber *fiber, const wefti_flow *flow, uint32_t group)
{
    uint32_t now = flow->count == 0 ? flow->group : sim->entries.all[flow->first].group;
    if (now != group) {
        fiber->fence_seq = sim->seq;
    }
}

static uint64_t sync_of(const wefti_fiber *fiber, const wefti_entry *entry)
{
    if (entry->kind == WEFTI_ENTRY_RELEASE || entry->kind == WEFTI_ENTRY_AFTER_OPERATION) {
        return UINT64_MAX;
    }
    if (entry->kind == WEFTI_ENTRY_STREAM) {
        return 0;
    }
    if (entry->target < 0) {
        return fiber->fence_seq;
    }
    return entry->group > 0 ? UINT64_MAX : 0;
}

static void commit_bytes(wefti_sim *sim, const wefti_fiber *fiber, wefti_entry *entry, int is_message)
{
    if (is_message && !sim->ports[entry->target].open) {
        return; /* its PE has left the world */
    }
    wefti_memory_check_reserved(sim, entry->offset, fiber->pe);
    if (is_message && sim->publishers > 0) {
        wefti_reads_check(sim, fiber, entry->offset, entry->bytes);
    }
    if (entry->is_add) {
        uint64_t sum;
        uint64_t value;
        memcpy(&sum, sim->arena + entry->offset, sizeof sum);
        memcpy(&value, entry->data, sizeof value);
        sum += value;
        memcpy(entry->data, &sum, sizeof sum);
    }
    wefti_memory_commit(sim, is_message ? -1 : fiber->number, entry->offset, entry->data, entry->bytes,
                        sync_of(fiber, entry));
}

static void commit_entry(wefti_sim *sim, uint32_t number, uint32_t index)
{
    wefti_fiber *fiber = sim->fibers[number / 2];
    wefti_flow *flow = flow_of(sim, number);
    wefti_entry entry = sim->entries.all[index];
    int is_message = (number & 1) != 0;
    wefti_flow_remove(flow, &sim->entries, index);
    wefti_sim_record(sim, fiber, is_message ? WEFTI_EVENT_DELIVER : WEFTI_EVENT_COMMIT, entry.offset, entry.bytes);
    commit_bytes(sim, fiber, &entry, is_message);
    uint32_t line = wefti_lines_find(&sim->lines, entry.offset / LINE);
    sim->lines.all[line].pending--;
    wefti_lines_settle(&sim->lines, line);
    if (!is_message) {
        pass_fence(sim, fiber, flow, entry.group);
    }
    if (flow->count == 0) {
        leave_pending(sim, flow);
        if (is_message && fiber->state == WEFTI_FIBER_DELIVERING) {
            wefti_sim_wake(sim, fiber);
        }
    }
}

/* The first store of a flow that may commit and was not stored past the caches, or this one, which was: those stay in
 * buffers of their own until these are full or somebody ends them. */
static uint32_t pass_streams(const wefti_sim *sim, const wefti_flow *flow, uint32_t stream)
{
    const wefti_entry *all = sim->entries.all;
    for (uint32_t i = flow->first; i != WEFTI_ENTRY_NONE; i = all[i].next) {
        if (all[i].kind != WEFTI_ENTRY_STREAM && wefti_flow_may_commit(flow, &sim->entries, i)) {
            return i;
        }
    }
    return stream;
}

void wefti_memory_commit_one(wefti_sim *sim, uint32_t number, int any)
{
    wefti_flow *flow = flow_of(sim, number);
    uint32_t index = flow->first;
    if (any && flow->count > 1) {
        uint32_t reach = flow->count < WINDOW ? flow->count : WINDOW;
        uint32_t drawn = wefti_flow_at(flow, &sim->entries, wefti_random_below(&sim->random, reach));
        index = wefti_flow_may_commit(flow, &sim->entries, drawn) ? drawn : index;
        if (sim->entries.all[index].kind == WEFTI_ENTRY_STREAM &&
            wefti_random_below(&sim->random, STREAM_ONE_IN) != 0) {
            index = pass_streams(sim, flow, index);
        }
    }
    commit_entry(sim, number, index);
}

static void drain_buffer(wefti_sim *sim, const wefti_fiber *fiber)
{
    while (fiber->stores.count > 0) {
        wefti_memory_commit_one(sim, 2 * (uint32_t)fiber->number, 0);
    }
}

void wefti_memory_end_streams(wefti_sim *sim, wefti_fiber *fiber)
{
    wefti_flow_end_streams(&fiber->stores, &sim->entries);
    if (fiber->stream_is_open) {
        fiber->stream_ends[fiber->stream % WEFTI_STREAM_ENDS] = ++sim->seq; /* later than a release before it */
        fiber->stream++;
        fiber->stream_is_open = 0;
    }
}

void wefti_memory_drain(wefti_sim *sim, wefti_fiber *fiber)
{
    drain_buffer(sim, fiber);
    wefti_memory_end_streams(sim, fiber);
    wefti_reads_release(sim, fiber);
}

void wefti_memory_drain_messages(wefti_sim *sim, wefti_fiber *fiber, int target, uint32_t below_group)
{
    uint32_t at = fiber->messages.first;
    while (at != WEFTI_ENTRY_NONE) {
        const wefti_entry *entry = &sim->entries.all[at];
        uint32_t next = entry->next;
        if (entry->target == target && entry->group < below_group) {
            commit_entry(sim, 2 * (uint32_t)fiber->number + 1, at);
        }
        at = next;
    }
}

void wefti_memory_drain_all(wefti_sim *sim)
{
    while (sim->pending_count > 0) {
        wefti_memory_commit_one(sim, sim->pending[0], 0);
    }
}

void wefti_memory_enqueue(wefti_sim *sim, wefti_fiber *fiber, int is_message, const wefti_entry *entry)
{
    uint32_t number = 2 * (uint32_t)fiber->number + (is_message ? 1 : 0);
    wefti_flow *flow = flow_of(sim, number);
    while (flow->count >= sim->rates.buffer_entries) {
        wefti_memory_commit_one(sim, number, 1);
    }
    uint32_t line = wefti_lines_get(&sim->lines, entry->offset / LINE);
    sim->lines.all[line].pending++;
    (void)wefti_flow_append(flow, &sim->entries, entry);
    if (flow->pending_index == 0) {
        sim->pending[sim->pending_count++] = number;
        flow->pending_index = (uint32_t)sim->pending_count;
    }
}

/* ---- loading ---- */

static int overlaps(const wefti_commit *commit, unsigned from, size_t bytes)
{
    return commit->from < from + bytes && from < (unsigned)commit->from + commit->bytes;
}

/* Undo a commit in `out`, which holds bytes from.. of its line. Returns 0 when somebody has stored there directly. */
static int undo(const wefti_commit *commit, unsigned from, size_t bytes, unsigned char *out)
{
    unsigned first = commit->from > from ? commit->from : from;
    unsigned end = (unsigned)commit->from + commit->bytes;
    end = end < from + bytes ? end : from + (unsigned)bytes;
    if (memcmp(out + (first - from), commit->new_data + (first - commit->from), end - first) != 0) {
        return 0;
    }
    memcpy(out + (first - from), commit->old_data + (first - commit->from), end - first);
    return 1;
}

/* From which commit on a fiber that has seen all up to its horizon has seen this one. */
static uint64_t settled(const wefti_sim *sim, const wefti_commit *commit)
{
    if (commit->stream == 0) {
        return commit->seq;
    }
    const wefti_fiber *writer = sim->fibers[commit->writer];
    if (commit->stream == writer->stream) {
        return UINT64_MAX;
    }
    return writer->stream - commit->stream < WEFTI_STREAM_ENDS ? writer->stream_ends[commit->stream % WEFTI_STREAM_ENDS]
                                                               : commit->seq;
}

/* How many of the commits at these bytes may be taken back for this fiber. */
static uint32_t undo_limit(const wefti_sim *sim, uint32_t newest, const wefti_fiber *fiber, uint64_t offset,
                           size_t bytes)
{
    const wefti_lines *lines = &sim->lines;
    uint64_t seen = seen_of(fiber, offset, bytes);
    uint32_t limit = 0;
    for (uint32_t at = newest; at != WEFTI_LINE_NONE && limit < UNDO_MAX; at = lines->commits[at].older) {
        const wefti_commit *commit = &lines->commits[at];
        if (commit->seq <= seen || commit->seq <= sim->settled) {
            break;
        }
        if (overlaps(commit, (unsigned)(offset % LINE), bytes)) {
            if (commit->writer == fiber->number || settled(sim, commit) <= fiber->horizon) {
                break;
            }
            limit++;
        }
    }
    return limit;
}

/* Turn `out`, the newest bytes at `offset`, into older ones. Returns the first commit that still counts. */
static uint32_t look_back(wefti_sim *sim, wefti_fiber *fiber, uint32_t line, uint64_t offset, size_t bytes,
                          unsigned char *out)
{
    const wefti_lines *lines = &sim->lines;
    const unsigned from = (unsigned)(offset % LINE);
    uint32_t newest = lines->all[line].newest;
    uint32_t limit = undo_limit(sim, newest, fiber, offset, bytes);
    if (limit == 0 || !wefti_random_hit(&sim->random, sim->rates.stale)) {
        return newest;
    }
    unsigned char fresh[LINE];
    memcpy(fresh, out, bytes);
    uint32_t at = newest;
    for (uint32_t left = 1 + wefti_random_below(&sim->random, limit); left > 0; at = lines->commits[at].older) {
        const wefti_commit *commit = &lines->commits[at];
        if (!overlaps(commit, from, bytes)) {
            continue;
        }
        if (!undo(commit, from, bytes, out)) {
            memcpy(out, fresh, bytes);
            wefti_lines_drop_history(&sim->lines, line);
            return WEFTI_LINE_NONE;
        }
        left--;
    }
    if (memcmp(out, fresh, bytes) != 0) {
        wefti_sim_record(sim, fiber, WEFTI_EVENT_STALE, offset, bytes);
    }
    return at;
}

/* A fiber has read a value that the commits from `at` on have made: the newest of these counts as seen, and an acquire
 * moves the fiber's horizon to what that commit was released with. */
static void take_in(const wefti_lines *lines, wefti_fiber *fiber, uint32_t at, uint64_t offset, size_t bytes, int order)
{
    while (at != WEFTI_LINE_NONE && !overlaps(&lines->commits[at], (unsigned)(offset % LINE), bytes)) {
        at = lines->commits[at].older;
    }
    if (at == WEFTI_LINE_NONE) {
        return;
    }
    const wefti_commit *commit = &lines->commits[at];
    if (order != WEFTI_RELAXED) {
        raise_horizon(fiber, commit->sync);
    }
    if (commit->seq > fiber->horizon || commit->stream != 0) {
        set_seen(fiber, offset, bytes, commit->seq);
    }
}

/* Bytes of one line as `fiber` sees them. */
static void read_piece(wefti_sim *sim, wefti_fiber *fiber, uint64_t offset, size_t bytes, void *out, int order)
{
    wefti_memory_check_reserved(sim, offset, fiber->pe);
    memcpy(out, sim->arena + offset, bytes);
    uint32_t line = wefti_lines_find(&sim->lines, offset / LINE);
    if (line == WEFTI_LINE_NONE) {
        return;
    }
    uint32_t newest = sim->lines.all[line].newest;
    if (newest != WEFTI_LINE_NONE) {
        take_in(&sim->lines, fiber, look_back(sim, fiber, line, offset, bytes, out), offset, bytes, order);
    }
    if (sim->lines.all[line].pending > 0 && fiber->stores.count > 0) {
        wefti_flow_forward(&fiber->stores, &sim->entries, offset, bytes, out);
    }
    if (newest != WEFTI_LINE_NONE) {
        wefti_lines_settle(&sim->lines, line);
    }
}

static uint64_t load(wefti_sim *sim, uint64_t offset, size_t bytes, int order)
{
    uint64_t value = 0;
    wefti_sim_step(sim);
    wefti_fiber *fiber = sim->running;
    if (order == WEFTI_SEQ_CST) {
        wefti_memory_drain(sim, fiber);
        wefti_memory_acquire_all(sim, fiber);
    }
    fiber->counts.loads++;
    read_piece(sim, fiber, offset, bytes, &value, order);
    if (sim->publishers > 0) {
        wefti_reads_observe(sim, fiber, offset);
    }
    if (order == WEFTI_RELAXED) {
        wefti_reads_add(sim, fiber, offset, bytes);
    }
    if (sim->rounds != NULL && order != WEFTI_RELAXED) {
        wefti_memory_flag_seen(sim, fiber, offset);
    }
    wefti_sim_record(sim, fiber, WEFTI_EVENT_LOAD, offset, value);
    return value;
}

/* ---- storing ---- */

static int is_own(const wefti_fiber *fiber, uint64_t offset)
{
    for (unsigned i = 0; i < fiber->owned_count; i++) {
        if (offset - fiber->owned[i].offset < fiber->owned[i].bytes) {
            return 1;
        }
    }
    return 0;
}

/* Data that a PE stores to its own memory commits at once, since the program may look at it, or store there, with plain
 * accesses; others may see old values of it all the same. */
static void write_own(wefti_sim *sim, wefti_fiber *fiber, uint64_t offset, const void *data, size_t bytes,
                      int is_stream)
{
    if (fiber->stores.count > 0 && !wefti_flow_may_pass(&fiber->stores, &sim->entries, offset, bytes)) {
        drain_buffer(sim, fiber);
    }
    wefti_memory_commit(sim, fiber->number, offset, data, bytes, is_stream ? 0 : fiber->fence_seq);
    if (is_stream && sim->lines.commits != NULL) {
        wefti_lines_newest(&sim->lines)->stream = fiber->stream;
        fiber->stream_is_open = 1;
    }
}

/* One piece inside a line: relaxed, release or past the caches. */
static void write_piece(wefti_sim *sim, wefti_fiber *fiber, uint64_t offset, const void *data, size_t bytes,
                        wefti_entry_kind kind)
{
    wefti_flow *flow = &fiber->stores;
    wefti_memory_check_reserved(sim, offset, fiber->pe);
    if (kind != WEFTI_ENTRY_RELEASE && is_own(fiber, offset)) {
        write_own(sim, fiber, offset, data, bytes, kind == WEFTI_ENTRY_STREAM);
        return;
    }
    /* A store past the caches always waits: its line is given up when it is full, and nothing asks for it before. */
    int late = wefti_random_hit(&sim->random, sim->rates.delay) || kind == WEFTI_ENTRY_STREAM;
    if (!late && (flow->count == 0 ||
                  (kind != WEFTI_ENTRY_RELEASE && wefti_flow_may_pass(flow, &sim->entries, offset, bytes)))) {
        wefti_memory_commit(sim, fiber->number, offset, data, bytes,
                            kind == WEFTI_ENTRY_RELEASE ? UINT64_MAX : fiber->fence_seq);
        return;
    }
    wefti_entry entry = {.offset = offset, .bytes = (uint32_t)bytes, .kind = kind, .target = -1, .group = flow->group};
    memcpy(entry.data, data, bytes);
    wefti_memory_enqueue(sim, fiber, 0, &entry);
}

static void store(wefti_sim *sim, uint64_t offset, uint64_t value, size_t bytes, int order)
{
    wefti_sim_step(sim);
    wefti_fiber *fiber = sim->running;
    fiber->counts.stores++;
    if (sim->rounds != NULL && order != WEFTI_RELAXED && !is_own(fiber, offset)) {
        wefti_memory_flag_stored(sim, fiber, offset);
    }
    wefti_sim_record(sim, fiber, WEFTI_EVENT_STORE, offset, value);
    if (order == WEFTI_SEQ_CST) {
        wefti_memory_check_reserved(sim, offset, fiber->pe);
        wefti_memory_drain(sim, fiber);
        wefti_memory_commit(sim, fiber->number, offset, &value, bytes, UINT64_MAX);
        return;
    }
    if (order == WEFTI_RELEASE) {
        wefti_reads_release(sim, fiber);
    } else {
        wefti_reads_publish(sim, fiber, offset);
    }
    write_piece(sim, fiber, offset, &value, bytes, order == WEFTI_RELEASE ? WEFTI_ENTRY_RELEASE : WEFTI_ENTRY_RELAXED);
    if (order == WEFTI_RELEASE) {
        wefti_sim_after_release(sim);
    }
}

/* ---- bulk ---- */

/* The bytes of the next piece: to the end of the line, or cut at an aligned word. */
static size_t piece_bytes(wefti_sim *sim, uint64_t offset, size_t bytes)
{
    size_t piece = LINE - offset % LINE;
    piece = piece < bytes ? piece : bytes;
    size_t first_cut = 8 - offset % 8;
    if (piece > first_cut && wefti_random_hit(&sim->random, sim->rates.split)) {
        size_t cuts = (piece - first_cut + 7) / 8;
        piece = first_cut + 8 * wefti_random_below(&sim->random, (uint32_t)cuts);
    }
    return piece;
}

static void copy_out(wefti_sim *sim, unsigned char *dst, uint64_t offset, size_t bytes)
{
    wefti_fiber *fiber = sim->running;
    wefti_sim_record(sim, fiber, WEFTI_EVENT_READ, offset, bytes);
    fiber->counts.loads++;
    for (size_t done = 0; done < bytes;) {
        wefti_sim_step(sim);
        size_t piece = piece_bytes(sim, offset + done, bytes - done);
        read_piece(sim, fiber, offset + done, piece, dst + done, WEFTI_RELAXED);
        done += piece;
    }
    wefti_reads_add(sim, fiber, offset, bytes);
}

static void copy_in(wefti_sim *sim, uint64_t offset, const unsigned char *src, size_t bytes, wefti_entry_kind kind)
{
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_WRITE, offset, bytes);
    sim->running->counts.stores++;
    while (bytes > 0) {
        wefti_sim_step(sim);
        size_t piece = piece_bytes(sim, offset, bytes);
        write_piece(sim, sim->running, offset, src, piece, kind);
        src += piece;
        offset += piece;
        bytes -= piece;
    }
}

static void copy_across(wefti_sim *sim, uint64_t to, uint64_t from, size_t bytes, wefti_entry_kind kind)
{
    unsigned char some[4 * LINE];
    while (bytes > 0) {
        size_t piece = bytes < sizeof some ? bytes : sizeof some;
        copy_out(sim, some, from, piece);
        copy_in(sim, to, some, piece, kind);
        to += piece;
        from += piece;
        bytes -= piece;
    }
}

static void copy(void *dst, const void *src, size_t bytes, wefti_entry_kind kind)
{
    uint64_t to = WEFTI_NOWHERE;
    uint64_t from = WEFTI_NOWHERE;
    wefti_sim *sim_to = sim_of(dst, &to);
    wefti_sim *sim_from = sim_of(src, &from);
    if (sim_to != NULL && sim_from != NULL) {
        copy_across(sim_to, to, from, bytes, kind);
    } else if (sim_to != NULL) {
        copy_in(sim_to, to, src, bytes, kind);
    } else if (sim_from != NULL) {
        copy_out(sim_from, dst, from, bytes);
    } else {
        memcpy(dst, src, bytes);
    }
}

void wefti_copy(void *dst, const void *src, size_t bytes)
{
    copy(dst, src, bytes, WEFTI_ENTRY_RELAXED);
}

void wefti_copy_stream(void *dst, const void *src, size_t bytes)
{
    copy(dst, src, bytes, WEFTI_ENTRY_STREAM);
}

void wefti_copy_stream_end(void)
{
    wefti_sim *sim = wefti_sim_current;
    if (sim != NULL && sim->running != NULL) {
        wefti_sim_step(sim);
        wefti_memory_end_streams(sim, sim->running);
    }
}

void wefti_zero(void *dst, size_t bytes)
{
    static const unsigned char zeros[LINE];
    uint64_t offset;
    wefti_sim *sim = sim_of(dst, &offset);
    if (sim == NULL) {
        memset(dst, 0, bytes);
        return;
    }
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_ZERO, offset, bytes);
    while (bytes > 0) {
        size_t piece = LINE - offset % LINE < bytes ? LINE - offset % LINE : bytes;
        wefti_memory_check_reserved(sim, offset, sim->running->pe);
        if (wefti_lines_find(&sim->lines, offset / LINE) == WEFTI_LINE_NONE &&
            !wefti_random_hit(&sim->random, sim->rates.delay)) {
            memset(sim->arena + offset, 0, piece);
        } else {
            write_piece(sim, sim->running, offset, zeros, piece, WEFTI_ENTRY_RELAXED);
        }
        offset += piece;
        bytes -= piece;
    }
    sim->progress++;
}

/* ---- fences ---- */

void wefti_fence_release(void)
{
    wefti_sim *sim = wefti_sim_current;
    if (sim == NULL || sim->running == NULL) {
        return;
    }
    wefti_sim_step(sim);
    wefti_fiber *fiber = sim->running;
    wefti_sim_record(sim, fiber, WEFTI_EVENT_FENCE, 0, 0);
    wefti_reads_release(sim, fiber);
    if (fiber->stores.count == 0) {
        fiber->fence_seq = sim->seq;
    } else {
        fiber->stores.group++;
    }
}

void wefti_fence_full(void)
{
    wefti_sim *sim = wefti_sim_current;
    if (sim == NULL || sim->running == NULL) {
        return;
    }
    wefti_sim_step(sim);
    wefti_fiber *fiber = sim->running;
    wefti_sim_record(sim, fiber, WEFTI_EVENT_FENCE, 0, 1);
    wefti_memory_drain(sim, fiber);
    fiber->fence_seq = sim->seq;
    wefti_memory_acquire_all(sim, fiber);
}

/* ---- the seam ---- */

#define DEFINE_ACCESS(bits)                                                                                            \
    uint##bits##_t wefti_ld##bits(const void *p, int order)                                                            \
    {                                                                                                                  \
        uint64_t offset;                                                                                               \
        wefti_sim *sim = sim_of(p, &offset);                                                                           \
        return sim == NULL ? __atomic_load_n((const uint##bits##_t *)p, __ATOMIC_SEQ_CST)                              \
                           : (uint##bits##_t)load(sim, offset, bits / 8, order);                                       \
    }                                                                                                                  \
    void wefti_st##bits(void *p, uint##bits##_t value, int order)                                                      \
    {                                                                                                                  \
        uint64_t offset;                                                                                               \
        wefti_sim *sim = sim_of(p, &offset);                                                                           \
        if (sim == NULL) {                                                                                             \
            __atomic_store_n((uint##bits##_t *)p, value, __ATOMIC_SEQ_CST);                                            \
        } else {                                                                                                       \
            store(sim, offset, value, bits / 8, order);                                                                \
        }                                                                                                              \
    }
DEFINE_ACCESS(8)
DEFINE_ACCESS(16)
DEFINE_ACCESS(32)
DEFINE_ACCESS(64)

/* Everything this fiber stored is visible before, and it sees everything after. */
static void rmw_begin(wefti_sim *sim, uint64_t offset)
{
    wefti_sim_before_atomic(sim);
    wefti_memory_check_reserved(sim, offset, sim->running->pe);
    wefti_memory_drain(sim, sim->running);
    wefti_memory_acquire_all(sim, sim->running);
}

static void rmw_end(wefti_sim *sim, uint64_t offset, uint64_t old, uint64_t value, size_t bytes)
{
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_RMW, offset, value);
    sim->running->counts.stores++;
    if (old != value) {
        wefti_memory_commit(sim, sim->running->number, offset, &value, bytes, UINT64_MAX);
    }
}

#define DEFINE_RMW(name, bits, expression)                                                                             \
    uint##bits##_t wefti_##name##bits(void *p, uint##bits##_t value)                                                   \
    {                                                                                                                  \
        uint64_t offset = 0;                                                                                           \
        uint##bits##_t old;                                                                                            \
        wefti_sim *sim = sim_of(p, &offset);                                                                           \
        if (sim != NULL) {                                                                                             \
            rmw_begin(sim, offset);                                                                                    \
        }                                                                                                              \
        memcpy(&old, p, sizeof old);                                                                                   \
        uint##bits##_t new_value = (uint##bits##_t)(expression);                                                       \
        if (sim != NULL) {                                                                                             \
            rmw_end(sim, offset, old, new_value, sizeof old);                                                          \
        } else {                                                                                                       \
            memcpy(p, &new_value, sizeof new_value);                                                                   \
        }                                                                                                              \
        return old;                                                                                                    \
    }
#define DEFINE_RMWS(bits)                                                                                              \
    DEFINE_RMW(add, bits, old + value)                                                                                 \
    DEFINE_RMW(xchg, bits, value)                                                                                      \
    DEFINE_RMW(and, bits, old &value)                                                                                  \
    DEFINE_RMW(or, bits, old | value)                                                                                  \
    DEFINE_RMW(xor, bits, old ^ value)                                                                                 \
    uint##bits##_t wefti_cas##bits(void *p, uint##bits##_t expected, uint##bits##_t value)                             \
    {                                                                                                                  \
        uint64_t offset = 0;                                                                                           \
        uint##bits##_t old;                                                                                            \
        wefti_sim *sim = sim_of(p, &offset);                                                                           \
        if (sim != NULL) {                                                                                             \
            rmw_begin(sim, offset);                                                                                    \
        }                                                                                                              \
        memcpy(&old, p, sizeof old);                                                                                   \
        uint##bits##_t new_value = old == expected ? value : old;                                                      \
        if (sim != NULL) {                                                                                             \
            rmw_end(sim, offset, old, new_value, sizeof old);                                                          \
        } else {                                                                                                       \
            memcpy(p, &new_value, sizeof new_value);                                                                   \
        }                                                                                                              \
        return old;                                                                                                    \
    }
DEFINE_RMWS(32)
DEFINE_RMWS(64)

/* testing/sim/memory.c: the seam of protocol/mem.h: store buffers and a history of old values.
 *
 * Landings are numbered. A strand's horizon is a landing up to which it has seen everything; a load may return what a
 * place held at any moment since, but nothing older than this strand has read or written there before. Acquiring a
 * landing that was a release moves the horizon to it. This is a multi-copy-atomic model: what one strand acquires, all
 * later acquires of that value know too. What a strand stores past the caches into its own memory is left out of its
 * releases until it ends such stores. */
#include "weft/protocol/mem.h"

#include <inttypes.h>
#include <string.h>

#include "testing/sim/sim.h"

#define WINDOW 16 /* an entry lands before at most so many older ones */
#define LINE WEFTI_LINE_BYTES
#define UNDO_MAX 8

/* The simulation, when `p` is symmetric memory and a strand runs. */
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

/* ---- what a strand has seen ---- */

/* The landing up to which the strand has seen one of these bytes, which are inside one line. */
static uint64_t seen_of(const wefti_strand *strand, uint64_t offset, size_t bytes)
{
    const wefti_seen *seen = &strand->seen[offset / LINE % WEFTI_SEEN_COUNT];
    uint64_t seq = strand->forgotten;
    if (seen->line == offset / LINE + 1) {
        for (uint64_t word = offset % LINE / 8; word <= (offset % LINE + bytes - 1) / 8; word++) {
            seq = seen->seq[word] > seq ? seen->seq[word] : seq;
        }
    }
    return seq;
}

static void raise_horizon(wefti_strand *strand, uint64_t seq)
{
    if (seq > strand->horizon) {
        strand->horizon = seq;
    }
}

/* What is pushed out of the table is seen everywhere: stronger than needed, never weaker. */
static void set_seen(wefti_strand *strand, uint64_t offset, size_t bytes, uint64_t seq)
{
    uint64_t line = offset / LINE;
    wefti_seen *seen = &strand->seen[line % WEFTI_SEEN_COUNT];
    if (seen->line != line + 1) {
        for (int word = 0; word < WEFTI_LINE_WORDS; word++) {
            raise_horizon(strand, seen->seq[word]);
            strand->forgotten = seen->seq[word] > strand->forgotten ? seen->seq[word] : strand->forgotten;
        }
        *seen = (wefti_seen){.line = line + 1};
    }
    for (uint64_t word = offset % LINE / 8; word <= (offset % LINE + bytes - 1) / 8; word++) {
        seen->seq[word] = seq > seen->seq[word] ? seq : seen->seq[word];
    }
}

void wefti_memory_acquire_all(wefti_sim *sim, wefti_strand *strand)
{
    raise_horizon(strand, sim->seq);
}

/* ---- rounds ---- */

static uint32_t *rounds_at(const wefti_sim *sim, uint64_t offset)
{
    return &sim->rounds[offset / 8 * UINT64_C(0x9e3779b97f4a7c15) >> (64 - WEFTI_ROUNDS_BITS)];
}

void wefti_memory_flag_stored(wefti_sim *sim, const wefti_strand *strand, uint64_t offset)
{
    uint32_t *rounds = rounds_at(sim, offset);
    *rounds = strand->counts.rounds + 1 > *rounds ? (uint32_t)strand->counts.rounds + 1 : *rounds;
}

void wefti_memory_flag_seen(wefti_sim *sim, wefti_strand *strand, uint64_t offset)
{
    uint64_t rounds = *rounds_at(sim, offset);
    strand->counts.rounds = rounds > strand->counts.rounds ? rounds : strand->counts.rounds;
}

/* ---- watching ---- */

void wefti_memory_unwatch(wefti_sim *sim, wefti_strand *strand)
{
    if (strand->watched == 0) {
        return;
    }
    uint32_t index = wefti_lines_find(&sim->lines, strand->watched - 1);
    wefti_strand **link = &sim->lines.all[index].watchers;
    while (*link != strand) {
        link = &(*link)->next_watcher;
    }
    *link = strand->next_watcher;
    strand->watched = 0;
    strand->notified = 0;
    wefti_lines_settle(&sim->lines, index);
}

/* What lands from now on notifies, so what has landed must be seen. */
void wefti_memory_watch(wefti_sim *sim, wefti_strand *strand, uint64_t offset)
{
    uint64_t line = offset / LINE;
    if (strand->watched == line + 1) {
        strand->notified = 0;
        set_seen(strand, offset, 1, sim->seq);
        return;
    }
    wefti_memory_unwatch(sim, strand);
    uint32_t index = wefti_lines_get(&sim->lines, line);
    strand->next_watcher = sim->lines.all[index].watchers;
    sim->lines.all[index].watchers = strand;
    strand->watched = line + 1;
    set_seen(strand, offset, 1, sim->seq);
}

static void notify(wefti_sim *sim, uint32_t index)
{
    for (wefti_strand *at = sim->lines.all[index].watchers; at != NULL; at = at->next_watcher) {
        at->notified = 1;
        if (at->state == WEFTI_STRAND_PAUSED) {
            wefti_sim_wake(sim, at);
        }
    }
}

/* ---- landing ---- */

void wefti_memory_land(wefti_sim *sim, int writer, uint64_t offset, const void *data, size_t bytes, uint64_t sync)
{
    unsigned char *memory = sim->arena + offset;
    if (sim->publishers > 0 && writer >= 0) {
        wefti_reads_check(sim, sim->strands[writer], offset, bytes);
    }
    sim->seq++;
    sim->landings++;
    sim->progress++;
    if (sim->lines.landings != NULL) {
        wefti_landing *landing = wefti_lines_keep(&sim->lines, offset / LINE);
        landing->seq = sim->seq;
        landing->sync = sync == UINT64_MAX ? sim->seq : sync;
        landing->writer = writer;
        landing->stream = 0;
        landing->from = (uint8_t)(offset % LINE);
        landing->bytes = (uint8_t)bytes;
        memcpy(landing->old_data, memory, bytes);
        memcpy(landing->new_data, data, bytes);
    }
    memcpy(memory, data, bytes);
    uint32_t index = wefti_lines_find(&sim->lines, offset / LINE);
    if (index != WEFTI_LINE_NONE && sim->lines.all[index].watchers != NULL) {
        notify(sim, index);
    }
}

static wefti_flow *flow_of(wefti_sim *sim, uint32_t number)
{
    wefti_strand *strand = sim->strands[number / 2];
    return (number & 1) != 0 ? &strand->messages : &strand->stores;
}

static void leave_pending(wefti_sim *sim, wefti_flow *flow)
{
    uint32_t at = flow->pending_index - 1;
    uint32_t last = sim->pending[--sim->pending_count];
    sim->pending[at] = last;
    flow_of(sim, last)->pending_index = at + 1;
    flow->pending_index = 0;
}

/* The landing of the last store before a release fence is what the stores after it bring with them. */
static void pass_fence(wefti_sim *sim, wefti_strand *strand, const wefti_flow *flow, uint32_t group)
{
    uint32_t now = flow->count == 0 ? flow->group : sim->entries.all[flow->first].group;
    if (now != group) {
        strand->fence_seq = sim->seq;
    }
}

static uint64_t sync_of(const wefti_strand *strand, const wefti_entry *entry)
{
    if (entry->kind == WEFTI_ENTRY_RELEASE || entry->kind == WEFTI_ENTRY_AFTER_OPERATION) {
        return UINT64_MAX;
    }
    if (entry->kind == WEFTI_ENTRY_STREAM) {
        return 0;
    }
    if (entry->target < 0) {
        return strand->fence_seq;
    }
    return entry->group > 0 ? UINT64_MAX : 0;
}

static void land_bytes(wefti_sim *sim, const wefti_strand *strand, wefti_entry *entry, int is_message)
{
    if (is_message && !sim->ports[entry->target].open) {
        return; /* its PE has left the world */
    }
    wefti_memory_check_reserved(sim, entry->offset, strand->pe);
    if (is_message && sim->publishers > 0) {
        wefti_reads_check(sim, strand, entry->offset, entry->bytes);
    }
    if (entry->is_add) {
        uint64_t sum;
        uint64_t value;
        memcpy(&sum, sim->arena + entry->offset, sizeof sum);
        memcpy(&value, entry->data, sizeof value);
        sum += value;
        memcpy(entry->data, &sum, sizeof sum);
    }
    wefti_memory_land(sim, is_message ? -1 : strand->number, entry->offset, entry->data, entry->bytes,
                      sync_of(strand, entry));
}

static void land_entry(wefti_sim *sim, uint32_t number, uint32_t index)
{
    wefti_strand *strand = sim->strands[number / 2];
    wefti_flow *flow = flow_of(sim, number);
    wefti_entry entry = sim->entries.all[index];
    int is_message = (number & 1) != 0;
    wefti_flow_remove(flow, &sim->entries, index);
    wefti_sim_record(sim, strand, is_message ? WEFTI_EVENT_DELIVER : WEFTI_EVENT_LAND, entry.offset, entry.bytes);
    land_bytes(sim, strand, &entry, is_message);
    uint32_t line = wefti_lines_find(&sim->lines, entry.offset / LINE);
    sim->lines.all[line].pending--;
    wefti_lines_settle(&sim->lines, line);
    if (!is_message) {
        pass_fence(sim, strand, flow, entry.group);
    }
    if (flow->count == 0) {
        leave_pending(sim, flow);
        if (is_message && strand->state == WEFTI_STRAND_DELIVERING) {
            wefti_sim_wake(sim, strand);
        }
    }
}

void wefti_memory_land_one(wefti_sim *sim, uint32_t number, int any)
{
    wefti_flow *flow = flow_of(sim, number);
    uint32_t index = flow->first;
    if (any && flow->count > 1) {
        uint32_t reach = flow->count < WINDOW ? flow->count : WINDOW;
        uint32_t drawn = wefti_flow_at(flow, &sim->entries, wefti_random_below(&sim->random, reach));
        index = wefti_flow_may_land(flow, &sim->entries, drawn) ? drawn : index;
    }
    land_entry(sim, number, index);
}

static void drain_buffer(wefti_sim *sim, const wefti_strand *strand)
{
    while (strand->stores.count > 0) {
        wefti_memory_land_one(sim, 2 * (uint32_t)strand->number, 0);
    }
}

void wefti_memory_end_streams(wefti_sim *sim, wefti_strand *strand)
{
    wefti_flow_end_streams(&strand->stores, &sim->entries);
    if (strand->stream_is_open) {
        strand->stream_ends[strand->stream % WEFTI_STREAM_ENDS] = ++sim->seq; /* later than a release before it */
        strand->stream++;
        strand->stream_is_open = 0;
    }
}

void wefti_memory_drain(wefti_sim *sim, wefti_strand *strand)
{
    drain_buffer(sim, strand);
    wefti_memory_end_streams(sim, strand);
    wefti_reads_release(sim, strand);
}

void wefti_memory_drain_messages(wefti_sim *sim, wefti_strand *strand, int target, uint32_t below_group)
{
    uint32_t at = strand->messages.first;
    while (at != WEFTI_ENTRY_NONE) {
        const wefti_entry *entry = &sim->entries.all[at];
        uint32_t next = entry->next;
        if (entry->target == target && entry->group < below_group) {
            land_entry(sim, 2 * (uint32_t)strand->number + 1, at);
        }
        at = next;
    }
}

void wefti_memory_drain_all(wefti_sim *sim)
{
    while (sim->pending_count > 0) {
        wefti_memory_land_one(sim, sim->pending[0], 0);
    }
}

void wefti_memory_enqueue(wefti_sim *sim, wefti_strand *strand, int is_message, const wefti_entry *entry)
{
    uint32_t number = 2 * (uint32_t)strand->number + (is_message ? 1 : 0);
    wefti_flow *flow = flow_of(sim, number);
    while (flow->count >= sim->rates.buffer_entries) {
        wefti_memory_land_one(sim, number, 1);
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

static int overlaps(const wefti_landing *landing, unsigned from, size_t bytes)
{
    return landing->from < from + bytes && from < (unsigned)landing->from + landing->bytes;
}

/* Undo a landing in `out`, which holds bytes from.. of its line. Returns 0 when somebody has stored there directly. */
static int undo(const wefti_landing *landing, unsigned from, size_t bytes, unsigned char *out)
{
    unsigned first = landing->from > from ? landing->from : from;
    unsigned end = (unsigned)landing->from + landing->bytes;
    end = end < from + bytes ? end : from + (unsigned)bytes;
    if (memcmp(out + (first - from), landing->new_data + (first - landing->from), end - first) != 0) {
        return 0;
    }
    memcpy(out + (first - from), landing->old_data + (first - landing->from), end - first);
    return 1;
}

/* From which landing on a strand that has seen all up to its horizon has seen this one. */
static uint64_t settled(const wefti_sim *sim, const wefti_landing *landing)
{
    if (landing->stream == 0) {
        return landing->seq;
    }
    const wefti_strand *writer = sim->strands[landing->writer];
    if (landing->stream == writer->stream) {
        return UINT64_MAX;
    }
    return writer->stream - landing->stream < WEFTI_STREAM_ENDS
               ? writer->stream_ends[landing->stream % WEFTI_STREAM_ENDS]
               : landing->seq;
}

/* How many of the landings at these bytes may be taken back for this strand. */
static uint32_t undo_limit(const wefti_sim *sim, uint32_t newest, const wefti_strand *strand, uint64_t offset,
                           size_t bytes)
{
    const wefti_lines *lines = &sim->lines;
    uint64_t seen = seen_of(strand, offset, bytes);
    uint32_t limit = 0;
    for (uint32_t at = newest; at != WEFTI_LINE_NONE && limit < UNDO_MAX; at = lines->landings[at].older) {
        const wefti_landing *landing = &lines->landings[at];
        if (landing->seq <= seen || landing->seq <= sim->settled) {
            break;
        }
        if (overlaps(landing, (unsigned)(offset % LINE), bytes)) {
            if (landing->writer == strand->number || settled(sim, landing) <= strand->horizon) {
                break;
            }
            limit++;
        }
    }
    return limit;
}

/* Turn `out`, the newest bytes at `offset`, into older ones. Returns the first landing that still counts. */
static uint32_t look_back(wefti_sim *sim, wefti_strand *strand, uint32_t line, uint64_t offset, size_t bytes,
                          unsigned char *out)
{
    const wefti_lines *lines = &sim->lines;
    const unsigned from = (unsigned)(offset % LINE);
    uint32_t newest = lines->all[line].newest;
    uint32_t limit = undo_limit(sim, newest, strand, offset, bytes);
    if (limit == 0 || !wefti_random_hit(&sim->random, sim->rates.stale)) {
        return newest;
    }
    unsigned char fresh[LINE];
    memcpy(fresh, out, bytes);
    uint32_t at = newest;
    for (uint32_t left = 1 + wefti_random_below(&sim->random, limit); left > 0; at = lines->landings[at].older) {
        const wefti_landing *landing = &lines->landings[at];
        if (!overlaps(landing, from, bytes)) {
            continue;
        }
        if (!undo(landing, from, bytes, out)) {
            memcpy(out, fresh, bytes);
            wefti_lines_drop_history(&sim->lines, line);
            return WEFTI_LINE_NONE;
        }
        left--;
    }
    if (memcmp(out, fresh, bytes) != 0) {
        wefti_sim_record(sim, strand, WEFTI_EVENT_STALE, offset, bytes);
    }
    return at;
}

/* What the value read, which the landings from `at` on have made, brings with it. */
static void take_in(const wefti_lines *lines, wefti_strand *strand, uint32_t at, uint64_t offset, size_t bytes,
                    int order)
{
    while (at != WEFTI_LINE_NONE && !overlaps(&lines->landings[at], (unsigned)(offset % LINE), bytes)) {
        at = lines->landings[at].older;
    }
    if (at == WEFTI_LINE_NONE) {
        return;
    }
    const wefti_landing *landing = &lines->landings[at];
    if (order != WEFTI_RELAXED) {
        raise_horizon(strand, landing->sync);
    }
    if (landing->seq > strand->horizon || landing->stream != 0) {
        set_seen(strand, offset, bytes, landing->seq);
    }
}

/* Bytes of one line as `strand` sees them. */
static void read_piece(wefti_sim *sim, wefti_strand *strand, uint64_t offset, size_t bytes, void *out, int order)
{
    wefti_memory_check_reserved(sim, offset, strand->pe);
    memcpy(out, sim->arena + offset, bytes);
    uint32_t line = wefti_lines_find(&sim->lines, offset / LINE);
    if (line == WEFTI_LINE_NONE) {
        return;
    }
    uint32_t newest = sim->lines.all[line].newest;
    if (newest != WEFTI_LINE_NONE) {
        take_in(&sim->lines, strand, look_back(sim, strand, line, offset, bytes, out), offset, bytes, order);
    }
    if (sim->lines.all[line].pending > 0 && strand->stores.count > 0) {
        wefti_flow_forward(&strand->stores, &sim->entries, offset, bytes, out);
    }
    if (newest != WEFTI_LINE_NONE) {
        wefti_lines_settle(&sim->lines, line);
    }
}

static uint64_t load(wefti_sim *sim, uint64_t offset, size_t bytes, int order)
{
    uint64_t value = 0;
    wefti_sim_step(sim);
    wefti_strand *strand = sim->running;
    if (order == WEFTI_SEQ_CST) {
        wefti_memory_drain(sim, strand);
        wefti_memory_acquire_all(sim, strand);
    }
    strand->counts.loads++;
    read_piece(sim, strand, offset, bytes, &value, order);
    if (sim->publishers > 0) {
        wefti_reads_observe(sim, strand, offset);
    }
    if (order == WEFTI_RELAXED) {
        wefti_reads_add(sim, strand, offset, bytes);
    }
    if (sim->rounds != NULL && order != WEFTI_RELAXED) {
        wefti_memory_flag_seen(sim, strand, offset);
    }
    wefti_sim_record(sim, strand, WEFTI_EVENT_LOAD, offset, value);
    return value;
}

/* ---- storing ---- */

static int is_own(const wefti_strand *strand, uint64_t offset)
{
    for (unsigned i = 0; i < strand->own_count; i++) {
        if (offset - strand->own[i].offset < strand->own[i].bytes) {
            return 1;
        }
    }
    return 0;
}

/* Data that a PE stores to its own memory lands at once, since the program may look at it, or store there, with plain
 * accesses; others may see old values of it all the same. */
static void write_own(wefti_sim *sim, wefti_strand *strand, uint64_t offset, const void *data, size_t bytes,
                      int is_stream)
{
    if (strand->stores.count > 0 && !wefti_flow_may_pass(&strand->stores, &sim->entries, offset, bytes)) {
        drain_buffer(sim, strand);
    }
    wefti_memory_land(sim, strand->number, offset, data, bytes, is_stream ? 0 : strand->fence_seq);
    if (is_stream && sim->lines.landings != NULL) {
        wefti_lines_newest(&sim->lines)->stream = strand->stream;
        strand->stream_is_open = 1;
    }
}

/* One piece inside a line: relaxed, release or past the caches. */
static void write_piece(wefti_sim *sim, wefti_strand *strand, uint64_t offset, const void *data, size_t bytes,
                        wefti_entry_kind kind)
{
    wefti_flow *flow = &strand->stores;
    wefti_memory_check_reserved(sim, offset, strand->pe);
    if (kind != WEFTI_ENTRY_RELEASE && is_own(strand, offset)) {
        write_own(sim, strand, offset, data, bytes, kind == WEFTI_ENTRY_STREAM);
        return;
    }
    /* A store past the caches always waits: its line is given up when it is full, and nothing asks for it before. */
    int late = wefti_random_hit(&sim->random, sim->rates.delay) || kind == WEFTI_ENTRY_STREAM;
    if (!late && (flow->count == 0 ||
                  (kind != WEFTI_ENTRY_RELEASE && wefti_flow_may_pass(flow, &sim->entries, offset, bytes)))) {
        wefti_memory_land(sim, strand->number, offset, data, bytes,
                          kind == WEFTI_ENTRY_RELEASE ? UINT64_MAX : strand->fence_seq);
        return;
    }
    wefti_entry entry = {.offset = offset, .bytes = (uint32_t)bytes, .kind = kind, .target = -1, .group = flow->group};
    memcpy(entry.data, data, bytes);
    wefti_memory_enqueue(sim, strand, 0, &entry);
}

static void store(wefti_sim *sim, uint64_t offset, uint64_t value, size_t bytes, int order)
{
    wefti_sim_step(sim);
    wefti_strand *strand = sim->running;
    strand->counts.stores++;
    if (sim->rounds != NULL && order != WEFTI_RELAXED && !is_own(strand, offset)) {
        wefti_memory_flag_stored(sim, strand, offset);
    }
    wefti_sim_record(sim, strand, WEFTI_EVENT_STORE, offset, value);
    if (order == WEFTI_SEQ_CST) {
        wefti_memory_check_reserved(sim, offset, strand->pe);
        wefti_memory_drain(sim, strand);
        wefti_memory_land(sim, strand->number, offset, &value, bytes, UINT64_MAX);
        return;
    }
    if (order == WEFTI_RELEASE) {
        wefti_reads_release(sim, strand);
    } else {
        wefti_reads_publish(sim, strand, offset);
    }
    write_piece(sim, strand, offset, &value, bytes, order == WEFTI_RELEASE ? WEFTI_ENTRY_RELEASE : WEFTI_ENTRY_RELAXED);
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
    wefti_strand *strand = sim->running;
    wefti_sim_record(sim, strand, WEFTI_EVENT_READ, offset, bytes);
    strand->counts.loads++;
    for (size_t done = 0; done < bytes;) {
        wefti_sim_step(sim);
        size_t piece = piece_bytes(sim, offset + done, bytes - done);
        read_piece(sim, strand, offset + done, piece, dst + done, WEFTI_RELAXED);
        done += piece;
    }
    wefti_reads_add(sim, strand, offset, bytes);
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
    wefti_strand *strand = sim->running;
    wefti_sim_record(sim, strand, WEFTI_EVENT_FENCE, 0, 0);
    wefti_reads_release(sim, strand);
    if (strand->stores.count == 0) {
        strand->fence_seq = sim->seq;
    } else {
        strand->stores.group++;
    }
}

void wefti_fence_full(void)
{
    wefti_sim *sim = wefti_sim_current;
    if (sim == NULL || sim->running == NULL) {
        return;
    }
    wefti_sim_step(sim);
    wefti_strand *strand = sim->running;
    wefti_sim_record(sim, strand, WEFTI_EVENT_FENCE, 0, 1);
    wefti_memory_drain(sim, strand);
    strand->fence_seq = sim->seq;
    wefti_memory_acquire_all(sim, strand);
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

/* Everything this strand stored is visible before, and it sees everything after. */
static void rmw_begin(wefti_sim *sim, uint64_t offset)
{
    wefti_sim_step(sim);
    wefti_memory_check_reserved(sim, offset, sim->running->pe);
    wefti_memory_drain(sim, sim->running);
    wefti_memory_acquire_all(sim, sim->running);
}

static void rmw_end(wefti_sim *sim, uint64_t offset, uint64_t old, uint64_t value, size_t bytes)
{
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_RMW, offset, value);
    sim->running->counts.stores++;
    if (old != value) {
        wefti_memory_land(sim, sim->running->number, offset, &value, bytes, UINT64_MAX);
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

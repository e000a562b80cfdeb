/* Spans of a world's PE, in memory and then in the file. */
#include "world/timeline.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "world/nvtx.h"
#include "world/world.h"

#define EVENTS 2048 /* in memory */
#define LANES 8 /* threads of one PE that have lines of their own */
#define FLUSH_NS UINT64_C(1000000000)
#define EVENT_TEXT_BYTES 320 /* at most */
#define ANY_BYTES SIZE_MAX

static const wefti_os_journal form = {
    .head = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n", .separator = ",\n", .tail = "\n]}\n"};

typedef struct event {
    const char *name;
    uint64_t start_ns;
    uint64_t end_ns;
    wefti_span_details details;
    unsigned lane;
} event;

struct wefti_timeline {
    wefti_os_journal file;
    wefti_os_monitor *lock;
    uint64_t events_max;
    uint64_t taken; /* events so far, in the file and in memory */
    uint64_t dropped;
    uint64_t dropped_told;
    uint64_t flushed_ns;
    int is_lost; /* the file could not be written: events go nowhere */
    unsigned lanes;
    unsigned lanes_told;
    void *nvtx; /* NULL: no ranges */
    const void *threads[LANES]; /* by lane, the thread's own state, which tells threads apart */
    size_t count;
    event events[EVENTS];
    char text[(EVENTS + LANES + 8) * EVENT_TEXT_BYTES];
    size_t text_bytes;
    char path[]; /* empty: ranges only */
};

/* ---- as text ---- */

static void add(wefti_timeline *timeline, const char *format, ...) WEFT_PRINTF(2, 3);

/* One event. There is room for as many as there can be. */
static void add(wefti_timeline *timeline, const char *format, ...)
{
    size_t room = sizeof timeline->text - timeline->text_bytes;
    size_t used = timeline->text_bytes == 0 ? 0 : strlen(form.separator);
    char *at = timeline->text + timeline->text_bytes;
    memcpy(at, form.separator, used);
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(at + used, room - used, format, arguments);
    va_end(arguments);
    if (wanted > 0 && (size_t)wanted < room - used) {
        timeline->text_bytes += used + (size_t)wanted;
    }
}

/* World names are any bytes. */
static void escape(const char *name, char *text, size_t bytes)
{
    size_t used = 0;
    for (; *name != '\0' && used + 7 < bytes; name++) {
        unsigned char byte = (unsigned char)*name;
        int is_plain = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
        used += (size_t)snprintf(text + used, bytes - used, is_plain ? "%c" : "\\u%04x", byte);
    }
}

/* The process of the timeline that stands for the world. */
static unsigned process_of(const weft_world *world)
{
    return (unsigned)((world->key ^ world->key >> 32) & 0x7fffffff);
}

static unsigned line_of(const weft_world *world, unsigned lane)
{
    return world->view.pe + lane * world->view.pes;
}

static void tell_names(weft_world *world)
{
    wefti_timeline *timeline = world->timeline;
    char name[6 * WEFTI_WORLD_NAME_BYTES + 1];
    if (timeline->lanes_told == 0 && world->view.pe == 0) {
        escape(world->name, name, sizeof name);
        add(timeline,
            "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %u, \"tid\": 0, \"args\": {\"name\": \"%s, %u "
            "PEs\"}}",
            process_of(world), name, world->view.pes);
    }
    for (unsigned lane = timeline->lanes_told; lane < timeline->lanes; lane++) {
        char more[32] = "";
        if (lane > 0) {
            (void)snprintf(more, sizeof more, ", thread %u", lane);
        }
        add(timeline,
            "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %u, \"tid\": %u, \"args\": {\"name\": \"PE %u%s\"}}",
            process_of(world), line_of(world, lane), world->view.pe, more);
    }
    timeline->lanes_told = timeline->lanes;
}

static void tell_event(weft_world *world, const event *e)
{
    char members[32] = "";
    char bytes[32] = "";
    char status[48] = "";
    if (e->details.members > 0) {
        (void)snprintf(members, sizeof members, ", \"members\": %d", e->details.members);
    }
    if (e->details.bytes != ANY_BYTES) {
        (void)snprintf(bytes, sizeof bytes, ", \"bytes\": %zu", e->details.bytes);
    }
    if (e->details.status != WEFT_OK) {
        (void)snprintf(status, sizeof status, ", \"status\": \"%s\"", weft_status_name(e->details.status));
    }
    uint64_t ns = e->end_ns - e->start_ns;
    add(world->timeline,
        "{\"ph\": \"X\", \"name\": \"%s\", \"pid\": %u, \"tid\": %u, \"ts\": %llu.%03u, \"dur\": %llu.%03u, "
        "\"args\": {\"pe\": %u%s%s%s}}",
        e->name, process_of(world), line_of(world, e->lane), (unsigned long long)(e->start_ns / 1000),
        (unsigned)(e->start_ns % 1000), (unsigned long long)(ns / 1000), (unsigned)(ns % 1000), world->view.pe, members,
        bytes, status);
}

static void tell_dropped(weft_world *world)
{
    wefti_timeline *timeline = world->timeline;
    if (timeline->dropped > timeline->dropped_told) {
        uint64_t now = wefti_os_now_ns();
        add(timeline,
            "{\"ph\": \"i\", \"s\": \"t\", \"name\": \"events dropped\", \"pid\": %u, \"tid\": %u, \"ts\": %llu.%03u, "
            "\"args\": {\"pe\": %u, \"dropped\": %llu}}",
            process_of(world), world->view.pe, (unsigned long long)(now / 1000), (unsigned)(now % 1000), world->view.pe,
            (unsigned long long)timeline->dropped);
        timeline->dropped_told = timeline->dropped;
    }
}

/* ---- to the file ---- */

/* Write the text. A file that cannot be written is told once and left; the caller's last error stays. */
static void write_text(wefti_timeline *timeline)
{
    char error[WEFTI_ERROR_BYTES];
    memcpy(error, wefti_thread_text(), sizeof error);
    timeline->is_lost = wefti_os_journal_insert(&timeline->file, timeline->text, timeline->text_bytes) != WEFT_OK;
    memcpy(wefti_thread_text(), error, sizeof error);
}

static void flush(weft_world *world)
{
    wefti_timeline *timeline = world->timeline;
    timeline->text_bytes = 0;
    tell_names(world);
    for (size_t i = 0; i < timeline->count; i++) {
        tell_event(world, &timeline->events[i]);
    }
    tell_dropped(world);
    if (timeline->text_bytes > 0 && !timeline->is_lost) {
        write_text(timeline);
    }
    timeline->count = 0;
    timeline->flushed_ns = wefti_os_now_ns();
}

/* ---- in memory ---- */

/* The first thread after creation has the line of creation. */
static unsigned lane_of_thread(wefti_timeline *timeline)
{
    const void *thread = wefti_thread_state_own();
    unsigned lane = 0;
    if (timeline->threads[0] == NULL) {
        timeline->threads[0] = thread;
    }
    while (lane < timeline->lanes && timeline->threads[lane] != thread) {
        lane++;
    }
    if (lane == LANES) {
        return LANES - 1;
    }
    if (lane == timeline->lanes) {
        timeline->threads[timeline->lanes++] = thread;
    }
    return lane;
}

/* Keep an event. The lock is held. */
static void keep(weft_world *world, const event *e)
{
    wefti_timeline *timeline = world->timeline;
    if (timeline->taken == timeline->events_max) {
        timeline->dropped++;
        return;
    }
    timeline->taken++;
    timeline->events[timeline->count++] = *e;
    if (timeline->count == EVENTS || e->details.status != WEFT_OK || e->end_ns - timeline->flushed_ns > FLUSH_NS) {
        flush(world);
    }
}

static void keep_span(const wefti_span *span, uint64_t end_ns, wefti_span_details details)
{
    wefti_timeline *timeline = span->world->timeline;
    if (timeline->nvtx != NULL) {
        wefti_nvtx_range_end(timeline->nvtx, span->range);
    }
    if (timeline->path[0] == '\0') {
        return;
    }
    wefti_os_monitor_enter(timeline->lock);
    keep(span->world, &(event){span->name, span->start_ns, end_ns, details, lane_of_thread(timeline)});
    wefti_os_monitor_leave(timeline->lock);
}

static void begin(wefti_span *span, weft_world *world, const char *name, uint64_t start_ns)
{
    void *nvtx = world->timeline->nvtx;
    *span = (wefti_span){.world = world, .name = name, .start_ns = start_ns};
    span->range = nvtx != NULL ? wefti_nvtx_range_start(nvtx, name) : 0;
}

wefti_span wefti_span_begin(weft_world *world, const char *name)
{
    wefti_span span = {.world = NULL};
    if (WEFTI_UNLIKELY(world->timeline != NULL)) {
        begin(&span, world, name, wefti_os_now_ns());
    }
    return span;
}

void wefti_span_end(const wefti_span *span, wefti_span_details details)
{
    if (WEFTI_UNLIKELY(span->world != NULL)) {
        keep_span(span, wefti_os_now_ns(), details);
    }
}

void wefti_span_next(wefti_span *span, const char *name)
{
    if (WEFTI_UNLIKELY(span->world != NULL)) {
        uint64_t now = wefti_os_now_ns();
        keep_span(span, now, (wefti_span_details){.bytes = ANY_BYTES});
        begin(span, span->world, name, now);
    }
}

/* ---- its life ---- */

static void keep_creation(weft_world *world)
{
    const wefti_span_details none = {.bytes = ANY_BYTES};
    uint64_t end_ns = world->phase_start_ns;
    uint64_t start_ns = end_ns;
    for (size_t i = 0; i < world->phase_count; i++) {
        start_ns -= world->phases[i].ns;
    }
    keep(world, &(event){"weft_world_create", start_ns, end_ns, {(int)world->view.pes, ANY_BYTES, WEFT_OK}, 0});
    for (size_t i = 0; i < world->phase_count; i++) {
        keep(world, &(event){world->phases[i].name, start_ns, start_ns + world->phases[i].ns, none, 0});
        start_ns += world->phases[i].ns;
    }
}

void wefti_timeline_open(weft_world *world, const wefti_world_settings *settings)
{
    const char *path = wefti_env_word(WEFTI_ENV_TRACE);
    void *nvtx = settings->tells_nvtx != 0 ? wefti_nvtx_open(world) : NULL;
    if (path[0] == '\0' && nvtx == NULL) {
        return;
    }
    size_t path_bytes = strlen(path) + 1;
    wefti_timeline *timeline = wefti_alloc_aligned(sizeof(uint64_t), sizeof *timeline + path_bytes);
    if (timeline == NULL || wefti_os_monitor_create(&timeline->lock) != WEFT_OK) {
        wefti_log(WEFTI_LOG_WARN,
                  "world \"%s\" PE %u: no memory for the timeline that WEFT_TRACE or WEFT_NVTX asks for", world->name,
                  world->view.pe);
        wefti_nvtx_close(nvtx);
        wefti_free(timeline);
        return;
    }
    memcpy(timeline->path, path, path_bytes);
    timeline->file = form;
    timeline->file.path = timeline->path;
    timeline->events_max = settings->trace_events_max;
    timeline->nvtx = nvtx;
    timeline->flushed_ns = wefti_os_now_ns();
    timeline->lanes = 1;
    world->timeline = timeline;
    if (path[0] != '\0') {
        keep_creation(world);
    }
}

void wefti_timeline_close(weft_world *world)
{
    if (world->timeline != NULL) {
        if (world->timeline->path[0] != '\0') {
            flush(world);
        }
        wefti_nvtx_close(world->timeline->nvtx);
        wefti_os_monitor_destroy(world->timeline->lock);
        wefti_free(world->timeline);
        world->timeline = NULL;
    }
}

void wefti_timeline_discard(const char *path)
{
    wefti_os_journal file = form;
    file.path = path;
    wefti_os_journal_discard(&file);
}

/* suite/face.h: the host benchmarks are written once and compiled against several libraries. A library's face is a
 * header of inline functions with these names, so that all make the same accesses to the same addresses in the same
 * order and differ in the calls alone:
 *
 *   FACE_IMPL                                 "weft", "ompi": the impl of the figures
 *   face                                      a struct, copied into each loop
 *   face_open(f) face_close(f)                join and leave; collective
 *   face_pe(f) face_pes(f)
 *   face_alloc(f, bytes)                      symmetric memory, zeroed, page-aligned; NULL when there is none
 *   face_put face_get(f, to, from, bytes, pe)
 *   face_p(f, to, value, pe)                  face_g(f, from, pe, &value)
 *   face_fetch_add(f, to, value, pe, &old)    face_compare_swap(f, to, cond, value, pe, &old)
 *   face_fetch(f, from, pe, &value)
 *   face_quiet(f) face_barrier(f) face_sync(f)
 *   face_wait(f, word, value)                 until *word == value
 *   face_ptr(f, address, pe)                  where to load and store it, or NULL
 *
 * Those that can fail return 0 on success. Included by the suite after the face itself. */
#ifndef SUITE_FACE_H
#define SUITE_FACE_H

#include "suite/options.h"
#include "tools/lib/block.h"
#include "tools/lib/clock.h"
#include "tools/lib/record.h"

#ifndef FACE_IMPL
#error "include the face of a library first"
#endif

#define SUITE_WORDS 32 /* targets of single words: four cache lines */
/* Where in a page they begin. A load that follows a store to the same place of another page waits for it, and what
 * libraries read in each call tends to lie at the start of a page. */
#define SUITE_WORDS_AT 2112
#define SUITE_PAGE_BYTES 4096
#define SUITE_BULK_BYTES ((size_t)16 << 20)

/* Flags of the two-sided measurements, a cache line each (two, as lines are fetched in pairs). */
typedef struct suite_flag {
    long value;
    long unused[15];
} suite_flag;

typedef struct suite {
    face face;
    int pe;
    int peer; /* whom PE 0 measures against, and it them */
    bench_options options;
    tool_record record;
    long local[SUITE_WORDS];
    /* Symmetric: */
    long *words; /* SUITE_WORDS of them */
    suite_flag *ping; /* of the library's ping-pong */
    suite_flag *raw; /* of the hardware's */
    suite_flag *agreed; /* what PE 0 tells the others */
    unsigned char *source;
    unsigned char *target;
    size_t bytes; /* of the bulk copies being measured */
    long round; /* of the ping-pongs: counts up */
    long raw_round;
    unsigned char *memory; /* symmetric: of the collectives, 2 * pes * the largest block */
} suite;

/* Join, and allocate what the measurements share. Returns 0 or -1. */
static int suite_open(suite *s, int argc, char **argv)
{
    s->options = (bench_options)BENCH_OPTIONS_INIT;
    if (bench_options_read(&s->options, NULL, 0, argc, argv) != 0 || face_open(&s->face) != 0) {
        return -1;
    }
    s->pe = face_pe(&s->face);
    int pes = face_pes(&s->face);
    s->peer = s->pe == 0 ? pes - 1 : 0;
    char *page = face_alloc(&s->face, SUITE_PAGE_BYTES);
    s->ping = face_alloc(&s->face, sizeof *s->ping);
    s->raw = face_alloc(&s->face, sizeof *s->raw);
    s->agreed = face_alloc(&s->face, sizeof *s->agreed);
    s->source = face_alloc(&s->face, SUITE_BULK_BYTES);
    s->target = face_alloc(&s->face, SUITE_BULK_BYTES);
    if (page == NULL || s->ping == NULL || s->raw == NULL || s->agreed == NULL || s->source == NULL ||
        s->target == NULL) {
        fprintf(stderr, "%s: no symmetric memory\n", FACE_IMPL);
        return -1;
    }
    s->words = (long *)(void *)(page + SUITE_WORDS_AT);
    return tool_record_open(&s->record, s->options.json, FACE_IMPL, s->pe, pes);
}

/* Returns the exit status of the program. */
static int suite_close(suite *s, int failed)
{
    tool_record_close(&s->record);
    if (failed != 0) {
        fprintf(stderr, "%s: PE %d: a measurement failed\n", FACE_IMPL, s->pe);
    }
    return face_close(&s->face) != 0 || failed != 0;
}

static void suite_write(suite *s, const char *name, const char *impl, size_t bytes, const char *unit,
                        const tool_samples *samples)
{
    const tool_measurement figure = {.name = name, .impl = impl, .bytes = bytes, .unit = unit};
    tool_record_write(&s->record, &figure, samples);
}

/* What PE 0 says, on all PEs. Collective. */
static long suite_agree(suite *s, long value)
{
    int failed = 0;
    if (s->pe == 0) {
        s->agreed->value = value;
        for (int pe = 1; pe < face_pes(&s->face); pe++) {
            failed |= face_p(&s->face, &s->agreed->value, value, pe);
        }
    }
    failed |= face_barrier(&s->face);
    long agreed = __atomic_load_n(&s->agreed->value, __ATOMIC_RELAXED);
    failed |= face_barrier(&s->face);
    return failed == 0 ? agreed : 0;
}

#endif

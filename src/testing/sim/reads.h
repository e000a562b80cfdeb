/* testing/sim/reads.h: reads that a fiber has not released yet.
 *
 * Loads run in program order here, but processors let a later store that is no release pass them: then others learn
 * from it that the reading is over, and write there, before it is. So the run fails when a fiber has read, then stored
 * a word without release, another fiber has loaded that word, and somebody writes to what was read before any release
 * of it. */
#ifndef WEFTI_SIM_READS_H
#define WEFTI_SIM_READS_H

#include <stddef.h>
#include <stdint.h>

/* What is read or stored beyond so many places without a release between is not followed. */
#define WEFTI_READS 16
#define WEFTI_PUBLISHED 8

typedef struct wefti_sim wefti_sim;
typedef struct wefti_fiber wefti_fiber;

typedef struct wefti_reads {
    struct {
        uint64_t offset;
        uint64_t bytes;
    } places[WEFTI_READS];
    struct {
        uint64_t offset; /* of a word stored without release */
        unsigned count; /* places that had been read by then */
    } published[WEFTI_PUBLISHED];
    unsigned count;
    unsigned published_count;
    unsigned observed; /* the first so many places: another fiber has loaded a word that was stored later */
} wefti_reads;

/* The fiber has read these bytes by a load or copy that is no acquire. */
void wefti_reads_add(wefti_sim *sim, wefti_fiber *fiber, uint64_t offset, size_t bytes);
/* It has stored a word without release. */
void wefti_reads_publish(wefti_sim *sim, wefti_fiber *fiber, uint64_t offset);
/* It has loaded a word. */
void wefti_reads_observe(wefti_sim *sim, const wefti_fiber *fiber, uint64_t offset);
/* What it has read comes before what it stores from now on. */
void wefti_reads_release(wefti_sim *sim, wefti_fiber *fiber);
/* `writer` changes these bytes. */
void wefti_reads_check(wefti_sim *sim, const wefti_fiber *writer, uint64_t offset, size_t bytes);

#endif

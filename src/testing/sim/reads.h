/* testing/sim/reads.h: reads that a strand has not released yet.
 *
 * Loads run in program order here, but processors let a later store that is no release pass them: then others learn from
 * it that the reading is over, and write there, before it is. So the run fails when a strand has read, then stored a word
 * without release, another strand has loaded that word, and somebody writes to what was read before any release of it. */
#ifndef WEFTI_SIM_READS_H
#define WEFTI_SIM_READS_H

#include <stddef.h>
#include <stdint.h>

/* What is read or stored beyond so many places without a release between is not followed. */
#define WEFTI_READS 16
#define WEFTI_PUBLISHED 8

typedef struct wefti_sim wefti_sim;
typedef struct wefti_strand wefti_strand;

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
    unsigned observed; /* the first so many places: another strand has loaded a word that was stored later */
} wefti_reads;

/* The strand has read these bytes by a load or copy that is no acquire. */
void wefti_reads_add(wefti_sim *sim, wefti_strand *strand, uint64_t offset, size_t bytes);
/* It has stored a word without release. */
void wefti_reads_publish(wefti_sim *sim, wefti_strand *strand, uint64_t offset);
/* It has loaded a word. */
void wefti_reads_observe(wefti_sim *sim, const wefti_strand *strand, uint64_t offset);
/* What it has read comes before what it stores from now on. */
void wefti_reads_release(wefti_sim *sim, wefti_strand *strand);
/* `writer` changes these bytes. */
void wefti_reads_check(wefti_sim *sim, const wefti_strand *writer, uint64_t offset, size_t bytes);

#endif

/* sim/reads.c: reads that are not released. */
#include "sim/reads.h"

#include <inttypes.h>

#include "sim/sim.h"

void wefti_reads_add(wefti_sim *sim, wefti_strand *strand, uint64_t offset, size_t bytes)
{
    wefti_reads *reads = &strand->reads;
    if (sim->lines.landings == NULL || bytes == 0 || reads->count == WEFTI_READS) {
        return;
    }
    reads->places[reads->count].offset = offset;
    reads->places[reads->count].bytes = bytes;
    reads->count++;
}

void wefti_reads_tell(wefti_sim *sim, wefti_strand *strand, uint64_t offset)
{
    wefti_reads *reads = &strand->reads;
    if (reads->count == 0 || reads->tell_count == WEFTI_TELLS) {
        return;
    }
    sim->telling += reads->tell_count == 0;
    reads->tells[reads->tell_count].offset = offset / 8;
    reads->tells[reads->tell_count].count = reads->count;
    reads->tell_count++;
}

void wefti_reads_hear(wefti_sim *sim, const wefti_strand *strand, uint64_t offset)
{
    for (size_t i = 0; i < sim->strand_count; i++) {
        wefti_reads *reads = &sim->strands[i]->reads;
        for (unsigned at = 0; sim->strands[i]->pe != strand->pe && at < reads->tell_count; at++) {
            if (reads->tells[at].offset == offset / 8 && reads->tells[at].count > reads->heard) {
                reads->heard = reads->tells[at].count;
            }
        }
    }
}

void wefti_reads_release(wefti_sim *sim, wefti_strand *strand)
{
    wefti_reads *reads = &strand->reads;
    sim->telling -= reads->tell_count > 0;
    reads->heard = reads->tell_count = reads->count = 0;
}

static int has_heard_of(const wefti_reads *reads, uint64_t offset, size_t bytes)
{
    for (unsigned i = 0; i < reads->heard; i++) {
        if (reads->places[i].offset < offset + bytes && offset < reads->places[i].offset + reads->places[i].bytes) {
            return 1;
        }
    }
    return 0;
}

void wefti_reads_check(wefti_sim *sim, const wefti_strand *writer, uint64_t offset, size_t bytes)
{
    for (size_t i = 0; i < sim->strand_count; i++) {
        const wefti_strand *strand = sim->strands[i];
        if (strand->pe != writer->pe && has_heard_of(&strand->reads, offset, bytes)) {
            wefti_sim_refuse(sim, strand->pe,
                             "PE %d has read offset 0x%" PRIx64 " and told so without a release; PE %d writes there",
                             strand->pe, offset, writer->pe);
        }
    }
}

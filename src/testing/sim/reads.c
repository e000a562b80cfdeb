/* testing/sim/reads.c: reads that are not released. */
#include "testing/sim/reads.h"

#include <inttypes.h>

#include "testing/sim/sim.h"

void wefti_reads_add(wefti_sim *sim, wefti_fiber *fiber, uint64_t offset, size_t bytes)
{
    wefti_reads *reads = &fiber->reads;
    if (sim->lines.commits == NULL || bytes == 0 || reads->count == WEFTI_READS) {
        return;
    }
    reads->places[reads->count].offset = offset;
    reads->places[reads->count].bytes = bytes;
    reads->count++;
}

void wefti_reads_publish(wefti_sim *sim, wefti_fiber *fiber, uint64_t offset)
{
    wefti_reads *reads = &fiber->reads;
    if (reads->count == 0 || reads->published_count == WEFTI_PUBLISHED) {
        return;
    }
    sim->publishers += reads->published_count == 0;
    reads->published[reads->published_count].offset = offset / 8;
    reads->published[reads->published_count].count = reads->count;
    reads->published_count++;
}

void wefti_reads_observe(wefti_sim *sim, const wefti_fiber *fiber, uint64_t offset)
{
    for (size_t i = 0; i < sim->fiber_count; i++) {
        wefti_reads *reads = &sim->fibers[i]->reads;
        for (unsigned at = 0; sim->fibers[i]->pe != fiber->pe && at < reads->published_count; at++) {
            if (reads->published[at].offset == offset / 8 && reads->published[at].count > reads->observed) {
                reads->observed = reads->published[at].count;
            }
        }
    }
}

void wefti_reads_release(wefti_sim *sim, wefti_fiber *fiber)
{
    wefti_reads *reads = &fiber->reads;
    sim->publishers -= reads->published_count > 0;
    reads->observed = reads->published_count = reads->count = 0;
}

static int is_known_over(const wefti_reads *reads, uint64_t offset, size_t bytes)
{
    for (unsigned i = 0; i < reads->observed; i++) {
        if (reads->places[i].offset < offset + bytes && offset < reads->places[i].offset + reads->places[i].bytes) {
            return 1;
        }
    }
    return 0;
}

void wefti_reads_check(wefti_sim *sim, const wefti_fiber *writer, uint64_t offset, size_t bytes)
{
    for (size_t i = 0; i < sim->fiber_count; i++) {
        const wefti_fiber *fiber = sim->fibers[i];
        if (fiber->pe != writer->pe && is_known_over(&fiber->reads, offset, bytes)) {
            wefti_sim_refuse(sim, fiber->pe,
                             "PE %d has read offset 0x%" PRIx64 " and told so without a release; PE %d writes there",
                             fiber->pe, offset, writer->pe);
        }
    }
}

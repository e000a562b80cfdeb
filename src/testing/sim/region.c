/* testing/sim/region.c: shared memory for os/os.h: parts of one arena. A descriptor is the number of a region; who
 * adopts one gets the same address. Handing descriptors over is a table of offers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "testing/sim/sim.h"
#include "weft/protocol/mem.h"

#define REGION_ALIGNMENT ((uint64_t)WEFTI_OS_MEMORY_ALIGNMENT)
#define POLL_NS 5000

static wefti_sim *running_sim(void)
{
    wefti_sim *sim = wefti_sim_current;
    return sim != NULL && sim->running != NULL ? sim : NULL;
}

/* ---- regions ---- */

static wefti_region *append_region(wefti_sim *sim)
{
    if (sim->region_count == sim->region_capacity) {
        size_t capacity = sim->region_capacity == 0 ? 16 : 2 * sim->region_capacity;
        wefti_region *longer = realloc(sim->regions, capacity * sizeof *longer);
        if (longer == NULL) {
            return NULL;
        }
        sim->regions = longer;
        sim->region_capacity = capacity;
    }
    return &sim->regions[sim->region_count++];
}

/* A free region of this size, or a new one; NULL when the arena is full. */
static wefti_region *find_region(wefti_sim *sim, uint64_t bytes)
{
    for (size_t i = 0; i < sim->region_count; i++) {
        if (sim->regions[i].users == 0 && sim->regions[i].bytes == bytes) {
            return &sim->regions[i];
        }
    }
    if (bytes > sim->arena_bytes - sim->arena_used) {
        return NULL;
    }
    wefti_region *region = append_region(sim);
    if (region != NULL) {
        *region = (wefti_region){.offset = sim->arena_used, .bytes = bytes};
        sim->arena_used += bytes;
    }
    return region;
}

static void use_region(const wefti_sim *sim, wefti_os_memory *memory, size_t number, size_t bytes)
{
    sim->regions[number].users++;
    memory->descriptor = (int)number;
    memory->base = sim->arena + sim->regions[number].offset;
    memory->bytes = bytes;
}

weft_status wefti_os_memory_create(wefti_os_memory *memory, size_t bytes)
{
    wefti_sim *sim = running_sim();
    uint64_t rounded = (bytes + REGION_ALIGNMENT - 1) / REGION_ALIGNMENT * REGION_ALIGNMENT;
    wefti_region *region = sim == NULL || wefti_fault("mmap", 12) ? NULL : find_region(sim, rounded);
    if (region == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "cannot map %zu bytes of simulated memory", bytes);
    }
    use_region(sim, memory, (size_t)(region - sim->regions), bytes);
    return WEFT_OK;
}

weft_status wefti_os_memory_adopt(wefti_os_memory *memory, int descriptor, size_t bytes)
{
    wefti_sim *sim = running_sim();
    if (sim == NULL || descriptor < 0 || (size_t)descriptor >= sim->region_count ||
        sim->regions[descriptor].users == 0 || wefti_fault("mmap", 12)) {
        return wefti_error(WEFT_ERR_MEMORY, "cannot map %zu bytes of simulated memory", bytes);
    }
    use_region(sim, memory, (size_t)descriptor, bytes);
    return WEFT_OK;
}

static void mark_pages(const wefti_sim *sim, uint64_t offset, uint64_t bytes, int reserved)
{
    uint64_t end = (offset + bytes) / WEFTI_SIM_PAGE_BYTES;
    for (uint64_t page = offset / WEFTI_SIM_PAGE_BYTES; page < end; page++) {
        unsigned char bit = (unsigned char)(1u << page % 8);
        sim->reserved[page / 8] =
            (unsigned char)(reserved ? sim->reserved[page / 8] | bit : sim->reserved[page / 8] & ~bit);
    }
}

int wefti_sim_is_reserved(const wefti_sim *sim, uint64_t offset)
{
    uint64_t page = offset / WEFTI_SIM_PAGE_BYTES;
    return sim->reserved[page / 8] >> page % 8 & 1;
}

weft_status wefti_os_memory_reserve(wefti_os_memory *memory, size_t offset, size_t bytes)
{
    wefti_sim *sim = running_sim();
    if (memory->descriptor < 0 || sim == NULL) {
        return wefti_error(WEFT_ERR_STATE, "shared memory cannot be reserved after its descriptor was closed");
    }
    if (offset % wefti_os_page_bytes() != 0 || bytes % wefti_os_page_bytes() != 0 || offset > memory->bytes ||
        bytes > memory->bytes - offset) {
        return wefti_error(WEFT_ERR_RANGE, "bytes %zu to %zu are no whole pages of a shared memory of %zu bytes",
                           offset, offset + bytes, memory->bytes);
    }
    if (wefti_fault("fallocate", 28)) {
        return wefti_error(WEFT_ERR_MEMORY, "no simulated memory left for %zu bytes", bytes);
    }
    mark_pages(sim, sim->regions[memory->descriptor].offset + offset, bytes, 1);
    wefti_sim_step(sim);
    return WEFT_OK;
}

wefti_os_placement_made wefti_os_memory_place(wefti_os_memory *memory, size_t offset, size_t bytes)
{
    (void)memory, (void)offset, (void)bytes;
    return (wefti_os_placement_made){.numa = WEFTI_OS_NUMA_ONE, .huge = WEFTI_OS_HUGE_NEVER};
}

const char *wefti_os_placement_text(const wefti_os_placement_made *made, char text[WEFTI_OS_PLACEMENT_BYTES])
{
    (void)made;
    (void)snprintf(text, WEFTI_OS_PLACEMENT_BYTES, "simulated memory");
    return text;
}

void wefti_os_memory_release(wefti_os_memory *memory, size_t offset, size_t bytes)
{
    if (running_sim() != NULL && memory->descriptor >= 0) {
        memset(memory->base + offset, 0, bytes);
        mark_pages(running_sim(), wefti_sim_offset(running_sim(), memory->base) + offset, bytes, 0);
    }
}

static void sign_as(wefti_os_memory *memory, uint64_t number, int signer)
{
    wefti_sim *sim = running_sim();
    if (sim == NULL || memory->descriptor < 0) {
        return;
    }
    wefti_region *region = &sim->regions[memory->descriptor];
    if (number >= region->signer_count) {
        int *longer = realloc(region->signers, ((size_t)number + 1) * sizeof *longer);
        if (longer == NULL) {
            return;
        }
        memset(longer + region->signer_count, 0, ((size_t)number + 1 - region->signer_count) * sizeof *longer);
        region->signers = longer;
        region->signer_count = (size_t)number + 1;
    }
    region->signers[number] = signer;
}

int wefti_os_memory_sign(wefti_os_memory *memory, uint64_t number)
{
    sign_as(memory, number, weft_sim_pe() + 1);
    return 1;
}

int wefti_os_memory_is_signed(const wefti_os_memory *memory, uint64_t number)
{
    const wefti_sim *sim = running_sim();
    const wefti_region *region = sim == NULL || memory->descriptor < 0 ? NULL : &sim->regions[memory->descriptor];
    if (region == NULL || number >= region->signer_count) {
        return 1;
    }
    if (region->signers[number] != 0 && !weft_sim_is_dead(region->signers[number] - 1)) {
        return 1;
    }
    wefti_memory_drain_all(wefti_sim_current);
    wefti_fence_full();
    return 0;
}

void wefti_os_memory_close(wefti_os_memory *memory)
{
    (void)memory; /* the number stays: it is how the region is found again */
}

/* As on a real system, a process that finds a signature gone sees all that its signer stored before. */
static void take_signatures(wefti_region *region)
{
    wefti_fence_full();
    for (size_t i = 0; i < region->signer_count; i++) {
        region->signers[i] = region->signers[i] == weft_sim_pe() + 1 ? 0 : region->signers[i];
    }
}

void wefti_os_memory_fini(wefti_os_memory *memory)
{
    wefti_sim *sim = running_sim();
    if (memory->base == NULL) {
        return;
    }
    if (sim != NULL) {
        wefti_region *region = &sim->regions[memory->descriptor];
        take_signatures(region);
        if (--region->users == 0) {
            wefti_memory_drain_all(sim); /* what is still on its way to it */
            (void)madvise(sim->arena + region->offset, region->bytes, MADV_DONTNEED);
            mark_pages(sim, region->offset, region->bytes, 0);
            free(region->signers);
            region->signers = NULL;
            region->signer_count = 0;
        }
    }
    *memory = (wefti_os_memory){.descriptor = -1};
}

void wefti_sim_regions_fini(wefti_sim *sim)
{
    for (size_t i = 0; i < sim->region_count; i++) {
        free(sim->regions[i].signers);
    }
    free(sim->regions);
}

/* ---- marks: always seen, since identities of simulated nodes are never wrong ---- */

weft_status wefti_os_mark_open(wefti_os_mark *mark, const unsigned char name[16])
{
    (void)name;
    mark->listener = -1;
    return WEFT_OK;
}

weft_status wefti_os_mark_look(const unsigned char name[16], wefti_os_mark_sight *sight)
{
    (void)name;
    *sight = WEFTI_OS_MARK_SEEN;
    return WEFT_OK;
}

void wefti_os_mark_close(wefti_os_mark *mark)
{
    mark->listener = -1;
}

/* ---- handing descriptors over ---- */

static wefti_offer *find_offer(wefti_sim *sim, const unsigned char name[16])
{
    for (size_t i = 0; i < sim->offer_count; i++) {
        if (sim->offers[i].listener >= 0 && memcmp(sim->offers[i].name, name, 16) == 0) {
            return &sim->offers[i];
        }
    }
    return NULL;
}

weft_status wefti_os_pass_open(wefti_os_pass *pass, const unsigned char name[16])
{
    wefti_sim *sim = running_sim();
    wefti_offer *longer = sim == NULL ? NULL : realloc(sim->offers, (sim->offer_count + 1) * sizeof *longer);
    if (longer == NULL) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot open a simulated port");
    }
    sim->offers = longer;
    wefti_offer *offer = &longer[sim->offer_count];
    *offer = (wefti_offer){.descriptor = -1, .listener = (int)sim->offer_count};
    memcpy(offer->name, name, 16);
    pass->listener = (int)sim->offer_count++;
    return WEFT_OK;
}

weft_status wefti_os_pass_serve(wefti_os_pass *pass, const unsigned char token[16], int descriptor, int count,
                                uint64_t until_ns, const wefti_os_watch *watch)
{
    wefti_sim *sim = running_sim();
    memcpy(sim->offers[pass->listener].token, token, 16);
    sim->offers[pass->listener].descriptor = descriptor;
    sim->offers[pass->listener].left = count;
    while (sim->offers[pass->listener].left > 0) {
        if (wefti_os_now_ns() >= until_ns) {
            return wefti_error(WEFT_ERR_TIMEOUT, "%d processes did not take the memory in time",
                               sim->offers[pass->listener].left);
        }
        WEFT_TRY(watch == NULL ? WEFT_OK : watch->check(watch->context));
        wefti_os_sleep_ns(POLL_NS);
    }
    return WEFT_OK;
}

void wefti_os_pass_close(wefti_os_pass *pass)
{
    wefti_sim *sim = running_sim();
    if (sim != NULL && pass->listener >= 0) {
        sim->offers[pass->listener].listener = -1;
    }
    pass->listener = -1;
}

weft_status wefti_os_pass_take(const unsigned char name[16], const unsigned char token[16], uint64_t until_ns,
                               const wefti_os_watch *watch, int *descriptor)
{
    wefti_sim *sim = running_sim();
    for (;;) {
        wefti_offer *offer = find_offer(sim, name);
        if (offer != NULL && offer->descriptor >= 0 && memcmp(offer->token, token, 16) == 0) {
            offer->left--;
            *descriptor = offer->descriptor;
            return WEFT_OK;
        }
        if (wefti_os_now_ns() >= until_ns) {
            return wefti_error(WEFT_ERR_TIMEOUT, "the process that made the memory did not hand it over in time");
        }
        WEFT_TRY(watch == NULL ? WEFT_OK : watch->check(watch->context));
        wefti_os_sleep_ns(POLL_NS);
    }
}

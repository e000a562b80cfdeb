#include "world/directory.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "common/mix.h"

/* ---- the lowest PE that says the same ---- */

/* What is compared: equal for two PEs if all of it is. */
typedef struct trait {
    uint64_t within; /* the lowest PE of what encloses it, such as the node */
    unsigned char value[16];
} trait;

/* Traits by their hashes, with open addresses: a place is a PE's number and 1, or 0. */
typedef struct traits {
    trait *of; /* by PE */
    uint32_t *places;
    size_t mask;
} traits;

static weft_status traits_init(traits *all, int pes)
{
    size_t places = 2;
    while (places < 2 * (size_t)pes) {
        places *= 2;
    }
    all->mask = places - 1;
    all->of = wefti_alloc((size_t)pes * sizeof *all->of);
    all->places = wefti_alloc(places * sizeof *all->places);
    return all->of != NULL && all->places != NULL
               ? WEFT_OK
               : wefti_error(WEFT_ERR_MEMORY, "weft_world_create: no memory for a directory of %d PEs", pes);
}

static void traits_fini(traits *all)
{
    wefti_free(all->of);
    wefti_free(all->places);
}

static void traits_clear(traits *all)
{
    memset(all->places, 0, (all->mask + 1) * sizeof *all->places);
}

static uint64_t hash_trait(const trait *t)
{
    uint64_t words[3];
    uint64_t hash = 0;
    memcpy(words, t, sizeof words);
    for (int i = 0; i < 3; i++) {
        hash = wefti_mix(hash ^ words[i]);
        hash ^= hash >> 29;
    }
    return hash;
}

/* The lowest PE with the trait of `pe`, which comes after all lower ones. */
static uint32_t lowest_with(traits *all, uint32_t pe, uint64_t within, const void *value, size_t bytes)
{
    trait *own = &all->of[pe];
    memset(own, 0, sizeof *own);
    own->within = within;
    memcpy(own->value, value, bytes);
    size_t at = hash_trait(own) & all->mask;
    while (all->places[at] != 0 && memcmp(&all->of[all->places[at] - 1], own, sizeof *own) != 0) {
        at = (at + 1) & all->mask;
    }
    if (all->places[at] == 0) {
        all->places[at] = pe + 1;
    }
    return all->places[at] - 1;
}

/* ---- the directory ---- */

size_t wefti_directory_bytes(int pes)
{
    return sizeof(wefti_directory) + (size_t)pes * sizeof(wefti_directory_pe);
}

static void note_nodes(wefti_directory *directory, const wefti_hello *all, int pes, traits *found)
{
    traits_clear(found);
    for (int pe = 0; pe < pes; pe++) {
        const wefti_os_identity *identity = &all[pe].identity;
        directory->pes[pe].node = lowest_with(found, (uint32_t)pe, 0, identity->node, sizeof identity->node);
    }
}

static void note_processes(wefti_directory *directory, const wefti_hello *all, int pes, traits *found)
{
    traits_clear(found);
    for (int pe = 0; pe < pes; pe++) {
        const wefti_os_identity *identity = &all[pe].identity;
        directory->pes[pe].process =
            lowest_with(found, (uint32_t)pe, directory->pes[pe].node, identity->process, sizeof identity->process);
    }
}

static void note_cores(wefti_directory *directory, const wefti_hello *all, int pes, traits *found)
{
    traits_clear(found);
    for (int pe = 0; pe < pes; pe++) {
        wefti_directory_pe *entry = &directory->pes[pe];
        const uint64_t mark = all[pe].cores.mark;
        entry->cores = lowest_with(found, (uint32_t)pe, entry->node, &mark, sizeof mark);
        entry->cores_count = all[pe].cores.count > 0 ? all[pe].cores.count : 1;
    }
}

static void note_groups(wefti_directory *directory, const wefti_hello *all, int pes, traits *found)
{
    traits_clear(found);
    for (int pe = 0; pe < pes; pe++) {
        const wefti_os_memory_left *left = &all[pe].left;
        directory->pes[pe].group = left->group == UINT64_MAX ? (uint32_t)pe
                                                             : lowest_with(found, (uint32_t)pe, directory->pes[pe].node,
                                                                           &left->group_mark, sizeof left->group_mark);
    }
}

static weft_status fill(wefti_directory *directory, const wefti_hello *all, int pes)
{
    traits found;
    weft_status status = traits_init(&found, pes);
    if (status == WEFT_OK) {
        note_nodes(directory, all, pes, &found);
        note_processes(directory, all, pes, &found);
        note_cores(directory, all, pes, &found);
        note_groups(directory, all, pes, &found);
    }
    traits_fini(&found);
    memcpy(directory->secret, all[0].secret, sizeof directory->secret);
    directory->heap_auto_bytes = UINT64_MAX;
    for (int pe = 0; pe < pes; pe++) {
        uint64_t suggested = all[pe].heap_auto_bytes;
        directory->heap_auto_bytes = suggested < directory->heap_auto_bytes ? suggested : directory->heap_auto_bytes;
    }
    return status;
}

/* Whether all have one build, can take part, and agree. */
static weft_status judge(wefti_directory *directory, const wefti_hello *all, int pes)
{
    WEFT_TRY(wefti_hello_check_builds(all, pes));
    for (int pe = 0; pe < pes; pe++) {
        wefti_verdict_note(&directory->verdict, pe, all[pe].status);
    }
    if (directory->verdict.status != WEFT_OK) {
        return WEFT_OK;
    }
    WEFT_TRY(wefti_hello_check(all, pes));
    WEFT_TRY(wefti_hello_check_nodes(all, pes, directory->text, &directory->networks));
    return fill(directory, all, pes);
}

weft_status wefti_directory_make(const void *all, int pes, void *digest)
{
    wefti_directory *directory = digest;
    memset(directory, 0, wefti_directory_bytes(pes));
    directory->status = judge(directory, all, pes);
    if (directory->status != WEFT_OK) {
        (void)snprintf(directory->text, sizeof directory->text, "%s", weft_last_error());
    }
    return WEFT_OK;
}

weft_status wefti_directory_check(const wefti_directory *directory, int pes)
{
    for (int pe = 0; pe < pes; pe++) {
        const wefti_directory_pe *entry = &directory->pes[pe];
        const uint32_t highest = (uint32_t)pe;
        int fits = entry->node <= highest && entry->process <= highest && entry->cores <= highest &&
                   entry->group <= highest && entry->cores_count > 0;
        if (!fits || directory->pes[entry->node].node != entry->node) {
            return wefti_error(WEFT_ERR_MISMATCH, "weft_world_create: PE 0 has sent what is no directory of %d PEs",
                               pes);
        }
    }
    return WEFT_OK;
}

int wefti_directory_shares_process(const wefti_directory *directory, int pes)
{
    int pe = 0;
    while (pe < pes && directory->pes[pe].process == (uint32_t)pe) {
        pe++;
    }
    return pe < pes;
}

#include "topo/domain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

const char *wefti_topo_fabric_refusal(const wefti_topo_fabric *fabric)
{
    static const unsigned char zero[sizeof fabric->cluster];
    static const char *const states[] = {"not supported", "not started", "in progress"};
    if (fabric->state < WEFTI_TOPO_FABRIC_COMPLETED) {
        return states[fabric->state];
    }
    return fabric->has_failed                                ? "completed with an error"
           : memcmp(fabric->cluster, zero, sizeof zero) == 0 ? "without a cluster UUID"
           : !fabric->has_handles                            ? "without fabric handles in the driver"
           : !fabric->was_tried                              ? "not usable: a trial export and import failed"
                                                             : NULL;
}

/* ---- order: PEs of one clique stand together, inside by host, then by number; without a clique those of one host
 * ---- */

typedef struct entry {
    const wefti_topo_fact *fact;
    int32_t pe;
    uint8_t has_clique;
} entry;

static int compare_cliques(const entry *l, const entry *r)
{
    if (l->has_clique != r->has_clique) {
        return l->has_clique - r->has_clique;
    }
    if (!l->has_clique) {
        return 0;
    }
    const int clusters = memcmp(l->fact->fabric.cluster, r->fact->fabric.cluster, sizeof l->fact->fabric.cluster);
    if (clusters != 0) {
        return clusters;
    }
    return l->fact->fabric.clique < r->fact->fabric.clique ? -1 : l->fact->fabric.clique > r->fact->fabric.clique;
}

static int compare(const void *left, const void *right)
{
    const entry *l = left;
    const entry *r = right;
    const int cliques = compare_cliques(l, r);
    const int hosts = memcmp(l->fact->host, r->fact->host, sizeof l->fact->host);
    return cliques != 0 ? cliques : hosts != 0 ? hosts : l->pe < r->pe ? -1 : 1;
}

static int is_same_host(const entry *l, const entry *r)
{
    return memcmp(l->fact->host, r->fact->host, sizeof l->fact->host) == 0;
}

static int reaches(const entry *from, const entry *to)
{
    return from->fact->ordinal == to->fact->ordinal ||
           (from->fact->reaches >> (to->fact->ordinal % WEFTI_TOPO_GPUS_OF_HOST_MAX) & 1) != 0;
}

typedef struct work {
    entry *entries;
    int32_t *domain_of;
    wefti_topo_tell *tell;
    void *context;
} work;

static void tell_pair(const work *w, const entry *pe, const entry *other)
{
    char text[160];
    if (w->tell != NULL) {
        const int there = reaches(pe, other);
        (void)snprintf(
            text, sizeof text, "PE %d and PE %d are not in one link domain: the GPU of PE %d cannot access %s", pe->pe,
            other->pe, there ? other->pe : pe->pe,
            there || reaches(other, pe) ? "the other's memory, only the other way round" : "the other's memory");
        w->tell(w->context, text);
    }
}

/* The PEs of one host in a clique, [first, end): each joins the first group with all of which access is mutual. The
 * first group goes by `joined`, the domain of the clique, if there is one. Returns that domain. */
static int32_t divide_host(const work *w, int first, int end, int32_t joined)
{
    for (int i = first; i < end; i++) {
        w->domain_of[w->entries[i].pe] = -1;
        for (int group = first; group < i && w->domain_of[w->entries[i].pe] < 0; group++) {
            const int32_t domain = w->domain_of[w->entries[group].pe];
            if (group > first && domain != w->entries[group].pe) {
                continue; /* looked at with the group's first member */
            }
            int is_mutual = 1;
            for (int j = first; j < i && is_mutual; j++) {
                const entry *other = &w->entries[j];
                if (w->domain_of[other->pe] == domain) {
                    is_mutual = reaches(&w->entries[i], other) && reaches(other, &w->entries[i]);
                }
                if (!is_mutual) {
                    tell_pair(w, &w->entries[i], other);
                }
            }
            w->domain_of[w->entries[i].pe] = is_mutual ? domain : -1;
        }
        if (w->domain_of[w->entries[i].pe] < 0) {
            w->domain_of[w->entries[i].pe] = i == first && joined >= 0 ? joined : w->entries[i].pe;
        }
    }
    return joined >= 0 ? joined : w->domain_of[w->entries[first].pe];
}

/* Two PEs that stand beside each other have different cliques. */
static void tell_cliques(const work *w, const entry *pe, const entry *other)
{
    char text[240];
    const wefti_topo_fabric *l = &pe->fact->fabric;
    const wefti_topo_fabric *r = &other->fact->fabric;
    if (w->tell != NULL) {
        (void)snprintf(
            text, sizeof text,
            "PE %d and PE %d are in different link domains: the GPU of PE %d is in clique %u of NVLink cluster "
            "%02x%02x%02x%02x..., that of PE %d in clique %u of %02x%02x%02x%02x...",
            pe->pe, other->pe, pe->pe, l->clique, l->cluster[0], l->cluster[1], l->cluster[2], l->cluster[3], other->pe,
            r->clique, r->cluster[0], r->cluster[1], r->cluster[2], r->cluster[3]);
        w->tell(w->context, text);
    }
}

static void divide(const work *w, int count)
{
    int32_t joined = -1;
    for (int first = 0, end; first < count; first = end) {
        const int continues = first > 0 && w->entries[first].has_clique &&
                              compare_cliques(&w->entries[first - 1], &w->entries[first]) == 0;
        if (first > 0 && w->entries[first - 1].has_clique && w->entries[first].has_clique && !continues) {
            tell_cliques(w, &w->entries[first - 1], &w->entries[first]);
        }
        for (end = first + 1; end < count && is_same_host(&w->entries[first], &w->entries[end]) &&
                              compare_cliques(&w->entries[first], &w->entries[end]) == 0;
             end++) {
        }
        joined = divide_host(w, first, end, continues ? joined : -1);
    }
}

/* A domain's name is its lowest PE. `lowest` has room for a number a PE. */
static int name_by_lowest(int32_t *domain_of, int pes, int32_t *lowest)
{
    int domains = 0;
    for (int pe = 0; pe < pes; pe++) {
        lowest[pe] = -1;
    }
    for (int pe = 0; pe < pes; pe++) {
        int32_t *name = &lowest[domain_of[pe]];
        domains += *name < 0;
        *name = *name < 0 ? pe : *name;
        domain_of[pe] = *name;
    }
    return domains;
}

static void tell_refusals(const work *w, const wefti_topo_fact *facts, int pes)
{
    char text[160];
    for (int pe = 0; w->tell != NULL && pe < pes; pe++) {
        const char *refusal = wefti_topo_fabric_refusal(&facts[pe].fabric);
        if (facts[pe].has_gpu && refusal != NULL && facts[pe].fabric.state != WEFTI_TOPO_FABRIC_NONE) {
            (void)snprintf(text, sizeof text, "PE %d reaches no GPU of another host: its NVLink fabric is %s", pe,
                           refusal);
            w->tell(w->context, text);
        }
    }
}

int wefti_topo_domains(const wefti_topo_fact *facts, int pes, int32_t *domain_of, wefti_topo_tell *tell, void *context)
{
    int count = 0;
    work w = {.domain_of = domain_of, .tell = tell, .context = context};
    int32_t *lowest = wefti_alloc((size_t)(pes > 0 ? pes : 1) * sizeof *lowest);
    w.entries = wefti_alloc((size_t)(pes > 0 ? pes : 1) * sizeof *w.entries);
    if (w.entries == NULL || lowest == NULL) {
        wefti_free(w.entries);
        wefti_free(lowest);
        return -1;
    }
    for (int pe = 0; pe < pes; pe++) {
        domain_of[pe] = pe;
        if (facts[pe].has_gpu) {
            const int has_clique = wefti_topo_fabric_refusal(&facts[pe].fabric) == NULL;
            w.entries[count++] = (entry){&facts[pe], pe, (uint8_t)has_clique};
        }
    }
    tell_refusals(&w, facts, pes);
    qsort(w.entries, (size_t)count, sizeof *w.entries, compare);
    divide(&w, count);
    const int domains = name_by_lowest(domain_of, pes, lowest);
    wefti_free(w.entries);
    wefti_free(lowest);
    return domains;
}

/* ---- facts of a described machine ---- */

static uint64_t reach_of(const wefti_topo *topo, const int *gpus, int count, int from)
{
    uint64_t bits = 0;
    int ordinal = 0;
    for (int i = 0; i < count; i++) {
        if (topo->objects[gpus[i]].host != topo->objects[gpus[from]].host) {
            continue;
        }
        const int is_divided = topo->objects[gpus[i]].is_mig || topo->objects[gpus[from]].is_mig;
        bits |= is_divided && i != from ? 0 : (uint64_t)1 << ordinal % WEFTI_TOPO_GPUS_OF_HOST_MAX;
        for (int j = 0; j < topo->link_count; j++) {
            const wefti_topo_link *link = &topo->links[j];
            if (link->from == gpus[from] && link->to == gpus[i] && link->links == 0) {
                bits &= ~((uint64_t)1 << ordinal % WEFTI_TOPO_GPUS_OF_HOST_MAX);
            }
        }
        ordinal++;
    }
    return bits;
}

int wefti_topo_facts(const wefti_topo *topo, wefti_topo_fact **facts, int **gpus)
{
    const int count = wefti_topo_list(topo, WEFTI_TOPO_GPU, -1, gpus);
    if (count < 0) {
        return -1;
    }
    *facts = wefti_alloc_zeroed((size_t)count + 1, sizeof **facts);
    if (*facts == NULL) {
        wefti_free(*gpus);
        (void)wefti_error(WEFT_ERR_MEMORY, "topology: no memory for %d PEs", count);
        return -1;
    }
    for (int i = 0, ordinal = 0; i < count; i++) {
        const wefti_topo_object *gpu = &topo->objects[(*gpus)[i]];
        ordinal = i > 0 && topo->objects[(*gpus)[i - 1]].host == gpu->host ? ordinal + 1 : 0;
        wefti_topo_fact *fact = &(*facts)[i];
        memcpy(fact->host, &gpu->host, sizeof gpu->host);
        fact->has_gpu = 1;
        fact->ordinal = (uint8_t)ordinal;
        fact->reaches = reach_of(topo, *gpus, count, i);
        fact->fabric = gpu->fabric;
    }
    return count;
}

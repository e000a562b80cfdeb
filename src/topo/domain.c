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
           : fabric->is_divided                              ? "of a divided GPU (MIG)"
           : memcmp(fabric->cluster, zero, sizeof zero) == 0 ? "without a cluster UUID"
           : !fabric->has_handles                            ? "without fabric handles in the driver"
           : !fabric->was_tried                              ? "not usable: a trial export and import failed"
                                                             : NULL;
}

/* ---- order: PEs of one clique stand together, in it by host, then by number; those without one by host ---- */

typedef struct entry {
    const wefti_topo_gpu_of_pe *gpu;
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
    const int clusters = memcmp(l->gpu->fabric.cluster, r->gpu->fabric.cluster, sizeof l->gpu->fabric.cluster);
    if (clusters != 0) {
        return clusters;
    }
    return l->gpu->fabric.clique < r->gpu->fabric.clique ? -1 : l->gpu->fabric.clique > r->gpu->fabric.clique;
}

static int compare(const void *left, const void *right)
{
    const entry *l = left;
    const entry *r = right;
    const int cliques = compare_cliques(l, r);
    const int hosts = memcmp(l->gpu->host, r->gpu->host, sizeof l->gpu->host);
    return cliques != 0 ? cliques : hosts != 0 ? hosts : l->pe < r->pe ? -1 : 1;
}

static int is_same_host(const entry *l, const entry *r)
{
    return memcmp(l->gpu->host, r->gpu->host, sizeof l->gpu->host) == 0;
}

typedef struct work {
    entry *entries;
    int32_t *domain_of;
    wefti_topo_imports *imports;
    wefti_topo_tell *tell;
    void *context;
} work;

/* Whether `from` reaches the memory of `to`, both of one host or of one clique. */
static int reaches(const work *w, const entry *from, const entry *to)
{
    if (!is_same_host(from, to)) {
        return w->imports == NULL || w->imports(w->context, from->pe, to->pe);
    }
    return from->gpu->ordinal == to->gpu->ordinal ||
           (from->gpu->reaches >> (to->gpu->ordinal % WEFTI_TOPO_GPUS_OF_HOST_MAX) & 1) != 0;
}

static void tell_pair(const work *w, const entry *pe, const entry *other)
{
    char text[200];
    if (w->tell != NULL) {
        const int there = reaches(w, pe, other);
        (void)snprintf(text, sizeof text,
                       "PE %d and PE %d are not in one link domain: the GPU of PE %d cannot %s the other's memory%s",
                       pe->pe, other->pe, there ? other->pe : pe->pe,
                       is_same_host(pe, other) ? "access" : "import and map",
                       there || reaches(w, other, pe) ? ", only the other way round" : "");
        w->tell(w->context, text);
    }
}

/* Whether PE i and all members of `group` from `look_from` on reach each other. */
static int fits(const work *w, int look_from, int i, int32_t group)
{
    for (int j = look_from; j < i; j++) {
        const entry *other = &w->entries[j];
        if (w->domain_of[other->pe] == group &&
            !(reaches(w, &w->entries[i], other) && reaches(w, other, &w->entries[i]))) {
            tell_pair(w, &w->entries[i], other);
            return 0;
        }
    }
    return 1;
}

/* The PEs [first, end) of one clique, or of one host: each joins the first group with all of which access is mutual.
 * Where no imports were tried, those of other hosts need not be looked at. */
static void divide_range(const work *w, int first, int end)
{
    for (int i = first, host = first; i < end; i++) {
        int32_t *domain = &w->domain_of[w->entries[i].pe];
        host = is_same_host(&w->entries[host], &w->entries[i]) ? host : i;
        *domain = -1;
        for (int group = first; group < i && *domain < 0; group++) {
            const int32_t name = w->domain_of[w->entries[group].pe];
            const int is_first = name == w->entries[group].pe; /* a group is tried once, with its first member */
            *domain = is_first && fits(w, w->imports != NULL ? first : host, i, name) ? name : -1;
        }
        *domain = *domain < 0 ? w->entries[i].pe : *domain;
    }
}

/* Tell that two PEs that are next to each other in the order have different cliques. */
static void tell_cliques(const work *w, const entry *pe, const entry *other)
{
    char text[240];
    const wefti_topo_fabric *l = &pe->gpu->fabric;
    const wefti_topo_fabric *r = &other->gpu->fabric;
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
    for (int first = 0, end; first < count; first = end) {
        const int has_clique = w->entries[first].has_clique;
        if (first > 0 && w->entries[first - 1].has_clique && has_clique) {
            tell_cliques(w, &w->entries[first - 1], &w->entries[first]);
        }
        for (end = first + 1; end < count && compare_cliques(&w->entries[first], &w->entries[end]) == 0 &&
                              (has_clique || is_same_host(&w->entries[first], &w->entries[end]));
             end++) {
        }
        divide_range(w, first, end);
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

#define REASONS_MAX 8 /* more than wefti_topo_fabric_refusal has */

/* Tell which fabrics are not usable, one line a reason. */
static void tell_refusals(const work *w, const wefti_topo_gpu_of_pe *gpus, int pes)
{
    struct {
        const char *text;
        int first;
        int count;
    } reasons[REASONS_MAX] = {{NULL, 0, 0}};
    for (int pe = 0; w->tell != NULL && pe < pes; pe++) {
        const char *refusal = wefti_topo_fabric_refusal(&gpus[pe].fabric);
        int i = 0;
        if (!gpus[pe].has_gpu || refusal == NULL || gpus[pe].fabric.state == WEFTI_TOPO_FABRIC_NONE) {
            continue;
        }
        while (i < REASONS_MAX - 1 && reasons[i].text != NULL && strcmp(reasons[i].text, refusal) != 0) {
            i++;
        }
        reasons[i].first = reasons[i].text == NULL ? pe : reasons[i].first;
        reasons[i].text = refusal;
        reasons[i].count++;
    }
    for (int i = 0; i < REASONS_MAX && reasons[i].text != NULL; i++) {
        char text[160];
        char more[32] = "";
        if (reasons[i].count > 1) {
            (void)snprintf(more, sizeof more, " and %d more", reasons[i].count - 1);
        }
        (void)snprintf(text, sizeof text, "PE %d%s: no GPU of another host is reached: the NVLink fabric is %s",
                       reasons[i].first, more, reasons[i].text);
        w->tell(w->context, text);
    }
}

/* The PEs with a GPU in order, in memory that the caller frees; NULL: no memory. */
static entry *sort_entries(const wefti_topo_gpu_of_pe *gpus, int pes, int *count)
{
    entry *entries = wefti_alloc((size_t)(pes > 0 ? pes : 1) * sizeof *entries);
    *count = 0;
    for (int pe = 0; entries != NULL && pe < pes; pe++) {
        if (gpus[pe].has_gpu) {
            const int has_clique = wefti_topo_fabric_refusal(&gpus[pe].fabric) == NULL;
            entries[(*count)++] = (entry){&gpus[pe], pe, (uint8_t)has_clique};
        }
    }
    if (entries != NULL) {
        qsort(entries, (size_t)*count, sizeof *entries, compare);
    }
    return entries;
}

int wefti_topo_spans_hosts(const wefti_topo_gpu_of_pe *gpus, int pes)
{
    int count;
    int spans = 0;
    entry *entries = sort_entries(gpus, pes, &count);
    for (int i = 1; entries != NULL && i < count; i++) {
        spans |= entries[i].has_clique && compare_cliques(&entries[i - 1], &entries[i]) == 0 &&
                 !is_same_host(&entries[i - 1], &entries[i]);
    }
    wefti_free(entries);
    return entries == NULL ? -1 : spans;
}

int wefti_topo_domains(const wefti_topo_gpu_of_pe *gpus, int pes, int32_t *domain_of, wefti_topo_imports *imports,
                       wefti_topo_tell *tell, void *context)
{
    int count = 0;
    int domains = -1;
    work w = {.domain_of = domain_of, .imports = imports, .tell = tell, .context = context};
    int32_t *lowest = wefti_alloc((size_t)(pes > 0 ? pes : 1) * sizeof *lowest);
    w.entries = sort_entries(gpus, pes, &count);
    if (w.entries != NULL && lowest != NULL) {
        for (int pe = 0; pe < pes; pe++) {
            domain_of[pe] = pe;
        }
        tell_refusals(&w, gpus, pes);
        divide(&w, count);
        domains = name_by_lowest(domain_of, pes, lowest);
    }
    wefti_free(w.entries);
    wefti_free(lowest);
    return domains;
}

/* ---- the GPUs of a described machine ---- */

/* Of more than WEFTI_TOPO_GPUS_OF_HOST_MAX GPUs several share a bit, which is set if all of them are reached. */
static uint64_t reach_of(const wefti_topo *topo, const int *gpus, int count, int from)
{
    uint64_t bits = ~(uint64_t)0;
    int ordinal = 0;
    for (int i = 0; i < count; i++) {
        if (topo->objects[gpus[i]].host != topo->objects[gpus[from]].host) {
            continue;
        }
        const int is_divided = topo->objects[gpus[i]].is_mig || topo->objects[gpus[from]].is_mig;
        int is_reached = i == from || !is_divided;
        for (int j = 0; j < topo->link_count; j++) {
            const wefti_topo_link *link = &topo->links[j];
            is_reached &= link->from != gpus[from] || link->to != gpus[i] || link->links != 0;
        }
        bits &= is_reached ? ~(uint64_t)0 : ~((uint64_t)1 << ordinal % WEFTI_TOPO_GPUS_OF_HOST_MAX);
        ordinal++;
    }
    return bits;
}

int wefti_topo_gpus_of(const wefti_topo *topo, wefti_topo_gpu_of_pe **gpus, int **objects)
{
    const int count = wefti_topo_list(topo, WEFTI_TOPO_GPU, -1, objects);
    if (count < 0) {
        return -1;
    }
    *gpus = wefti_alloc_zeroed((size_t)count + 1, sizeof **gpus);
    if (*gpus == NULL) {
        wefti_free(*objects);
        (void)wefti_error(WEFT_ERR_MEMORY, "topology: no memory for %d PEs", count);
        return -1;
    }
    for (int i = 0, ordinal = 0; i < count; i++) {
        const wefti_topo_object *gpu = &topo->objects[(*objects)[i]];
        ordinal = i > 0 && topo->objects[(*objects)[i - 1]].host == gpu->host ? ordinal + 1 : 0;
        wefti_topo_gpu_of_pe *of_pe = &(*gpus)[i];
        memcpy(of_pe->host, &gpu->host, sizeof gpu->host);
        of_pe->has_gpu = 1;
        of_pe->ordinal = (uint8_t)ordinal;
        of_pe->reaches = reach_of(topo, *objects, count, i);
        of_pe->fabric = gpu->fabric;
        of_pe->fabric.is_divided = gpu->is_mig;
    }
    return count;
}

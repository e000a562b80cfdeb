#include "topo/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "topo/spread.h"

#define SLOW_PART 4 /* ports with less than 1/4 of the fastest's speed are left out */

/* ---- which ports may be used ---- */

static int is_listed(const wefti_topo_nic_list *list, const wefti_topo_object *nic)
{
    for (int i = 0; i < list->count; i++) {
        if (wefti_topo_nic_matches(&list->entries[i], nic)) {
            return 1;
        }
    }
    return 0;
}

static int fastest_of(const wefti_topo *topo, const int *nics, int count)
{
    int fastest = 0;
    for (int i = 0; i < count; i++) {
        const wefti_topo_object *nic = &topo->objects[nics[i]];
        fastest = !nic->is_down && nic->speed_gbits > fastest ? nic->speed_gbits : fastest;
    }
    return fastest;
}

/* Ports that a mapping names stay, whatever their link. */
static void keep_usable(wefti_topo_plan *plan, const wefti_topo *topo, const wefti_topo_nic_list *list,
                        const wefti_topo_nic_list *mapping)
{
    int kept = 0;
    const int fastest = fastest_of(topo, plan->nics, plan->nic_count);
    for (int i = 0; i < plan->nic_count; i++) {
        const wefti_topo_object *nic = &topo->objects[plan->nics[i]];
        const int is_slow = nic->speed_gbits != 0 && nic->speed_gbits * SLOW_PART < fastest;
        const int is_chosen = list->count > 0 && is_listed(list, nic) != list->excludes;
        const int is_good = !nic->is_down && !is_slow;
        if (list->count == 0 ? is_good || is_listed(mapping, nic) : is_chosen && (!list->excludes || is_good)) {
            plan->nics[kept++] = plan->nics[i];
        }
    }
    plan->nic_count = kept;
}

/* Refuse entries that name no port of the host, since they would be ignored without notice. */
static weft_status check_entries(const wefti_topo_plan *plan, const wefti_topo *topo, const wefti_topo_nic_list *list,
                                 const char *variable)
{
    for (int i = 0; i < list->count; i++) {
        int found = 0;
        for (int j = 0; j < plan->nic_count; j++) {
            found |= wefti_topo_nic_matches(&list->entries[i], &topo->objects[plan->nics[j]]);
        }
        if (!found) {
            const wefti_topo_nic_entry *entry = &list->entries[i];
            char port[16] = "";
            (void)snprintf(port, sizeof port, entry->port > 0 ? ":%d" : "", entry->port);
            return wefti_error(WEFT_ERR_RANGE,
                               "%s: character %d: host \"%s\" has no port %s%s; weft-info topo shows those that it has",
                               variable, entry->column, topo->objects[plan->host].name, entry->name, port);
        }
    }
    return WEFT_OK;
}

/* ---- uses ---- */

static void add_use(wefti_topo_plan *plan, const wefti_topo *topo, int gpu, int nic, wefti_topo_reason reason,
                    int alternatives)
{
    int is_first = 1;
    for (int i = 0; i < plan->use_count; i++) {
        is_first &= plan->uses[i].gpu != gpu;
    }
    plan->uses[plan->use_count++] = (wefti_topo_use){.gpu = gpu,
                                                     .nic = nic,
                                                     .is_first = is_first,
                                                     .reason = reason,
                                                     .distance = wefti_topo_distance_of(topo, gpu, nic),
                                                     .alternatives = alternatives};
}

static int find_port(const wefti_topo_plan *plan, const wefti_topo *topo, const wefti_topo_nic_entry *entry)
{
    for (int i = 0; i < plan->nic_count; i++) {
        if (wefti_topo_nic_matches(entry, &topo->objects[plan->nics[i]])) {
            return plan->nics[i];
        }
    }
    return -1;
}

static weft_status use_mapping(wefti_topo_plan *plan, const wefti_topo *topo, const wefti_topo_nic_list *mapping,
                               const wefti_topo_wish *wish)
{
    int served = 0;
    for (int i = 0; i < mapping->count; i++) {
        const wefti_topo_nic_entry *entry = &mapping->entries[i];
        const int nic = find_port(plan, topo, entry);
        for (int j = 0; j < entry->count && served < plan->gpu_count; j++) {
            add_use(plan, topo, plan->gpus[served++], nic, WEFTI_TOPO_BY_MAPPING, i + 1);
        }
    }
    return served == plan->gpu_count
               ? WEFT_OK
               : wefti_error(WEFT_ERR_RANGE,
                             "%s: character %zu: its counts add up to %d, but host \"%s\" has %d GPUs; give each of "
                             "them a port",
                             wish->mapping_name, strlen(wish->mapping) + 1, served, topo->objects[plan->host].name,
                             plan->gpu_count);
}

/* The ports in turn: an entry without a port means all of its NIC. */
static void use_list_in_turn(wefti_topo_plan *plan, const wefti_topo *topo, const wefti_topo_nic_list *list)
{
    int served = 0;
    while (served < plan->gpu_count) { /* each entry has a port */
        for (int i = 0; i < list->count; i++) {
            for (int j = 0; j < plan->nic_count && served < plan->gpu_count; j++) {
                if (wefti_topo_nic_matches(&list->entries[i], &topo->objects[plan->nics[j]])) {
                    add_use(plan, topo, plan->gpus[served++], plan->nics[j], WEFTI_TOPO_BY_ROUND_ROBIN, i + 1);
                }
            }
        }
    }
}

static void use_round_robin(wefti_topo_plan *plan, const wefti_topo *topo, const wefti_topo_nic_list *list)
{
    if (list->count > 0 && !list->excludes) {
        use_list_in_turn(plan, topo, list);
        return;
    }
    for (int i = 0; i < plan->gpu_count && plan->nic_count > 0; i++) {
        add_use(plan, topo, plan->gpus[i], plan->nics[i % plan->nic_count], WEFTI_TOPO_BY_ROUND_ROBIN, 0);
    }
}

static weft_status use_nearest(wefti_topo_plan *plan, const wefti_topo *topo)
{
    wefti_topo_spread spread;
    WEFT_TRY(wefti_topo_spread_make(&spread, topo, plan->gpus, plan->gpu_count, plan->nics, plan->nic_count));
    for (int i = 0; i < plan->gpu_count; i++) {
        add_use(plan, topo, plan->gpus[i], plan->nics[spread.first[i]],
                spread.alternatives[i] == 1 ? WEFTI_TOPO_NEAREST : WEFTI_TOPO_BALANCED, spread.alternatives[i]);
        for (int j = 0; j < plan->nic_count; j++) {
            if (spread.spare[j] == i) {
                add_use(plan, topo, plan->gpus[i], plan->nics[j], WEFTI_TOPO_SPARE, spread.alternatives[i]);
            }
        }
    }
    wefti_topo_spread_fini(&spread);
    return WEFT_OK;
}

/* ---- the plan ---- */

static weft_status fill(wefti_topo_plan *plan, const wefti_topo *topo, const wefti_topo_wish *wish,
                        const wefti_topo_nic_list *list, const wefti_topo_nic_list *mapping)
{
    if (list->count > 0 && mapping->count > 0) { /* NVSHMEM ignores the mapping then */
        return wefti_error(WEFT_ERR_ARGUMENT, "%s and %s are both given, and each says which ports are used; give one",
                           wish->list_name, wish->mapping_name);
    }
    WEFT_TRY(check_entries(plan, topo, list, wish->list_name));
    WEFT_TRY(check_entries(plan, topo, mapping, wish->mapping_name));
    keep_usable(plan, topo, list, mapping);
    if (list->excludes && plan->nic_count == 0) {
        return wefti_error(WEFT_ERR_RANGE,
                           "%s: character 1: it leaves no port of host \"%s\" with link and a quarter of the fastest's "
                           "speed; name those to use",
                           wish->list_name, topo->objects[plan->host].name);
    }
    if (mapping->count > 0) {
        return use_mapping(plan, topo, mapping, wish);
    }
    if (wish->is_round_robin) {
        use_round_robin(plan, topo, list);
        return WEFT_OK;
    }
    return plan->nic_count > 0 && plan->gpu_count > 0 ? use_nearest(plan, topo) : WEFT_OK;
}

static weft_status list_objects(wefti_topo_plan *plan, const wefti_topo *topo)
{
    plan->gpu_count = wefti_topo_list(topo, WEFTI_TOPO_GPU, plan->host, &plan->gpus);
    plan->nic_count = plan->gpu_count < 0 ? -1 : wefti_topo_list(topo, WEFTI_TOPO_NIC, plan->host, &plan->nics);
    if (plan->nic_count < 0) {
        return WEFT_ERR_MEMORY;
    }
    plan->uses = wefti_alloc_zeroed((size_t)plan->gpu_count + (size_t)plan->nic_count + 1, sizeof *plan->uses);
    return plan->uses != NULL ? WEFT_OK : wefti_error(WEFT_ERR_MEMORY, "topology: no memory for a plan");
}

static const char *text_or(const char *text, const char *other)
{
    return text != NULL ? text : other;
}

weft_status wefti_topo_plan_make(wefti_topo_plan *plan, const wefti_topo *topo, int host, const wefti_topo_wish *given)
{
    const wefti_topo_wish wish = {.list = text_or(given->list, ""),
                                  .mapping = text_or(given->mapping, ""),
                                  .is_round_robin = given->is_round_robin,
                                  .list_name = text_or(given->list_name, "WEFT_NIC_LIST"),
                                  .mapping_name = text_or(given->mapping_name, "WEFT_NIC_MAPPING")};
    wefti_topo_nic_list list = {0};
    wefti_topo_nic_list mapping = {0};
    memset(plan, 0, sizeof *plan);
    plan->host = host;
    weft_status status = list_objects(plan, topo);
    if (status == WEFT_OK) {
        status = wefti_topo_nic_list_parse(&list, wish.list_name, wish.list);
    }
    if (status == WEFT_OK) {
        status = wefti_topo_nic_mapping_parse(&mapping, wish.mapping_name, wish.mapping);
    }
    status = status == WEFT_OK ? fill(plan, topo, &wish, &list, &mapping) : status;
    wefti_topo_nic_list_fini(&list);
    wefti_topo_nic_list_fini(&mapping);
    if (status != WEFT_OK) {
        wefti_topo_plan_fini(plan);
    }
    return status;
}

void wefti_topo_plan_fini(wefti_topo_plan *plan)
{
    wefti_free(plan->gpus);
    wefti_free(plan->nics);
    wefti_free(plan->uses);
    memset(plan, 0, sizeof *plan);
}

const wefti_topo_use *wefti_topo_plan_find(const wefti_topo_plan *plan, const wefti_topo *topo, wefti_topo_pci pci)
{
    for (int i = 0; i < plan->use_count; i++) {
        if (plan->uses[i].is_first && topo->objects[plan->uses[i].gpu].pci == pci) {
            return &plan->uses[i];
        }
    }
    return NULL;
}

static wefti_topo_distance distance_from(const wefti_topo *topo, int numa, int nic)
{
    return numa < 0 ? WEFTI_TOPO_NODE : wefti_topo_distance_of(topo, numa, nic);
}

static wefti_topo_distance nearest_distance(const wefti_topo_plan *plan, const wefti_topo *topo, int numa)
{
    wefti_topo_distance nearest = WEFTI_TOPO_NONE;
    for (int i = 0; i < plan->nic_count; i++) {
        const wefti_topo_distance distance = distance_from(topo, numa, plan->nics[i]);
        nearest = distance < nearest ? distance : nearest;
    }
    return nearest;
}

int wefti_topo_plan_nearest_count(const wefti_topo_plan *plan, const wefti_topo *topo, int numa)
{
    const wefti_topo_distance nearest = nearest_distance(plan, topo, numa);
    int count = 0;
    for (int i = 0; i < plan->nic_count; i++) {
        count += distance_from(topo, numa, plan->nics[i]) == nearest;
    }
    return count;
}

int wefti_topo_plan_without_gpu(const wefti_topo_plan *plan, const wefti_topo *topo, int numa, int number)
{
    const wefti_topo_distance nearest = nearest_distance(plan, topo, numa);
    const int count = wefti_topo_plan_nearest_count(plan, topo, numa);
    int turn = count > 0 ? number % count : 0;
    for (int i = 0; i < plan->nic_count; i++) {
        if (distance_from(topo, numa, plan->nics[i]) == nearest && turn-- == 0) {
            return plan->nics[i];
        }
    }
    return -1;
}

const char *wefti_topo_reason_text(const wefti_topo_use *use, char text[WEFTI_TOPO_REASON_BYTES])
{
    const char *distance = wefti_topo_distance_name(use->distance);
    switch (use->reason) {
    case WEFTI_TOPO_BY_MAPPING:
        (void)snprintf(text, WEFTI_TOPO_REASON_BYTES, "entry %d of the mapping (%s)", use->alternatives, distance);
        break;
    case WEFTI_TOPO_BY_ROUND_ROBIN:
        (void)snprintf(text, WEFTI_TOPO_REASON_BYTES, "in turn (%s)", distance);
        break;
    case WEFTI_TOPO_NEAREST:
        (void)snprintf(text, WEFTI_TOPO_REASON_BYTES, "the nearest (%s)", distance);
        break;
    case WEFTI_TOPO_BALANCED:
        (void)snprintf(text, WEFTI_TOPO_REASON_BYTES, "the least used of %d that are nearest (%s)", use->alternatives,
                       distance);
        break;
    case WEFTI_TOPO_SPARE:
        (void)snprintf(text, WEFTI_TOPO_REASON_BYTES, "as near (%s), and there are more ports than GPUs", distance);
        break;
    }
    return text;
}

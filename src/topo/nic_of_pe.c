#include "topo/nic_of_pe.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"

weft_status wefti_topo_wish_read(wefti_topo_wish *wish, int *is_asked)
{
    uint64_t is_round_robin;
    WEFT_TRY(wefti_env_count(WEFTI_ENV_NIC_ROUND_ROBIN, &is_round_robin));
    *wish = (wefti_topo_wish){.list = wefti_env_word(WEFTI_ENV_NIC_LIST),
                              .mapping = wefti_env_word(WEFTI_ENV_NIC_MAPPING),
                              .is_round_robin = is_round_robin != 0};
    *is_asked = wish->list[0] != '\0' || wish->mapping[0] != '\0' || wish->is_round_robin;
    return WEFT_OK;
}

static int find_host(const wefti_topo *topo)
{
    char name[WEFTI_TOPO_NAME_BYTES];
    int first = -1;
    name[sizeof name - 1] = '\0';
    if (gethostname(name, sizeof name - 1) != 0) {
        name[0] = '\0';
    }
    for (int i = 0; i < topo->count; i++) {
        if (topo->objects[i].kind == WEFTI_TOPO_HOST) {
            first = first < 0 ? i : first;
            if (strcmp(topo->objects[i].name, name) == 0) {
                return i;
            }
        }
    }
    return first;
}

/* A NUMA node of the host by the system's number, as hwloc and descriptions name it; -1: none. */
static int find_numa(const wefti_topo *topo, int host, int number)
{
    char name[WEFTI_TOPO_NAME_BYTES];
    (void)snprintf(name, sizeof name, "numa%d", number);
    for (int i = 0; i < topo->count; i++) {
        const wefti_topo_object *object = &topo->objects[i];
        if (object->kind == WEFTI_TOPO_NUMA && object->host == host && strcmp(object->name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static void set_nic(wefti_topo_nic_of_pe *out, const wefti_topo_object *nic)
{
    (void)snprintf(out->name, sizeof out->name, "%s", nic->name);
    out->port = nic->port;
}

static int has_gpu(const wefti_topo_plan *plan, const wefti_topo *topo, wefti_topo_pci pci)
{
    for (int i = 0; i < plan->gpu_count; i++) {
        if (topo->objects[plan->gpus[i]].pci == pci) {
            return 1;
        }
    }
    return 0;
}

/* The ports behind the GPU's first. */
static void add_further(const wefti_topo_plan *plan, const wefti_topo *topo, const wefti_topo_use *first,
                        wefti_topo_nic_of_pe *out)
{
    const char *between = "; further ports of the plan, not used: ";
    for (const wefti_topo_use *use = first + 1; use < plan->uses + plan->use_count && !use->is_first; use++) {
        const size_t length = strlen(out->reason);
        (void)snprintf(out->reason + length, sizeof out->reason - length, "%s%s:%d", between,
                       topo->objects[use->nic].name, topo->objects[use->nic].port);
        between = ", ";
    }
}

static weft_status choose_by_gpu(const wefti_topo_plan *plan, const wefti_topo *topo, wefti_topo_pci gpu,
                                 wefti_topo_nic_of_pe *out)
{
    const wefti_topo_use *use = wefti_topo_plan_find(plan, topo, gpu);
    char pci[WEFTI_TOPO_PCI_BYTES];
    if (use != NULL) {
        char reason[WEFTI_TOPO_REASON_BYTES];
        set_nic(out, &topo->objects[use->nic]);
        (void)snprintf(out->reason, sizeof out->reason, "of GPU %s: %s", wefti_topo_pci_text(gpu, pci),
                       wefti_topo_reason_text(use, reason));
        add_further(plan, topo, use, out);
        return WEFT_OK;
    }
    return has_gpu(plan, topo, gpu)
               ? WEFT_OK /* on a host without NICs */
               : wefti_error(WEFT_ERR_RANGE, "topology: host \"%s\" has no GPU %s; weft-info topo shows its GPUs",
                             topo->objects[plan->host].name, wefti_topo_pci_text(gpu, pci));
}

static void choose_by_numa(const wefti_topo_plan *plan, const wefti_topo *topo, const wefti_topo_pe *pe,
                           wefti_topo_nic_of_pe *out)
{
    const int numa = pe->numa < 0 ? -1 : find_numa(topo, plan->host, pe->numa);
    const int nic = wefti_topo_plan_without_gpu(plan, topo, numa, pe->number);
    if (nic >= 0) {
        set_nic(out, &topo->objects[nic]);
        (void)snprintf(out->reason, sizeof out->reason, "in turn among those nearest to %s%s",
                       numa < 0 ? "the host" : "NUMA node ", numa < 0 ? "" : topo->objects[numa].name);
    }
}

static weft_status choose(const wefti_topo_plan *plan, const wefti_topo *topo, const wefti_topo_pe *pe,
                          wefti_topo_nic_of_pe *out)
{
    if (pe->gpu != WEFTI_TOPO_PCI_NONE) {
        return choose_by_gpu(plan, topo, pe->gpu, out);
    }
    choose_by_numa(plan, topo, pe, out);
    return WEFT_OK;
}

weft_status wefti_topo_nic_of(const wefti_topo *topo, const wefti_topo_wish *wish, const wefti_topo_pe *pe,
                              wefti_topo_nic_of_pe *out)
{
    wefti_topo_plan plan;
    const int host = find_host(topo);
    memset(out, 0, sizeof *out);
    if (host < 0) {
        return WEFT_OK; /* a description of nothing */
    }
    WEFT_TRY(wefti_topo_plan_make(&plan, topo, host, wish));
    weft_status status = choose(&plan, topo, pe, out);
    wefti_topo_plan_fini(&plan);
    return status;
}

#include "topo/nic_of_pe.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "topo/discover.h"

static weft_status read_rails(wefti_topo_rails_wish *wish)
{
    static const char *const words[] = {
        [WEFTI_TOPO_RAILS_ALL] = "all", [WEFTI_TOPO_RAILS_ONE] = "one", [WEFTI_TOPO_RAILS_SAME_SLOT] = "same-slot"};
    const char *given = wefti_env_word(WEFTI_ENV_NIC_RAILS);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(given, words[i]) == 0) {
            *wish = (wefti_topo_rails_wish)i;
            return WEFT_OK;
        }
    }
    return wefti_error(WEFT_ERR_ARGUMENT, "WEFT_NIC_RAILS is \"%s\"; give all, one or same-slot", given);
}

weft_status wefti_topo_rails_ask_read(wefti_topo_rails_ask *ask)
{
    uint64_t is_round_robin;
    WEFT_TRY(wefti_env_count(WEFTI_ENV_NIC_ROUND_ROBIN, &is_round_robin));
    WEFT_TRY(read_rails(&ask->rails));
    ask->wish = (wefti_topo_wish){.list = wefti_env_word(WEFTI_ENV_NIC_LIST),
                                  .mapping = wefti_env_word(WEFTI_ENV_NIC_MAPPING),
                                  .is_round_robin = is_round_robin != 0};
    ask->is_asked = ask->wish.list[0] != '\0' || ask->wish.mapping[0] != '\0' || ask->wish.is_round_robin;
    ask->is_described = wefti_env_is_set(WEFTI_ENV_TOPO_FILE);
    return WEFT_OK;
}

/* The host that has this machine's name, else the first of the description; a log line says so if it has several. */
static int find_host(const wefti_topo *topo)
{
    char name[WEFTI_TOPO_NAME_BYTES];
    int first = -1;
    int count = 0;
    name[sizeof name - 1] = '\0';
    if (gethostname(name, sizeof name - 1) != 0) {
        name[0] = '\0';
    }
    for (int i = 0; i < topo->count; i++) {
        if (topo->objects[i].kind == WEFTI_TOPO_HOST) {
            count++;
            first = first < 0 ? i : first;
            if (strcmp(topo->objects[i].name, name) == 0) {
                return i;
            }
        }
    }
    if (count > 1) {
        wefti_log(
            WEFTI_LOG_WARN,
            "%d hosts are described, but none that is called \"%s\", as this machine: the first, \"%s\", is taken "
            "for it",
            count, name, topo->objects[first].name);
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

static int slot_of(const wefti_topo_plan *plan, int nic)
{
    int slot = 0;
    while (slot < plan->nic_count && plan->nics[slot] != nic) {
        slot++;
    }
    return slot;
}

static void add_gids(wefti_topo_rail *rail, const wefti_topo *topo, int nic)
{
    for (int i = 0; i < topo->gid_count && rail->gid_count < WEFTI_TOPO_RAIL_GIDS_MAX; i++) {
        const wefti_topo_gid *gid = &topo->gids[i];
        int is_new = gid->nic == nic;
        for (int j = 0; j < rail->gid_count; j++) { /* both kinds of RoCE have the same */
            is_new &= memcmp(rail->gids[j], gid->address, sizeof gid->address) != 0;
        }
        if (is_new) {
            memcpy(rail->gids[rail->gid_count++], gid->address, sizeof gid->address);
        }
    }
}

static int count_ports(const wefti_topo *topo, int nic)
{
    int ports = 0;
    for (int i = 0; i < topo->count; i++) {
        const wefti_topo_object *object = &topo->objects[i];
        ports += object->kind == WEFTI_TOPO_NIC && object->host == topo->objects[nic].host &&
                 strcmp(object->name, topo->objects[nic].name) == 0;
    }
    return ports;
}

/* One that is there already is not added again. Returns 0 if there is no room. */
static int add_rail(wefti_topo_rails *out, const wefti_topo_plan *plan, const wefti_topo *topo, int nic)
{
    const int slot = slot_of(plan, nic);
    for (int i = 0; i < out->count; i++) {
        if (out->rails[i].slot == slot) {
            return 1;
        }
    }
    if (out->count == WEFTI_TOPO_RAILS_MAX) {
        return 0;
    }
    wefti_topo_rail *rail = &out->rails[out->count++];
    (void)snprintf(rail->name, sizeof rail->name, "%s", topo->objects[nic].name);
    rail->port = topo->objects[nic].port;
    rail->slot = slot;
    rail->ports = count_ports(topo, nic);
    add_gids(rail, topo, nic);
    return 1;
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
static void add_further(const wefti_topo_plan *plan, const wefti_topo *topo, const wefti_topo_use *first, int own_max,
                        wefti_topo_rails *out)
{
    const char *between = "; further ports of the plan, not used: ";
    for (const wefti_topo_use *use = first + 1; use < plan->uses + plan->use_count && !use->is_first; use++) {
        const size_t length = strlen(out->reason);
        if (out->count < own_max) {
            (void)add_rail(out, plan, topo, use->nic);
            continue;
        }
        (void)snprintf(out->reason + length, sizeof out->reason - length, "%s%s:%d", between,
                       topo->objects[use->nic].name, topo->objects[use->nic].port);
        between = ", ";
    }
}

static weft_status choose_by_gpu(const wefti_topo_plan *plan, const wefti_topo *topo, wefti_topo_pci gpu, int own_max,
                                 wefti_topo_rails *out)
{
    const wefti_topo_use *use = wefti_topo_plan_find(plan, topo, gpu);
    char pci[WEFTI_TOPO_PCI_BYTES];
    if (use != NULL) {
        char reason[WEFTI_TOPO_REASON_BYTES];
        (void)add_rail(out, plan, topo, use->nic);
        (void)snprintf(out->reason, sizeof out->reason, "of GPU %s: %s", wefti_topo_pci_text(gpu, pci),
                       wefti_topo_reason_text(use, reason));
        add_further(plan, topo, use, own_max, out);
        return WEFT_OK;
    }
    return has_gpu(plan, topo, gpu)
               ? WEFT_OK /* on a host without NICs */
               : wefti_error(WEFT_ERR_RANGE, "topology: host \"%s\" has no GPU %s; weft-info topo shows its GPUs",
                             topo->objects[plan->host].name, wefti_topo_pci_text(gpu, pci));
}

/* Where ports outnumber the PEs of the world here, what is left is dealt out in the same turn. */
static void choose_by_numa(const wefti_topo_plan *plan, const wefti_topo *topo, const wefti_topo_pe *pe, int own_max,
                           wefti_topo_rails *out)
{
    const int numa = pe->numa < 0 ? -1 : find_numa(topo, plan->host, pe->numa);
    const int nearest = wefti_topo_plan_nearest_count(plan, topo, numa);
    const int step = pe->count > 0 ? pe->count : nearest;
    for (int turn = pe->number; out->count < own_max && (turn == pe->number || turn < nearest); turn += step) {
        const int nic = wefti_topo_plan_without_gpu(plan, topo, numa, turn);
        if (nic < 0) {
            return;
        }
        (void)add_rail(out, plan, topo, nic);
    }
    (void)snprintf(out->reason, sizeof out->reason, "in turn among those nearest to %s%s",
                   numa < 0 ? "the host" : "NUMA node ", numa < 0 ? "" : topo->objects[numa].name);
}

static weft_status choose(const wefti_topo_plan *plan, const wefti_topo *topo, const wefti_topo_pe *pe, int own_max,
                          wefti_topo_rails *out)
{
    if (pe->gpu != WEFTI_TOPO_PCI_NONE) {
        return choose_by_gpu(plan, topo, pe->gpu, own_max, out);
    }
    choose_by_numa(plan, topo, pe, own_max, out);
    return WEFT_OK;
}

static weft_status add_slots(const wefti_topo_plan *plan, const wefti_topo *topo, wefti_topo_rails *out)
{
    for (int i = 0; i < plan->nic_count; i++) {
        if (!add_rail(out, plan, topo, plan->nics[i])) {
            return wefti_error(WEFT_ERR_RANGE,
                               "WEFT_NIC_RAILS is same-slot, but host \"%s\" has %d ports, and a PE at most %d; name "
                               "those to use in WEFT_NIC_LIST",
                               topo->objects[plan->host].name, plan->nic_count, WEFTI_TOPO_RAILS_MAX);
        }
    }
    return WEFT_OK;
}

weft_status wefti_topo_rails_of(const wefti_topo *topo, const wefti_topo_rails_ask *ask, const wefti_topo_pe *pe,
                                wefti_topo_rails *out)
{
    wefti_topo_plan plan;
    const int host = find_host(topo);
    memset(out, 0, sizeof *out);
    if (host < 0) {
        return WEFT_OK; /* a description of nothing */
    }
    WEFT_TRY(wefti_topo_plan_make(&plan, topo, host, &ask->wish));
    weft_status status = choose(&plan, topo, pe, ask->rails == WEFTI_TOPO_RAILS_ONE ? 1 : WEFTI_TOPO_RAILS_OWN, out);
    out->own = out->count;
    if (status == WEFT_OK && ask->rails == WEFTI_TOPO_RAILS_SAME_SLOT && out->count > 0) {
        status = add_slots(&plan, topo, out);
    }
    wefti_topo_plan_fini(&plan);
    return status;
}

static void warn_of_gpus(const wefti_topo_wish *wish, const wefti_topo_pe *pe)
{
    if (pe->gpu == WEFTI_TOPO_PCI_NONE && (wish->mapping[0] != '\0' || wish->is_round_robin)) {
        wefti_log(
            WEFTI_LOG_WARN,
            "WEFT_NIC_MAPPING and WEFT_NIC_ROUND_ROBIN are for GPUs, and which GPU this PE will have is not known "
            "yet: it takes a port near its processors. Give weft_world_create the device (config.device), or "
            "choose it before (cudaSetDevice)");
    }
}

/* As wefti_topo_rails_of; but a GPU that the machine does not show is ignored, unless a plan is asked for. */
static weft_status rails_of_shown(const wefti_topo *topo, const wefti_topo_rails_ask *ask, const wefti_topo_pe *pe,
                                  wefti_topo_rails *out)
{
    int *expects_error = wefti_thread_expects_error();
    const int before = *expects_error;
    wefti_topo_pe without = *pe;
    without.gpu = WEFTI_TOPO_PCI_NONE;
    if (ask->is_asked || pe->gpu == WEFTI_TOPO_PCI_NONE) {
        return wefti_topo_rails_of(topo, ask, pe, out);
    }
    *expects_error = 1;
    const weft_status status = wefti_topo_rails_of(topo, ask, pe, out);
    *expects_error = before;
    return status == WEFT_OK ? WEFT_OK : wefti_topo_rails_of(topo, ask, &without, out);
}

weft_status wefti_topo_rails_here(const wefti_topo_rails_ask *ask, const wefti_topo_pe *pe, wefti_topo_rails *out)
{
    wefti_topo topo;
    int *expects_error = wefti_thread_expects_error();
    const int before = *expects_error;
    warn_of_gpus(&ask->wish, pe);
    *expects_error = before || (!ask->is_asked && !ask->is_described); /* else without a plan the network still works */
    weft_status status = wefti_topo_discover(&topo);
    if (status == WEFT_OK) {
        status = rails_of_shown(&topo, ask, pe, out);
        wefti_topo_fini(&topo);
    }
    *expects_error = before;
    return status;
}

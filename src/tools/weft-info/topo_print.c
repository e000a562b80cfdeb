/* tools/weft-info/topo_print.c: the tables of weft-info topo. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/weft-info/table.h"
#include "tools/weft-info/topo.h"

/* A host's name, with the number of others that are like it. */
static void host_text(const info_topo *all, int i, char *text, size_t room)
{
    int others = 0;
    for (int j = i + 1; j < all->host_count; j++) {
        others += all->pattern[j] == i;
    }
    const char *name = all->topo.objects[all->hosts[i]].name;
    (void)snprintf(text, room, others > 0 ? "%s (and %d like it)" : "%s", name, others);
}

static info_table *machine_table(const info_topo *all)
{
    info_table *table = info_table_create("machine", "name value");
    int gpus = 0;
    int ports = 0;
    for (int i = 0; i < all->topo.count; i++) {
        gpus += all->topo.objects[i].kind == WEFTI_TOPO_GPU;
        ports += all->topo.objects[i].kind == WEFTI_TOPO_NIC;
    }
    info_table_add(table, "machine");
    info_table_add(table, "%s", all->topo.name);
    info_table_add(table, "source");
    info_table_add(table, "%s", all->topo.source);
    info_table_add(table, "hosts");
    info_table_add(table, "%d", all->host_count);
    info_table_add(table, "gpus");
    info_table_add(table, "%d", gpus);
    info_table_add(table, "ports");
    info_table_add(table, "%d", ports);
    info_table_add(table, "link domains");
    info_table_add(table, "%d", all->domains);
    return table;
}

static void add_details(info_table *table, const wefti_topo_object *object)
{
    const char *refusal = wefti_topo_fabric_refusal(&object->fabric);
    if (object->kind == WEFTI_TOPO_NIC) {
        info_table_add(table, object->speed_gbits > 0 ? "port %d, %d Gbit/s%s" : "port %d%.0d%s", object->port,
                       object->speed_gbits, object->is_down ? ", down" : "");
    } else if (object->kind == WEFTI_TOPO_GPU && object->fabric.state != WEFTI_TOPO_FABRIC_NONE) {
        info_table_add(table, "%s%s%sclique %u%s%s", object->name, object->name[0] != '\0' ? ", " : "",
                       object->is_mig ? "MIG, " : "", object->fabric.clique, refusal != NULL ? ", fabric " : "",
                       refusal != NULL ? refusal : "");
    } else if (object->kind == WEFTI_TOPO_GPU) {
        info_table_add(table, "%s%s", object->name, object->is_mig ? ", MIG" : "");
    } else {
        info_table_add(table, "%s", "");
    }
}

static info_table *objects_table(const info_topo *all)
{
    char host[128];
    char pci[WEFTI_TOPO_PCI_BYTES];
    info_table *table = info_table_create("objects", "host kind name pci below details");
    for (int i = 0; i < all->host_count; i++) {
        host_text(all, i, host, sizeof host);
        for (int j = all->hosts[i] + 1;
             all->pattern[i] == i && j < all->topo.count && all->topo.objects[j].host == all->hosts[i]; j++) {
            const wefti_topo_object *object = &all->topo.objects[j];
            info_table_add(table, "%s", host);
            info_table_add(table, "%s", wefti_topo_kind_name((wefti_topo_kind)object->kind));
            info_table_add(table, "%s", object->kind == WEFTI_TOPO_GPU ? "-" : object->name);
            info_table_add(table, "%s", wefti_topo_pci_text(object->pci, pci));
            info_table_add(table, "%s", all->topo.objects[object->parent].name);
            add_details(table, object);
        }
    }
    return table;
}

static info_table *distances_table(const info_topo *all)
{
    char host[128];
    char pci[WEFTI_TOPO_PCI_BYTES];
    char port[INFO_TOPO_PORT_BYTES];
    info_table *table = info_table_create("distances", "host gpu port distance");
    for (int i = 0; i < all->host_count; i++) {
        const wefti_topo_plan *plan = &all->plans[i];
        host_text(all, i, host, sizeof host);
        for (int pair = 0; all->pattern[i] == i && pair < plan->gpu_count * plan->nic_count; pair++) {
            const int gpu = plan->gpus[pair / plan->nic_count];
            const int nic = plan->nics[pair % plan->nic_count];
            info_table_add(table, "%s", host);
            info_table_add(table, "%s", wefti_topo_pci_text(all->topo.objects[gpu].pci, pci));
            info_table_add(table, "%s", info_topo_port_text(all, nic, port));
            info_table_add(table, "%s", wefti_topo_distance_name(wefti_topo_distance_of(&all->topo, gpu, nic)));
        }
    }
    return table;
}

/* A row a GPU, a column a port; of a host without GPUs a row a NUMA node. */
static void print_matrix_of(const info_topo *all, const wefti_topo_plan *plan, const int *rows, int row_count, FILE *to)
{
    char pci[WEFTI_TOPO_PCI_BYTES];
    char port[INFO_TOPO_PORT_BYTES];
    (void)fprintf(to, "\n  %-14s", "");
    for (int nic = 0; nic < plan->nic_count; nic++) {
        (void)fprintf(to, " %10s", info_topo_port_text(all, plan->nics[nic], port));
    }
    for (int i = 0; i < row_count; i++) {
        const wefti_topo_object *row = &all->topo.objects[rows[i]];
        (void)fprintf(to, "\n  %-14s", row->kind == WEFTI_TOPO_GPU ? wefti_topo_pci_text(row->pci, pci) : row->name);
        for (int nic = 0; nic < plan->nic_count; nic++) {
            (void)fprintf(to, " %10s",
                          wefti_topo_distance_name(wefti_topo_distance_of(&all->topo, rows[i], plan->nics[nic])));
        }
    }
    (void)fputs("\n", to);
}

/* Print the distances as tables for people. */
static void print_matrix(const info_topo *all, FILE *to)
{
    char host[128];
    for (int i = 0; i < all->host_count; i++) {
        const wefti_topo_plan *plan = &all->plans[i];
        int *rows = NULL;
        if (all->pattern[i] != i || plan->nic_count == 0) {
            continue;
        }
        const int count =
            wefti_topo_list(&all->topo, plan->gpu_count > 0 ? WEFTI_TOPO_GPU : WEFTI_TOPO_NUMA, all->hosts[i], &rows);
        if (count > 0) {
            host_text(all, i, host, sizeof host);
            (void)fprintf(to, "\ndistances on %s", host);
            print_matrix_of(all, plan, rows, count, to);
        }
        wefti_free(rows);
    }
}

static info_table *plan_table(const info_topo *all)
{
    char host[128];
    char pci[WEFTI_TOPO_PCI_BYTES];
    char port[INFO_TOPO_PORT_BYTES];
    char reason[WEFTI_TOPO_REASON_BYTES];
    info_table *table = info_table_create("plan", "host gpu pci port distance reason");
    for (int i = 0; i < all->host_count; i++) {
        const wefti_topo_plan *plan = &all->plans[i];
        host_text(all, i, host, sizeof host);
        int gpu = -1;
        for (int j = 0; all->pattern[i] == i && j < plan->use_count; j++) {
            const wefti_topo_use *use = &plan->uses[j];
            gpu += use->is_first;
            info_table_add(table, "%s", host);
            info_table_add(table, "%d", gpu);
            info_table_add(table, "%s", wefti_topo_pci_text(all->topo.objects[use->gpu].pci, pci));
            info_table_add(table, "%s", info_topo_port_text(all, use->nic, port));
            info_table_add(table, "%s", wefti_topo_distance_name(use->distance));
            info_table_add(table, "%s", wefti_topo_reason_text(use, reason));
        }
    }
    return table;
}

static info_table *pes_table(const info_topo *all)
{
    char pci[WEFTI_TOPO_PCI_BYTES];
    char port[INFO_TOPO_PORT_BYTES];
    info_table *table = info_table_create("pes", "pe# host gpu port domain#");
    for (int pe = 0; pe < all->pes; pe++) {
        info_table_add(table, "%d", pe);
        info_table_add(table, "%s", all->topo.objects[all->hosts[all->pe_host[pe]]].name);
        info_table_add(table, "%s",
                       all->pe_gpu[pe] >= 0 ? wefti_topo_pci_text(all->topo.objects[all->pe_gpu[pe]].pci, pci) : "-");
        info_table_add(table, "%s", info_topo_port_text(all, all->pe_nic[pe], port));
        info_table_add(table, "%d", all->domain_of[pe]);
    }
    return table;
}

static info_table *notes_table(const info_topo *all)
{
    info_table *table = info_table_create("notes", "note");
    for (const char *at = all->notes; *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        info_table_add(table, "%.*s", (int)length, at);
        at += length + (at[length] == '\n');
    }
    return table;
}

int info_topo_print(const info_topo *all, int is_json)
{
    info_table *tables[] = {machine_table(all), objects_table(all), distances_table(all),
                            plan_table(all),    pes_table(all),     notes_table(all)};
    const int count = sizeof tables / sizeof *tables;
    (void)fputs(is_json ? "{\n" : "", stdout);
    for (int i = 0; i < count; i++) {
        if (is_json) {
            (void)fputs(i > 0 ? ",\n" : "", stdout);
            info_table_print_json(tables[i], stdout);
        } else if (i == 2) {
            print_matrix(all, stdout);
        } else if (i < count - 1 || all->notes[0] != '\0') {
            (void)fputs(i > 0 ? "\n" : "", stdout);
            info_table_print_text(tables[i], stdout);
        }
        info_table_destroy(tables[i]);
    }
    (void)fputs(is_json ? "\n}\n" : "", stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* tools/weft-info/topo_print.c: the tables of weft-info topo. */
#include <arpa/inet.h>
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

/* Of all hosts: a GID is of one port. */
static info_table *gids_table(const info_topo *all)
{
    char text[INET6_ADDRSTRLEN];
    char port[INFO_TOPO_PORT_BYTES];
    info_table *table = info_table_create("gids", "host port index# gid type");
    for (int i = 0; i < all->topo.gid_count; i++) {
        const wefti_topo_gid *gid = &all->topo.gids[i];
        info_table_add(table, "%s", all->topo.objects[all->topo.objects[gid->nic].host].name);
        info_table_add(table, "%s", info_topo_port_text(all, gid->nic, port));
        info_table_add(table, "%d", gid->index);
        info_table_add(table, "%s", inet_ntop(AF_INET6, gid->address, text, sizeof text));
        info_table_add(table, "%s", wefti_topo_gid_type_name((wefti_topo_gid_type)gid->type));
    }
    return table;
}

/* Each way by itself; 0 links: `from` cannot access the memory of `to`. */
static info_table *links_table(const info_topo *all)
{
    char host[128];
    char pci[WEFTI_TOPO_PCI_BYTES];
    info_table *table = info_table_create("nvlinks", "host from to links#");
    for (int i = 0; i < all->host_count; i++) {
        host_text(all, i, host, sizeof host);
        for (int j = 0; all->pattern[i] == i && j < all->topo.link_count; j++) {
            const wefti_topo_link *link = &all->topo.links[j];
            if (all->topo.objects[link->from].host == all->hosts[i]) {
                info_table_add(table, "%s", host);
                info_table_add(table, "%s", wefti_topo_pci_text(all->topo.objects[link->from].pci, pci));
                info_table_add(table, "%s", wefti_topo_pci_text(all->topo.objects[link->to].pci, pci));
                info_table_add(table, "%d", link->links);
            }
        }
    }
    return table;
}

static info_table *distances_table(const info_topo *all)
{
    char host[128];
    char row[INFO_TOPO_PORT_BYTES];
    char port[INFO_TOPO_PORT_BYTES];
    info_table *table = info_table_create("distances", "host from port distance");
    for (int i = 0; i < all->host_count; i++) {
        const wefti_topo_plan *plan = &all->plans[i];
        int *rows;
        const int count = all->pattern[i] == i ? info_topo_list_rows(all, i, &rows) : 0;
        host_text(all, i, host, sizeof host);
        for (int pair = 0; pair < count * plan->nic_count; pair++) {
            const int from = rows[pair / plan->nic_count];
            const int nic = plan->nics[pair % plan->nic_count];
            info_table_add(table, "%s", host);
            info_table_add(table, "%s", info_topo_row_text(all, from, row));
            info_table_add(table, "%s", info_topo_port_text(all, nic, port));
            info_table_add(table, "%s", wefti_topo_distance_name(wefti_topo_distance_of(&all->topo, from, nic)));
        }
        if (all->pattern[i] == i) {
            wefti_free(rows);
        }
    }
    return table;
}

/* Print the distances as tables for people, a column a port. */
static void print_matrix(const info_topo *all, FILE *to)
{
    char host[128];
    char text[INFO_TOPO_PORT_BYTES];
    for (int i = 0; i < all->host_count; i++) {
        const wefti_topo_plan *plan = &all->plans[i];
        int *rows;
        if (all->pattern[i] != i || plan->nic_count == 0) {
            continue;
        }
        const int count = info_topo_list_rows(all, i, &rows);
        host_text(all, i, host, sizeof host);
        (void)fprintf(to, count > 0 ? "\ndistances on %s\n  %-14s" : "%.0s%.0s", host, "");
        for (int nic = 0; nic < plan->nic_count && count > 0; nic++) {
            (void)fprintf(to, " %10s", info_topo_port_text(all, plan->nics[nic], text));
        }
        for (int j = 0; j < count; j++) {
            (void)fprintf(to, "\n  %-14s", info_topo_row_text(all, rows[j], text));
            for (int nic = 0; nic < plan->nic_count; nic++) {
                (void)fprintf(to, " %10s",
                              wefti_topo_distance_name(wefti_topo_distance_of(&all->topo, rows[j], plan->nics[nic])));
            }
        }
        (void)fputs(count > 0 ? "\n" : "", to);
        wefti_free(rows);
    }
}

/* NV18: 18 NVLinks to the GPU of the column; none: its memory cannot be accessed; -: nothing is known of links. */
static void put_links(const wefti_topo *topo, int from, int to, FILE *out)
{
    char text[16] = "-";
    for (int i = 0; i < topo->link_count; i++) {
        const wefti_topo_link *link = &topo->links[i];
        if (link->from == from && link->to == to) {
            (void)snprintf(text, sizeof text, link->links > 0 ? "NV%d" : "none%.0d", link->links);
        }
    }
    (void)fprintf(out, " %12s", from == to ? "X" : text);
}

/* Print the NVLinks of each host that has some. */
static void print_links(const info_topo *all, FILE *to)
{
    char host[128];
    char pci[WEFTI_TOPO_PCI_BYTES];
    for (int i = 0; i < all->host_count; i++) {
        const wefti_topo_plan *plan = &all->plans[i];
        int has_links = 0;
        for (int j = 0; j < all->topo.link_count; j++) {
            has_links |= all->topo.objects[all->topo.links[j].from].host == all->hosts[i];
        }
        if (all->pattern[i] != i || !has_links) {
            continue;
        }
        host_text(all, i, host, sizeof host);
        (void)fprintf(to, "\nNVLinks on %s\n  %-12s", host, "");
        for (int j = 0; j < plan->gpu_count; j++) {
            (void)fprintf(to, " %12s", wefti_topo_pci_text(all->topo.objects[plan->gpus[j]].pci, pci));
        }
        for (int j = 0; j < plan->gpu_count; j++) {
            (void)fprintf(to, "\n  %-12s", wefti_topo_pci_text(all->topo.objects[plan->gpus[j]].pci, pci));
            for (int k = 0; k < plan->gpu_count; k++) {
                put_links(&all->topo, plan->gpus[j], plan->gpus[k], to);
            }
        }
        (void)fputs("\n", to);
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
    info_table *table = info_table_create("pes", "pe# host gpu port domain# reason");
    for (int pe = 0; pe < all->pes; pe++) {
        const char *reason = all->pe_nic[pe] < 0   ? "the host has no port"
                             : all->pe_gpu[pe] < 0 ? "in turn among the host's, since its NUMA node is not known"
                                                   : "its GPU's first";
        info_table_add(table, "%d", pe);
        info_table_add(table, "%s", all->topo.objects[all->hosts[all->pe_host[pe]]].name);
        info_table_add(table, "%s",
                       all->pe_gpu[pe] >= 0 ? wefti_topo_pci_text(all->topo.objects[all->pe_gpu[pe]].pci, pci) : "-");
        info_table_add(table, "%s", info_topo_port_text(all, all->pe_nic[pe], port));
        info_table_add(table, "%d", all->domain_of[pe]);
        info_table_add(table, "%s", reason);
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
    struct {
        info_table *table;
        void (*print)(const info_topo *all, FILE *to); /* for people, in place of the table */
        int is_left_out; /* of the text, since it is empty */
    } parts[] = {{machine_table(all), NULL, 0},
                 {objects_table(all), NULL, 0},
                 {gids_table(all), NULL, all->topo.gid_count == 0},
                 {links_table(all), print_links, 0},
                 {distances_table(all), print_matrix, 0},
                 {plan_table(all), NULL, 0},
                 {pes_table(all), NULL, 0},
                 {notes_table(all), NULL, all->notes[0] == '\0'}};
    const int count = sizeof parts / sizeof *parts;
    (void)fputs(is_json ? "{\n" : "", stdout);
    for (int i = 0; i < count; i++) {
        if (is_json) {
            (void)fputs(i > 0 ? ",\n" : "", stdout);
            info_table_print_json(parts[i].table, stdout);
        } else if (parts[i].print != NULL) {
            parts[i].print(all, stdout);
        } else if (!parts[i].is_left_out) {
            (void)fputs(i > 0 ? "\n" : "", stdout);
            info_table_print_text(parts[i].table, stdout);
        }
        info_table_destroy(parts[i].table);
    }
    (void)fputs(is_json ? "\n}\n" : "", stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}

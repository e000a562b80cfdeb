/* tools/weft-info/topo_draw.c: a machine as a graph for graphviz: what contains what is a box in a box, PCI a tree of
 * lines, the plan thick lines from GPUs to ports, a link domain a colour of GPUs. A table of each host has the
 * distances, and what each GPU uses and why; ports that are equally far from all are one column of it. PEs stand in
 * their GPUs, or ports. */
#include <stdio.h>

#include "base/alloc.h"
#include "tools/weft-info/topo.h"

static const char *const colours[] = {"#cfe8cf", "#cfdcf2", "#f7e3c0", "#ecd0e6",
                                      "#d9ecec", "#f2d3cd", "#e6e6b8", "#dcd3f2"};
#define COLOURS ((int)(sizeof colours / sizeof *colours))

/* A name inside a quoted label. */
static void put_quoted(const char *text, FILE *to)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            (void)fputc('\\', to);
        }
        (void)fputc(*text, to);
    }
}

/* A name in a table, which is written as HTML. */
static void put_cell(const char *text, FILE *to)
{
    for (; *text != '\0'; text++) {
        if (*text == '<' || *text == '>' || *text == '&') {
            (void)fprintf(to, "&#%d;", *text);
        } else {
            (void)fputc(*text, to);
        }
    }
}

static int is_box(const wefti_topo_object *object)
{
    return object->kind == WEFTI_TOPO_HOST || object->kind == WEFTI_TOPO_PACKAGE || object->kind == WEFTI_TOPO_NUMA;
}

static size_t add_pe(char *pes, size_t length, size_t room, int pe)
{
    const int added = snprintf(pes + length, room - length, "%s%d", length == 0 ? "PE " : ", ", pe);
    return length + (size_t)added < room - 1 ? length + (size_t)added : room - 1;
}

/* The colour of a GPU's domain; `pes` gets the PEs that use it. */
static const char *colour_of(const info_topo *all, int gpu, char *pes, size_t room)
{
    const char *colour = "#ffffff";
    size_t length = 0;
    pes[0] = '\0';
    for (int pe = 0; pe < all->pes; pe++) {
        if (all->pe_gpu[pe] == gpu) {
            int number = -1; /* of the domain, in the order of their lowest PEs */
            for (int lowest = 0; lowest <= all->domain_of[pe]; lowest++) {
                number += all->domain_of[lowest] == lowest;
            }
            colour = colours[number % COLOURS];
            length = add_pe(pes, length, room, pe);
        }
    }
    return colour;
}

/* PEs without a GPU that use a port. */
static void list_pes_of_port(const info_topo *all, int nic, char *pes, size_t room)
{
    size_t length = 0;
    pes[0] = '\0';
    for (int pe = 0; pe < all->pes; pe++) {
        if (all->pe_gpu[pe] < 0 && all->pe_nic[pe] == nic) {
            length = add_pe(pes, length, room, pe);
        }
    }
}

#define BESIDE_MAX 2 /* ports of a parent that stand beside one another; more of them stand in a column */

/* What an object hangs on: its parent, or the port before it. */
static int above_in_picture(const info_topo *all, int index)
{
    const wefti_topo_object *object = &all->topo.objects[index];
    int ports = 0;
    int before = -1;
    for (int i = 0; i < all->topo.count && object->kind == WEFTI_TOPO_NIC; i++) {
        if (all->topo.objects[i].kind == WEFTI_TOPO_NIC && all->topo.objects[i].parent == object->parent) {
            ports++;
            before = i < index ? i : before;
        }
    }
    return ports > BESIDE_MAX && before >= 0 ? before : object->parent;
}

static void draw_leaf(const info_topo *all, int index, FILE *to)
{
    char pci[WEFTI_TOPO_PCI_BYTES];
    char pes[64];
    const wefti_topo_object *object = &all->topo.objects[index];
    switch ((wefti_topo_kind)object->kind) {
    case WEFTI_TOPO_GPU: {
        const char *colour = colour_of(all, index, pes, sizeof pes);
        (void)fprintf(to, "n%d [shape=box style=\"filled,rounded\" fillcolor=\"%s\" label=\"GPU\\n%s\\n%s\"];\n", index,
                      colour, wefti_topo_pci_text(object->pci, pci), pes);
        break;
    }
    case WEFTI_TOPO_NIC:
        (void)fprintf(to, "n%d [shape=box style=filled fillcolor=\"%s\" label=\"", index,
                      object->is_down ? "#dddddd" : "#fff6a8");
        put_quoted(object->name, to);
        list_pes_of_port(all, index, pes, sizeof pes);
        (void)fprintf(to, ":%d", object->port);
        (void)fprintf(to, object->speed_gbits > 0 ? "\\n%d Gbit/s" : "%.0d", object->speed_gbits);
        (void)fprintf(to, "%s%s%s\"];\n", object->is_down ? "\\ndown" : "", pes[0] != '\0' ? "\\n" : "", pes);
        break;
    default:
        (void)fprintf(to, "n%d [shape=%s label=\"", index, object->kind == WEFTI_TOPO_SWITCH ? "ellipse" : "plaintext");
        put_quoted(object->name, to);
        (void)fputs("\"];\n", to);
        break;
    }
    if (!is_box(&all->topo.objects[object->parent])) {
        (void)fprintf(to, "n%d -> n%d [dir=none weight=8 color=\"#888888\"];\n", above_in_picture(all, index), index);
    }
}

static void draw_below(const info_topo *all, int parent, FILE *to);

static void draw_object(const info_topo *all, int index, FILE *to)
{
    const wefti_topo_object *object = &all->topo.objects[index];
    if (is_box(object)) {
        (void)fprintf(to, "subgraph cluster_%d { label=\"", index);
        put_quoted(object->name, to);
        (void)fputs("\"; style=rounded; color=\"#aaaaaa\";\n", to);
        draw_below(all, index, to);
        (void)fputs("}\n", to);
    } else {
        draw_leaf(all, index, to);
        draw_below(all, index, to);
    }
}

/* graphviz places what hangs together from left to right, and what does not, boxes and their trees, from right to
 * left. */
static void draw_below(const info_topo *all, int parent, FILE *to)
{
    const wefti_topo_object *above = &all->topo.objects[parent];
    int end = parent + 1;
    while (end < all->topo.count && all->topo.objects[end].host == above->host) {
        end++;
    }
    for (int i = 1; i < end - parent; i++) {
        const int index = is_box(above) ? end - i : parent + i;
        if (all->topo.objects[index].parent == parent) {
            draw_object(all, index, to);
        }
    }
}

static void draw_plan(const wefti_topo_plan *plan, FILE *to)
{
    for (int i = 0; i < plan->use_count; i++) {
        const wefti_topo_use *use = &plan->uses[i];
        (void)fprintf(to, "n%d -> n%d [constraint=false color=\"%s\" penwidth=%d];\n", use->gpu, use->nic,
                      use->is_first ? "#1f4e8c" : "#9db8d9", use->is_first ? 2 : 1);
    }
}

/* A GPU's ports and the reason of each. */
static void draw_uses(const info_topo *all, const wefti_topo_plan *plan, int gpu, FILE *to)
{
    char port[INFO_TOPO_PORT_BYTES];
    char reason[WEFTI_TOPO_REASON_BYTES];
    const char *between = "";
    (void)fputs("<TD ALIGN=\"LEFT\">", to);
    for (int i = 0; i < plan->use_count; i++) {
        if (plan->uses[i].gpu == gpu) {
            (void)fputs(between, to);
            put_cell(info_topo_port_text(all, plan->uses[i].nic, port), to);
            (void)fprintf(to, ": %s", wefti_topo_reason_text(&plan->uses[i], reason));
            between = "<BR ALIGN=\"LEFT\"/>";
        }
    }
    (void)fputs(between[0] == '\0' ? "-</TD>" : "<BR ALIGN=\"LEFT\"/></TD>", to);
}

static int is_as_far(const info_topo *all, const int *rows, int count, int left, int right)
{
    for (int i = 0; i < count; i++) {
        if (wefti_topo_distance_of(&all->topo, rows[i], left) != wefti_topo_distance_of(&all->topo, rows[i], right)) {
            return 0;
        }
    }
    return 1;
}

/* The ports of one column, from its first on. */
static void draw_column(const info_topo *all, const wefti_topo_plan *plan, const int *rows, int count, int first,
                        FILE *to)
{
    char text[INFO_TOPO_PORT_BYTES];
    (void)fputs("<TD>", to);
    for (int i = first; i < plan->nic_count; i++) {
        if (is_as_far(all, rows, count, plan->nics[first], plan->nics[i])) {
            (void)fputs(i > first ? "<BR/>" : "", to);
            put_cell(info_topo_port_text(all, plan->nics[i], text), to);
        }
    }
    (void)fputs("</TD>", to);
}

/* Whether a port is the first that is as far from all rows. */
static int begins_column(const info_topo *all, const wefti_topo_plan *plan, const int *rows, int count, int nic)
{
    int before = 0;
    while (!is_as_far(all, rows, count, plan->nics[before], plan->nics[nic])) {
        before++;
    }
    return before == nic;
}

static void draw_row(const info_topo *all, const wefti_topo_plan *plan, const int *rows, int count, int row, FILE *to)
{
    char text[INFO_TOPO_PORT_BYTES];
    (void)fputs("<TR><TD>", to);
    put_cell(info_topo_row_text(all, rows[row], text), to);
    (void)fputs("</TD>", to);
    for (int i = 0; i < plan->nic_count; i++) {
        if (begins_column(all, plan, rows, count, i)) {
            const wefti_topo_distance distance = wefti_topo_distance_of(&all->topo, rows[row], plan->nics[i]);
            (void)fprintf(to, "<TD>%s</TD>", wefti_topo_distance_name(distance));
        }
    }
    if (plan->gpu_count > 0) {
        draw_uses(all, plan, rows[row], to);
    }
    (void)fputs("</TR>\n", to);
}

/* Place the table below the host's tree, by invisible lines that do not move the tree. */
static void tie_table(const wefti_topo_plan *plan, FILE *to)
{
    for (int i = 0; i < plan->use_count; i++) {
        const int is_last = i + 1 == plan->use_count || plan->uses[i + 1].is_first;
        if (is_last) {
            (void)fprintf(to, "n%d -> table%d [style=invis weight=0];\n", plan->uses[i].nic, plan->host);
        }
    }
    for (int i = 0; i < plan->gpu_count && plan->use_count == plan->gpu_count; i++) { /* else ports are deeper */
        (void)fprintf(to, "n%d -> table%d [style=invis weight=0];\n", plan->gpus[i], plan->host);
    }
    for (int i = 0; i < plan->nic_count && plan->gpu_count == 0; i++) {
        (void)fprintf(to, "n%d -> table%d [style=invis weight=0];\n", plan->nics[i], plan->host);
    }
}

/* The distances of a host's GPUs, or else its NUMA nodes, from its ports, and the plan. */
static void draw_table(const info_topo *all, int host, FILE *to)
{
    const wefti_topo_plan *plan = &all->plans[host];
    int *rows;
    const int count = info_topo_list_rows(all, host, &rows);
    if (count > 0 && plan->nic_count > 0) {
        (void)fprintf(to,
                      "table%d [shape=plaintext fontsize=11 label=<<TABLE BORDER=\"0\" CELLBORDER=\"1\" "
                      "CELLSPACING=\"0\" CELLPADDING=\"3\" COLOR=\"#aaaaaa\"><TR><TD>%s</TD>",
                      plan->host, plan->gpu_count > 0 ? "GPU" : "");
        for (int i = 0; i < plan->nic_count; i++) {
            if (begins_column(all, plan, rows, count, i)) {
                draw_column(all, plan, rows, count, i, to);
            }
        }
        (void)fputs(plan->gpu_count > 0 ? "<TD ALIGN=\"LEFT\">port and reason</TD></TR>\n" : "</TR>\n", to);
        for (int row = 0; row < count; row++) {
            draw_row(all, plan, rows, count, row, to);
        }
        (void)fputs("</TABLE>>];\n", to);
        tie_table(plan, to);
    }
    wefti_free(rows);
}

void info_topo_draw(const info_topo *all, FILE *to)
{
    (void)fputs("digraph machine {\nlabel=\"", to);
    put_quoted(all->topo.name, to);
    (void)fprintf(to,
                  ": hosts %d, PEs %d, link domains %d (colours of GPUs); blue: the ports that GPUs use\"; labelloc=t; "
                  "fontname=\"sans-serif\"; fontsize=16; nodesep=0.25; ranksep=0.5;\n"
                  "node [fontname=\"sans-serif\" fontsize=12]; edge [fontname=\"sans-serif\" fontsize=11];\n",
                  all->host_count, all->pes, all->domains);
    for (int i = 0; i < all->host_count; i++) {
        int others = 0;
        for (int j = i + 1; j < all->host_count; j++) {
            others += all->pattern[j] == i;
        }
        if (all->pattern[i] == i) {
            (void)fprintf(to, "subgraph cluster_%d { style=\"rounded\"; label=\"", all->hosts[i]);
            put_quoted(all->topo.objects[all->hosts[i]].name, to);
            (void)fprintf(to, others > 0 ? " (and %d like it)\";\n" : "%.0d\";\n", others);
            draw_below(all, all->hosts[i], to);
            draw_table(all, i, to);
            (void)fputs("}\n", to);
            draw_plan(&all->plans[i], to);
        }
    }
    (void)fputs("}\n", to);
}

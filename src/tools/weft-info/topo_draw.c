/* tools/weft-info/topo_draw.c: a machine as a graph for graphviz: what contains what is a box in a box, PCI a tree of
 * lines, the plan thick lines from GPUs to ports, a link domain a colour of GPUs. A table of each host has the
 * distances, and what each GPU uses and why. */
#include <stdio.h>

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
            const int added = snprintf(pes + length, room - length, "%s%d", length == 0 ? "PE " : ", ", pe);
            length = length + (size_t)added < room - 1 ? length + (size_t)added : room - 1;
        }
    }
    return colour;
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
        (void)fprintf(to, ":%d", object->port);
        (void)fprintf(to, object->speed_gbits > 0 ? "\\n%d Gbit/s\"];\n" : "%.0d\"];\n", object->speed_gbits);
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

#define COLUMNS_MAX 16 /* ports whose distances are still readable beside one another */

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

/* The distances of a host's GPUs from its ports, and the plan. */
static void draw_table(const info_topo *all, const wefti_topo_plan *plan, FILE *to)
{
    char text[INFO_TOPO_PORT_BYTES];
    const int columns = plan->nic_count <= COLUMNS_MAX ? plan->nic_count : 0;
    if (plan->gpu_count == 0 || plan->nic_count == 0) {
        return;
    }
    (void)fprintf(to,
                  "table%d [shape=plaintext fontsize=11 label=<<TABLE BORDER=\"0\" CELLBORDER=\"1\" CELLSPACING=\"0\" "
                  "CELLPADDING=\"3\" COLOR=\"#aaaaaa\"><TR><TD>GPU</TD>",
                  plan->host);
    for (int i = 0; i < columns; i++) {
        (void)fputs("<TD>", to);
        put_cell(info_topo_port_text(all, plan->nics[i], text), to);
        (void)fputs("</TD>", to);
    }
    (void)fputs("<TD ALIGN=\"LEFT\">port and reason</TD></TR>\n", to);
    for (int gpu = 0; gpu < plan->gpu_count; gpu++) {
        (void)fprintf(to, "<TR><TD>%s</TD>", wefti_topo_pci_text(all->topo.objects[plan->gpus[gpu]].pci, text));
        for (int i = 0; i < columns; i++) {
            const wefti_topo_distance distance = wefti_topo_distance_of(&all->topo, plan->gpus[gpu], plan->nics[i]);
            (void)fprintf(to, "<TD>%s</TD>", wefti_topo_distance_name(distance));
        }
        draw_uses(all, plan, plan->gpus[gpu], to);
        (void)fputs("</TR>\n", to);
    }
    (void)fputs("</TABLE>>];\n", to);
}

/* Below the host's tree, which it does not pull at. */
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
            draw_table(all, &all->plans[i], to);
            (void)fputs("}\n", to);
            draw_plan(&all->plans[i], to);
            tie_table(&all->plans[i], to);
        }
    }
    (void)fputs("}\n", to);
}

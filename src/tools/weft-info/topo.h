/* tools/weft-info/topo.h: weft-info topo: a machine, which ports of NICs its GPUs use, and its link domains. */
#ifndef WEFT_INFO_TOPO_H
#define WEFT_INFO_TOPO_H

#include <stdio.h>

#include "topo/domain.h"
#include "topo/plan.h"

typedef struct info_topo_options {
    const char *machine; /* a file; NULL: this machine */
    const char *svg; /* file to draw into; NULL: none */
    int pes; /* 0: one a GPU, or one a host */
    int is_json;
    int is_dot;
    wefti_topo_wish wish;
} info_topo_options;

/* What all of it is printed from. */
typedef struct info_topo {
    wefti_topo topo;
    int *hosts;
    int host_count;
    int *pattern; /* by host: the first host that is like it, as a number in `hosts` */
    wefti_topo_plan *plans; /* by host */
    int pes;
    int *pe_host; /* by PE: a number in `hosts` */
    int *pe_gpu; /* by PE: an object, or -1 */
    int *pe_nic; /* by PE: an object, or -1 */
    int32_t *domain_of; /* by PE: the lowest PE of its link domain */
    int domains;
    char *notes; /* lines */
} info_topo;

/* Run the command; argv[0] is "topo". Returns the exit code. */
int info_topo_main(int argc, char **argv);

weft_status info_topo_collect(info_topo *all, const info_topo_options *options);
void info_topo_release(info_topo *all);

int info_topo_print(const info_topo *all, int is_json);
/* The machine as a graph, in the language of graphviz. */
void info_topo_draw(const info_topo *all, FILE *to);

/* A port as NAME:PORT, or "-". */
#define INFO_TOPO_PORT_BYTES (WEFTI_TOPO_NAME_BYTES + 16)
const char *info_topo_port_text(const info_topo *all, int nic, char text[INFO_TOPO_PORT_BYTES]);

/* What distances on host `i` are told from: GPUs; of one without GPUs NUMA nodes, or packages. As wefti_topo_list. */
int info_topo_list_rows(const info_topo *all, int i, int **rows);
const char *info_topo_row_text(const info_topo *all, int row, char text[INFO_TOPO_PORT_BYTES]);

#endif

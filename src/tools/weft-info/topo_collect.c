/* tools/weft-info/topo_collect.c: everything that weft-info topo shows, worked out by the library's own code. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "tools/weft-info/topo.h"
#include "topo/description.h"
#include "topo/discover.h"

/* ---- hosts that are alike are shown once ---- */

static int objects_of_host(const wefti_topo *topo, int host)
{
    int count = 0;
    while (host + count < topo->count && topo->objects[host + count].host == host) {
        count++;
    }
    return count;
}

/* The next link of a host, from `at` on. */
static int next_link(const wefti_topo *topo, int host, int at)
{
    while (at < topo->link_count && topo->objects[topo->links[at].from].host != host) {
        at++;
    }
    return at;
}

static int has_same_links(const wefti_topo *topo, int left, int right)
{
    int i = next_link(topo, left, 0);
    int j = next_link(topo, right, 0);
    for (; i < topo->link_count && j < topo->link_count;
         i = next_link(topo, left, i + 1), j = next_link(topo, right, j + 1)) {
        const wefti_topo_link *l = &topo->links[i];
        const wefti_topo_link *r = &topo->links[j];
        if (l->from - left != r->from - right || l->to - left != r->to - right || l->links != r->links) {
            return 0;
        }
    }
    return i == topo->link_count && j == topo->link_count;
}

static int is_alike(const wefti_topo *topo, int left, int right)
{
    const int count = objects_of_host(topo, left);
    if (objects_of_host(topo, right) != count) {
        return 0;
    }
    for (int i = 1; i < count; i++) {
        const wefti_topo_object *l = &topo->objects[left + i];
        const wefti_topo_object *r = &topo->objects[right + i];
        if (l->kind != r->kind || l->parent - left != r->parent - right || l->pci != r->pci || l->port != r->port ||
            strcmp(l->name, r->name) != 0 || l->speed_gbits != r->speed_gbits || l->is_down != r->is_down ||
            l->is_mig != r->is_mig || memcmp(&l->fabric, &r->fabric, sizeof l->fabric) != 0) {
            return 0;
        }
    }
    return has_same_links(topo, left, right);
}

static void find_patterns(info_topo *all)
{
    for (int i = 0; i < all->host_count; i++) {
        all->pattern[i] = i;
        for (int j = 0; j < i; j++) {
            if (all->pattern[j] == j && is_alike(&all->topo, all->hosts[j], all->hosts[i])) {
                all->pattern[i] = j;
                break;
            }
        }
    }
}

/* ---- PEs ---- */

static int gpus_of(const info_topo *all)
{
    int count = 0;
    for (int i = 0; i < all->host_count; i++) {
        count += all->plans[i].gpu_count;
    }
    return count;
}

/* Hosts are filled in turn, each with its share; a host's PEs take its GPUs in PCI order, and begin again. */
static void place_pes(info_topo *all)
{
    const int total = gpus_of(all);
    int pe = 0;
    for (int i = 0; i < all->host_count; i++) {
        const wefti_topo_plan *plan = &all->plans[i];
        const int share =
            all->pes == total ? plan->gpu_count : all->pes / all->host_count + (i < all->pes % all->host_count);
        for (int j = 0; j < share; j++, pe++) {
            all->pe_host[pe] = i;
            all->pe_gpu[pe] = plan->gpu_count > 0 ? plan->gpus[j % plan->gpu_count] : -1;
            const wefti_topo_use *use =
                plan->gpu_count > 0 ? wefti_topo_plan_find(plan, &all->topo, all->topo.objects[all->pe_gpu[pe]].pci)
                                    : NULL;
            all->pe_nic[pe] = plan->gpu_count == 0 ? wefti_topo_plan_without_gpu(plan, &all->topo, -1, j)
                              : use != NULL        ? use->nic
                                                   : -1;
        }
    }
}

static void add_note(void *context, const char *text)
{
    info_topo *all = context;
    const size_t before = strlen(all->notes);
    char *longer = wefti_realloc(all->notes, before + strlen(text) + 2);
    if (longer != NULL) {
        (void)strcpy(longer + before, text);
        (void)strcat(longer, "\n");
        all->notes = longer;
    }
}

static weft_status find_domains(info_topo *all)
{
    int *objects;
    wefti_topo_gpu_of_pe *of_gpu;
    const int count = wefti_topo_gpus_of(&all->topo, &of_gpu, &objects);
    if (count < 0) {
        return WEFT_ERR_MEMORY;
    }
    wefti_topo_gpu_of_pe *gpus = wefti_alloc_zeroed((size_t)all->pes + 1, sizeof *gpus);
    for (int pe = 0; gpus != NULL && pe < all->pes; pe++) {
        for (int i = 0; i < count; i++) {
            if (objects[i] == all->pe_gpu[pe]) {
                gpus[pe] = of_gpu[i];
            }
        }
    }
    all->domains = gpus != NULL ? wefti_topo_domains(gpus, all->pes, all->domain_of, NULL, add_note, all) : -1;
    wefti_free(gpus);
    wefti_free(of_gpu);
    wefti_free(objects);
    return all->domains >= 0 ? WEFT_OK : wefti_error(WEFT_ERR_MEMORY, "weft-info: no memory for %d PEs", all->pes);
}

/* ---- all ---- */

static weft_status make_plans(info_topo *all, const wefti_topo_wish *wish)
{
    all->host_count = wefti_topo_list(&all->topo, WEFTI_TOPO_HOST, -1, &all->hosts);
    const size_t hosts = (size_t)(all->host_count > 0 ? all->host_count : 1);
    all->pattern = wefti_alloc_zeroed(hosts, sizeof *all->pattern);
    all->plans = wefti_alloc_zeroed(hosts, sizeof *all->plans);
    if (all->host_count < 0 || all->pattern == NULL || all->plans == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft-info: no memory for the plans of %zu hosts", hosts);
    }
    find_patterns(all);
    for (int i = 0; i < all->host_count; i++) {
        WEFT_TRY(wefti_topo_plan_make(&all->plans[i], &all->topo, all->hosts[i], wish));
    }
    return WEFT_OK;
}

weft_status info_topo_collect(info_topo *all, const info_topo_options *options)
{
    memset(all, 0, sizeof *all);
    WEFT_TRY(options->machine != NULL ? wefti_topo_read(&all->topo, options->machine)
                                      : wefti_topo_discover(&all->topo));
    WEFT_TRY(make_plans(all, &options->wish));
    const int gpus = gpus_of(all);
    all->pes = options->pes > 0 ? options->pes : gpus > 0 ? gpus : all->host_count;
    const size_t pes = (size_t)all->pes + 1;
    all->pe_host = wefti_alloc_zeroed(pes, sizeof *all->pe_host);
    all->pe_gpu = wefti_alloc_zeroed(pes, sizeof *all->pe_gpu);
    all->pe_nic = wefti_alloc_zeroed(pes, sizeof *all->pe_nic);
    all->domain_of = wefti_alloc_zeroed(pes, sizeof *all->domain_of);
    all->notes = wefti_alloc_text("");
    if (all->pe_host == NULL || all->pe_gpu == NULL || all->pe_nic == NULL || all->domain_of == NULL ||
        all->notes == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft-info: no memory for %d PEs", all->pes);
    }
    place_pes(all);
    return find_domains(all);
}

void info_topo_release(info_topo *all)
{
    for (int i = 0; all->plans != NULL && i < all->host_count; i++) {
        wefti_topo_plan_fini(&all->plans[i]);
    }
    wefti_free(all->hosts);
    wefti_free(all->pattern);
    wefti_free(all->plans);
    wefti_free(all->pe_host);
    wefti_free(all->pe_gpu);
    wefti_free(all->pe_nic);
    wefti_free(all->domain_of);
    wefti_free(all->notes);
    wefti_topo_fini(&all->topo);
    memset(all, 0, sizeof *all);
}

const char *info_topo_port_text(const info_topo *all, int nic, char text[INFO_TOPO_PORT_BYTES])
{
    if (nic < 0) {
        (void)snprintf(text, INFO_TOPO_PORT_BYTES, "-");
    } else {
        (void)snprintf(text, INFO_TOPO_PORT_BYTES, "%s:%d", all->topo.objects[nic].name, all->topo.objects[nic].port);
    }
    return text;
}

/* ---- words ---- */

int info_topo_list_rows(const info_topo *all, int i, int **rows)
{
    static const wefti_topo_kind kinds[] = {WEFTI_TOPO_GPU, WEFTI_TOPO_NUMA, WEFTI_TOPO_PACKAGE};
    int count = 0;
    *rows = NULL;
    for (size_t j = 0; j < sizeof kinds / sizeof *kinds && count == 0; j++) {
        wefti_free(*rows);
        *rows = NULL;
        count = wefti_topo_list(&all->topo, kinds[j], all->hosts[i], rows);
    }
    return count;
}

const char *info_topo_row_text(const info_topo *all, int object, char text[INFO_TOPO_PORT_BYTES])
{
    const wefti_topo_object *row = &all->topo.objects[object];
    return row->kind == WEFTI_TOPO_GPU ? wefti_topo_pci_text(row->pci, text) : row->name;
}

#include "topo/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* ---- PCI addresses: DDDD:BB:DD.F, with the domain's 4 to 8 digits or none ---- */

int wefti_topo_hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static int parse_hex(const char **text, int digits_min, int digits_max, uint64_t *value)
{
    int digits = 0;
    *value = 0;
    for (; digits < digits_max; digits++, (*text)++) {
        const int digit = wefti_topo_hex_digit(**text);
        if (digit < 0) {
            break;
        }
        *value = *value << 4 | (uint64_t)digit;
    }
    return digits >= digits_min;
}

int wefti_topo_pci_parse(const char *text, wefti_topo_pci *pci)
{
    uint64_t domain;
    uint64_t bus;
    uint64_t device;
    uint64_t function;
    if (!parse_hex(&text, 4, 8, &domain) || *text++ != ':' || !parse_hex(&text, 2, 2, &bus) || *text++ != ':' ||
        !parse_hex(&text, 2, 2, &device) || *text++ != '.' || !parse_hex(&text, 1, 1, &function) || *text != '\0' ||
        device > 31 || function > 7) {
        return 0;
    }
    *pci = domain << 16 | bus << 8 | device << 3 | function;
    return 1;
}

const char *wefti_topo_pci_text(wefti_topo_pci pci, char text[WEFTI_TOPO_PCI_BYTES])
{
    if (pci == WEFTI_TOPO_PCI_NONE) {
        (void)snprintf(text, WEFTI_TOPO_PCI_BYTES, "-");
    } else {
        (void)snprintf(text, WEFTI_TOPO_PCI_BYTES, "%04x:%02x:%02x.%x", (unsigned)(pci >> 16 & 0xffffffff),
                       (unsigned)(pci >> 8 & 0xff), (unsigned)(pci >> 3 & 31), (unsigned)(pci & 7));
    }
    return text;
}

/* ---- the tree ---- */

void wefti_topo_init(wefti_topo *topo)
{
    memset(topo, 0, sizeof *topo);
}

void wefti_topo_fini(wefti_topo *topo)
{
    wefti_free(topo->objects);
    wefti_free(topo->links);
    wefti_free(topo->gids);
    wefti_topo_init(topo);
}

const char *wefti_topo_kind_name(wefti_topo_kind kind)
{
    static const char *const names[WEFTI_TOPO_KINDS] = {"host", "package", "numa", "root", "switch", "gpu", "nic"};
    return names[kind];
}

/* Room for one more element of `bytes` each. */
static int make_room(void **elements, int count, int *room, size_t bytes)
{
    if (count < *room) {
        return 1;
    }
    const int wanted = *room == 0 ? 16 : *room * 2;
    void *larger = count >= WEFTI_TOPO_OBJECTS_MAX ? NULL : wefti_realloc(*elements, (size_t)wanted * bytes);
    if (larger == NULL) {
        return 0;
    }
    *elements = larger;
    *room = wanted;
    return 1;
}

int wefti_topo_add(wefti_topo *topo, wefti_topo_kind kind, int parent, const char *name)
{
    void *objects = topo->objects;
    if (!make_room(&objects, topo->count, &topo->room, sizeof *topo->objects)) {
        (void)wefti_error(WEFT_ERR_MEMORY, "topology: no memory for more than %d objects", topo->count);
        return -1;
    }
    topo->objects = objects;
    const int index = topo->count++;
    wefti_topo_object *object = &topo->objects[index];
    memset(object, 0, sizeof *object);
    object->kind = (uint8_t)kind;
    object->parent = parent;
    object->host = parent < 0 ? index : topo->objects[parent].host;
    object->depth = parent < 0 ? 0 : topo->objects[parent].depth + 1;
    object->pci = WEFTI_TOPO_PCI_NONE;
    object->port = kind == WEFTI_TOPO_NIC;
    (void)snprintf(object->name, sizeof object->name, "%s", name);
    return index;
}

weft_status wefti_topo_add_link(wefti_topo *topo, int from, int to, int links)
{
    void *all = topo->links;
    if (!make_room(&all, topo->link_count, &topo->link_room, sizeof *topo->links)) {
        return wefti_error(WEFT_ERR_MEMORY, "topology: no memory for more than %d links", topo->link_count);
    }
    topo->links = all;
    topo->links[topo->link_count++] = (wefti_topo_link){from, to, links};
    return WEFT_OK;
}

weft_status wefti_topo_add_gid(wefti_topo *topo, const wefti_topo_gid *gid)
{
    void *all = topo->gids;
    if (!make_room(&all, topo->gid_count, &topo->gid_room, sizeof *topo->gids)) {
        return wefti_error(WEFT_ERR_MEMORY, "topology: no memory for more than %d GIDs", topo->gid_count);
    }
    topo->gids = all;
    topo->gids[topo->gid_count++] = *gid;
    return WEFT_OK;
}

const char *wefti_topo_gid_type_name(wefti_topo_gid_type type)
{
    static const char *const names[WEFTI_TOPO_GID_TYPES] = {"ib", "roce-v1", "roce-v2"};
    return names[type];
}

/* ---- lists ---- */

typedef struct entry {
    const wefti_topo_object *object;
    int index;
} entry;

static int compare(const void *left, const void *right)
{
    const entry *l = left;
    const entry *r = right;
    if (l->object->host != r->object->host) {
        return l->object->host < r->object->host ? -1 : 1;
    }
    if (l->object->pci != r->object->pci) {
        return l->object->pci < r->object->pci ? -1 : 1;
    }
    if (l->object->port != r->object->port) {
        return l->object->port < r->object->port ? -1 : 1;
    }
    const int names = strcmp(l->object->name, r->object->name);
    return names != 0 ? names : l->index - r->index;
}

int wefti_topo_list(const wefti_topo *topo, wefti_topo_kind kind, int host, int **list)
{
    int count = 0;
    entry *entries = wefti_alloc_zeroed((size_t)topo->count + 1, sizeof *entries);
    int *indices = wefti_alloc_zeroed((size_t)topo->count + 1, sizeof *indices);
    if (entries == NULL || indices == NULL) {
        wefti_free(entries);
        wefti_free(indices);
        (void)wefti_error(WEFT_ERR_MEMORY, "topology: no memory to list %d objects", topo->count);
        return -1;
    }
    for (int i = 0; i < topo->count; i++) {
        const wefti_topo_object *object = &topo->objects[i];
        if (object->kind == kind && (host < 0 || object->host == host)) {
            entries[count++] = (entry){object, i};
        }
    }
    qsort(entries, (size_t)count, sizeof *entries, compare);
    for (int i = 0; i < count; i++) {
        indices[i] = entries[i].index;
    }
    wefti_free(entries);
    *list = indices;
    return count;
}

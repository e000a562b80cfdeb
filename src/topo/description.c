#include "topo/description.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "topo/hwloc_xml.h"
#include "topo/words.h"
#include "topo/xml.h"

#define HOSTS_MAX 4096
typedef struct parser {
    wefti_topo *topo;
    wefti_topo_reader r;
    /* The host that lines belong to, and how many more there are of it. */
    int host;
    char host_name[WEFTI_TOPO_NAME_BYTES];
    int number;
    int last_number;
    int host_line; /* where it is said */
    int host_column;
    int links_before; /* links of earlier hosts */
} parser;

static weft_status unknown_key(const parser *p, const wefti_topo_word *w, const char *keys)
{
    return wefti_topo_wrong(&p->r, w->column, "\"%s\" is not known here; a %s has %s", w->text, p->r.words[0].text,
                            keys);
}

/* A key's second value would take the place of its first. */
static weft_status refuse_twice(const parser *p)
{
    for (int i = 2; i < p->r.count; i++) {
        const size_t length = strcspn(p->r.words[i].text, "=");
        for (int j = 2; j < i; j++) {
            if (p->r.words[i].text[length] == '=' && strcspn(p->r.words[j].text, "=") == length &&
                memcmp(p->r.words[i].text, p->r.words[j].text, length + 1) == 0) {
                return wefti_topo_wrong(&p->r, p->r.words[i].column, "%.*s is given already", (int)length,
                                        p->r.words[i].text);
            }
        }
    }
    return WEFT_OK;
}

/* ---- what is added, within bounds ---- */

static weft_status add_object(parser *p, wefti_topo_kind kind, int parent, const char *name, int *index)
{
    if (p->topo->count == WEFTI_TOPO_OBJECTS_MAX) {
        return wefti_topo_wrong(&p->r, p->r.words[0].column, "more than %d objects of all hosts",
                                WEFTI_TOPO_OBJECTS_MAX);
    }
    *index = wefti_topo_add(p->topo, kind, parent, name);
    return *index < 0 ? WEFT_ERR_MEMORY : WEFT_OK;
}

static weft_status add_link(const parser *p, int from, int to, int links)
{
    if (p->topo->link_count == WEFTI_TOPO_OBJECTS_MAX) {
        return wefti_topo_wrong(&p->r, p->r.words[0].column, "more than %d links of all hosts, each counted both ways",
                                WEFTI_TOPO_OBJECTS_MAX);
    }
    return wefti_topo_add_link(p->topo, from, to, links);
}

/* ---- objects by name ---- */

static int find_named(const parser *p, const char *name)
{
    for (int i = p->host; i >= 0 && i < p->topo->count; i++) {
        const wefti_topo_object *object = &p->topo->objects[i];
        if (object->kind >= WEFTI_TOPO_PACKAGE && object->kind <= WEFTI_TOPO_SWITCH &&
            strcmp(object->name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static int find_gpu(const parser *p, wefti_topo_pci pci)
{
    for (int i = p->host; i >= 0 && i < p->topo->count; i++) {
        if (p->topo->objects[i].kind == WEFTI_TOPO_GPU && p->topo->objects[i].pci == pci) {
            return i;
        }
    }
    return -1;
}

static int find_nic(const parser *p, const char *name, int port)
{
    for (int i = p->host; i >= 0 && i < p->topo->count; i++) {
        const wefti_topo_object *object = &p->topo->objects[i];
        if (object->kind == WEFTI_TOPO_NIC && object->port == port && strcmp(object->name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* Kinds below which an object may be, as bits. */
static unsigned parents_of(wefti_topo_kind kind)
{
    static const unsigned parents[WEFTI_TOPO_KINDS] = {
        [WEFTI_TOPO_PACKAGE] = 1u << WEFTI_TOPO_HOST,
        [WEFTI_TOPO_NUMA] = 1u << WEFTI_TOPO_HOST | 1u << WEFTI_TOPO_PACKAGE,
        [WEFTI_TOPO_ROOT] = 1u << WEFTI_TOPO_HOST | 1u << WEFTI_TOPO_PACKAGE | 1u << WEFTI_TOPO_NUMA,
        [WEFTI_TOPO_SWITCH] = 1u << WEFTI_TOPO_ROOT | 1u << WEFTI_TOPO_SWITCH,
        [WEFTI_TOPO_GPU] = 1u << WEFTI_TOPO_ROOT | 1u << WEFTI_TOPO_SWITCH | 1u << WEFTI_TOPO_NUMA,
        [WEFTI_TOPO_NIC] = 1u << WEFTI_TOPO_ROOT | 1u << WEFTI_TOPO_SWITCH | 1u << WEFTI_TOPO_NUMA,
    };
    return parents[kind];
}

static weft_status parse_parent(const parser *p, wefti_topo_kind kind, const wefti_topo_word *w, const char *name,
                                int *parent)
{
    *parent = find_named(p, name);
    const int column = w->column + (int)(name - w->text);
    if (*parent < 0) {
        return wefti_topo_wrong(&p->r, column, "nothing of this host that is above is called \"%s\"", name);
    }
    const wefti_topo_kind above = (wefti_topo_kind)p->topo->objects[*parent].kind;
    if ((parents_of(kind) >> above & 1) == 0) {
        return wefti_topo_wrong(&p->r, column, "a %s cannot be below the %s \"%s\"", wefti_topo_kind_name(kind),
                                wefti_topo_kind_name(above), name);
    }
    return WEFT_OK;
}

static weft_status need_host(const parser *p)
{
    return p->host >= 0
               ? WEFT_OK
               : wefti_topo_wrong(&p->r, p->r.words[0].column, "\"%s\" before the first host", p->r.words[0].text);
}

static weft_status need_words(const parser *p, int least, int most, const char *form)
{
    if (p->r.count < least) {
        return wefti_topo_wrong(&p->r, (int)(p->r.line_end - p->r.line_start) + 1, "expected: %s", form);
    }
    if (p->r.count > most && most < WEFTI_TOPO_WORDS_MAX) {
        return wefti_topo_wrong(&p->r, p->r.words[most].column, "expected: %s", form);
    }
    return WEFT_OK;
}

/* ---- package, numa, root, switch ---- */

static weft_status parse_inner(parser *p, wefti_topo_kind kind)
{
    int parent = p->host;
    WEFT_TRY(need_host(p));
    WEFT_TRY(need_words(p, 2, 3, "package|numa|root|switch NAME [parent=NAME]"));
    if (strlen(p->r.words[1].text) >= WEFTI_TOPO_NAME_BYTES) {
        return wefti_topo_wrong(&p->r, p->r.words[1].column, "a name of more than %d bytes", WEFTI_TOPO_NAME_BYTES - 1);
    }
    if (find_named(p, p->r.words[1].text) >= 0) {
        return wefti_topo_wrong(&p->r, p->r.words[1].column, "this host has \"%s\" already", p->r.words[1].text);
    }
    if (p->r.count == 3) {
        const char *name = wefti_topo_value(&p->r.words[2], "parent");
        if (name == NULL) {
            return unknown_key(p, &p->r.words[2], "parent=NAME");
        }
        WEFT_TRY(parse_parent(p, kind, &p->r.words[2], name, &parent));
    } else if (kind == WEFTI_TOPO_SWITCH) {
        return wefti_topo_wrong(&p->r, p->r.words[1].column, "a switch needs parent=NAME, a root or a switch");
    }
    int index;
    return add_object(p, kind, parent, p->r.words[1].text, &index);
}

/* ---- gpu ---- */

static weft_status parse_cluster(const parser *p, const wefti_topo_word *w, const char *text, unsigned char cluster[16])
{
    int digits = 0;
    memset(cluster, 0, 16);
    for (const char *at = text; *at != '\0'; at++) {
        const int digit = wefti_topo_hex_digit(*at);
        if (*at == '-' && digits > 0) {
            continue;
        }
        if (digit < 0 || digits == 32) {
            return wefti_topo_wrong(&p->r, w->column + (int)(at - w->text),
                                    "a cluster is a UUID of 32 hexadecimal digits");
        }
        cluster[digits / 2] = (unsigned char)(cluster[digits / 2] | digit << (digits % 2 == 0 ? 4 : 0));
        digits++;
    }
    return digits == 32 ? WEFT_OK
                        : wefti_topo_wrong(&p->r, w->column + (int)strlen(w->text),
                                           "a cluster is a UUID of 32 hexadecimal digits");
}

static weft_status parse_state(const parser *p, const wefti_topo_word *w, const char *text, wefti_topo_fabric *fabric)
{
    static const char *const states[] = {"none", "not-started", "in-progress", "completed"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, states[i]) == 0) {
            fabric->state = (uint8_t)i;
            return WEFT_OK;
        }
    }
    if (strcmp(text, "failed") == 0) {
        fabric->state = WEFTI_TOPO_FABRIC_COMPLETED;
        fabric->has_failed = 1;
        return WEFT_OK;
    }
    return wefti_topo_wrong(&p->r, w->column + (int)(text - w->text),
                            "\"%s\" is none of completed, in-progress, not-started, none, failed", text);
}

static weft_status parse_gpu_key(const parser *p, const wefti_topo_word *w, wefti_topo_object *gpu)
{
    const char *value;
    int clique = 0;
    if ((value = wefti_topo_value(w, "uuid")) != NULL) {
        if (strlen(value) >= sizeof gpu->name) {
            return wefti_topo_wrong(&p->r, w->column, "a uuid of more than %zu bytes", sizeof gpu->name - 1);
        }
        (void)snprintf(gpu->name, sizeof gpu->name, "%s", value);
        return WEFT_OK;
    }
    if ((value = wefti_topo_value(w, "cluster")) != NULL) {
        if (gpu->fabric.state == WEFTI_TOPO_FABRIC_NONE) {
            gpu->fabric.state = WEFTI_TOPO_FABRIC_COMPLETED;
            gpu->fabric.has_handles = 1;
            gpu->fabric.was_tried = 1;
        }
        return parse_cluster(p, w, value, gpu->fabric.cluster);
    }
    if ((value = wefti_topo_value(w, "clique")) != NULL) {
        WEFT_TRY(wefti_topo_number(&p->r, w, value, 0x7fffffff, &clique));
        gpu->fabric.clique = (uint32_t)clique;
        return WEFT_OK;
    }
    if ((value = wefti_topo_value(w, "fabric")) != NULL) {
        return parse_state(p, w, value, &gpu->fabric);
    }
    if ((value = wefti_topo_value(w, "handles")) != NULL) {
        return wefti_topo_choice(&p->r, w, value, "yes", "no", &gpu->fabric.has_handles);
    }
    if ((value = wefti_topo_value(w, "trial")) != NULL) {
        return wefti_topo_choice(&p->r, w, value, "ok", "failed", &gpu->fabric.was_tried);
    }
    if ((value = wefti_topo_value(w, "mig")) != NULL) {
        return wefti_topo_choice(&p->r, w, value, "yes", "no", &gpu->is_mig);
    }
    return unknown_key(p, w, "parent, uuid, mig, cluster, clique, fabric, handles, trial");
}

/* The object that a line tells of, and its parent if the line says one: an object that there is, or a new one. */
static weft_status take_object(parser *p, wefti_topo_kind kind, int known, const char *name, int *index)
{
    int parent = known >= 0 ? p->topo->objects[known].parent : -1;
    for (int i = 2; i < p->r.count; i++) {
        const char *value = wefti_topo_value(&p->r.words[i], "parent");
        if (value != NULL && known >= 0) {
            return wefti_topo_wrong(&p->r, p->r.words[i].column, "its parent is known already");
        }
        if (value != NULL) {
            WEFT_TRY(parse_parent(p, kind, &p->r.words[i], value, &parent));
        }
    }
    if (parent < 0) {
        return wefti_topo_wrong(&p->r, p->r.words[0].column, "a %s needs parent=NAME", p->r.words[0].text);
    }
    *index = known;
    return known >= 0 ? WEFT_OK : add_object(p, kind, parent, name, index);
}

/* A clique is one of a cluster. */
static weft_status check_clique(const parser *p)
{
    const wefti_topo_word *cluster = NULL;
    const wefti_topo_word *clique = NULL;
    for (int i = 2; i < p->r.count; i++) {
        const wefti_topo_word *w = &p->r.words[i];
        cluster = wefti_topo_value(w, "cluster") != NULL ? w : cluster;
        clique = wefti_topo_value(w, "clique") != NULL ? w : clique;
    }
    if ((cluster == NULL) == (clique == NULL)) {
        return WEFT_OK;
    }
    return wefti_topo_wrong(&p->r, cluster != NULL ? cluster->column : clique->column, "%s needs %s",
                            cluster != NULL ? "cluster=UUID" : "clique=N",
                            cluster != NULL ? "clique=N" : "cluster=UUID");
}

static weft_status parse_gpu(parser *p)
{
    wefti_topo_pci pci;
    int index;
    WEFT_TRY(need_host(p));
    WEFT_TRY(need_words(p, 2, WEFTI_TOPO_WORDS_MAX, "gpu PCI parent=NAME ..."));
    if (!wefti_topo_pci_parse(p->r.words[1].text, &pci)) {
        return wefti_topo_wrong(&p->r, p->r.words[1].column, "\"%s\" is no PCI address such as 0000:1b:00.0",
                                p->r.words[1].text);
    }
    WEFT_TRY(refuse_twice(p));
    const int known = find_gpu(p, pci);
    WEFT_TRY(take_object(p, WEFTI_TOPO_GPU, known, "", &index));
    p->topo->objects[index].pci = pci;
    for (int is_cluster = 1; is_cluster >= 0; is_cluster--) { /* first, since it sets what the others change */
        for (int i = 2; i < p->r.count; i++) {
            const wefti_topo_word *w = &p->r.words[i];
            if (wefti_topo_value(w, "parent") == NULL && (wefti_topo_value(w, "cluster") != NULL) == is_cluster) {
                WEFT_TRY(parse_gpu_key(p, w, &p->topo->objects[index]));
            }
        }
    }
    return check_clique(p);
}

/* ---- nic ---- */

static weft_status parse_nic_key(const parser *p, const wefti_topo_word *w, wefti_topo_object *nic)
{
    const char *value;
    uint8_t is_up = 0;
    if (wefti_topo_value(w, "port") != NULL) {
        return WEFT_OK; /* read before */
    }
    if ((value = wefti_topo_value(w, "pci")) != NULL) {
        return wefti_topo_pci_parse(value, &nic->pci)
                   ? WEFT_OK
                   : wefti_topo_wrong(&p->r, w->column + 4, "\"%s\" is no PCI address such as 0000:1b:00.0", value);
    }
    if ((value = wefti_topo_value(w, "speed")) != NULL) {
        return wefti_topo_number(&p->r, w, value, 1000000, &nic->speed_gbits);
    }
    if ((value = wefti_topo_value(w, "state")) != NULL) {
        WEFT_TRY(wefti_topo_choice(&p->r, w, value, "up", "down", &is_up));
        nic->is_down = !is_up;
        return WEFT_OK;
    }
    return unknown_key(p, w, "parent, pci, port, speed, state");
}

static weft_status parse_nic(parser *p)
{
    int port = 1;
    int index;
    WEFT_TRY(need_host(p));
    WEFT_TRY(
        need_words(p, 2, WEFTI_TOPO_WORDS_MAX, "nic NAME parent=NAME [pci=PCI] [port=N] [speed=GBITS] [state=down]"));
    if (strlen(p->r.words[1].text) >= WEFTI_TOPO_NAME_BYTES || strpbrk(p->r.words[1].text, ":,^") != NULL) {
        return wefti_topo_wrong(&p->r, p->r.words[1].column, "a name has at most %d bytes and none of : , ^",
                                WEFTI_TOPO_NAME_BYTES - 1);
    }
    WEFT_TRY(refuse_twice(p));
    for (int i = 2; i < p->r.count; i++) {
        const char *value = wefti_topo_value(&p->r.words[i], "port");
        if (value != NULL) {
            WEFT_TRY(wefti_topo_number(&p->r, &p->r.words[i], value, 255, &port));
        }
        if (port == 0) {
            return wefti_topo_wrong(&p->r, p->r.words[i].column + 5, "ports are counted from 1 on");
        }
    }
    const int known = find_nic(p, p->r.words[1].text, port);
    WEFT_TRY(take_object(p, WEFTI_TOPO_NIC, known, p->r.words[1].text, &index));
    p->topo->objects[index].port = port;
    for (int i = 2; i < p->r.count; i++) {
        if (wefti_topo_value(&p->r.words[i], "parent") == NULL) {
            WEFT_TRY(parse_nic_key(p, &p->r.words[i], &p->topo->objects[index]));
        }
    }
    return WEFT_OK;
}

/* ---- gid ---- */

/* The port that NAME or NAME:PORT means. */
static weft_status parse_port(const parser *p, const wefti_topo_word *w, int *nic)
{
    char name[WEFTI_TOPO_WORD_BYTES];
    int port = 1;
    const char *colon = strchr(w->text, ':');
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(w->text, ":"), w->text);
    if (colon != NULL) {
        WEFT_TRY(wefti_topo_number(&p->r, w, colon + 1, 255, &port));
    }
    *nic = find_nic(p, name, port);
    return *nic >= 0 ? WEFT_OK
                     : wefti_topo_wrong(&p->r, w->column, "\"%s\" is no port of this host that is above", w->text);
}

static weft_status parse_gid_type(const parser *p, wefti_topo_gid *gid)
{
    const wefti_topo_word *w = &p->r.words[4];
    const char *value = wefti_topo_value(w, "type");
    if (value == NULL) {
        return unknown_key(p, w, "type");
    }
    for (int i = 0; i < WEFTI_TOPO_GID_TYPES; i++) {
        if (strcmp(value, wefti_topo_gid_type_name((wefti_topo_gid_type)i)) == 0) {
            gid->type = (uint8_t)i;
            return WEFT_OK;
        }
    }
    return wefti_topo_wrong(&p->r, w->column + 5, "\"%s\" is none of ib, roce-v1, roce-v2", value);
}

static weft_status parse_gid(parser *p)
{
    static const unsigned char zero[16];
    wefti_topo_gid gid = {.type = WEFTI_TOPO_GID_IB};
    const wefti_topo_word *w = p->r.words;
    WEFT_TRY(need_host(p));
    WEFT_TRY(need_words(p, 4, 5, "gid NIC[:PORT] INDEX ADDRESS [type=ib|roce-v1|roce-v2]"));
    if (p->number < p->last_number) {
        return wefti_topo_wrong(&p->r, w[0].column, "a GID is of one port, but there are several of these hosts");
    }
    WEFT_TRY(parse_port(p, &w[1], &gid.nic));
    WEFT_TRY(wefti_topo_number(&p->r, &w[2], w[2].text, 65535, &gid.index));
    if (inet_pton(AF_INET6, w[3].text, gid.address) != 1 || memcmp(gid.address, zero, sizeof zero) == 0) {
        return wefti_topo_wrong(&p->r, w[3].column, "\"%s\" is no GID, as fe80::1 or ::ffff:10.0.0.1", w[3].text);
    }
    for (int i = 0; i < p->topo->gid_count; i++) {
        if (p->topo->gids[i].nic == gid.nic && p->topo->gids[i].index == gid.index) {
            return wefti_topo_wrong(&p->r, w[2].column, "this port has a GID of the index %d already", gid.index);
        }
    }
    if (p->r.count == 5) {
        WEFT_TRY(parse_gid_type(p, &gid));
    }
    if (p->topo->gid_count == WEFTI_TOPO_OBJECTS_MAX) {
        return wefti_topo_wrong(&p->r, w[0].column, "more than %d GIDs of all hosts", WEFTI_TOPO_OBJECTS_MAX);
    }
    return wefti_topo_add_gid(p->topo, &gid);
}

/* ---- links ---- */

static weft_status parse_end(const parser *p, const wefti_topo_word *w, int *index)
{
    wefti_topo_pci pci;
    *index = wefti_topo_pci_parse(w->text, &pci) ? find_gpu(p, pci) : -1;
    return *index >= 0
               ? WEFT_OK
               : wefti_topo_wrong(&p->r, w->column, "\"%s\" is the PCI address of no GPU of this host", w->text);
}

static weft_status parse_ends(const parser *p, int *from, int *to)
{
    WEFT_TRY(parse_end(p, &p->r.words[1], from));
    WEFT_TRY(parse_end(p, &p->r.words[2], to));
    return *from != *to ? WEFT_OK : wefti_topo_wrong(&p->r, p->r.words[2].column, "the same GPU twice");
}

static weft_status link_all(const parser *p, int links)
{
    const int before = p->topo->link_count;
    for (int from = p->host; from < p->topo->count; from++) {
        for (int to = from + 1; to < p->topo->count && p->topo->objects[from].kind == WEFTI_TOPO_GPU; to++) {
            if (p->topo->objects[to].kind == WEFTI_TOPO_GPU) {
                WEFT_TRY(add_link(p, from, to, links));
                WEFT_TRY(add_link(p, to, from, links));
            }
        }
    }
    return p->topo->link_count > before
               ? WEFT_OK
               : wefti_topo_wrong(&p->r, p->r.words[1].column, "this host has no two GPUs so far");
}

static weft_status parse_nvlink(parser *p)
{
    int from;
    int to;
    int links = 0;
    const int is_all = p->r.count > 1 && strcmp(p->r.words[1].text, "all") == 0;
    WEFT_TRY(need_host(p));
    WEFT_TRY(need_words(p, is_all ? 3 : 4, is_all ? 3 : 4, "nvlink PCI PCI LINKS, or nvlink all LINKS"));
    const wefti_topo_word *last = &p->r.words[p->r.count - 1];
    WEFT_TRY(wefti_topo_number(&p->r, last, last->text, 1000, &links));
    if (links == 0) {
        return wefti_topo_wrong(&p->r, last->column, "no links: leave the line out, or say unreachable PCI PCI");
    }
    if (is_all) {
        return link_all(p, links);
    }
    WEFT_TRY(parse_ends(p, &from, &to));
    WEFT_TRY(add_link(p, from, to, links));
    return add_link(p, to, from, links);
}

static weft_status parse_unreachable(parser *p)
{
    int from;
    int to;
    WEFT_TRY(need_host(p));
    WEFT_TRY(need_words(p, 3, 3, "unreachable PCI PCI"));
    WEFT_TRY(parse_ends(p, &from, &to));
    return add_link(p, from, to, 0);
}

/* ---- hosts ---- */

static weft_status copy_host(parser *p, const wefti_topo *pattern, int first, int links)
{
    for (int i = 0; i < links; i++) {
        const wefti_topo_link *link = &pattern->links[p->links_before + i];
        WEFT_TRY(wefti_topo_add_link(p->topo, link->from - p->host + first, link->to - p->host + first, link->links));
    }
    return WEFT_OK;
}

/* The host's objects are all here: repeat them for the others of its kind. */
static weft_status end_host(parser *p)
{
    const int objects = p->topo->count - p->host;
    const int links = p->topo->link_count - p->links_before;
    const long more = p->host >= 0 ? p->last_number - p->number : 0;
    if (more > 0 && (p->topo->count + more * objects > WEFTI_TOPO_OBJECTS_MAX ||
                     p->topo->link_count + more * links > WEFTI_TOPO_OBJECTS_MAX)) {
        p->r.line = p->host_line;
        return wefti_topo_wrong(&p->r, p->host_column, "these hosts have more than %d objects, or links, in all",
                                WEFTI_TOPO_OBJECTS_MAX);
    }
    for (; p->host >= 0 && p->number < p->last_number; p->number++) {
        char name[WEFTI_TOPO_NAME_BYTES + 16];
        (void)snprintf(name, sizeof name, "%s%d", p->host_name, p->number + 1);
        const int first = p->topo->count;
        for (int i = 0; i < objects; i++) {
            const wefti_topo_object from = p->topo->objects[p->host + i];
            const int parent = from.parent < 0 ? -1 : from.parent - p->host + first;
            const int index = wefti_topo_add(p->topo, (wefti_topo_kind)from.kind, parent, i == 0 ? name : from.name);
            if (index < 0) {
                return WEFT_ERR_MEMORY;
            }
            wefti_topo_object *to = &p->topo->objects[index];
            const wefti_topo_object placed = *to;
            *to = from;
            to->parent = placed.parent;
            to->host = placed.host;
            memcpy(to->name, placed.name, sizeof to->name);
        }
        WEFT_TRY(copy_host(p, p->topo, first, links));
    }
    return WEFT_OK;
}

/* Whether `name` is the host that is being read, or one of its range. */
static int is_this_host(const parser *p, int is_range, const char *name)
{
    char *end;
    const size_t length = strlen(p->host_name);
    if (!is_range || strncmp(name, p->host_name, length) != 0) {
        return !is_range && strcmp(name, p->host_name) == 0;
    }
    const char *digits = name + length;
    const long number = digits[0] >= '0' && digits[0] <= '9' ? strtol(digits, &end, 10) : -1;
    const int is_plain = number >= 0 && *end == '\0' && (digits[0] != '0' || digits[1] == '\0');
    return is_plain && number >= p->number && number <= p->last_number;
}

static weft_status refuse_known_hosts(const parser *p, int is_range)
{
    for (int i = 0; i < p->topo->count; i++) {
        const wefti_topo_object *object = &p->topo->objects[i];
        if (object->kind == WEFTI_TOPO_HOST && is_this_host(p, is_range, object->name)) {
            return wefti_topo_wrong(&p->r, p->r.words[1].column, "there is a host \"%s\" already", object->name);
        }
    }
    return WEFT_OK;
}

/* NAME or NAME[LOW-HIGH]. */
static weft_status parse_host(parser *p)
{
    WEFT_TRY(end_host(p));
    WEFT_TRY(need_words(p, 2, 2, "host NAME, or host NAME[0-17]"));
    wefti_topo_word *w = &p->r.words[1];
    char *range = strchr(w->text, '[');
    p->number = p->last_number = 0;
    if (range != NULL) {
        char *minus = strchr(range, '-');
        char *close = strchr(range, ']');
        if (minus == NULL || close == NULL || close < minus || close[1] != '\0') {
            return wefti_topo_wrong(&p->r, w->column + (int)(range - w->text),
                                    "expected: [LOW-HIGH] at the end of the name");
        }
        *range = *minus = *close = '\0';
        WEFT_TRY(wefti_topo_number(&p->r, w, range + 1, HOSTS_MAX, &p->number));
        WEFT_TRY(wefti_topo_number(&p->r, w, minus + 1, HOSTS_MAX, &p->last_number));
        if (p->last_number < p->number) {
            return wefti_topo_wrong(&p->r, w->column + (int)(range - w->text), "the range begins at %d and ends at %d",
                                    p->number, p->last_number);
        }
    }
    if (w->text[0] == '\0' || strlen(w->text) + 8 >= WEFTI_TOPO_NAME_BYTES) {
        return wefti_topo_wrong(&p->r, w->column, "a host's name has 1 to %d bytes", WEFTI_TOPO_NAME_BYTES - 9);
    }
    (void)snprintf(p->host_name, sizeof p->host_name, "%.*s", WEFTI_TOPO_NAME_BYTES - 9, w->text);
    char name[WEFTI_TOPO_NAME_BYTES + 16];
    (void)snprintf(name, sizeof name, range != NULL ? "%s%d" : "%s", p->host_name, p->number);
    WEFT_TRY(refuse_known_hosts(p, range != NULL));
    p->links_before = p->topo->link_count;
    p->host_line = p->r.line;
    p->host_column = w->column;
    return add_object(p, WEFTI_TOPO_HOST, -1, name, &p->host);
}

/* ---- files ---- */

static weft_status read_file(const char *file, char **text, size_t *bytes)
{
    FILE *from = fopen(file, "re");
    char *all = wefti_alloc(WEFTI_TOPO_XML_MAX + 1);
    if (from == NULL || all == NULL) {
        const weft_status status =
            from == NULL ? wefti_error(WEFT_ERR_ARGUMENT, "topology: the file \"%s\" cannot be opened", file)
                         : wefti_error(WEFT_ERR_MEMORY, "topology: no memory to read \"%s\"", file);
        wefti_free(all);
        if (from != NULL) {
            (void)fclose(from);
        }
        return status;
    }
    *bytes = fread(all, 1, WEFTI_TOPO_XML_MAX + 1, from);
    const int failed = ferror(from);
    (void)fclose(from);
    if (failed) {
        wefti_free(all);
        return wefti_error(WEFT_ERR_ARGUMENT, "topology: the file \"%s\" cannot be read", file);
    }
    *text = all;
    return WEFT_OK;
}

/* ---- an XML of hwloc, in the folder of the description ---- */

static weft_status parse_hwloc(parser *p)
{
    char file[4096];
    char *text = NULL;
    size_t bytes = 0;
    WEFT_TRY(need_host(p));
    WEFT_TRY(need_words(p, 2, 2, "hwloc FILE"));
    if (p->r.name == NULL) {
        return wefti_topo_wrong(&p->r, p->r.words[1].column, "other files cannot be named here");
    }
    if (p->topo->count != p->host + 1) {
        return wefti_topo_wrong(&p->r, p->r.words[0].column, "hwloc comes first of a host");
    }
    const char *slash = strrchr(p->r.name, '/');
    const int folder = p->r.words[1].text[0] != '/' && slash != NULL ? (int)(slash - p->r.name) + 1 : 0;
    (void)snprintf(file, sizeof file, "%.*s%s", folder, p->r.name, p->r.words[1].text);
    WEFT_TRY(read_file(file, &text, &bytes));
    const weft_status status = wefti_topo_add_hwloc_xml(p->topo, p->host, file, text, bytes);
    wefti_free(text);
    return status;
}

/* ---- lines ---- */

static weft_status parse_line(parser *p)
{
    static const struct {
        const char *name;
        wefti_topo_kind kind;
    } inner[] = {{"package", WEFTI_TOPO_PACKAGE},
                 {"numa", WEFTI_TOPO_NUMA},
                 {"root", WEFTI_TOPO_ROOT},
                 {"switch", WEFTI_TOPO_SWITCH}};
    static const struct {
        const char *name;
        weft_status (*parse)(parser *p);
    } others[] = {{"host", parse_host},
                  {"gpu", parse_gpu},
                  {"nic", parse_nic},
                  {"gid", parse_gid},
                  {"nvlink", parse_nvlink},
                  {"hwloc", parse_hwloc},
                  {"unreachable", parse_unreachable}};
    const char *first = p->r.words[0].text;
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
        if (strcmp(first, inner[i].name) == 0) {
            return parse_inner(p, inner[i].kind);
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(first, others[i].name) == 0) {
            return others[i].parse(p);
        }
    }
    if (strcmp(first, "machine") == 0) {
        wefti_topo_rest(&p->r, p->topo->name, sizeof p->topo->name);
        return WEFT_OK;
    }
    if (strcmp(first, "source") == 0) {
        wefti_topo_rest(&p->r, p->topo->source, sizeof p->topo->source);
        return WEFT_OK;
    }
    return wefti_topo_wrong(
        &p->r, p->r.words[0].column,
        "\"%s\" is none of machine, source, host, package, numa, root, switch, gpu, nic, gid, nvlink, "
        "unreachable, hwloc",
        first);
}

static weft_status check_version(const parser *p)
{
    const int is = p->r.count == 2 && strcmp(p->r.words[0].text, "weft-topology") == 0;
    if (!is || strcmp(p->r.words[1].text, "1") != 0) {
        return wefti_topo_wrong(&p->r, is ? p->r.words[1].column : 1, "expected as the first line: weft-topology 1");
    }
    return WEFT_OK;
}

static weft_status parse(parser *p)
{
    int has_version = 0;
    for (const char *at = p->r.line_start; at < p->r.end; at = p->r.line_end + 1) {
        const char *newline = memchr(at, '\n', (size_t)(p->r.end - at));
        p->r.line_start = at;
        p->r.line_end = newline != NULL ? newline : p->r.end;
        p->r.line++;
        const weft_status status = wefti_topo_split(&p->r);
        if (status != WEFT_OK) {
            return status;
        }
        if (p->r.count > 0) {
            WEFT_TRY(has_version ? parse_line(p) : check_version(p));
            has_version = 1;
        }
    }
    if (!has_version || p->host < 0) {
        return wefti_topo_wrong(&p->r, 1, "expected as the first line: weft-topology 1, and a host");
    }
    return end_host(p);
}

weft_status wefti_topo_parse(wefti_topo *topo, const char *name, const char *text, size_t bytes)
{
    wefti_topo_init(topo);
    parser *p = wefti_alloc_zeroed(1, sizeof *p);
    if (p == NULL || bytes > WEFTI_TOPO_TEXT_MAX) {
        wefti_free(p);
        return bytes > WEFTI_TOPO_TEXT_MAX ? wefti_error(WEFT_ERR_ARGUMENT, "%s: a topology of %zu bytes; at most %u",
                                                         name, bytes, WEFTI_TOPO_TEXT_MAX)
                                           : wefti_error(WEFT_ERR_MEMORY, "%s: no memory to read a topology", name);
    }
    p->topo = topo;
    p->r.name = name;
    p->r.line_start = text;
    p->r.end = text + bytes;
    p->host = -1;
    const weft_status status = parse(p);
    wefti_free(p);
    if (status != WEFT_OK) {
        wefti_topo_fini(topo);
    }
    return status;
}

static weft_status parse_xml(wefti_topo *topo, const char *file, const char *text, size_t bytes)
{
    wefti_topo_init(topo);
    const char *slash = strrchr(file, '/');
    const int host = wefti_topo_add(topo, WEFTI_TOPO_HOST, -1, "host");
    (void)snprintf(topo->name, sizeof topo->name, "%s", slash != NULL ? slash + 1 : file);
    (void)snprintf(topo->source, sizeof topo->source, "hwloc, %s", file);
    const weft_status status = host < 0 ? WEFT_ERR_MEMORY : wefti_topo_add_hwloc_xml(topo, host, file, text, bytes);
    if (status != WEFT_OK) {
        wefti_topo_fini(topo);
    }
    return status;
}

weft_status wefti_topo_read(wefti_topo *topo, const char *file)
{
    char *text = NULL;
    size_t bytes = 0;
    wefti_topo_init(topo);
    WEFT_TRY(read_file(file, &text, &bytes));
    const int is_xml = bytes > 0 && text[0] == '<';
    const weft_status status = is_xml ? parse_xml(topo, file, text, bytes) : wefti_topo_parse(topo, file, text, bytes);
    wefti_free(text);
    return status;
}

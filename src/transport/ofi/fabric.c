#include "transport/ofi/fabric.h"

#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/library.h"
#include "os/os.h"
#include "os/socket.h"
#include "transport/ofi/ring.h"

#define LIBRARY "libfabric.so.1"
/* Of the interface that its headers describe. */
#define VERSION FI_VERSION(1, 14)
#define COMPLETIONS 1024
#define LINKS_BYTES 160
#define PROVIDERS_BYTES 160

/* Everything else is called through what these open. */
typedef struct library {
    int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                   struct fi_info **info);
    void (*freeinfo)(struct fi_info *info);
    struct fi_info *(*dupinfo)(const struct fi_info *info);
    int (*fabric)(struct fi_fabric_attr *attributes, struct fid_fabric **fabric, void *context);
    const char *(*strerror)(int error);
} library;

/* Loaded once and never unloaded: providers leave threads and handlers behind. */
static library lib;

/* ISO C has no conversion from an object pointer to a function pointer. The version is the one whose structures the
 * headers declare: a newer library has it, too. */
static void load_library(void)
{
    library found;
    void *handle = wefti_library_open(LIBRARY);
    if (handle != NULL && wefti_library_find_version(handle, "fi_getinfo", "FABRIC_1.3", &found.getinfo) &&
        wefti_library_find_version(handle, "fi_freeinfo", "FABRIC_1.3", &found.freeinfo) &&
        wefti_library_find_version(handle, "fi_dupinfo", "FABRIC_1.3", &found.dupinfo) &&
        wefti_library_find_version(handle, "fi_fabric", "FABRIC_1.1", &found.fabric) &&
        wefti_library_find_version(handle, "fi_strerror", "FABRIC_1.0", &found.strerror)) {
        lib = found;
    } else {
        wefti_library_close(handle);
    }
}

static weft_status load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load_library);
    return lib.getinfo != NULL ? WEFT_OK
                               : wefti_error(WEFT_ERR_UNREACHABLE, LIBRARY
                                             ", which carries data between nodes, cannot be loaded; install the "
                                             "package libfabric1");
}

/* The library's words for an error number. */
static const char *words_of(int error)
{
    return lib.strerror(error < 0 ? -error : error);
}

/* ---- which interface ---- */

static struct fi_info *make_hints(uint64_t caps, uint64_t order)
{
    struct fi_info *hints = lib.dupinfo(NULL);
    if (hints != NULL) {
        hints->caps = FI_MSG | FI_REMOTE_COMM | caps;
        hints->mode = FI_CONTEXT | FI_CONTEXT2;
        hints->ep_attr->type = FI_EP_RDM;
        hints->tx_attr->msg_order = FI_ORDER_SAS | order;
        hints->rx_attr->msg_order = FI_ORDER_SAS | order;
        hints->domain_attr->mr_mode =
            FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ENDPOINT | FI_MR_RAW;
        hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    }
    return hints;
}

static weft_status choose(wefti_fabric *fabric, const struct fi_info *offered, const wefti_topo_pe *pe)
{
    wefti_ofi_interfaces chosen;
    WEFT_TRY(wefti_ofi_interfaces_choose(offered, pe, &chosen));
    fabric->own = chosen.own;
    fabric->wish = chosen.wish;
    memcpy(fabric->reason, chosen.reason, sizeof fabric->reason);
    while (fabric->count < chosen.count) {
        wefti_fabric_rail *rail = &fabric->rails[fabric->count];
        rail->info = lib.dupinfo(chosen.infos[fabric->count]);
        rail->port = chosen.ports[fabric->count];
        rail->slot = chosen.slots[fabric->count++];
        if (rail->info == NULL) {
            return wefti_error(WEFT_ERR_MEMORY, "no memory for libfabric's interface");
        }
    }
    return WEFT_OK;
}

/* Those that the library has, whatever FI_PROVIDER leaves of them; "ofi_rxm" and such are added to others. */
static void list_providers(char *text, size_t bytes)
{
    struct fi_info *all = NULL;
    size_t used = 0;
    text[0] = '\0';
    if (lib.getinfo(VERSION, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &all) != 0) {
        return;
    }
    for (const struct fi_info *one = all; one != NULL && used < bytes; one = one->next) {
        const char *name = one->fabric_attr->prov_name;
        const int is_added = strncmp(name, "ofi_", 4) == 0 || strncmp(name, "off_", 4) == 0;
        const int wrote = is_added ? 0 : snprintf(text + used, bytes - used, "%s%s", used > 0 ? ", " : "", name);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    lib.freeinfo(all);
}

static weft_status none_offered(int error)
{
    char providers[PROVIDERS_BYTES];
    char links[LINKS_BYTES];
    list_providers(providers, sizeof providers);
    wefti_os_link_list(links, sizeof links);
    return wefti_error(WEFT_ERR_UNREACHABLE,
                       "libfabric offers no provider of reliable datagrams: %s (the variable FI_PROVIDER is %s; it has "
                       "%s; this host has %s)",
                       words_of(error), wefti_env_foreign("FI_PROVIDER"), providers, links);
}

/* libfabric 1 takes another interface where FI_TCP_IFACE names none, without a word. */
static weft_status check_interface(const struct fi_info *chosen)
{
    const char *name = getenv("FI_TCP_IFACE");
    const char *provider = chosen->fabric_attr->prov_name;
    char links[LINKS_BYTES];
    if (name == NULL || strncmp(provider, "tcp", 3) != 0 || if_nametoindex(name) != 0) {
        return WEFT_OK;
    }
    wefti_os_link_list(links, sizeof links);
    return wefti_error(
        WEFT_ERR_UNREACHABLE,
        "FI_TCP_IFACE is %s, by which libfabric's provider %s would be given an interface, and this host "
        "has %s (FI_PROVIDER is %s)",
        wefti_env_foreign("FI_TCP_IFACE"), provider, links, wefti_env_foreign("FI_PROVIDER"));
}

static weft_status find_provider(wefti_fabric *fabric, const wefti_topo_pe *pe)
{
    struct fi_info *offered = NULL;
    struct fi_info *hints = make_hints(0, 0);
    int error = hints == NULL ? -FI_ENOMEM : lib.getinfo(VERSION, NULL, NULL, 0, hints, &offered);
    if (hints != NULL) {
        lib.freeinfo(hints);
    }
    if (error != 0 || offered == NULL) {
        return none_offered(error);
    }
    weft_status status = choose(fabric, offered, pe);
    lib.freeinfo(offered);
    return status == WEFT_OK ? check_interface(fabric->rails[0].info) : status;
}

/* ---- whether it reads and writes by itself ---- */

/* A message or a read comes behind writes, and a write behind a write. */
#define ORDER (FI_ORDER_SAW | FI_ORDER_WAW | FI_ORDER_RAW)

/* The same interface of the same provider, with `caps` and `order` as well, and `inject` bytes that it takes without
 * a completion; NULL if it does not have them. */
static struct fi_info *find_with(const struct fi_info *chosen, uint64_t caps, uint64_t order, size_t inject)
{
    struct fi_info *offered = NULL;
    struct fi_info *hints = make_hints(caps, order);
    if (hints == NULL) {
        return NULL;
    }
    hints->addr_format = chosen->addr_format;
    hints->tx_attr->inject_size = inject;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL; /* no thread of the provider's beside the one of weft */
    hints->fabric_attr->prov_name = strdup(chosen->fabric_attr->prov_name);
    hints->domain_attr->name = strdup(chosen->domain_attr->name);
    if (lib.getinfo(VERSION, NULL, NULL, 0, hints, &offered) != 0) {
        offered = NULL;
    }
    lib.freeinfo(hints);
    struct fi_info *found = NULL;
    for (const struct fi_info *i = offered; i != NULL && found == NULL; i = i->next) {
        const int is_same = i->src_addrlen == chosen->src_addrlen &&
                            strcmp(i->fabric_attr->prov_name, chosen->fabric_attr->prov_name) == 0 &&
                            strcmp(i->domain_attr->name, chosen->domain_attr->name) == 0 &&
                            (i->src_addrlen == 0 || memcmp(i->src_addr, chosen->src_addr, i->src_addrlen) == 0);
        found = is_same ? lib.dupinfo(i) : NULL;
    }
    lib.freeinfo(offered);
    return found;
}

/* The same, that takes as much as short messages need, or whatever it takes. */
static struct fi_info *find_again(const struct fi_info *chosen, uint64_t caps, uint64_t order)
{
    static const size_t injects[] = {WEFTI_FABRIC_INJECT, sizeof(wefti_ring_slot), 0};
    struct fi_info *found = NULL;
    for (size_t i = 0; i < sizeof injects / sizeof *injects && found == NULL; i++) {
        found = find_with(chosen, caps, order, injects[i]);
    }
    return found;
}

static int has_long_keys(const struct fi_info *info)
{
    return (info->domain_attr->mr_mode & FI_MR_RAW) != 0;
}

/* The same with RMA of that kind. */
static struct fi_info *find_rma(const struct fi_info *chosen, wefti_fabric_rma wanted)
{
    struct fi_info *found = find_again(chosen, FI_RMA, wanted == WEFTI_FABRIC_RMA_ORDERED ? ORDER : 0);
    if (found != NULL && ((wanted == WEFTI_FABRIC_RMA_COUNTED && found->domain_attr->cq_data_size < sizeof(uint32_t)) ||
                          (has_long_keys(found) && found->domain_attr->mr_key_size > WEFTI_WIRE_LONG_KEY_MAX))) {
        lib.freeinfo(found);
        found = NULL;
    }
    return found;
}

/* Ask for RMA once the interfaces have been chosen: it is no reason to take others. All rails have it, or none. */
static void ask_for_rma(wefti_fabric *fabric, wefti_fabric_rma wanted)
{
    struct fi_info *found[WEFTI_TOPO_RAILS_MAX];
    int count = 0;
    while (count < fabric->count && (found[count] = find_rma(fabric->rails[count].info, wanted)) != NULL) {
        count++;
    }
    const int has_all = count == fabric->count;
    for (int i = 0; i < count; i++) {
        struct fi_info **kept = &fabric->rails[i].info;
        struct fi_info *dropped = has_all ? *kept : found[i];
        *kept = has_all ? found[i] : *kept;
        lib.freeinfo(dropped);
    }
    fabric->rma = has_all ? wanted : fabric->rma;
}

/* What is wished, or the least: what is complete needs no order. Without it there is no use for rails that carry
 * nothing else. */
static void find_rma_of_all(wefti_fabric *fabric, wefti_fabric_rma wish)
{
    if (wish != WEFTI_FABRIC_NO_RMA && (wish != WEFTI_FABRIC_RMA_ORDERED || fabric->count == 1)) {
        ask_for_rma(fabric, wish);
    }
    if (wish != WEFTI_FABRIC_NO_RMA && fabric->rma == WEFTI_FABRIC_NO_RMA) {
        ask_for_rma(fabric, WEFTI_FABRIC_RMA_COMPLETES);
    }
    while (fabric->rma == WEFTI_FABRIC_NO_RMA && fabric->wish != WEFTI_TOPO_RAILS_SAME_SLOT && fabric->count > 1) {
        lib.freeinfo(fabric->rails[--fabric->count].info);
        fabric->own = fabric->count;
    }
}

/* ---- memory that others read and write ---- */

/* A key of the provider's where it chooses; else one that nobody guesses, as far as its keys are long. */
static uint64_t wanted_key(const struct fi_domain_attr *domain)
{
    uint64_t key = 0;
    if ((domain->mr_mode & FI_MR_PROV_KEY) != 0 || wefti_os_random(&key, sizeof key) != WEFT_OK) {
        return 0;
    }
    return domain->mr_key_size < sizeof key ? key & ((UINT64_C(1) << 8 * domain->mr_key_size) - 1) : key;
}

static int is_by_endpoint(const wefti_fabric_rail *rail)
{
    return (rail->info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0;
}

static void close_one(void *object)
{
    if (object != NULL) {
        (void)fi_close(object);
    }
}

/* For an endpoint, which is enabled, where the provider asks which. Returns the library's error. */
static int register_memory(wefti_fabric_rail *rail, int which, void *memory, size_t bytes, uint64_t access,
                           struct fid_mr **registration)
{
    int error =
        fi_mr_reg(rail->domain, memory, bytes, access, 0, wanted_key(rail->info->domain_attr), 0, registration, NULL);
    if (error != 0 || !is_by_endpoint(rail)) {
        return error;
    }
    error = fi_mr_bind(*registration, &rail->endpoints[which]->fid, 0);
    error = error == 0 ? fi_mr_enable(*registration) : error;
    if (error != 0) {
        (void)fi_close(&(*registration)->fid);
        *registration = NULL;
    }
    return error;
}

/* What others need for a registration; whether there is room for it. */
static int tell(const wefti_fabric_rail *rail, struct fid_mr *registration, void *memory, wefti_wire_told *told)
{
    const int is_by_address = (rail->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    size_t bytes = sizeof told->long_key;
    told->at.base = is_by_address ? (uint64_t)(uintptr_t)memory : 0;
    if (!has_long_keys(rail->info)) {
        told->at.key = fi_mr_key(registration);
        return 1;
    }
    const int error = fi_mr_raw_attr(registration, &told->long_base, told->long_key, &bytes, 0);
    told->long_bytes = bytes;
    return error == 0 && bytes > 0;
}

int wefti_fabric_share(wefti_fabric *fabric, void *memory, size_t bytes, wefti_fabric_range *range)
{
    const uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE;
    memset(range, 0, sizeof *range);
    for (int i = 0; i < fabric->count; i++) {
        wefti_fabric_rail *rail = &fabric->rails[i];
        struct fid_mr **made = &range->registrations[i];
        const int error = register_memory(rail, WEFTI_FABRIC_REQUESTS, memory, bytes, access, made);
        if (error != 0) {
            *made = NULL;
        }
        if (error != 0 || (i < fabric->own && !tell(rail, *made, memory, &range->told[i]))) {
            wefti_fabric_unshare(range);
            return 0;
        }
    }
    return 1;
}

void wefti_fabric_unshare(wefti_fabric_range *range)
{
    for (int i = 0; i < WEFTI_TOPO_RAILS_MAX; i++) {
        close_one(range->registrations[i]);
    }
}

/* ---- rings ---- */

/* A device may write in any order, and wakes nobody by a write. This one's writes are made by the processor, as bytes
 * come from a connection, and its descriptor is that connection's. */
static int writes_by_processor(const struct fi_info *info)
{
    return strncmp(info->fabric_attr->prov_name, "tcp", 3) == 0 &&
           info->domain_attr->data_progress == FI_PROGRESS_MANUAL;
}

int wefti_fabric_takes_rings(const wefti_fabric *fabric)
{
    const struct fi_info *info = fabric->rails[0].info;
    return fabric->rma == WEFTI_FABRIC_RMA_ORDERED && fabric->count == 1 && !has_long_keys(info) &&
           writes_by_processor(info) && info->ep_attr->max_order_waw_size == SIZE_MAX &&
           info->tx_attr->inject_size >= sizeof(wefti_ring_slot);
}

int wefti_fabric_has_common_keys(const wefti_fabric *fabric)
{
    return !is_by_endpoint(&fabric->rails[0]);
}

int wefti_fabric_share_rings(wefti_fabric *fabric, int which, void *memory, size_t bytes, wefti_wire_key *told)
{
    wefti_fabric_rail *rail = &fabric->rails[0];
    wefti_wire_told all;
    if (register_memory(rail, which, memory, bytes, FI_REMOTE_WRITE, &rail->rings[which]) != 0) {
        rail->rings[which] = NULL;
        return 0;
    }
    const int is_told = tell(rail, rail->rings[which], memory, &all);
    *told = all.at;
    return is_told;
}

/* ---- others' memory ---- */

int wefti_fabric_map(wefti_fabric_rail *rail, const wefti_wire_told *told, uint64_t *key)
{
    wefti_wire_told mine = *told;
    uint64_t *mapped = wefti_realloc(rail->mapped, (rail->mapped_count + 1) * sizeof *mapped);
    if (mapped == NULL) {
        return 0;
    }
    rail->mapped = mapped;
    if (told->long_bytes > sizeof mine.long_key ||
        fi_mr_map_raw(rail->domain, mine.long_base, mine.long_key, mine.long_bytes, key, 0) != 0) {
        return 0;
    }
    rail->mapped[rail->mapped_count++] = *key;
    return 1;
}

static void unmap_all(wefti_fabric_rail *rail)
{
    for (size_t i = 0; i < rail->mapped_count; i++) {
        (void)fi_mr_unmap_key(rail->domain, rail->mapped[i]);
    }
    wefti_free(rail->mapped);
}

/* ---- opening ---- */

static weft_status failed(const wefti_fabric_rail *rail, const char *what, int error)
{
    char links[LINKS_BYTES];
    wefti_os_link_list(links, sizeof links);
    return wefti_error(WEFT_ERR_UNREACHABLE,
                       "libfabric's provider %s, on %s, cannot open %s: %s (FI_PROVIDER is %s, FI_TCP_IFACE %s; this "
                       "host has %s)",
                       rail->info->fabric_attr->prov_name, rail->info->domain_attr->name, what, words_of(error),
                       wefti_env_foreign("FI_PROVIDER"), wefti_env_foreign("FI_TCP_IFACE"), links);
}

static weft_status open_domain(wefti_fabric_rail *rail)
{
    struct fi_av_attr addresses = {.type = rail->info->domain_attr->av_type};
    int error = lib.fabric(rail->info->fabric_attr, &rail->fabric, NULL);
    if (error != 0) {
        return failed(rail, "the network", error);
    }
    error = fi_domain(rail->fabric, rail->info, &rail->domain, NULL);
    if (error != 0) {
        return failed(rail, "the interface", error);
    }
    error = fi_av_open(rail->domain, &addresses, &rail->addresses, NULL);
    return error == 0 ? WEFT_OK : failed(rail, "a list of addresses", error);
}

static weft_status register_buffers(wefti_fabric_rail *rail, int which, int is_moved, void *memory, size_t bytes)
{
    if ((rail->info->domain_attr->mr_mode & FI_MR_LOCAL) == 0) {
        return WEFT_OK;
    }
    if (which > 0 && !is_by_endpoint(rail)) {
        rail->descriptors[which] = rail->descriptors[0];
        return WEFT_OK;
    }
    const uint64_t access = FI_SEND | FI_RECV | (is_moved ? FI_READ | FI_WRITE : 0);
    int error = register_memory(rail, which, memory, bytes, access, &rail->buffers[which]);
    if (error != 0) {
        return failed(rail, "memory for messages", error);
    }
    rail->descriptors[which] = fi_mr_desc(rail->buffers[which]);
    return WEFT_OK;
}

static weft_status open_completions(wefti_fabric_rail *rail, int which, int can_wake)
{
    struct fi_cq_attr completions = {
        .size = COMPLETIONS, .format = FI_CQ_FORMAT_DATA, .wait_obj = can_wake ? FI_WAIT_FD : FI_WAIT_NONE};
    int error = fi_cq_open(rail->domain, &completions, &rail->completions[which], NULL);
    if (error == 0 && can_wake) {
        error = fi_control(&rail->completions[which]->fid, FI_GETWAIT, &rail->wake[which]);
    }
    return error == 0 ? WEFT_OK : failed(rail, "a queue of completions", error);
}

static weft_status open_endpoint(wefti_fabric_rail *rail, int which, wefti_fabric_name *name)
{
    size_t bytes = sizeof name->name;
    struct fid_ep **endpoint = &rail->endpoints[which];
    int error = fi_endpoint(rail->domain, rail->info, endpoint, NULL);
    if (error == 0) {
        error = fi_ep_bind(*endpoint, &rail->addresses->fid, 0);
    }
    if (error == 0) {
        error = fi_ep_bind(*endpoint, &rail->completions[which]->fid, FI_SEND | FI_RECV);
    }
    if (error == 0) {
        error = fi_enable(*endpoint);
    }
    if (error == 0) {
        error = fi_getname(&(*endpoint)->fid, name->name, &bytes);
    }
    name->bytes = (uint32_t)bytes;
    name->slot = (uint32_t)rail->slot;
    return error == 0 ? WEFT_OK : failed(rail, "an endpoint", error);
}

static weft_status open_rail(wefti_fabric *fabric, int number, const wefti_fabric_wish *wish, void *memory,
                             size_t bytes, wefti_fabric_address *address)
{
    wefti_fabric_rail *rail = &fabric->rails[number];
    const int is_for_messages = number == 0 || fabric->wish == WEFTI_TOPO_RAILS_SAME_SLOT;
    rail->endpoint_count = is_for_messages ? WEFTI_FABRIC_ENDPOINTS : 1;
    WEFT_TRY(open_domain(rail));
    for (int which = 0; which < rail->endpoint_count; which++) {
        wefti_fabric_name name;
        memset(&name, 0, sizeof name);
        WEFT_TRY(open_completions(rail, which, wish->can_wake));
        WEFT_TRY(open_endpoint(rail, which, &name));
        WEFT_TRY(register_buffers(rail, which, fabric->rma != WEFTI_FABRIC_NO_RMA, memory, bytes));
        if (which == WEFTI_FABRIC_REQUESTS && number < fabric->own) {
            address->requests[number] = name;
        } else if (number == 0) {
            address->replies = name;
        }
    }
    return WEFT_OK;
}

static weft_status open_all(wefti_fabric *fabric, const wefti_fabric_wish *wish, void *memory, size_t bytes,
                            wefti_fabric_address *address)
{
    WEFT_TRY(load());
    WEFT_TRY(find_provider(fabric, &wish->pe));
    find_rma_of_all(fabric, wish->rma);
    strncpy(address->provider, fabric->rails[0].info->fabric_attr->prov_name, sizeof address->provider - 1);
    for (int i = 0; i < fabric->count; i++) {
        WEFT_TRY(open_rail(fabric, i, wish, memory, bytes, address));
    }
    return WEFT_OK;
}

weft_status wefti_fabric_open(wefti_fabric *fabric, const wefti_fabric_wish *wish, void *memory, size_t bytes,
                              wefti_fabric_address *address)
{
    memset(fabric, 0, sizeof *fabric);
    memset(address, 0, sizeof *address);
    for (int i = 0; i < WEFTI_TOPO_RAILS_MAX; i++) {
        for (int which = 0; which < WEFTI_FABRIC_ENDPOINTS; which++) {
            fabric->rails[i].wake[which] = -1;
        }
    }
    weft_status status = open_all(fabric, wish, memory, bytes, address);
    if (status != WEFT_OK) {
        wefti_fabric_close(fabric);
        memset(address, 0, sizeof *address);
    }
    return status;
}

void wefti_fabric_close_endpoints(wefti_fabric *fabric)
{
    for (int i = 0; i < fabric->count; i++) {
        for (int which = 0; which < WEFTI_FABRIC_ENDPOINTS; which++) {
            close_one(fabric->rails[i].endpoints[which]);
            fabric->rails[i].endpoints[which] = NULL;
        }
    }
}

static void close_rail(wefti_fabric_rail *rail)
{
    unmap_all(rail);
    for (int which = 0; which < WEFTI_FABRIC_ENDPOINTS; which++) {
        close_one(rail->rings[which]);
        close_one(rail->buffers[which]);
        close_one(rail->completions[which]);
    }
    close_one(rail->addresses);
    close_one(rail->domain);
    close_one(rail->fabric);
    if (rail->info != NULL) {
        lib.freeinfo(rail->info);
    }
}

void wefti_fabric_close(wefti_fabric *fabric)
{
    wefti_fabric_close_endpoints(fabric);
    for (int i = 0; i < fabric->count; i++) {
        close_rail(&fabric->rails[i]);
    }
    memset(fabric, 0, sizeof *fabric);
}

weft_status wefti_fabric_insert(wefti_fabric_rail *rail, const wefti_fabric_name *name, fi_addr_t *at)
{
    return fi_av_insert(rail->addresses, name->name, 1, at, 0, NULL) == 1
               ? WEFT_OK
               : wefti_error(WEFT_ERR_UNREACHABLE,
                             "libfabric's provider %s, on %s, does not take the address of another PE",
                             rail->info->fabric_attr->prov_name, rail->info->domain_attr->name);
}

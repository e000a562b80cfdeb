#include "transport/ofi/fabric.h"

#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/library.h"
#include "os/os.h"

#define LIBRARY "libfabric.so.1"
/* Of the interface that its headers describe. */
#define VERSION FI_VERSION(1, 14)
#define COMPLETIONS 1024

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

const char *wefti_fabric_error(int error)
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
        hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
        hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    }
    return hints;
}

static weft_status choose(wefti_fabric *fabric, const struct fi_info *offered, const wefti_topo_pe *pe)
{
    wefti_ofi_interface chosen;
    WEFT_TRY(wefti_ofi_interface_choose(offered, pe, &chosen));
    fabric->info = lib.dupinfo(chosen.info);
    memcpy(fabric->reason, chosen.reason, sizeof fabric->reason);
    return fabric->info != NULL ? WEFT_OK : wefti_error(WEFT_ERR_MEMORY, "no memory for libfabric's interface");
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
        return wefti_error(WEFT_ERR_UNREACHABLE,
                           "libfabric has no provider of reliable datagrams here: %s; look at fi_info "
                           "and at the variable FI_PROVIDER",
                           wefti_fabric_error(error));
    }
    weft_status status = choose(fabric, offered, pe);
    lib.freeinfo(offered);
    return status;
}

/* ---- whether it reads and writes by itself ---- */

/* A message or a read comes behind writes, and a write behind a write. */
#define ORDER (FI_ORDER_SAW | FI_ORDER_WAW | FI_ORDER_RAW)

/* The same interface of the same provider, with `caps` and `order` as well; NULL if it does not have them. */
static struct fi_info *find_again(const struct fi_info *chosen, uint64_t caps, uint64_t order)
{
    struct fi_info *offered = NULL;
    struct fi_info *hints = make_hints(caps, order);
    if (hints == NULL) {
        return NULL;
    }
    hints->addr_format = chosen->addr_format;
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

/* Ask for RMA once the interface has been chosen: it is no reason to take another. */
static void ask_for_rma(wefti_fabric *fabric, wefti_fabric_rma wanted)
{
    const uint64_t order = wanted == WEFTI_FABRIC_RMA_ORDERED ? ORDER : 0;
    struct fi_info *found = wanted == WEFTI_FABRIC_NO_RMA ? NULL : find_again(fabric->info, FI_RMA, order);
    if (found != NULL && wanted == WEFTI_FABRIC_RMA_COUNTED && found->domain_attr->cq_data_size < sizeof(uint32_t)) {
        lib.freeinfo(found);
        found = NULL;
    }
    if (found != NULL) {
        lib.freeinfo(fabric->info);
        fabric->info = found;
        fabric->rma = wanted;
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

static int is_by_endpoint(const wefti_fabric *fabric)
{
    return (fabric->info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0;
}

/* For an endpoint, which is enabled, where the provider asks which. Returns the library's error. */
static int register_memory(wefti_fabric *fabric, int which, void *memory, size_t bytes, uint64_t access,
                           struct fid_mr **registration)
{
    int error = fi_mr_reg(fabric->domain, memory, bytes, access, 0, wanted_key(fabric->info->domain_attr), 0,
                          registration, NULL);
    if (error != 0 || !is_by_endpoint(fabric)) {
        return error;
    }
    error = fi_mr_bind(*registration, &fabric->endpoints[which]->fid, 0);
    error = error == 0 ? fi_mr_enable(*registration) : error;
    if (error != 0) {
        (void)fi_close(&(*registration)->fid);
        *registration = NULL;
    }
    return error;
}

int wefti_fabric_share(wefti_fabric *fabric, void *memory, size_t bytes, wefti_fabric_range *range)
{
    const uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE;
    const struct fi_domain_attr *domain = fabric->info->domain_attr;
    if (register_memory(fabric, WEFTI_FABRIC_REQUESTS, memory, bytes, access, &range->registration) != 0) {
        return 0;
    }
    range->base = (domain->mr_mode & FI_MR_VIRT_ADDR) != 0 ? (uint64_t)(uintptr_t)memory : 0;
    range->key = fi_mr_key(range->registration);
    return 1;
}

/* ---- opening ---- */

static weft_status failed(const wefti_fabric *fabric, const char *what, int error)
{
    return wefti_error(WEFT_ERR_UNREACHABLE, "libfabric's provider %s, on %s, cannot open %s: %s",
                       fabric->info->fabric_attr->prov_name, fabric->info->domain_attr->name, what,
                       wefti_fabric_error(error));
}

static weft_status open_domain(wefti_fabric *fabric)
{
    struct fi_av_attr addresses = {.type = fabric->info->domain_attr->av_type};
    int error = lib.fabric(fabric->info->fabric_attr, &fabric->fabric, NULL);
    if (error != 0) {
        return failed(fabric, "the network", error);
    }
    error = fi_domain(fabric->fabric, fabric->info, &fabric->domain, NULL);
    if (error != 0) {
        return failed(fabric, "the interface", error);
    }
    error = fi_av_open(fabric->domain, &addresses, &fabric->addresses, NULL);
    return error == 0 ? WEFT_OK : failed(fabric, "a list of addresses", error);
}

static weft_status register_buffers(wefti_fabric *fabric, int which, void *memory, size_t bytes)
{
    if ((fabric->info->domain_attr->mr_mode & FI_MR_LOCAL) == 0) {
        return WEFT_OK;
    }
    if (which > 0 && !is_by_endpoint(fabric)) {
        fabric->descriptors[which] = fabric->descriptors[0];
        return WEFT_OK;
    }
    const uint64_t access = FI_SEND | FI_RECV | (fabric->rma != WEFTI_FABRIC_NO_RMA ? FI_READ | FI_WRITE : 0);
    int error = register_memory(fabric, which, memory, bytes, access, &fabric->buffers[which]);
    if (error != 0) {
        return failed(fabric, "memory for messages", error);
    }
    fabric->descriptors[which] = fi_mr_desc(fabric->buffers[which]);
    return WEFT_OK;
}

static weft_status open_completions(wefti_fabric *fabric, int which, int can_wake)
{
    struct fi_cq_attr completions = {
        .size = COMPLETIONS, .format = FI_CQ_FORMAT_DATA, .wait_obj = can_wake ? FI_WAIT_FD : FI_WAIT_NONE};
    int error = fi_cq_open(fabric->domain, &completions, &fabric->completions[which], NULL);
    fabric->wake[which] = -1;
    if (error == 0 && can_wake) {
        error = fi_control(&fabric->completions[which]->fid, FI_GETWAIT, &fabric->wake[which]);
    }
    return error == 0 ? WEFT_OK : failed(fabric, "a queue of completions", error);
}

static weft_status open_endpoint(wefti_fabric *fabric, int which, wefti_fabric_address *address)
{
    size_t bytes = WEFTI_FABRIC_NAME_MAX;
    struct fid_ep **endpoint = &fabric->endpoints[which];
    int error = fi_endpoint(fabric->domain, fabric->info, endpoint, NULL);
    if (error == 0) {
        error = fi_ep_bind(*endpoint, &fabric->addresses->fid, 0);
    }
    if (error == 0) {
        error = fi_ep_bind(*endpoint, &fabric->completions[which]->fid, FI_SEND | FI_RECV);
    }
    if (error == 0) {
        error = fi_enable(*endpoint);
    }
    if (error == 0) {
        error = fi_getname(&(*endpoint)->fid, address->name[which], &bytes);
    }
    address->bytes[which] = (uint32_t)bytes;
    return error == 0 ? WEFT_OK : failed(fabric, "an endpoint", error);
}

static weft_status open_all(wefti_fabric *fabric, const wefti_fabric_wish *wish, void *memory, size_t bytes,
                            wefti_fabric_address *address)
{
    WEFT_TRY(load());
    WEFT_TRY(find_provider(fabric, &wish->pe));
    ask_for_rma(fabric, wish->rma);
    if (fabric->rma == WEFTI_FABRIC_NO_RMA && wish->rma != WEFTI_FABRIC_NO_RMA) {
        ask_for_rma(fabric, WEFTI_FABRIC_RMA_COMPLETES);
    }
    strncpy(address->provider, fabric->info->fabric_attr->prov_name, sizeof address->provider - 1);
    WEFT_TRY(open_domain(fabric));
    for (int which = 0; which < WEFTI_FABRIC_ENDPOINTS; which++) {
        WEFT_TRY(open_completions(fabric, which, wish->can_wake));
        WEFT_TRY(open_endpoint(fabric, which, address));
        WEFT_TRY(register_buffers(fabric, which, memory, bytes));
    }
    return WEFT_OK;
}

weft_status wefti_fabric_open(wefti_fabric *fabric, const wefti_fabric_wish *wish, void *memory, size_t bytes,
                              wefti_fabric_address *address)
{
    memset(fabric, 0, sizeof *fabric);
    memset(address, 0, sizeof *address);
    weft_status status = open_all(fabric, wish, memory, bytes, address);
    if (status != WEFT_OK) {
        wefti_fabric_close(fabric);
        memset(address, 0, sizeof *address);
    }
    return status;
}

static void close_one(void *object)
{
    if (object != NULL) {
        (void)fi_close(object);
    }
}

void wefti_fabric_close_endpoints(wefti_fabric *fabric)
{
    for (int which = 0; which < WEFTI_FABRIC_ENDPOINTS; which++) {
        close_one(fabric->endpoints[which]);
        fabric->endpoints[which] = NULL;
    }
}

void wefti_fabric_close(wefti_fabric *fabric)
{
    wefti_fabric_close_endpoints(fabric);
    for (int which = 0; which < WEFTI_FABRIC_ENDPOINTS; which++) {
        close_one(fabric->buffers[which]);
        close_one(fabric->completions[which]);
    }
    close_one(fabric->addresses);
    close_one(fabric->domain);
    close_one(fabric->fabric);
    if (fabric->info != NULL) {
        lib.freeinfo(fabric->info);
    }
    memset(fabric, 0, sizeof *fabric);
}

weft_status wefti_fabric_insert(wefti_fabric *fabric, const void *name, fi_addr_t *at)
{
    return fi_av_insert(fabric->addresses, name, 1, at, 0, NULL) == 1
               ? WEFT_OK
               : wefti_error(WEFT_ERR_UNREACHABLE, "libfabric's provider %s does not take the address of another PE",
                             fabric->info->fabric_attr->prov_name);
}

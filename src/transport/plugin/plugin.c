/* `plugin`: PEs of other nodes, over a library of somebody else's, of which a process has one. That opens, connects and
 * moves data; here PEs exchange its addresses, and find out whether all have the same one and have it open. */
#include "transport/plugin/plugin.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/library.h"
#include "weft/protocol/layout.h"
#include "weft/transport.h"

#define STRING_OF(name) #name
#define STRING(name) STRING_OF(name)
#define SYMBOL STRING(WEFT_TRANSPORT_PLUGIN_SYMBOL)
#define PATH_BYTES 1024

_Static_assert((int)WEFT_TRANSPORT_FETCH == (int)WEFTI_AMO_FETCH && (int)WEFT_TRANSPORT_XOR == (int)WEFTI_AMO_XOR &&
                   (int)WEFT_TRANSPORT_COMPARE_SWAP == (int)WEFTI_AMO_COMPARE_SWAP,
               "the operations have the library's numbers");
_Static_assert((int)WEFT_TRANSPORT_THERE == (int)WEFTI_FATE_THERE && (int)WEFT_TRANSPORT_LEFT == (int)WEFTI_FATE_LEFT &&
                   (int)WEFT_TRANSPORT_ENDED == (int)WEFTI_FATE_ENDED &&
                   (int)WEFT_TRANSPORT_SILENT == (int)WEFTI_FATE_SILENT,
               "and what becomes of PEs, too");

/* The one of this process: set once. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static char loaded_path[PATH_BYTES];
static weft_transport_plugin table; /* what an older one has not is NULL */
static const weft_transport_plugin *plugin;
static wefti_transport_ops ops;

/* What PEs tell each other; the address follows. */
typedef struct offer {
    char name[WEFT_TRANSPORT_PLUGIN_NAME_BYTES];
    uint64_t is_open;
} offer;

typedef struct opened {
    weft_transport_setup setup;
    void *state; /* the plugin's */
} opened;

static void *state_of(const wefti_transport *transport)
{
    return ((const opened *)transport->state)->state;
}

/* ---- opening and closing ---- */

static weft_status open_plugin(wefti_transport *transport, offer *mine)
{
    const wefti_transport_setup *setup = &transport->setup;
    const wefti_control *control = (const wefti_control *)(const void *)setup->slot;
    opened *made = wefti_alloc_zeroed(1, sizeof *made);
    if (made == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for a transport");
    }
    made->setup = (weft_transport_setup){.world = setup->world,
                                         .pe = setup->pe,
                                         .pes = setup->pes,
                                         .memory = setup->slot,
                                         .memory_bytes = &control->reserved,
                                         .deadline_ns = setup->deadline_ns,
                                         .fail = weft_last_error_set};
    const weft_status status = plugin->open(&made->setup, mine + 1, &made->state);
    if (status != WEFT_OK) {
        wefti_free(made);
        return wefti_error_context(status, "%.200s", loaded_path);
    }
    transport->state = made;
    mine->is_open = 1;
    return WEFT_OK;
}

static const offer *offer_of(const offer *all, int pe)
{
    return (const offer *)(const void *)((const unsigned char *)all +
                                         (size_t)pe * (sizeof *all + plugin->address_bytes));
}

/* Addresses without the names before them. */
static weft_status connect_all(const wefti_transport *transport, const offer *all)
{
    const int pes = transport->setup.pes;
    unsigned char *addresses = wefti_alloc_zeroed((size_t)pes, plugin->address_bytes);
    if (addresses == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for the addresses of %d PEs", pes);
    }
    for (int pe = 0; pe < pes; pe++) {
        memcpy(addresses + (size_t)pe * plugin->address_bytes, offer_of(all, pe) + 1, plugin->address_bytes);
    }
    const weft_status status = plugin->connect(state_of(transport), addresses);
    wefti_free(addresses);
    return status == WEFT_OK ? status : wefti_error_context(status, "%.200s", loaded_path);
}

/* A PE whose open has failed reports that itself, at the end of this step. */
static weft_status check_names(const wefti_transport *transport, const offer *all)
{
    for (int pe = 0; pe < transport->setup.pes; pe++) {
        const offer *other = offer_of(all, pe);
        if (strncmp(other->name, plugin->name, sizeof other->name) != 0) {
            return wefti_error(WEFT_ERR_MISMATCH,
                               "this PE has the transport \"%.31s\" (%.200s), and PE %d \"%.31s\"; give all PEs the "
                               "same one in WEFT_TRANSPORT",
                               plugin->name, loaded_path, pe, other->name);
        }
    }
    return WEFT_OK;
}

static void plugin_close(wefti_transport *transport)
{
    opened *closed = transport->state;
    plugin->close(closed->state);
    wefti_free(closed);
    transport->state = NULL;
}

static weft_status meet(wefti_transport *transport, weft_status made, const offer *mine, offer *all)
{
    const wefti_transport_exchange *exchange = transport->setup.exchange;
    WEFT_TRY(exchange->allgather(exchange->context, mine, all, sizeof *mine + plugin->address_bytes));
    WEFT_TRY(made);
    WEFT_TRY(check_names(transport, all));
    return connect_all(transport, all);
}

static weft_status plugin_open(wefti_transport *transport, const wefti_transport_setup *setup)
{
    const size_t bytes = sizeof(offer) + plugin->address_bytes;
    transport->setup = *setup;
    transport->state = NULL;
    offer *mine = wefti_alloc_zeroed(1, bytes);
    offer *all = wefti_alloc((size_t)setup->pes * bytes);
    weft_status status =
        mine == NULL || all == NULL ? wefti_error(WEFT_ERR_MEMORY, "no memory for %d PEs", setup->pes) : WEFT_OK;
    if (status == WEFT_OK) {
        memcpy(mine->name, plugin->name, sizeof mine->name);
        status = meet(transport, open_plugin(transport, mine), mine, all);
    }
    wefti_free(mine);
    wefti_free(all);
    if (status != WEFT_OK && transport->state != NULL) {
        plugin_close(transport);
    }
    transport->setup.exchange = NULL;
    return status;
}

static int plugin_reaches(const wefti_transport *transport, int pe)
{
    return pe >= 0 && pe < transport->setup.pes;
}

static void plugin_describe(const wefti_transport *transport, char *text, size_t bytes)
{
    (void)transport;
    (void)snprintf(text, bytes, "\"%.31s\" (%s)", plugin->name, loaded_path);
}

/* ---- operations ---- */

static weft_status plugin_put(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes)
{
    return plugin->put(state_of(transport), pe, offset, source, bytes);
}

static weft_status plugin_get(wefti_transport *transport, int pe, uint64_t offset, void *dest, size_t bytes)
{
    return plugin->get(state_of(transport), pe, offset, dest, bytes);
}

static weft_status plugin_put_signal(wefti_transport *transport, int pe, uint64_t offset, const void *source,
                                     size_t bytes, uint64_t signal_offset, uint64_t value, weft_signal_op op)
{
    return plugin->put_signal(state_of(transport), pe, offset, source, bytes, signal_offset, value, op);
}

static weft_status plugin_amo(wefti_transport *transport, int pe, uint64_t offset, wefti_amo_op op, int bits,
                              uint64_t value, uint64_t cond, uint64_t *old)
{
    return plugin->amo(state_of(transport), pe, offset, (weft_transport_amo)op, bits, value, cond, old);
}

static weft_status plugin_read_soon(wefti_transport *transport, int pe, uint64_t offset, uint64_t *value)
{
    return plugin->read_soon(state_of(transport), pe, offset, value);
}

static weft_status plugin_fence(wefti_transport *transport)
{
    return plugin->fence(state_of(transport));
}

static weft_status plugin_quiet(wefti_transport *transport)
{
    return plugin->quiet(state_of(transport));
}

static wefti_transport_fate plugin_fate(const wefti_transport *transport, int pe)
{
    return (wefti_transport_fate)plugin->fate(state_of(transport), pe);
}

/* ---- loading ---- */

/* The first function that is missing; NULL: none. */
static const char *find_missing(const weft_transport_plugin *given)
{
    return given->open == NULL         ? "open"
           : given->connect == NULL    ? "connect"
           : given->close == NULL      ? "close"
           : given->put == NULL        ? "put"
           : given->get == NULL        ? "get"
           : given->put_signal == NULL ? "put_signal"
           : given->amo == NULL        ? "amo"
           : given->fence == NULL      ? "fence"
           : given->quiet == NULL      ? "quiet"
           : given->read_soon == NULL  ? "read_soon"
                                       : NULL;
}

/* Of a version that the library knows: its bytes; else 0. */
static size_t bytes_of(uint32_t version)
{
    return version == WEFT_TRANSPORT_PLUGIN_VERSION ? sizeof(weft_transport_plugin)
           : version == 1                           ? offsetof(weft_transport_plugin, fate)
                                                    : 0;
}

static weft_status check(const char *path, const weft_transport_plugin *given)
{
    if (given->size == 0 || given->size != bytes_of(given->version)) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "the transport %.200s has version %u of weft_transport_plugin (%u bytes), and this library "
                           "version %u (%zu bytes): compile it again, with the headers of this weft",
                           path, given->version, given->size, WEFT_TRANSPORT_PLUGIN_VERSION, sizeof *given);
    }
    const char *missing = find_missing(given);
    if (missing != NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "the transport %.200s lacks the function %s", path, missing);
    }
    if (given->name[0] == '\0' || memchr(given->name, '\0', sizeof given->name) == NULL || given->address_bytes == 0 ||
        given->address_bytes > WEFT_TRANSPORT_PLUGIN_ADDRESS_BYTES_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "the transport %.200s has no name of 1 to 31 bytes, or addresses of %zu bytes; give 1 to %d",
                           path, given->address_bytes, WEFT_TRANSPORT_PLUGIN_ADDRESS_BYTES_MAX);
    }
    return WEFT_OK;
}

static weft_status find(void *library, const char *path, const weft_transport_plugin **given)
{
    if (!wefti_library_find(library, SYMBOL, given)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "the library %.200s is no transport: it exports no " SYMBOL, path);
    }
    return check(path, *given);
}

static weft_status load(const char *path)
{
    const weft_transport_plugin *given = NULL;
    void *library = wefti_library_open(path);
    if (library == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "the transport %.200s cannot be loaded: %.200s; look at WEFT_TRANSPORT",
                           path, wefti_library_error());
    }
    const weft_status status = find(library, path, &given);
    if (status != WEFT_OK) {
        wefti_library_close(library);
        return status;
    }
    memcpy(&table, given, given->size);
    plugin = &table;
    strcpy(loaded_path, path);
    ops = (wefti_transport_ops){.name = table.name,
                                .open = plugin_open,
                                .close = plugin_close,
                                .reaches = plugin_reaches,
                                .describe = plugin_describe,
                                .put = plugin_put,
                                .get = plugin_get,
                                .put_signal = plugin_put_signal,
                                .amo = plugin_amo,
                                .read_soon = plugin_read_soon,
                                .fate = table.fate != NULL ? plugin_fate : NULL,
                                .fence = plugin_fence,
                                .quiet = plugin_quiet};
    return WEFT_OK;
}

static weft_status load_once(const char *path)
{
    if (plugin == NULL) {
        return load(path);
    }
    return strcmp(path, loaded_path) == 0
               ? WEFT_OK
               : wefti_error(WEFT_ERR_STATE,
                             "WEFT_TRANSPORT names %.200s, and this process has the transport %.200s; it has one "
                             "until it ends",
                             path, loaded_path);
}

const wefti_transport_ops *wefti_transport_plugin(void)
{
    (void)pthread_mutex_lock(&loading);
    const wefti_transport_ops *found = plugin != NULL ? &ops : NULL;
    (void)pthread_mutex_unlock(&loading);
    return found;
}

weft_status wefti_transport_plugin_load(const char *path, size_t length)
{
    char whole[PATH_BYTES];
    if (length >= sizeof whole || *path != '/') {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "WEFT_TRANSPORT names the library \"%.*s\"; give an absolute path, of at most %zu bytes",
                           length < sizeof whole ? (int)length : 200, path, sizeof whole - 1);
    }
    memcpy(whole, path, length);
    whole[length] = '\0';
    (void)pthread_mutex_lock(&loading);
    const weft_status status = load_once(whole);
    (void)pthread_mutex_unlock(&loading);
    return status;
}

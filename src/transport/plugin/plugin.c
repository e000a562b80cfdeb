/* Loading the library that WEFT_TRANSPORT names, of which a process has one. */
#include "transport/plugin/plugin.h"

#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/library.h"
#include "transport/plugin/table.h"

#define STRING_OF(name) #name
#define STRING(name) STRING_OF(name)
#define SYMBOL STRING(WEFT_TRANSPORT_PLUGIN_SYMBOL)
#define PATH_BYTES 1024

/* The one of this process: set once. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static char loaded_path[PATH_BYTES];
static weft_transport_plugin table;
static wefti_transport_table loaded; /* no functions: none yet */
static wefti_transport_ops ops;

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

static weft_status check(const char *path, const weft_transport_plugin *given)
{
    if (given->version != WEFT_TRANSPORT_PLUGIN_VERSION || given->size != sizeof *given) {
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
    table = *given;
    strcpy(loaded_path, path);
    loaded = (wefti_transport_table){.functions = &table, .path = loaded_path};
    ops = (wefti_transport_ops)WEFTI_TRANSPORT_OF_TABLE(table.name, loaded);
    ops.fate = table.fate != NULL ? ops.fate : NULL;
    return WEFT_OK;
}

static weft_status load_once(const char *path)
{
    if (loaded.functions == NULL) {
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
    const wefti_transport_ops *found = loaded.functions != NULL ? &ops : NULL;
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

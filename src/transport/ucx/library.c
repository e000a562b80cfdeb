#include "transport/ucx/library.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/library.h"

#define LIBRARY "libucp.so.0"

static wefti_ucx_library lib;

static int find_all(void *handle, wefti_ucx_library *found)
{
    int is_complete = 1;
#define FIND(member, function) is_complete &= wefti_library_find(handle, #function, &found->member);
    WEFTI_UCX_FUNCTIONS(FIND)
#undef FIND
    return is_complete;
}

/* What the library is told by the environment alone: what its constructor does, for which ucp_config_modify comes too
 * late, and that it connects without waiting, which versions have by different names there. By itself it waits in
 * ucp_ep_create for a host that is silent, for two minutes, with all else of the PE behind it. */
static const struct {
    const char *name;
    char text[32];
} told[] = {
    {"UCX_MEM_EVENTS", "UCX_MEM_EVENTS=n"},      {"UCX_HANDLE_ERRORS", "UCX_HANDLE_ERRORS=none"},
    {"UCX_ERROR_SIGNALS", "UCX_ERROR_SIGNALS="}, {"UCX_DEBUG_SIGNO", "UCX_DEBUG_SIGNO=0"},
    {"UCX_TCP_CONN_NB", "UCX_TCP_CONN_NB=y"},
};
#define TOLD (sizeof told / sizeof *told)

static size_t count_of(char **all)
{
    size_t count = 0;
    while (all != NULL && all[count] != NULL) {
        count++;
    }
    return count;
}

/* The library warns of variables of what it does not use. */
static int is_to_be_told(const char *name)
{
    const char *used = getenv("UCX_TLS");
    const int is_of_tcp = strncmp(name, "UCX_TCP_", 8) == 0;
    return getenv(name) == NULL &&
           (!is_of_tcp || used == NULL || strstr(used, "tcp") != NULL || strstr(used, "all") != NULL || used[0] == '^');
}

/* The environment with what is told that it does not have; NULL: there is no memory. It stays until the process ends,
 * and has the one before it, which leak checkers look for. */
static char **extend(char **now, char **before)
{
    size_t count = count_of(now);
    char **all = malloc((count + TOLD + 2) * sizeof *all);
    if (all == NULL) {
        return NULL;
    }
    *all++ = (char *)before;
    if (count > 0) {
        memcpy(all, now, count * sizeof *all);
    }
    for (size_t i = 0; i < TOLD; i++) {
        if (is_to_be_told(told[i].name)) {
            all[count++] = (char *)(uintptr_t)told[i].text;
        }
    }
    all[count] = NULL;
    return all;
}

static int are_same(char **all, char **now, size_t count)
{
    return all != NULL && count_of(now) == count && (count == 0 || memcmp(all, now, count * sizeof *all) == 0);
}

/* Make a call that reads the environment. Other threads may read it meanwhile, so it is replaced as a whole, by what is
 * never freed and serves again until the environment has changed, and put back if it is still that. */
static void tell(void (*call)(void *argument), void *argument)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char **during;
    static size_t count; /* of the environment of which that was made */
    (void)pthread_mutex_lock(&lock);
    char **before = environ;
    if (!are_same(during, before, count)) {
        during = extend(before, during);
        count = count_of(before);
    }
    if (during != NULL) {
        environ = during;
        call(argument);
    }
    if (environ == during) {
        environ = before;
    }
    (void)pthread_mutex_unlock(&lock);
}

static void open_library(void *handle)
{
    *(void **)handle = wefti_library_open(LIBRARY);
}

static void load_library(void)
{
    wefti_ucx_library found;
    void *handle = NULL;
    tell(open_library, &handle);
    if (handle != NULL && find_all(handle, &found)) {
        lib = found;
    } else {
        wefti_library_close(handle);
    }
}

weft_status wefti_ucx_load(const wefti_ucx_library **library)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load_library);
    *library = &lib;
    return lib.init_version != NULL ? WEFT_OK
                                    : wefti_error(WEFT_ERR_UNREACHABLE, LIBRARY
                                                  ", which carries data between nodes, cannot be loaded; install the "
                                                  "package libucx0");
}

typedef struct worker_call {
    ucp_context_h context;
    const ucp_worker_params_t *parameters;
    ucp_worker_h *worker;
    ucs_status_t status;
} worker_call;

static void create_worker(void *argument)
{
    worker_call *call = argument;
    call->status = lib.worker_create(call->context, call->parameters, call->worker);
}

ucs_status_t wefti_ucx_create_worker(ucp_context_h context, const ucp_worker_params_t *parameters, ucp_worker_h *worker)
{
    worker_call call = {context, parameters, worker, UCS_ERR_NO_MEMORY};
    tell(create_worker, &call);
    return call.status;
}

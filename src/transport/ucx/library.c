#include "transport/ucx/library.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
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

/* What the library's constructor does is told it by the environment alone; ucp_config_modify comes too late, and does
 * not know of these. */
static const struct {
    const char *name;
    char text[32];
} told[] = {
    {"UCX_MEM_EVENTS", "UCX_MEM_EVENTS=n"},
    {"UCX_HANDLE_ERRORS", "UCX_HANDLE_ERRORS=none"},
    {"UCX_ERROR_SIGNALS", "UCX_ERROR_SIGNALS="},
    {"UCX_DEBUG_SIGNO", "UCX_DEBUG_SIGNO=0"},
};
#define TOLD (sizeof told / sizeof *told)

/* The environment with what is told that it does not have; NULL: there is no memory. */
static char **extend(char **now)
{
    size_t count = 0;
    while (now != NULL && now[count] != NULL) {
        count++;
    }
    char **all = wefti_alloc((count + TOLD + 1) * sizeof *all);
    if (all == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        all[i] = now[i];
    }
    for (size_t i = 0; i < TOLD; i++) {
        if (getenv(told[i].name) == NULL) {
            all[count++] = (char *)(uintptr_t)told[i].text;
        }
    }
    all[count] = NULL;
    return all;
}

/* Other threads may read the environment meanwhile, so it is replaced as a whole, never freed, and put back if it is
 * still that. */
static void *open_library(void)
{
    static char **during;
    char **before = environ;
    during = extend(before);
    if (during == NULL) {
        return NULL;
    }
    environ = during;
    void *handle = wefti_library_open(LIBRARY);
    if (environ == during) {
        environ = before;
    }
    return handle;
}

static void load_library(void)
{
    wefti_ucx_library found;
    void *handle = open_library();
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

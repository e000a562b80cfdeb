/* bootstrap/pmi/library.c: PMI by the library that the launcher's system has: libpmi2.so.0 or libpmi.so.0.
 *
 * Its calls have no deadline, so another thread makes them; one that does not return in time is left where it is, and
 * nothing more is asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/library.h"
#include "bootstrap/pmi/store.h"

#define TEXT_BYTES 4096 /* what a library may write whose calls take no size */

/* The functions, by the headers that PMI's libraries have in common; 0 is success everywhere. */
typedef struct functions {
    int (*init_first)(int *is_spawned);
    int (*size_first)(int *size);
    int (*rank_first)(int *rank);
    int (*name_first)(char *name, int bytes);
    int (*put_first)(const char *space, const char *key, const char *value);
    int (*commit_first)(const char *space);
    int (*barrier_first)(void);
    int (*get_first)(const char *space, const char *key, char *value, int bytes);
    int (*init_second)(int *is_spawned, int *size, int *rank, int *application);
    int (*name_second)(char *name, int bytes);
    int (*put_second)(const char *key, const char *value);
    int (*fence_second)(void);
    int (*get_second)(const char *job, int from, const char *key, char *value, int bytes, int *length);
    int (*finalize)(void);
} functions;

/* One call at a time. The thread of one that never returned still has it. */
typedef struct library {
    functions f;
    void *handle;
    wefti_os_monitor *lock;
    int is_over;
    int code;
    int (*run)(wefti_pmi_store *store);
    wefti_pmi_store *store;
    char key[WEFTI_JOB_KEY_BYTES];
    char in[WEFTI_PMI_VALUE_BYTES];
    char out[TEXT_BYTES];
} library;

static void run(void *argument)
{
    library *l = argument;
    const int code = l->run(l->store);
    wefti_os_monitor_enter(l->lock);
    l->code = code;
    l->is_over = 1;
    wefti_os_monitor_notify_all(l->lock);
    wefti_os_monitor_leave(l->lock);
}

/* Run `body` in the other thread; *code is what the library returned. */
static weft_status call(wefti_pmi_store *store, int (*body)(wefti_pmi_store *store), const char *what,
                        uint64_t until_ns, int *code)
{
    library *l = store->state;
    wefti_os_thread *thread;
    if (store->broken[0] != '\0') {
        return wefti_error(WEFT_ERR_STATE, "PMI cannot be used any more: %s", store->broken);
    }
    l->run = body;
    l->store = store;
    l->is_over = 0;
    WEFT_TRY(wefti_os_thread_start(&thread, run, l));
    wefti_os_monitor_enter(l->lock);
    while (!l->is_over && wefti_os_monitor_wait(l->lock, until_ns)) {
    }
    const int is_over = l->is_over;
    wefti_os_monitor_leave(l->lock);
    if (!is_over) {
        (void)snprintf(store->broken, sizeof store->broken,
                       "PMI's library did not return from %s in time: a process of the job did not come, which PMI "
                       "does not name, or the launcher does not answer",
                       what);
        return wefti_error(WEFT_ERR_TIMEOUT, "%s", store->broken);
    }
    wefti_os_thread_join(thread);
    *code = l->code;
    return WEFT_OK;
}

/* ---- PMI-1 ---- */

static int init_first(wefti_pmi_store *store)
{
    library *l = store->state;
    int is_spawned;
    return l->f.init_first(&is_spawned) != 0 || l->f.size_first(&store->size) != 0 ||
           l->f.rank_first(&store->rank) != 0 || l->f.name_first(store->job, sizeof store->job) != 0;
}

static int put_first(wefti_pmi_store *store)
{
    library *l = store->state;
    return l->f.put_first(store->job, l->key, l->in) != 0 || l->f.commit_first(store->job) != 0;
}

static int fence_first(wefti_pmi_store *store)
{
    library *l = store->state;
    return l->f.barrier_first();
}

static int get_first(wefti_pmi_store *store)
{
    library *l = store->state;
    return l->f.get_first(store->job, l->key, l->out, WEFTI_PMI_VALUE_BYTES);
}

/* ---- PMI-2 ---- */

static int init_second(wefti_pmi_store *store)
{
    library *l = store->state;
    int is_spawned;
    int application;
    return l->f.init_second(&is_spawned, &store->size, &store->rank, &application) != 0 ||
           l->f.name_second(store->job, sizeof store->job) != 0;
}

static int put_second(wefti_pmi_store *store)
{
    library *l = store->state;
    return l->f.put_second(l->key, l->in);
}

static int fence_second(wefti_pmi_store *store)
{
    library *l = store->state;
    return l->f.fence_second();
}

static int get_second(wefti_pmi_store *store)
{
    library *l = store->state;
    int length = 0;
    return l->f.get_second(store->job, -1, l->key, l->out, WEFTI_PMI_VALUE_BYTES, &length) != 0 || length < 0;
}

static int finalize(wefti_pmi_store *store)
{
    library *l = store->state;
    return l->f.finalize();
}

/* ---- the ops ---- */

static weft_status library_publish(wefti_pmi_store *store, const char *name, const char *value, uint64_t until_ns)
{
    (void)store;
    (void)name;
    (void)value;
    (void)until_ns;
    return WEFT_ERR_STATE; /* few libraries can, and those look a name up in their own time */
}

static weft_status library_lookup(wefti_pmi_store *store, const char *name, char value[WEFTI_PMI_VALUE_BYTES],
                                  uint64_t until_ns)
{
    (void)store;
    (void)name;
    (void)value;
    (void)until_ns;
    return WEFT_ERR_STATE;
}

static weft_status library_unpublish(wefti_pmi_store *store, const char *name, uint64_t until_ns)
{
    return library_publish(store, name, NULL, until_ns);
}

static weft_status library_put(wefti_pmi_store *store, const char *key, const char *value, uint64_t until_ns)
{
    library *l = store->state;
    int code = 0;
    (void)snprintf(l->key, sizeof l->key, "%s", key);
    (void)snprintf(l->in, sizeof l->in, "%s", value);
    WEFT_TRY(call(store, store->version == 1 ? put_first : put_second, "a put", until_ns, &code));
    return code == 0 ? WEFT_OK : WEFT_ERR_STATE;
}

static weft_status library_fence(wefti_pmi_store *store, uint64_t until_ns)
{
    int code = 0;
    WEFT_TRY(call(store, store->version == 1 ? fence_first : fence_second, "its barrier", until_ns, &code));
    return code == 0 ? WEFT_OK : WEFT_ERR_STATE;
}

static weft_status library_get(wefti_pmi_store *store, const char *key, char value[WEFTI_PMI_VALUE_BYTES],
                               uint64_t until_ns)
{
    library *l = store->state;
    int code = 0;
    (void)snprintf(l->key, sizeof l->key, "%s", key);
    WEFT_TRY(call(store, store->version == 1 ? get_first : get_second, "a get", until_ns, &code));
    l->out[WEFTI_PMI_VALUE_BYTES - 1] = '\0';
    memcpy(value, l->out, WEFTI_PMI_VALUE_BYTES);
    return code == 0 ? WEFT_OK : WEFT_ERR_STATE;
}

static const wefti_pmi_store_ops library_ops = {
    .publish = library_publish,
    .lookup = library_lookup,
    .unpublish = library_unpublish,
    .put = library_put,
    .fence = library_fence,
    .get = library_get,
};

/* ---- joining ---- */

static int find_first(void *handle, functions *f)
{
    return wefti_library_find(handle, "PMI_Init", &f->init_first) &&
           wefti_library_find(handle, "PMI_Get_size", &f->size_first) &&
           wefti_library_find(handle, "PMI_Get_rank", &f->rank_first) &&
           wefti_library_find(handle, "PMI_KVS_Get_my_name", &f->name_first) &&
           wefti_library_find(handle, "PMI_KVS_Put", &f->put_first) &&
           wefti_library_find(handle, "PMI_KVS_Commit", &f->commit_first) &&
           wefti_library_find(handle, "PMI_Barrier", &f->barrier_first) &&
           wefti_library_find(handle, "PMI_KVS_Get", &f->get_first) &&
           wefti_library_find(handle, "PMI_Finalize", &f->finalize);
}

static int find_second(void *handle, functions *f)
{
    return wefti_library_find(handle, "PMI2_Init", &f->init_second) &&
           wefti_library_find(handle, "PMI2_Job_GetId", &f->name_second) &&
           wefti_library_find(handle, "PMI2_KVS_Put", &f->put_second) &&
           wefti_library_find(handle, "PMI2_KVS_Fence", &f->fence_second) &&
           wefti_library_find(handle, "PMI2_KVS_Get", &f->get_second) &&
           wefti_library_find(handle, "PMI2_Finalize", &f->finalize);
}

static weft_status load(wefti_pmi_store *store, library *l)
{
    const char *name = store->version == 1 ? "libpmi.so.0" : "libpmi2.so.0";
    /* Slurm's libpmi loads plugins that have symbols of it, without which the process would end in its init. */
    l->handle = wefti_library_open_for_plugins(name);
    if (l->handle == NULL) {
        l->handle = wefti_library_open_for_plugins(store->version == 1 ? "libpmi.so" : "libpmi2.so");
    }
    if (l->handle == NULL || !(store->version == 1 ? find_first(l->handle, &l->f) : find_second(l->handle, &l->f))) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "PMI-%d needs PMI_FD, or %s, which cannot be loaded: install the launcher's (Debian: "
                           "libpmi%s), or start the program by mpirun, srun --mpi=pmix, weftrun or torchrun",
                           store->version, name, store->version == 1 ? "0" : "2-0");
    }
    return wefti_os_monitor_create(&l->lock);
}

/* Slurm's libpmi makes a job of one process of any that no launcher has started. */
static int is_launched(const wefti_pmi_store *store)
{
    return store->size > 1 || wefti_env_is_set(WEFTI_ENV_SLURM_STEP_ID) || wefti_env_is_set(WEFTI_ENV_PMI_RANK) ||
           wefti_env_is_set(WEFTI_ENV_PMI_SIZE);
}

static weft_status join(wefti_pmi_store *store, uint64_t until_ns)
{
    int code = 1;
    WEFT_TRY(load(store, store->state));
    WEFT_TRY(call(store, store->version == 1 ? init_first : init_second, "its init", until_ns, &code));
    store->job[sizeof store->job - 1] = '\0';
    if (code != 0 || store->rank < 0 || store->size <= store->rank || !is_launched(store)) {
        return wefti_error(WEFT_ERR_SYSTEM,
                           "PMI-%d's library does not join this process to a job: it was not started by the launcher, "
                           "or the launcher offers no PMI (srun --mpi=pmi2)",
                           store->version);
    }
    return WEFT_OK;
}

static void forget(wefti_pmi_store *store)
{
    library *l = store->state;
    if (l->lock != NULL) {
        wefti_os_monitor_destroy(l->lock);
    }
    wefti_library_close(l->handle);
    wefti_free(l);
    store->state = NULL;
}

weft_status wefti_pmi_library_join(wefti_pmi_store *store, int version, uint64_t until_ns)
{
    store->state = wefti_alloc_zeroed(1, sizeof(library));
    store->ops = &library_ops;
    store->version = version;
    if (store->state == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "this process has no memory to speak PMI");
    }
    weft_status status = join(store, until_ns);
    if (status != WEFT_OK && store->broken[0] == '\0') {
        forget(store);
    }
    return status;
}

void wefti_pmi_library_leave(wefti_pmi_store *store)
{
    int code;
    if (store->state == NULL || store->broken[0] != '\0') {
        return; /* a thread may still be inside */
    }
    (void)call(store, finalize, "its end", wefti_os_now_ns() + UINT64_C(1000000000), &code);
    if (store->broken[0] == '\0') {
        forget(store);
    }
}

/* bootstrap/pmi/store.h: what PMI-1 and PMI-2 offer, by a connection with the launcher (wire.c) or by a library
 * (library.c): names that any process can look up, or values that all can read once all have met. */
#ifndef WEFTI_BOOTSTRAP_PMI_STORE_H
#define WEFTI_BOOTSTRAP_PMI_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "bootstrap/job/job.h"
#include "os/os.h"

/* The most that a store says: the launcher's word is bounded. */
#define WEFTI_PMI_VALUE_BYTES 1024
#define WEFTI_PMI_NAME_BYTES 256

typedef struct wefti_pmi_store wefti_pmi_store;

/* All are called by one thread at a time. They return WEFT_OK; WEFT_ERR_STATE, without a text, for "no": the name is
 * not known, or is not taken; or an error with a text, after which the store is good for nothing more. Until
 * until_ns. Keys and values are of letters and digits. */
typedef struct wefti_pmi_store_ops {
    weft_status (*publish)(wefti_pmi_store *store, const char *name, const char *value, uint64_t until_ns);
    weft_status (*lookup)(wefti_pmi_store *store, const char *name, char value[WEFTI_PMI_VALUE_BYTES],
                          uint64_t until_ns);
    weft_status (*unpublish)(wefti_pmi_store *store, const char *name, uint64_t until_ns);
    weft_status (*put)(wefti_pmi_store *store, const char *key, const char *value, uint64_t until_ns);
    weft_status (*fence)(wefti_pmi_store *store, uint64_t until_ns); /* all processes of the job */
    weft_status (*get)(wefti_pmi_store *store, const char *key, char value[WEFTI_PMI_VALUE_BYTES], uint64_t until_ns);
} wefti_pmi_store_ops;

struct wefti_pmi_store {
    const wefti_pmi_store_ops *ops;
    int version; /* of PMI: 1 or 2 */
    int rank;
    int size;
    char job[WEFTI_PMI_NAME_BYTES]; /* PMI-1: the name of the job's values; PMI-2: the job's */
    char broken[WEFTI_ERROR_BYTES]; /* why nothing more can be asked; "": nothing happened */
    void *state;
};

/* ---- a store as a job (job.c) ---- */

typedef struct wefti_pmi_job {
    wefti_job job; /* first */
    wefti_pmi_store store;
    wefti_os_monitor *lock; /* of `is_busy` */
    int is_busy;
} wefti_pmi_job;

/* Make the job of a store that has joined: finds out by a name of its own whether the launcher takes names; if not,
 * worlds have all of the job's processes and wait for all of them in the launcher. */
weft_status wefti_pmi_job_init(wefti_pmi_job *pmi, uint64_t until_ns);
void wefti_pmi_job_fini(wefti_pmi_job *pmi); /* safe on zeroed memory; not the store */

/* ---- where stores come from ---- */

/* Join over a connected socket, in the protocol of that version. Fills the store in, but for `rank` and `size`, which
 * are those of the environment (PMI-1) and are checked (PMI-2). */
weft_status wefti_pmi_wire_join(wefti_pmi_store *store, int descriptor, int version, uint64_t until_ns);
/* Take leave, and free; the descriptor stays open. */
void wefti_pmi_wire_leave(wefti_pmi_store *store);

/* Join by libpmi.so.0 or libpmi2.so.0. */
weft_status wefti_pmi_library_join(wefti_pmi_store *store, int version, uint64_t until_ns);
void wefti_pmi_library_leave(wefti_pmi_store *store);

#endif

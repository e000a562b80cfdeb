/* bootstrap/bootstrap.h: the seam between worlds and the ways in which their PEs find each other.
 *
 * One backend a folder; the table of docs/worlds.md says which PEs each brings together, and how. A bootstrap is used
 * by one thread, in the sequence open, any number of allgathers, close. All PEs make the same calls. */
#ifndef WEFTI_BOOTSTRAP_BOOTSTRAP_H
#define WEFTI_BOOTSTRAP_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#include "weft/bootstrap.h"
#include "weft/world.h"

typedef struct wefti_bootstrap wefti_bootstrap;

/* Compute the digest of all contributions, which lie in the order of the PEs. It must depend on nothing else: any one
 * PE computes it for all, or each does. */
typedef weft_status wefti_digest_make(const void *all, int pes, void *digest);

typedef struct wefti_digest_call {
    const void *mine;
    size_t bytes; /* of one PE; more than 0 */
    wefti_digest_make *make;
    void *digest;
    size_t digest_bytes;
} wefti_digest_call;

typedef struct wefti_bootstrap_ops {
    const char *name;
    /* Meet the other PEs. In: config->pe and pes (pes 0: the backend finds both out, or WEFT_ERR_ARGUMENT),
     * config->name and the backend's own fields; deadline_ns is already resolved to a duration. Blocks at most that
     * long, plus what it takes to tell the others. On success *bootstrap has pe, pes and state set. A backend that only
     * brings what another one needs (PE 0's unique id) opens that one and sets bootstrap->ops to it. On failure nothing
     * is left behind, and every PE that has come or comes within the deadline fails too: WEFT_ERR_TIMEOUT names all PEs
     * that are missing; WEFT_ERR_MISMATCH names a PE whose number is taken or whose size or name differs;
     * WEFT_ERR_AUTHENTICATION. */
    weft_status (*open)(const weft_world_config *config, wefti_bootstrap *bootstrap);
    /* all[i * bytes] becomes PE i's `mine`. Until bootstrap->until_ns, but for WEFTI_BOOTSTRAP_LAST_NS at least, plus
     * what it takes to tell the others. A PE that died or did not come is named on every PE (WEFT_ERR_TIMEOUT or
     * WEFT_ERR_PEER); the bootstrap is then good for close only. `bytes` is equal everywhere. */
    weft_status (*allgather)(wefti_bootstrap *bootstrap, const void *mine, void *all, size_t bytes);
    /* Like allgather, but each PE receives only the digest that make() computes from all contributions: where PEs are
     * many, it is far less. Everything in the call but `mine` is equal everywhere. NULL: allgather, then make. */
    weft_status (*digest)(wefti_bootstrap *bootstrap, const wefti_digest_call *call);
    /* Between exchanges: whether a PE that the next one needs is known to be gone or to have failed, which is then the
     * error of all. Does not block. NULL: nothing is known. */
    weft_status (*check)(wefti_bootstrap *bootstrap);
    /* Free everything. Local, never blocks; also after a failed allgather. */
    void (*close)(wefti_bootstrap *bootstrap);
} wefti_bootstrap_ops;

struct wefti_bootstrap {
    const wefti_bootstrap_ops *ops;
    int pe;
    int pes;
    int has_met; /* another PE was connected and, if open failed, has been told of it */
    uint64_t deadline_ns;
    uint64_t until_ns; /* when exchanges give up: one deadline, from the end of open on, for all of them together */
    void *state; /* the backend's */
};

/* What an exchange has at least: also after a step that met the deadline, the others hear how it went. */
#define WEFTI_BOOTSTRAP_LAST_NS UINT64_C(300000000)

/* When an exchange that begins now gives up. */
uint64_t wefti_bootstrap_limit_ns(const wefti_bootstrap *bootstrap);

/* ops->digest, or what stands for it. */
weft_status wefti_bootstrap_digest(wefti_bootstrap *bootstrap, const wefti_digest_call *call);

/* ops->check, or what stands for it. */
weft_status wefti_bootstrap_check(wefti_bootstrap *bootstrap);

/* The most a world's name takes, with its final zero. */
#define WEFTI_BOOTSTRAP_NAME_BYTES 64

/* config->name or what stands for it. */
const char *wefti_bootstrap_world_name(const weft_world_config *config);

/* What opening any backend begins with: the checks that all have in common; and what it ends with. */
weft_status wefti_bootstrap_begin(const weft_world_config *config, wefti_bootstrap *bootstrap);
void wefti_bootstrap_met(const weft_world_config *config, wefti_bootstrap *bootstrap);

/* Choose the backend that the config names (AUTO resolved by WEFT_BOOTSTRAP and the environment) and open it. */
weft_status wefti_bootstrap_open(const weft_world_config *config, wefti_bootstrap *bootstrap);
void wefti_bootstrap_close(wefti_bootstrap *bootstrap); /* safe on zeroed memory */

/* All kinds but AUTO, those that a launcher's variables lead to first, in the order in which they are looked at; with
 * WEFT_BOOTSTRAP_TABLE (weft/bootstrap.h) the only place. X(KIND, name, which builds have it, is_meant): its functions
 * are wefti_bootstrap_NAME; HERE: in all builds, SYSTEM: not in the simulator, since it calls the system; is_meant, a
 * function of choose.c, says whether the environment means it (NULL: none does). */
#define WEFTI_BOOTSTRAP_BACKENDS(X)                                                                                    \
    X(LOCAL, local, HERE, by_weftrun)                                                                                  \
    X(ENV, env, HERE, is_env_complete)                                                                                 \
    X(PMIX, pmix, WITH_PMIX, by_pmix)                                                                                  \
    X(MPI, mpi, SYSTEM, by_mpi)                                                                                        \
    X(PMI2, pmi2, SYSTEM, by_pmi2)                                                                                     \
    X(PMI1, pmi1, SYSTEM, by_pmi1)                                                                                     \
    X(THREADS, threads, HERE, NULL)                                                                                    \
    X(UID, uid, HERE, NULL)                                                                                            \
    X(CALLBACK, callback, HERE, NULL)                                                                                  \
    X(SHMEM, shmem, SYSTEM, NULL)                                                                                      \
    X(PLUGIN, plugin, SYSTEM, NULL)                                                                                    \
    X(SELF, self, HERE, NULL)

#define WEFTI_BOOTSTRAP_OPS(KIND, name, builds, is_meant) extern const wefti_bootstrap_ops wefti_bootstrap_##name;
WEFTI_BOOTSTRAP_BACKENDS(WEFTI_BOOTSTRAP_OPS)
#undef WEFTI_BOOTSTRAP_OPS

#endif

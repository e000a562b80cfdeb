/* weft/bootstrap.h: how the PEs of a world find each other.
 *
 * A bootstrap is needed while a world is created and is closed before weft_world_create returns. */
#ifndef WEFT_BOOTSTRAP_H
#define WEFT_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, value, what WEFT_BOOTSTRAP says for it, what it is). NULL: config.bootstrap alone can say it, since it needs
 * something else from the config. */
#define WEFT_BOOTSTRAP_TABLE(X)                                                                                        \
    X(WEFT_BOOTSTRAP_AUTO, 0, "auto", "the launcher found in the environment, else a world of one PE")                 \
    X(WEFT_BOOTSTRAP_LOCAL, 1, "local", "processes started by weftrun on this machine")                                \
    X(WEFT_BOOTSTRAP_THREADS, 2, NULL, "threads of this process, through a weft_threads object")                       \
    X(WEFT_BOOTSTRAP_UID, 3, NULL, "a unique id made by PE 0, then Unix sockets on its host, TCP elsewhere")           \
    X(WEFT_BOOTSTRAP_CALLBACK, 4, NULL, "the embedder's own allgather")                                                \
    X(WEFT_BOOTSTRAP_ENV, 5, "env", "processes that know RANK, WORLD_SIZE and MASTER_ADDR, as torchrun sets them")     \
    X(WEFT_BOOTSTRAP_PMIX, 6, "pmix", "processes of a job that a launcher with PMIx started: mpirun, srun --mpi=pmix") \
    X(WEFT_BOOTSTRAP_PMI2, 7, "pmi2", "processes of a job that a launcher with PMI-2 started: srun --mpi=pmi2")        \
    X(WEFT_BOOTSTRAP_PMI1, 8, "pmi1", "processes of a job that a launcher with PMI-1 started: mpiexec of MPICH, flux") \
    X(WEFT_BOOTSTRAP_MPI, 9, "mpi", "the processes of a communicator of the program's MPI")                            \
    X(WEFT_BOOTSTRAP_SHMEM, 10, "shmem", "the PEs of the OpenSHMEM library that the program has initialised")          \
    X(WEFT_BOOTSTRAP_PLUGIN, 11, "plugin", "a library given by its path")                                              \
    X(WEFT_BOOTSTRAP_SELF, 12, "self", "a world of one PE, whatever launcher is there")

typedef enum weft_bootstrap_kind {
#define WEFT_BOOTSTRAP_ENUM(name, value, word, text) name = value,
    WEFT_BOOTSTRAP_TABLE(WEFT_BOOTSTRAP_ENUM)
#undef WEFT_BOOTSTRAP_ENUM
} weft_bootstrap_kind;

/* WEFT_BOOTSTRAP_AUTO is, of the kinds whose conditions hold in the environment of the process, the first:
 *   what WEFT_BOOTSTRAP says (a word of the table above)
 *   local   WEFT_LOCAL_JOB is set: weftrun started the process, and the world has more than one PE
 *   env     RANK, WORLD_SIZE and MASTER_ADDR are set
 *   pmix    PMIX_RANK is set: a launcher with PMIx started the process
 *   mpi     PMI_FD is set, and the process has initialised an MPI, whose connection that then is
 *   pmi2    PMI_FD and SLURM_STEP_ID are set (srun --mpi=pmi2), or PMI_RANK and PMI_SIZE without PMI_FD
 *   pmi1    PMI_FD is set: mpiexec of MPICH and its kin
 * and where none holds a world of one PE; but an error where a launcher has started several processes that cannot find
 * each other (srun without --mpi=pmi2 or pmix, mpirun without PMIx, mpiexec with -pmi-port), or where two of RANK,
 * WORLD_SIZE and MASTER_ADDR are set and the third is not, or empty, unless WORLD_SIZE is 1. It never waits for PEs
 * that only one of several environments speaks of: a program that is started by both launchers meets by weftrun's.
 *
 * ---- env: torchrun, or a shell ----
 *
 *     torchrun --no-python --nproc-per-node 4 ./program
 *     for r in 0 1 2 3; do RANK=$r WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 ./program & done
 *
 * config.pes 0: the PE is RANK of WORLD_SIZE. Else config.pe and config.pes count, and PE 0 must run on MASTER_ADDR's
 * host. There it listens, while a world forms, at WEFT_PORT, else at MASTER_PORT + 1 (torchrun's own store has
 * MASTER_PORT), on loopback alone when MASTER_ADDR is a loopback address or "localhost", else on all interfaces. PEs
 * come in any order; a name that is not known yet and a connection that is refused are tried again until the deadline.
 * Any number of worlds may be created, one after another or at once, at one port: those at once need different names
 * (config.name). WEFT_SECRET, equal on all PEs, is what they prove to each other that they know; choose a long random
 * one. Without it only processes of one user on one host (and in one network namespace) meet, as the system says who
 * they are; PEs elsewhere are turned away. Who is turned away tries again, since another program may have had the port
 * before PE 0, and has WEFT_ERR_AUTHENTICATION at its deadline; a warning comes within a second. WEFT_INSECURE=1 lets
 * whoever reaches the port take part, and PE 0 logs a warning. A port that another program has is WEFT_ERR_SYSTEM on PE
 * 0 and on the PEs of its host. */

/* ---- pmix: mpirun, srun ----
 *
 *     mpirun -n 4 ./program                srun --mpi=pmix -n 4 ./program
 *
 * Every process of the job is a PE, by its rank: config.pes is 0, or the size of the job with config.pe the rank. PE 0
 * makes a unique id (below), which the others get by PMIx; worlds of one name are created in the same order everywhere.
 * Needs libpmix.so.2 at run time. Beside what a unique id's errors are: WEFT_ERR_UNSUPPORTED (PMIx cannot be loaded),
 * WEFT_ERR_SYSTEM (the launcher's server does not answer), WEFT_ERR_ARGUMENT (another number or size, or built without
 * PMIx). */

/* ---- pmi2, pmi1: srun --mpi=pmi2, mpiexec of MPICH and of Intel MPI, flux ----
 *
 *     srun --mpi=pmi2 -n 4 ./program       mpiexec.hydra -n 4 ./program
 *
 * As pmix, over the socket that the launcher leaves open in PMI_FD; where that is not set, by the launcher's library
 * libpmi2.so.0 or libpmi.so.0. Where the launcher takes names (MPICH's and Slurm's do), config.pe and config.pes may be
 * those of a world of some of the job's processes, with a name of its own. Elsewhere all processes of the job create
 * each world, and one that does not come is not named. In a process that inherited the launcher's variables from a
 * process of the job: WEFT_ERR_ARGUMENT or WEFT_ERR_STATE.
 *
 * ---- mpi, shmem: beside a program's MPI or OpenSHMEM ----
 *
 * The processes of config.mpi_comm (NULL: MPI_COMM_WORLD), or of OpenSHMEM's world, by rank; config.pes is 0 or their
 * number. Collective over them: what weft needs of MPI and OpenSHMEM is an allgather, which waits as long as it likes;
 * then the PEs meet by a unique id. The library must be initialised and loaded in the program; weft links none. Of MPIs
 * those that are Open MPI or have MPICH's ABI (MPICH, Intel MPI, MVAPICH, Cray MPICH); any other by a plugin
 * (examples/bootstrap_plugin/mpi.c). Errors: WEFT_ERR_UNSUPPORTED (none is loaded, or one of another ABI),
 * WEFT_ERR_STATE (not initialised; another thread than MPI's). */

/* ---- plugin ----
 *
 * A library, named by config.bootstrap_plugin or WEFT_BOOTSTRAP_PLUGIN (not followed in a program with more rights than
 * its user), that exports one constant of this type as WEFT_BOOTSTRAP_PLUGIN_SYMBOL. It knows the processes and has an
 * allgather over them; with that the PEs get a unique id, by which they meet. Called in the thread that creates the
 * world: open, one allgather, close. The library stays loaded. */
#define WEFT_BOOTSTRAP_PLUGIN_VERSION 1u
#define WEFT_BOOTSTRAP_PLUGIN_SYMBOL weft_bootstrap_plugin_ops

typedef struct weft_bootstrap_plugin {
    unsigned version; /* WEFT_BOOTSTRAP_PLUGIN_VERSION */
    size_t size; /* sizeof(weft_bootstrap_plugin) */
    /* Find this process's place. `argument` is config.bootstrap_argument. Until timeout_ns have passed, if it can. On
     * success, 0, *pe, *pes and *state are set; else nothing is left. */
    int (*open)(const void *argument, uint64_t timeout_ns, void **state, int *pe, int *pes);
    /* all[i * bytes] becomes process i's `mine`. 0 on success. */
    int (*allgather)(void *state, const void *mine, void *all, size_t bytes);
    void (*close)(void *state); /* after an open that succeeded */
} weft_bootstrap_plugin;

/* ---- unique id ----------------------------------------------------------------------------------------------- */

#define WEFT_UID_BYTES 256

/* A unique id: the addresses of the process that made it and a random secret, as plain bytes. Carry it to the other
 * PEs over a channel that others cannot read: who knows the id can join the world. */
typedef struct weft_uid {
    unsigned char bytes[WEFT_UID_BYTES];
} weft_uid;

/* Make the id of one world. Any thread of the process that will be PE 0, before it creates that world. From here on a
 * port is open and peers may queue at it; weft_world_create of PE 0 takes it over and closes it.
 * `interface` says where to listen: an address; a list of names of network interfaces with commas, of which one that
 * no interface has stands for all that begin so ("eth,ib0"), and "=eth0" for that one alone; or ^ and the list of those
 * not to use ("^docker,lo"). "ip4:" or "ip6:" before it takes addresses of that family alone. NULL: WEFT_UID_INTERFACE,
 * else loopback when nothing else is up, else all interfaces.
 * `interface` "unix": no port is opened; processes of this user, host and network namespace meet by unix sockets. So do
 * those with an id for which no interface, or "lo", was named where libsodium is missing.
 * An id serves one world once; an id that is never used is ended by weft_uid_discard.
 * Errors: WEFT_ERR_ARGUMENT (no such interface), WEFT_ERR_SYSTEM, WEFT_ERR_UNSUPPORTED (an interface is named and weft
 * was built without libsodium, or it cannot be loaded). From weft_world_create with an id of another host's unix
 * sockets: WEFT_ERR_UNSUPPORTED. */
WEFT_API weft_status weft_uid_create(const char *interface, weft_uid *uid) WEFT_MUST_CHECK;

/* Close the port of an id that no world will use. The process that made it; any thread.
 * Errors: WEFT_ERR_ARGUMENT (another process made it, or it was used or discarded), WEFT_ERR_STATE (a world is being
 * created with it), WEFT_ERR_SYSTEM (no descriptor is free, of which it needs one for a moment). */
WEFT_API weft_status weft_uid_discard(const weft_uid *uid);

/* ---- threads of one process ---------------------------------------------------------------------------------- */

typedef struct weft_threads weft_threads;

/* A meeting point for `pes` PEs of this process, each of which creates its world with
 * config.bootstrap = WEFT_BOOTSTRAP_THREADS, config.threads, config.pe and config.pes. Worlds with one meeting point
 * are created one after another; after a failed creation make a new one.
 * The caller owns it and destroys it when no creation is under way. It belongs to the process that made it, as every
 * handle does: see docs/processes.md. */
WEFT_API weft_status weft_threads_create(int pes, weft_threads **threads) WEFT_MUST_CHECK;
WEFT_API void weft_threads_destroy(weft_threads *threads);

/* ---- the embedder's own exchange ----------------------------------------------------------------------------- */

/* An embedder's collectives: an MPI communicator, a torch process group, a store.
 * Called by weft_world_create, in the calling thread, the same sequence on all PEs. A callback returns 0 on success
 * and anything else on failure; it cannot be interrupted, so its own time limit holds, not the world's.
 * allgather: contribute `bytes` bytes at `mine`; on return all[i * bytes ...] is PE i's contribution, for every PE. */
typedef struct weft_callback_ops {
    size_t size; /* sizeof(weft_callback_ops) */
    void *context;
    int (*allgather)(void *context, const void *mine, void *all, size_t bytes);
} weft_callback_ops;

#ifdef __cplusplus
}
#endif
#endif

/* base/env.h: the one table of environment variables, and their parsers.
 *
 * Variables are read when a world is created (WEFT_LOG: also at the first line of a thread that creates none;
 * WEFT_UID_INTERFACE: when an id is made; WEFT_DEVICE_HEAP*: when a device is attached; WEFT_EP_*: when a group of
 * expert parallelism is made, or its bytes are asked for). A value that cannot be parsed is WEFT_ERR_ARGUMENT, with the
 * name, the value and the accepted form in the text. */
#ifndef WEFTI_BASE_ENV_H
#define WEFTI_BASE_ENV_H

#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"

/* X(id, name, kind, default as text, what it is). Kinds: WORD (free text), SIZE (bytes with K, M, G, T), SECONDS
 * (decimal, also fractions; inf), COUNT (a whole number). */
#define WEFTI_ENV_TABLE(X)                                                                                             \
    X(LOG, "WEFT_LOG", WORD, "warn", "least severe log lines shown: none, error, warn, info, debug")                   \
    X(LOG_ERRORS, "WEFT_LOG_ERRORS", COUNT, "1", "0: errors are not logged, since the caller reports statuses")        \
    X(BOOTSTRAP, "WEFT_BOOTSTRAP", WORD, "auto",                                                                       \
      "bootstrap of worlds that name none, by its word, or auto (an unknown word is answered with all)")               \
    X(BOOTSTRAP_PLUGIN, "WEFT_BOOTSTRAP_PLUGIN", WORD, "", "path of a library for the bootstrap plugin")               \
    X(HEAP, "WEFT_HEAP", SIZE, "0", "memory reserved for the symmetric heap of a PE at creation")                      \
    X(HEAP_MAX, "WEFT_HEAP_MAX", SIZE, "0", "most a PE's symmetric heap can grow to; 0: half the memory, at most 64G") \
    X(DEADLINE, "WEFT_DEADLINE", SECONDS, "60", "deadline of every blocking step; inf: until a PE it needs is gone")   \
    X(SILENCE, "WEFT_SILENCE", SECONDS, "5",                                                                           \
      "PEs of another host count as gone after so long without a sign of life from it, 2 at least; inf: never")        \
    X(WARN, "WEFT_WARN", SECONDS, "10", "a PE that waits longer logs whom it waits for; inf: never")                   \
    X(SPIN, "WEFT_SPIN", COUNT, "0", "looks before a waiter yields; 0: by PEs and cores of the node")                  \
    X(COLL, "WEFT_COLL", WORD, "", "collective algorithms to prefer, as in reduce:slices,sync:rounds")                 \
    X(TRACE, "WEFT_TRACE", WORD, "", "file that gets a timeline of what each PE calls, for Perfetto")                  \
    X(TRACE_EVENTS, "WEFT_TRACE_EVENTS", COUNT, "200000", "most events that a PE writes to the timeline")              \
    X(NVTX, "WEFT_NVTX", COUNT, "0", "1: tell NVIDIA's tools of a world's calls, as ranges of the domain \"weft\"")    \
    X(COUNTERS, "WEFT_COUNTERS", COUNT, "0", "1: print a world's counters when it is destroyed")                       \
    X(EP_COUNTS, "WEFT_EP_COUNTS", WORD, "",                                                                           \
      "how counts of expert-parallel routings go: owners or direct; else by size; the same on all ranks")              \
    X(EP_FIRST_CALL, "WEFT_EP_FIRST_CALL", COUNT, "0",                                                                 \
      "calls that a group of expert parallelism on GPUs counts as made: for tests of the wrap at 2^31; the same on "   \
      "all ranks")                                                                                                     \
    X(EP_FEW_RANKS, "WEFT_EP_FEW_RANKS", COUNT, "32",                                                                  \
      "ranks up to which a group of expert parallelism on GPUs has the kernels for few, at most 32: for tests of the " \
      "others; the same on all ranks")                                                                                 \
    X(EP_CHANNELS, "WEFT_EP_CHANNELS", COUNT, "8",                                                                     \
      "rings between two GPUs of different link domains in expert parallelism, 16 at most: for tests; the same "       \
      "everywhere")                                                                                                    \
    X(EP_CHUNK_ROWS, "WEFT_EP_CHUNK_ROWS", COUNT, "0",                                                                 \
      "rows of a chunk of these rings, 0: up to 4: for tests; the same on all ranks")                                  \
    X(EP_DIRECT, "WEFT_EP_DIRECT", COUNT, "32",                                                                        \
      "tokens of a plan of slots, times the ranks of the largest link domain, up to which rows go directly from GPU "  \
      "to GPU and not by forwarders; 0: none; the same on all ranks")                                                  \
    X(EP_MAPPED, "WEFT_EP_MAPPED", COUNT, "1",                                                                         \
      "0: between link domains of one host expert parallelism on GPUs goes by the proxy, as between hosts")            \
    X(TRANSPORT, "WEFT_TRANSPORT", WORD, "",                                                                           \
      "what may connect nodes, in order: networks by name (an unknown one is answered with all names), a library's "   \
      "path; or ^ and what is not; else all of this build")                                                            \
    X(PROGRESS, "WEFT_PROGRESS", WORD, "auto",                                                                         \
      "who sees to what comes from other nodes while nobody waits: thread, inline (calls), or auto (thread)")          \
    X(RMA_BYTES, "WEFT_RMA_BYTES", SIZE, "16K",                                                                        \
      "least bytes of a put or get that the network does by itself, 257 at least; 0: all go by message")               \
    X(RMA_ORDER, "WEFT_RMA_ORDER", WORD, "auto",                                                                       \
      "what keeps order with such puts: provider, counted, completion, or auto (the provider, else completion)")       \
    X(TOPO_FILE, "WEFT_TOPO_FILE", WORD, "", "a description of this machine, or an XML of hwloc, in place of looking") \
    X(NIC_LIST, "WEFT_NIC_LIST", WORD, "", "ports of NICs to use, as mlx5_1:1,mlx5_2:2, or ^ and those not to use")    \
    X(NIC_MAPPING, "WEFT_NIC_MAPPING", WORD, "",                                                                       \
      "ports of NICs for the GPUs of a node in PCI order, as mlx5_0:1:3,mlx5_0:2:5")                                   \
    X(NIC_ROUND_ROBIN, "WEFT_NIC_ROUND_ROBIN", COUNT, "0", "1: GPUs take ports of NICs in turn, not the nearest")      \
    X(NIC_RAILS, "WEFT_NIC_RAILS", WORD, "all",                                                                        \
      "ports of its plan that a PE uses: all, one, or same-slot (all, and to a PE by the port of the same slot)")      \
    X(NODE_ID, "WEFT_NODE_ID", WORD, "", "overrides the identity of this node, so that one host can count as several") \
    X(UID_INTERFACE, "WEFT_UID_INTERFACE", WORD, "",                                                                   \
      "where a unique id listens: unix, an address, or interfaces as eth,ib0 or ^docker; ip4: or ip6: before it")      \
    X(PORT, "WEFT_PORT", COUNT, "0", "where PE 0 listens for the bootstrap env; 0: MASTER_PORT + 1")                   \
    X(SECRET, "WEFT_SECRET", WORD, "", "what the PEs of the bootstrap env prove to know; empty: one host and user")    \
    X(INSECURE, "WEFT_INSECURE", COUNT, "0",                                                                           \
      "1: without WEFT_SECRET whoever reaches the port of the bootstrap env may join")                                 \
    X(PMIX_RANK, "PMIX_RANK", COUNT, "", "set by launchers with PMIx (mpirun, srun --mpi=pmix): the process's number") \
    X(PMIX_NAMESPACE, "PMIX_NAMESPACE", WORD, "", "set by launchers with PMIx: the job")                               \
    X(PMI_FD, "PMI_FD", COUNT, "", "set by launchers with PMI-1 or PMI-2: a connection with them")                     \
    X(PMI_RANK, "PMI_RANK", COUNT, "", "set by launchers with PMI: the process's number")                              \
    X(PMI_SIZE, "PMI_SIZE", COUNT, "", "set by launchers with PMI: the number of processes")                           \
    X(PMI_PORT, "PMI_PORT", WORD, "", "set by launchers with PMI-1 by a port (mpiexec -pmi-port): where it is")        \
    X(PMI_JOBID, "PMI_JOBID", WORD, "", "set by launchers with PMI-2: the job")                                        \
    X(SLURM_STEP_ID, "SLURM_STEP_ID", WORD, "", "set by srun: the number of the step")                                 \
    X(SLURM_STEP_TASKS, "SLURM_STEP_NUM_TASKS", WORD, "", "set by srun: the number of processes")                      \
    X(OMPI_SIZE, "OMPI_COMM_WORLD_SIZE", WORD, "", "set by Open MPI's mpirun: the number of processes")                \
    X(RANK, "RANK", COUNT, "", "set by torchrun: this process's number")                                               \
    X(WORLD_SIZE, "WORLD_SIZE", COUNT, "", "set by torchrun: the number of processes")                                 \
    X(MASTER_ADDR, "MASTER_ADDR", WORD, "", "set by torchrun: the host of process 0, a name or an address")            \
    X(MASTER_PORT, "MASTER_PORT", COUNT, "0", "set by torchrun: a port there, which is torchrun's own")                \
    X(CUDA_VMM, "WEFT_CUDA_VMM", COUNT, "1", "0: share device memory by cudaIpc, in a heap of fixed size")             \
    X(CUDA_FABRIC, "WEFT_CUDA_FABRIC", COUNT, "1",                                                                     \
      "0: link domains of GPUs end at the host, whatever NVLink fabric there is")                                      \
    X(CUDA_DOMAIN, "WEFT_CUDA_DOMAIN", COUNT, "0",                                                                     \
      "PEs of a node, in order, that at most share device memory; 0: all that reach each other, 1: none")              \
    X(CUDA_COPY, "WEFT_CUDA_COPY", SIZE, "0",                                                                          \
      "broadcast, fcollect and alltoall on streams go by copy engines from blocks of so many bytes on; 0: never")      \
    X(DEVICE_HEAP, "WEFT_DEVICE_HEAP", SIZE, "0", "memory a PE's device heap has at first")                            \
    X(DEVICE_HEAP_MAX, "WEFT_DEVICE_HEAP_MAX", SIZE, "0", "most a PE's device heap can grow to; 0: the GPU's memory")  \
    X(LOCAL_JOB, "WEFT_LOCAL_JOB", WORD, "", "set by weftrun: the job's name and secret")                              \
    X(LOCAL_PE, "WEFT_LOCAL_PE", COUNT, "", "set by weftrun: this process's number in the job")                        \
    X(LOCAL_PES, "WEFT_LOCAL_PES", COUNT, "", "set by weftrun: the number of processes of the job")

typedef enum wefti_env_id {
#define WEFTI_ENV_ENUM(id, name, kind, standard, text) WEFTI_ENV_##id,
    WEFTI_ENV_TABLE(WEFTI_ENV_ENUM)
#undef WEFTI_ENV_ENUM
        WEFTI_ENV_COUNT
} wefti_env_id;

/* One row of the table, for tools. */
typedef struct wefti_env_entry {
    const char *name;
    const char *kind;
    const char *standard;
    const char *text;
} wefti_env_entry;
const wefti_env_entry *wefti_env_entry_of(wefti_env_id id);

/* The value as text: the variable if it is set and not empty, else the default. Never NULL. */
const char *wefti_env_word(wefti_env_id id);

/* Whether the variable is set and not empty. */
int wefti_env_is_set(wefti_env_id id);

/* A variable of another library's, for errors: its value, or "not set". */
const char *wefti_env_foreign(const char *name);

/* Parsed values. *value is written on success only. */
weft_status wefti_env_size(wefti_env_id id, uint64_t *value);
weft_status wefti_env_seconds_ns(wefti_env_id id, uint64_t *value);
weft_status wefti_env_count(wefti_env_id id, uint64_t *value);

/* Whether a name begins with WEFT_ and is in no row of the table. *nearest becomes the name in the table of which it
 * may be a typing error, or NULL: other programs have variables that begin so, too. */
int wefti_env_is_unknown(const char *name, const char **nearest);

/* The variables of this process for which that holds, one a call: *at is 0 for the first; 0 is returned after the last.
 * `name` has room for WEFTI_ENV_NAME_BYTES; longer names are passed over. */
#define WEFTI_ENV_NAME_BYTES 64
int wefti_env_next_unknown(size_t *at, char name[WEFTI_ENV_NAME_BYTES], const char **nearest);

/* One line in the log, if there is something in the environment that may be a typing error. */
void wefti_env_warn_of_unknown(const char *who);

#endif

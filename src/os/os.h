/* os/os.h: the seam to the operating system. Everything the library wants of the system goes through here, so that the
 * simulator can stand in: time, randomness, threads, locks, thread-locals, shared memory. Sockets: os/socket.h.
 *
 * Functions that return a weft_status decide their errors (they call wefti_error). */
#ifndef WEFTI_OS_H
#define WEFTI_OS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "weft/status.h"

/* ---- time (os/posix/clock.c) ---- */

/* The time of a monotonic clock in ns. */
uint64_t wefti_os_now_ns(void);
/* Sleep about `ns`; may return early. */
void wefti_os_sleep_ns(uint64_t ns);
/* Let another thread run. */
void wefti_os_yield(void);
/* Between two looks at a word at `address` that another PE will store: give way, for longer the longer it takes. The
 * caller waits for `what` since waited_ns and will give up in left_ns; so many PEs (`pes_per_core`) share a processor.
 * May return at any time. (os/posix/pause.c) */
void wefti_os_pause(const void *address, const char *what, uint64_t waited_ns, uint64_t left_ns, unsigned pes_per_core);
/* How long such a pause is, at most; 0: only another thread is let run. */
uint64_t wefti_os_pause_ns(uint64_t waited_ns, uint64_t left_ns, unsigned pes_per_core);
/* How often a waiter looks before its first pause, at least once, where so many PEs share a processor; `has_far`: what
 * it waits for may come through a network, which has work for this processor, too. */
uint32_t wefti_os_spins(unsigned pes_per_core, int has_far);

/* ---- randomness (os/posix/random.c) ---- */

/* Fill with bytes fit for secrets. */
weft_status wefti_os_random(void *bytes, size_t count);

/* ---- threads (os/posix/thread.c) ---- */

typedef struct wefti_os_thread wefti_os_thread;
weft_status wefti_os_thread_start(wefti_os_thread **thread, void (*body)(void *argument), void *argument);
void wefti_os_thread_join(wefti_os_thread *thread); /* also frees */

/* A mutex and a condition in one; for rare paths. */
typedef struct wefti_os_monitor wefti_os_monitor;
weft_status wefti_os_monitor_create(wefti_os_monitor **monitor);
void wefti_os_monitor_destroy(wefti_os_monitor *monitor);
void wefti_os_monitor_enter(wefti_os_monitor *monitor);
void wefti_os_monitor_leave(wefti_os_monitor *monitor);
/* Leave, sleep until notified or until the monotonic time `until_ns`, enter again. Returns 0 when the time has
 * passed. */
int wefti_os_monitor_wait(wefti_os_monitor *monitor, uint64_t until_ns);
void wefti_os_monitor_notify_all(wefti_os_monitor *monitor);

/* ---- machine (os/posix/machine.c) ---- */

/* The processors this thread may run on. */
typedef struct wefti_os_cores {
    unsigned count; /* at least 1 */
    uint64_t mark; /* equal for two threads of a node that may run on the same ones */
} wefti_os_cores;
wefti_os_cores wefti_os_cores_query(void);

uint64_t wefti_os_memory_bytes(void); /* of the machine */
/* What could be had now without ending another process; UINT64_MAX when that cannot be told. A hint: others take
 * too. */
uint64_t wefti_os_memory_available_bytes(void);
/* The same, apart: what the machine has left, and the tightest control group around this process.
 * (os/posix/available.c) */
typedef struct wefti_os_memory_left {
    uint64_t machine;
    uint64_t group; /* UINT64_MAX: none sets a limit */
    uint64_t group_mark; /* equal for two processes of a host that the same group limits */
} wefti_os_memory_left;
wefti_os_memory_left wefti_os_memory_left_query(void);
size_t wefti_os_page_bytes(void);
int wefti_os_process_number(void); /* the process id, for messages */
int wefti_os_owner_number(void); /* tells a process from those forked from it; a simulation has one */

/* Who the caller is. A node is where PEs can share memory: hosts, network namespaces and users divide, nothing else.
 * Its identity is a hint: systems may share or hide what it is made of. (The node: os/posix/node.c) */
typedef struct wefti_os_identity {
    unsigned char process[16]; /* equal for two callers only if they run in one process */
    unsigned char node[16]; /* of what follows, or of WEFT_NODE_ID in place of all of it */
    uint64_t host;
    uint64_t network; /* the namespace */
    uint64_t user; /* as seen from outside of user namespaces; above all user numbers: none there */
    uint64_t network_file; /* as in net:[4026531840]; 0: unknown */
    uint64_t is_named; /* by WEFT_NODE_ID */
} wefti_os_identity;
weft_status wefti_os_identity_query(wefti_os_identity *out);

/* ---- memory of this process alone (os/posix/owned.c) ---- */

/* Zeroed memory, aligned to a cache line at least, where a process that is forked from this one finds zeros: what lies
 * there belongs to the process that made it. (As far as the system has that: an emulator may not.) NULL: there is none,
 * the caller decides the error. */
void *wefti_os_owned_alloc(size_t bytes);
/* From now on a fork copies it, and it is freed as what wefti_alloc gives. Returns 0 if it cannot be: keep it for
 * good. */
int wefti_os_owned_give(void *memory, size_t bytes);

/* ---- shared memory (os/posix/memory.c) ---- */

#define WEFTI_OS_MEMORY_ALIGNMENT ((size_t)16 << 20) /* of its address in every process */
#define WEFTI_OS_HUGE_PAGE ((size_t)2 << 20)

/* A sparse, anonymous, sealed-size file in memory and its one mapping in this process. `descriptor` can be handed to
 * other processes of the node. Where the program closed it, what needs it is refused or left out, and what its number
 * means then is left alone. */
typedef struct wefti_os_memory {
    int descriptor;
    unsigned char *base;
    size_t bytes;
    uint64_t file; /* which one the descriptor means */
    uint64_t file_system;
    int has_advice; /* to have huge pages where it is reserved; atomic */
} wefti_os_memory;

weft_status wefti_os_memory_create(wefti_os_memory *memory, size_t bytes);
/* Take over `descriptor` (closed on failure too), check that it holds `bytes` and map it. */
weft_status wefti_os_memory_adopt(wefti_os_memory *memory, int descriptor, size_t bytes);
/* Reserve real memory for a page-aligned part, zeroed if it is new. WEFT_ERR_MEMORY when there is none, or when the
 * others who reserve meanwhile leave none; then nothing of the part is reserved. */
weft_status wefti_os_memory_reserve(wefti_os_memory *memory, size_t offset, size_t bytes);
/* Give the memory of a page-aligned part back to the system; it reads as zero afterwards. */
void wefti_os_memory_release(wefti_os_memory *memory, size_t offset, size_t bytes);
/* Sign at place `number` of the memory (a record lock on a byte): all processes that share it see the signature until
 * this process closes the memory, or ends in whatever way. Returns 0 where the system refuses. */
int wefti_os_memory_sign(wefti_os_memory *memory, uint64_t number);
/* Whether another process has signed at `number`; a process does not see its own. Returns 1 if that cannot be told. */
int wefti_os_memory_is_signed(const wefti_os_memory *memory, uint64_t number);
/* Close the descriptor, keep the mapping. Idempotent. */
void wefti_os_memory_close(wefti_os_memory *memory);
/* Unmap and close; safe on zeroed memory and twice. */
void wefti_os_memory_fini(wefti_os_memory *memory);

/* ---- where memory lies (os/posix/placement.c) ---- */

/* The NUMA node of all processors that this thread may run on, by the system's number; -1: several, or not known. */
int wefti_os_numa_here(void);
int wefti_os_numa_is_one(void); /* the machine has no other */
int wefti_os_numa_of_pci(const char *pci); /* -1: none, or not known */
/* New memory of this thread is had from there, if there is any; -1: from the node of its processor. Returns 0 where the
 * system refuses, or the thread has a policy of its own (numactl). */
int wefti_os_numa_prefer(int numa);

#define WEFTI_OS_NUMA_ONE (-1)
#define WEFTI_OS_NUMA_ANY (-2)
#define WEFTI_OS_NUMA_REFUSED (-3)
#define WEFTI_OS_NUMA_POLICY (-4)
typedef enum wefti_os_huge { WEFTI_OS_HUGE_NEVER, WEFTI_OS_HUGE_ADVISED, WEFTI_OS_HUGE_ALWAYS } wefti_os_huge;
typedef struct wefti_os_placement_made {
    int numa; /* a node, or one of the above */
    wefti_os_huge huge;
} wefti_os_placement_made;

/* Have the pages of a part, none of which is reserved yet, on the NUMA node of the calling thread, if it has one, and
 * huge where the system allows. Returns what came of it. */
wefti_os_placement_made wefti_os_memory_place(wefti_os_memory *memory, size_t offset, size_t bytes);
/* Before a part is reserved: have its huge pages, if any were advised. */
void wefti_os_memory_populate(const wefti_os_memory *memory, size_t offset, size_t bytes);
#define WEFTI_OS_PLACEMENT_BYTES 160
const char *wefti_os_placement_text(const wefti_os_placement_made *made, char text[WEFTI_OS_PLACEMENT_BYTES]);

/* ---- a record of several PEs of one process (os/posix/record.c) ---- */

/* What its maker tells the others, who may get to know of it when the maker has left already. */
typedef struct wefti_os_ticket {
    uint64_t address;
    uint64_t file; /* this and the next identify its file for good, whatever the descriptor means later */
    uint64_t file_system;
    int32_t descriptor; /* -1: nobody can join; only its maker closes it */
    uint32_t zero;
} wefti_os_ticket;

#define WEFTI_OS_RECORD_BYTES_MAX 1024

/* Make a zeroed record; the caller is in. *ticket is closed by its maker. */
weft_status wefti_os_record_create(size_t bytes, wefti_os_ticket *ticket, void **record);
/* Join the record of a ticket, in the process that made it. WEFT_ERR_PEER, with no error text set: all have left. */
weft_status wefti_os_record_join(const wefti_os_ticket *ticket, void **record);
/* From here on nobody can join; safe twice and on {.descriptor = -1}. */
void wefti_os_ticket_close(wefti_os_ticket *ticket);
/* Leave; the last PE to leave frees the record. Returns whether that was the caller. */
int wefti_os_record_leave(void *record);
void wefti_os_record_free(void *record);

/* ---- numbers that processes share by name (os/posix/rows.c) ---- */

#define WEFTI_OS_ROWS_MAX 128
#define WEFTI_OS_ROW_NUMBERS 4

typedef struct wefti_os_rows_table {
    int row[WEFTI_OS_ROWS_MAX][WEFTI_OS_ROW_NUMBERS]; /* atomic; each row is written by who holds it */
} wefti_os_rows_table;

/* A table that the processes of this user on this host share, and this opening's row of it, which is zero at first. The
 * row goes when it is closed or the process ends, in whatever way. */
typedef struct wefti_os_rows {
    int descriptor;
    int own; /* row */
    wefti_os_rows_table *table;
} wefti_os_rows;

/* `name`: letters, digits and -. */
weft_status wefti_os_rows_open(wefti_os_rows *rows, const char *name);
/* Clear the rows of processes that have ended. */
void wefti_os_rows_clear_dead(wefti_os_rows *rows);
/* One opening at a time, for a look at all rows and a change of one's own; the threads that share an opening exclude
 * each other. Returns 0 when another process has held it for three seconds. */
int wefti_os_rows_lock(wefti_os_rows *rows);
void wefti_os_rows_unlock(wefti_os_rows *rows);
void wefti_os_rows_close(wefti_os_rows *rows); /* safe on zeroed rows */
void wefti_os_rows_forget(wefti_os_rows *rows); /* the same in a process that was forked from the holder */

/* ---- a file that processes add to (os/posix/journal.c) ---- */

/* Text between a head and a tail, in parts with a separator between them. The file is whole whenever nobody writes. */
typedef struct wefti_os_journal {
    const char *path;
    const char *head;
    const char *separator;
    const char *tail;
} wefti_os_journal;
/* Insert a part at the end. Any process and thread, also at the same time; blocks for three seconds at most, while
 * another has the file. */
weft_status wefti_os_journal_insert(const wefti_os_journal *journal, const char *text, size_t bytes);
/* Remove the file, if it begins with the head. */
void wefti_os_journal_discard(const wefti_os_journal *journal);

/* ---- whether another process of this node is in reach (os/posix/mark.c) ---- */

/* An abstract local socket named by 16 random bytes. It serves no connection: others only look whether it is there. */
typedef struct wefti_os_mark {
    int listener;
} wefti_os_mark;
typedef enum wefti_os_mark_sight {
    WEFTI_OS_MARK_SEEN,
    WEFTI_OS_MARK_UNSEEN, /* it is not there, in this network namespace */
    WEFTI_OS_MARK_FOREIGN, /* it is of another user */
} wefti_os_mark_sight;
weft_status wefti_os_mark_open(wefti_os_mark *mark, const unsigned char name[16]);
/* Look for a mark that is open, if it is in reach. Does not block. */
weft_status wefti_os_mark_look(const unsigned char name[16], wefti_os_mark_sight *sight);
void wefti_os_mark_close(wefti_os_mark *mark); /* safe on {-1} */

/* ---- handing a descriptor to other processes of this node (os/posix/pass.c) ---- */

/* Asked now and then by who waits; not WEFT_OK, with the error decided, ends the wait. */
typedef struct wefti_os_watch {
    weft_status (*check)(void *context);
    void *context;
} wefti_os_watch;

/* An abstract local socket named by 16 random bytes, which takes part in no file system. */
typedef struct wefti_os_pass {
    int listener;
} wefti_os_pass;
weft_status wefti_os_pass_open(wefti_os_pass *pass, const unsigned char name[16]);
/* Serve `descriptor` to `count` takers that know `token`; others are dropped. Blocks at most until `until_ns`. `watch`:
 * NULL for none. */
weft_status wefti_os_pass_serve(wefti_os_pass *pass, const unsigned char token[16], int descriptor, int count,
                                uint64_t until_ns, const wefti_os_watch *watch);
void wefti_os_pass_close(wefti_os_pass *pass); /* safe on {-1} */
/* Take a descriptor from the server named `name`. */
weft_status wefti_os_pass_take(const unsigned char name[16], const unsigned char token[16], uint64_t until_ns,
                               const wefti_os_watch *watch, int *descriptor);

#endif

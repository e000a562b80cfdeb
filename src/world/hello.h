/* world/hello.h: what PEs tell each other through the bootstrap before anything is mapped, and their verdicts. */
#ifndef WEFTI_WORLD_HELLO_H
#define WEFTI_WORLD_HELLO_H

#include "bootstrap/bootstrap.h"
#include "os/os.h"
#include "world/world.h"

#define WEFTI_HELLO_BYTES 256

/* The first four fields and the size are the same in every version, so that any two can be told apart. */
typedef union wefti_hello {
    struct {
        uint64_t magic;
        uint32_t version; /* of the library */
        uint32_t view_abi;
        uint64_t build; /* wefti_build_key */
        uint32_t pe;
        uint32_t pes;
        uint64_t name_hash;
        uint64_t heap_max_bytes; /* as configured; 0: by memory */
        uint64_t heap_bytes;
        uint64_t preferences; /* of collective algorithms, as a number */
        uint64_t heap_auto_bytes; /* what this node's memory suggests */
        wefti_os_identity identity;
        int32_t status; /* not WEFT_OK: this PE cannot take part */
        wefti_os_cores cores; /* of the creating thread */
        wefti_os_memory_left left; /* before any PE of this world has taken memory */
        unsigned char proof[16]; /* random: read back in mapped memory */
    };
    unsigned char room[WEFTI_HELLO_BYTES];
} wefti_hello;
_Static_assert(sizeof(wefti_hello) == WEFTI_HELLO_BYTES, "the fields have room");

/* Where this PE would hand out its memory, and what a taker must know: both follow from the proof, which only the
 * world's PEs know. 16 bytes each. */
void wefti_hello_port(const wefti_hello *hello, unsigned char port[16]);
void wefti_hello_mark(const wefti_hello *hello, unsigned char mark[16]); /* by which it is seen to be in reach */
void wefti_hello_token(const wefti_hello *hello, unsigned char token[16]);

/* A number that is equal for PEs of one process of a node. */
uint64_t wefti_hello_process(const wefti_hello *hello);

/* A number that is this world's alone, from what its PE 0 said. */
uint64_t wefti_hello_key(const wefti_hello *first);

/* Fill in what this PE says. */
weft_status wefti_hello_init(wefti_hello *hello, const wefti_world_settings *settings,
                             const wefti_bootstrap *bootstrap);

/* Whether all PEs run one build of the library, without which nothing more of their hellos can be read; else
 * WEFT_ERR_MISMATCH, as below. */
weft_status wefti_hello_check_builds(const wefti_hello *all, int pes);

/* Whether all PEs agree; else WEFT_ERR_MISMATCH naming the lowest PE that differs from what most say. Every PE comes to
 * the same verdict. */
weft_status wefti_hello_check(const wefti_hello *all, int pes);

/* ---- nodes and processes (apart.c) ---- */

int wefti_hello_same_node(const wefti_hello *a, const wefti_hello *b);
int wefti_hello_same_process(const wefti_hello *a, const wefti_hello *b);
int wefti_hello_one_process(const wefti_hello *all, int pes); /* are all of one process */
/* Whether something connects every PE with every other; else WEFT_ERR_UNREACHABLE naming two and why. Every PE comes to
 * the same verdict. */
weft_status wefti_hello_check_nodes(const wefti_hello *all, int pes);

/* Whether the first heaps of `bytes` that all PEs begin with are less than what is left to `pe`, for itself and those that
 * share it: on its host all of the node, in its control group those of the group (heaps.c). Else WEFT_ERR_MEMORY. */
weft_status wefti_hello_expect_heaps(const wefti_hello *all, int pes, int pe, uint64_t bytes);

/* slots.c: how many PEs have the same place on their node as `pe` has on its own: the first of the node, the second, ...
 * *members lists them in ascending order (wefti_free), *number is that of `pe` among them. */
weft_status wefti_hello_same_slot(const wefti_hello *all, int pes, int pe, int32_t **members, int *count, int *number);

/* What a PE tells the others at the end of a step of creation. */
typedef struct wefti_outcome {
    int32_t status;
    uint32_t zero;
    wefti_os_ticket window; /* to the one that this PE made for its process */
} wefti_outcome;

/* Tell all PEs how a step went on this one; all[i] becomes PE i's outcome. WEFT_OK if it went well everywhere; else the
 * status of the lowest PE on which it failed, of those that did not merely wait for another, with that PE's number and
 * text as the error. */
weft_status wefti_verdict(wefti_bootstrap *bootstrap, const wefti_outcome *mine, wefti_outcome *all);
/* The same once all PEs know all outcomes. */
weft_status wefti_verdict_share(wefti_bootstrap *bootstrap, const wefti_outcome *all);

#endif

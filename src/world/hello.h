/* world/hello.h: what PEs tell each other through the bootstrap before anything is mapped, and their verdicts. */
#ifndef WEFTI_WORLD_HELLO_H
#define WEFTI_WORLD_HELLO_H

#include "bootstrap/bootstrap.h"
#include "os/os.h"
#include "world/world.h"

#define WEFTI_HELLO_BYTES 256
#define WEFTI_HELLO_SECRET_BYTES 16

/* The fields that must be equal on all PEs, in the order in which a difference is reported: X(type, field, its value
 * from `settings` and `bootstrap`, whether that says nothing to a reader, its name in messages). heap_max_bytes is as
 * configured, 0: by memory. */
#define WEFTI_HELLO_EQUAL_TABLE(X)                                                                                     \
    X(uint32_t, pes, (uint32_t)bootstrap->pes, 0, "number of PEs (config.pes)")                                        \
    X(uint64_t, name_hash, hash_name(settings->config.name), 1, "name (config.name)")                                  \
    X(uint64_t, heap_max_bytes, settings->heap_max_bytes, 0, "largest heap (heap_max_bytes, WEFT_HEAP_MAX)")           \
    X(uint64_t, heap_bytes, settings->heap_bytes, 0, "initial heap (heap_bytes, WEFT_HEAP)")                           \
    X(uint64_t, sparse_bytes, settings->config.sparse_bytes, 0, "sparse part of the heap (sparse_bytes)")              \
    X(uint64_t, preferences, wefti_preferences_key(&settings->preferences), 1, "collective algorithms (WEFT_COLL)")

/* The first four fields and the size are the same in every version, so that any two can be told apart. */
typedef union wefti_hello {
    struct {
        uint64_t magic;
        uint32_t version; /* of the library */
        uint32_t view_abi;
        uint64_t build; /* wefti_build_key */
        uint32_t pe;
#define WEFTI_HELLO_FIELD(type, field, value, is_code, name) type field;
        WEFTI_HELLO_EQUAL_TABLE(WEFTI_HELLO_FIELD)
#undef WEFTI_HELLO_FIELD
        unsigned char program[WEFT_PROGRAM_BYTES]; /* equal on all PEs, too */
        uint64_t heap_auto_bytes; /* what this node's memory suggests */
        wefti_os_identity identity;
        uint32_t networks; /* a list of those that this PE could use (world.h) */
        int32_t status; /* not WEFT_OK: this PE cannot take part */
        wefti_os_cores cores; /* of the creating thread */
        wefti_os_memory_left left; /* before any PE of this world has taken memory */
        unsigned char secret[WEFTI_HELLO_SECRET_BYTES]; /* random; PE 0's is the world's */
    };
    unsigned char room[WEFTI_HELLO_BYTES];
} wefti_hello;
_Static_assert(sizeof(wefti_hello) == WEFTI_HELLO_BYTES, "the fields have room");

/* What only the world's PEs can work out of its secret, for one PE each. */
#define WEFTI_HELLO_NAME_BYTES 16
typedef enum wefti_hello_purpose {
    WEFTI_HELLO_PROOF, /* that memory is this PE's: written where others read it */
    WEFTI_HELLO_PORT, /* the socket at which the PE that made a node's memory hands it out */
    WEFTI_HELLO_MARK, /* the mark by which the maker is seen to be in reach */
    WEFTI_HELLO_TOKEN, /* what a PE must know to be given the memory */
} wefti_hello_purpose;
void wefti_hello_derive(const unsigned char secret[WEFTI_HELLO_SECRET_BYTES], wefti_hello_purpose purpose, int pe,
                        unsigned char name[WEFTI_HELLO_NAME_BYTES]);

/* A number that is equal for PEs of one process of a node. */
uint64_t wefti_hello_process(const wefti_hello *hello);

/* A number that is this world's alone. */
uint64_t wefti_hello_key(const unsigned char secret[WEFTI_HELLO_SECRET_BYTES]);

/* Fill in what this PE says. */
weft_status wefti_hello_init(wefti_hello *hello, const wefti_world_settings *settings,
                             const wefti_bootstrap *bootstrap);

/* Whether all PEs run one build of the library, without which nothing more of their hellos can be read; else
 * WEFT_ERR_MISMATCH, as below. */
weft_status wefti_hello_check_builds(const wefti_hello *all, int pes);

/* Whether all PEs agree; else WEFT_ERR_MISMATCH naming the lowest PE that differs from what most say. Every PE comes to
 * the same verdict. */
weft_status wefti_hello_check(const wefti_hello *all, int pes);

/* Whether something may connect every PE with every other: they are on one node, where `why` becomes empty, or have a
 * network in common, where it says of two PEs why they are not on one, and *networks lists those that all have, in PE
 * 0's order. Else WEFT_ERR_UNREACHABLE naming two and why.
 * Every PE comes to the same verdict. (apart.c) */
weft_status wefti_hello_check_nodes(const wefti_hello *all, int pes, char why[WEFTI_ERROR_BYTES], uint32_t *networks);

/* ---- verdicts (verdict.c) ---- */

/* How a step of creation went, of all PEs. Zeroed: well, as far as is known. */
typedef struct wefti_verdict {
    int32_t status; /* WEFT_OK: well everywhere */
    int32_t cause; /* the lowest PE on which it failed, of those that did not merely wait for another */
} wefti_verdict;

/* Take in how it went on `pe`, after all lower ones. */
void wefti_verdict_note(wefti_verdict *verdict, int pe, int32_t status);
/* Return the status of a verdict that all PEs know; on failure the PE that is the cause sends the text of
 * its error to all, and each has that text, with that PE's number, as its own error. */
weft_status wefti_verdict_tell(wefti_bootstrap *bootstrap, const wefti_verdict *verdict);
/* Tell all PEs how a step went on this one, and return the verdict as above. */
weft_status wefti_verdict_reach(wefti_bootstrap *bootstrap, weft_status mine);

#endif

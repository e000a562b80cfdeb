/* world/directory.h: what a PE knows of all PEs of its world once they have met. One PE makes it of the hellos of all,
 * for all: a hello tells more than others need to know, and where PEs are many, telling all of it to each takes the
 * time. */
#ifndef WEFTI_WORLD_DIRECTORY_H
#define WEFTI_WORLD_DIRECTORY_H

#include "world/hello.h"

typedef struct wefti_directory_pe {
    uint32_t node; /* the lowest PE of its node */
    uint32_t process; /* of its process */
    uint32_t cores; /* of those of its node that may run on the same processors */
    uint32_t cores_count; /* how many these are; at least 1 */
    uint32_t group; /* of those of its node that the same control group limits; itself where none does */
} wefti_directory_pe;

typedef struct wefti_directory {
    wefti_verdict verdict; /* whether all can take part, by their hellos; if not, nothing else is set */
    int32_t status; /* whether they fit together; if not, nothing else is set but `text` */
    char text[WEFTI_ERROR_BYTES]; /* the error's; if all is well in a world of several nodes, why two PEs are on two */
    uint32_t networks; /* in a world of several nodes: a list of the networks that all PEs have (world.h) */
    unsigned char secret[WEFTI_HELLO_SECRET_BYTES]; /* PE 0's */
    uint64_t heap_auto_bytes; /* what the node with the least memory suggests */
    wefti_directory_pe pes[];
} wefti_directory;

size_t wefti_directory_bytes(int pes);

/* A wefti_digest_make (bootstrap.h): makes a wefti_directory of all PEs' wefti_hello. */
wefti_digest_make wefti_directory_make;

/* Whether a directory that was received, and says that all is well, is one of `pes` PEs: its numbers are indices. Else
 * WEFT_ERR_MISMATCH. */
weft_status wefti_directory_check(const wefti_directory *directory, int pes);

/* Whether any process has several PEs. */
int wefti_directory_shares_process(const wefti_directory *directory, int pes);

/* Whether the first heaps of `bytes` that all PEs begin with are less than what is `left` to `pe`, for itself and those
 * that share it: on its host all of the node, in its control group those of the group (heaps.c). Else
 * WEFT_ERR_MEMORY. */
weft_status wefti_directory_expect_heaps(const wefti_directory *directory, int pes, int pe,
                                         const wefti_os_memory_left *left, uint64_t bytes);

/* slots.c: how many PEs have the same place on their node as `pe` has on its own: the first of the node, the second,
 * ... *members lists them in ascending order (wefti_free), *number is that of `pe` among them. */
weft_status wefti_directory_same_slot(const wefti_directory *directory, int pes, int pe, int32_t **members, int *count,
                                      int *number);

#endif

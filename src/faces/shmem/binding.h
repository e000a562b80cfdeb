/* faces/shmem/binding.h: what the generated functions are made of. */
#ifndef WEFTI_SHMEM_BINDING_H
#define WEFTI_SHMEM_BINDING_H

#define WEFT_SHMEM_NO_GENERICS
#include <pshmem.h>

#include "faces/shmem/face.h"
#include "weft/rma.h"
#include "weft/strided.h"

/* A call of weft that must succeed, unless there was nothing to do: then a NULL is no mistake. */
#define CHECK(CALL, COUNT)                                                                                             \
    do {                                                                                                               \
        weft_status check_status = (CALL);                                                                             \
        if (!LIKELY(check_status == WEFT_OK) && (COUNT) != 0) {                                                        \
            wefti_shmem_fail(__func__, check_status);                                                                  \
        }                                                                                                              \
    } while (0)

/* Check a pointer argument of a handwritten routine, which is not handed to weft and so not checked there. */
#define NEED(POINTER)                                                                                                  \
    do {                                                                                                               \
        if (!LIKELY((POINTER) != NULL)) {                                                                              \
            wefti_shmem_refuse_null(__func__, #POINTER);                                                               \
        }                                                                                                              \
    } while (0)

/* The arguments of routines as weft takes them. */
#define SYMMETRIC(ADDRESS) wefti_static_translate(ADDRESS)
#define TEAM(HANDLE) wefti_shmem_team(HANDLE)
#define CTX(HANDLE) ((weft_ctx *)(void *)(HANDLE))
#define ACTIVE_SET(START, LOG_STRIDE, SIZE, SYNC) wefti_shmem_active_set(__func__, START, LOG_STRIDE, SIZE, SYNC)

/* A symmetric buffer of a collective, in which a member takes part also where it has no elements, and so perhaps no
 * buffer. */
#define BUFFER(ADDRESS, COUNT) ((COUNT) == 0 && (ADDRESS) == NULL ? (void *)wefti_shmem.notice : SYMMETRIC(ADDRESS))

/* Weft's inline calls are inline here, too, though there are hundreds of functions that make one. */
#define FAST __attribute__((flatten))

/* shmem_NAME is a weak name of pshmem_NAME. */
#define WEAK(NAME, OF) extern __typeof__(OF) NAME __attribute__((weak, alias(#OF), visibility("default")));

#endif

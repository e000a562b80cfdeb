/* faces/shmem/executable.h: where the writable data of the program's executable lie, and which program it is. */
#ifndef WEFTI_SHMEM_EXECUTABLE_H
#define WEFTI_SHMEM_EXECUTABLE_H

#include <stddef.h>
#include <stdint.h>

#include "weft/world.h"

#define WEFTI_EXECUTABLE_PIECES_MAX 16

/* Whole pages that the program may write. Those from `file_end` on were zero when it began. */
typedef struct wefti_executable_piece {
    uintptr_t begin;
    uintptr_t file_end;
    uintptr_t end;
    int protection; /* as mmap's */
} wefti_executable_piece;

/* In ascending order; between them is what is not the program's to write: what the loader has written and then sealed
 * (PT_GNU_RELRO), or nothing. */
typedef struct wefti_executable {
    wefti_executable_piece pieces[WEFTI_EXECUTABLE_PIECES_MAX];
    size_t count;
    int has_more; /* pieces than fit */
    int is_static; /* the C library's own data are among them */
    unsigned char id[WEFT_PROGRAM_BYTES]; /* the build id, else a hash of the program headers */
} wefti_executable;

/* Read the program headers of the process' main program. */
__attribute__((visibility("hidden"))) void wefti_executable_read(wefti_executable *executable);

#endif

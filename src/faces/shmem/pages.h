/* faces/shmem/pages.h: the contents of this process' pages, to a file and back; both may have large holes, which read
 * as zero. Return 0, or -1 with errno set. */
#ifndef WEFTI_SHMEM_PAGES_H
#define WEFTI_SHMEM_PAGES_H

#include <stdint.h>

/* Write the whole pages from `begin` to `end` to `offset` of a file that reads as zero there. Pages of zeros are left
 * out, and from `private_from` on also, without being read, those that the process never touched. */
__attribute__((visibility("hidden"))) int wefti_pages_store(uintptr_t begin, uintptr_t private_from, uintptr_t end,
                                                            int descriptor, uint64_t offset);

/* Read the part of the file that begins at `offset` into zeroed pages. */
__attribute__((visibility("hidden"))) int wefti_pages_load(uintptr_t begin, uintptr_t end, int descriptor,
                                                           uint64_t offset);

#endif

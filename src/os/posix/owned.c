/* os/posix/owned.c: memory that a forked process finds zeroed. It is allocated as other memory is, not mapped
 * by itself, so that a read just after it was freed seldom touches an address that is not mapped any more. */
#include <errno.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "os/os.h"

static size_t rounded_to_pages(size_t bytes)
{
    const size_t page = wefti_os_page_bytes();
    return (bytes + page - 1) / page * page;
}

void *wefti_os_owned_alloc(size_t bytes)
{
    void *memory = wefti_alloc_aligned(wefti_os_page_bytes(), rounded_to_pages(bytes));
    if (memory != NULL) {
        /* Where this fails (Linux before 4.14, huge pages) a fork copies it: only the process id differs then. */
        (void)madvise(memory, rounded_to_pages(bytes), MADV_WIPEONFORK);
    }
    return memory;
}

int wefti_os_owned_give(void *memory, size_t bytes)
{
    /* EINVAL: the system refused WIPEONFORK, too, so a fork copies it anyway. After other failures it wipes it. */
    return madvise(memory, rounded_to_pages(bytes), MADV_KEEPONFORK) == 0 || errno == EINVAL;
}

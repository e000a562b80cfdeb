/* os/posix/owned.c: memory that a forked process finds zeroed. It is had from the same place as all other, so that who
 * reads it a moment after it was freed does not as a rule touch an address that is gone. */
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
        /* Where this fails (Linux before 4.14, huge pages) a fork copies it: the number of the process is left then. */
        (void)madvise(memory, rounded_to_pages(bytes), MADV_WIPEONFORK);
    }
    return memory;
}

int wefti_os_owned_give(void *memory, size_t bytes)
{
    /* Fails where it was refused before, which is no harm; or for lack of mappings: then it is wiped for good. */
    return madvise(memory, rounded_to_pages(bytes), MADV_KEEPONFORK) == 0 || errno == EINVAL;
}

/* The one thread-local of the library. The simulator has a file of its own in place of this. */
#include "base/thread_state.h"

static _Thread_local wefti_thread_state own;

wefti_thread_state *wefti_thread_state_own(void)
{
    return &own;
}

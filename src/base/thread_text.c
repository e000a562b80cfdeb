#include "base/thread_state.h"

char *wefti_thread_text(void)
{
    return wefti_thread_state_own()->last_error;
}

int *wefti_thread_is_hopeless(void)
{
    return &wefti_thread_state_own()->is_hopeless;
}

int *wefti_thread_log_level(void)
{
    return &wefti_thread_state_own()->log_level;
}

int *wefti_thread_expects_error(void)
{
    return &wefti_thread_state_own()->expects_error;
}

wefti_thread_gets *wefti_thread_own_gets(void)
{
    return &wefti_thread_state_own()->gets;
}

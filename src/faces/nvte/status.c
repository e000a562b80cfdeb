/* faces/nvte/status.c: how the thread's last call ended. */
#include <stdarg.h>
#include <stdio.h>

#include "faces/nvte/face.h"

static _Thread_local weft_status last;

weft_status weft_nvte_status(void)
{
    return last;
}

weft_status nvte_end(weft_status status)
{
    last = status;
    return status;
}

weft_status nvte_fail(weft_status status, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return weft_last_error_set(status, text);
}

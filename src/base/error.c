/* base/error.c: the thread's last error. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

const char *weft_last_error(void)
{
    return wefti_thread_text();
}

/* The new text is built aside, since its arguments may be the old text. */
static void set_text(const char *text)
{
    char *own = wefti_thread_text();
    size_t bytes = strnlen(text, WEFTI_ERROR_BYTES - 1);
    memmove(own, text, bytes);
    own[bytes] = '\0';
}

weft_status wefti_error(weft_status status, const char *format, ...)
{
    int error = errno;
    char text[WEFTI_ERROR_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    set_text(text);
    wefti_log(*wefti_thread_expects_error() ? WEFTI_LOG_INFO : WEFTI_LOG_ERROR, "%s (%s)", text,
              weft_status_name(status));
    errno = error;
    return status;
}

weft_status weft_last_error_set(weft_status status, const char *text)
{
    return wefti_error(status, "%s", text != NULL ? text : "");
}

weft_status wefti_error_null(const char *call, const char *argument)
{
    return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument '%s' is NULL", call, argument);
}

weft_status wefti_error_relay(weft_status status, const char *text)
{
    set_text(text);
    wefti_log(WEFTI_LOG_INFO, "%s (%s, decided by another PE)", wefti_thread_text(), weft_status_name(status));
    return status;
}

weft_status wefti_error_context(weft_status status, const char *format, ...)
{
    char text[WEFTI_ERROR_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t used = wanted < 0 ? 0 : (size_t)wanted;
    if (used < sizeof text) {
        (void)snprintf(text + used, sizeof text - used, ": %s", wefti_thread_text());
    }
    set_text(text);
    return status;
}

void wefti_error_expect(int is_expected)
{
    *wefti_thread_expects_error() = is_expected;
}

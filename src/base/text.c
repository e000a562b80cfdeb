#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

void wefti_text_append(wefti_text *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(to->bytes + to->used, to->size - to->used, format, arguments);
    va_end(arguments);
    to->used += more > 0 ? (size_t)more : 0;
    to->used = to->used < to->size ? to->used : to->size - 1;
}

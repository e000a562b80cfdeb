/* Bulk copies into and out of symmetric memory, for mem.h. */
#include "weft/protocol/mem.h"

#ifndef WEFT_SIM

void wefti_copy_bulk(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

#endif

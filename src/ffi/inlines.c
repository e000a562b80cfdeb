/* ffi/inlines.c: the inline calls of the public headers as functions of the library, for dlsym, ctypes and every
 * language that calls C without reading its headers. Here WEFT_INLINE is an external definition; the bodies are the
 * headers'. */
#include "weft/status.h"

#undef WEFT_INLINE
#define WEFT_INLINE WEFT_API

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* some headers define their calls without a declaration */

#include "weft.h"
#include "weft_ep.h"

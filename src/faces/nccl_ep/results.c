/* faces/nccl_ep/results.c: result codes and their texts. */
#include <stdarg.h>
#include <stdio.h>

#include "faces/nccl_ep/face.h"

weft_status nep_status_of(ncclResult_t result)
{
    switch (result) {
    case ncclSuccess:
        return WEFT_OK;
    case ncclInvalidArgument:
        return WEFT_ERR_ARGUMENT;
    case ncclInvalidUsage:
        return WEFT_ERR_UNSUPPORTED;
    case ncclRemoteError:
        return WEFT_ERR_PEER;
    default:
        return WEFT_ERR_SYSTEM;
    }
}

ncclResult_t nep_fail(ncclResult_t result, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)weft_last_error_set(nep_status_of(result), text);
    return result;
}

ncclResult_t nep_result_of(weft_status status)
{
    switch (status) {
    case WEFT_OK:
        return ncclSuccess;
    case WEFT_ERR_ARGUMENT:
    case WEFT_ERR_RANGE:
    case WEFT_ERR_MISMATCH:
        return ncclInvalidArgument;
    case WEFT_ERR_UNSUPPORTED:
    case WEFT_ERR_STATE:
    case WEFT_ERR_OVERFLOW:
        return ncclInvalidUsage;
    case WEFT_ERR_TIMEOUT:
    case WEFT_ERR_PEER:
    case WEFT_ERR_ABORTED:
        return ncclRemoteError;
    default:
        return ncclSystemError;
    }
}

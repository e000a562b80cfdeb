/* base/error.h: how a function that decides an error reports it.
 *
 * The function that first decides an error calls wefti_error, which keeps the text as the thread's last error, logs it
 * and returns the status. Nobody above logs it again; a caller that knows more replaces the text with
 * wefti_error_context. Where the text is kept: base/thread_state.h. */
#ifndef WEFTI_BASE_ERROR_H
#define WEFTI_BASE_ERROR_H

#include "base/thread_state.h"
#include "weft/status.h"

/* Decide an error: who, what, and the remedy, as one sentence without a newline. Returns `status`. */
weft_status wefti_error(weft_status status, const char *format, ...) WEFT_PRINTF(2, 3);

/* Decide that the argument of that name in the declaration of `call` is NULL. Returns WEFT_ERR_ARGUMENT. */
weft_status wefti_error_null(const char *call, const char *argument);

/* Take over an error that another PE decided: the text becomes this thread's last error; logged at info level only,
 * since that PE has logged it. Returns `status`. */
weft_status wefti_error_relay(weft_status status, const char *text);

/* Put "format: " before the last error. Returns `status`. */
weft_status wefti_error_context(weft_status status, const char *format, ...) WEFT_PRINTF(2, 3);

/* While this thread tries what may fail without harm, its errors are logged at info level only. */
void wefti_error_expect(int is_expected);

#endif

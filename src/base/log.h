/* base/log.h: log lines on standard error, filtered by WEFT_LOG (none, error, warn, info, debug; default warn).
 *
 * One line is one write: "weft[pid] level: text". Logging is for rare events; nothing on a fast path logs.
 *
 * WEFT_LOG is read when a thread creates a world and, in one that never did, at its first line; a thread that the
 * library starts has it from the one that started it. Not at each line: the program's other threads may be changing
 * variables. */
#ifndef WEFTI_BASE_LOG_H
#define WEFTI_BASE_LOG_H

#include "weft/status.h"

typedef enum wefti_log_level {
    WEFTI_LOG_NONE = 0,
    WEFTI_LOG_ERROR,
    WEFTI_LOG_WARN,
    WEFTI_LOG_INFO,
    WEFTI_LOG_DEBUG,
    WEFTI_LOG_ASKED /* what the user has asked for: shown whatever WEFT_LOG says */
} wefti_log_level;

/* Read WEFT_LOG for this thread. */
void wefti_log_read(void);

void wefti_log(wefti_log_level level, const char *format, ...) WEFT_PRINTF(2, 3);

#endif

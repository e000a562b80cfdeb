/* base/log.h: log lines on standard error, filtered by WEFT_LOG (none, error, warn, info, debug; default warn).
 *
 * One line is one write: "weft[pid] level: text". Logging is for rare events; nothing on a fast path logs. */
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

void wefti_log(wefti_log_level level, const char *format, ...) WEFT_PRINTF(2, 3);

#endif

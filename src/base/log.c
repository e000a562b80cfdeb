/* base/log.c: log lines on standard error. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/held_signals.h"
#include "base/thread_state.h"

#define LINE_BYTES 2048

static const char *const level_names[] = {"none", "error", "warn", "info", "debug", "counters"};

/* An unknown word shows what the default shows. */
static wefti_log_level level_of(const char *word)
{
    for (int level = WEFTI_LOG_NONE; level <= WEFTI_LOG_DEBUG; level++) {
        if (strcmp(word, level_names[level]) == 0) {
            return (wefti_log_level)level;
        }
    }
    return WEFTI_LOG_WARN;
}

/* A bit of the thread's log_level, beside 1 + the level: errors are not logged. */
#define WITHOUT_ERRORS 256

void wefti_log_read(void)
{
    const int without_errors = strcmp(wefti_env_word(WEFTI_ENV_LOG_ERRORS), "0") == 0;
    *wefti_thread_log_level() =
        1 + (int)level_of(wefti_env_word(WEFTI_ENV_LOG)) + (without_errors ? WITHOUT_ERRORS : 0);
}

static int is_shown(wefti_log_level level)
{
    const int *word = wefti_thread_log_level();
    if (*word == 0) {
        wefti_log_read();
    }
    const int least_severe = *word % WITHOUT_ERRORS - 1;
    return (int)level <= least_severe && (level != WEFTI_LOG_ERROR || *word < WITHOUT_ERRORS);
}

/* Append at line[used]; what does not fit is cut. Returns the new length, at most LINE_BYTES - 1. */
static size_t append(char *line, size_t used, const char *format, va_list arguments)
{
    int wanted = vsnprintf(line + used, LINE_BYTES - used, format, arguments);
    if (wanted < 0) {
        return used;
    }
    size_t end = used + (size_t)wanted;
    return end < LINE_BYTES ? end : LINE_BYTES - 1;
}

void wefti_log(wefti_log_level level, const char *format, ...)
{
    if (level == WEFTI_LOG_NONE || (level != WEFTI_LOG_ASKED && !is_shown(level))) {
        return;
    }
    int error = errno;
    char line[LINE_BYTES];
    int head = snprintf(line, sizeof line, "weft[%d] %s: ", (int)getpid(), level_names[level]);
    va_list arguments;
    va_start(arguments, format);
    size_t used = append(line, (size_t)head, format, arguments);
    va_end(arguments);
    if (used > LINE_BYTES - 2) {
        used = LINE_BYTES - 2;
    }
    line[used++] = '\n';
    const wefti_held_signals held = wefti_signals_hold();
    ssize_t written = write(STDERR_FILENO, line, used);
    (void)written; /* there is nobody left to tell */
    wefti_signals_release(&held);
    errno = error;
}

/* faces/nvshmem/environment.c: environment variables: those of variables.h, and what the world takes of them. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/size.h"
#include "faces/nvshmem/setup.h"
#include "faces/nvshmem/variables.h"

/* What the library itself takes from the heap, beside what the program asks for: scratch of teams. */
#define OWN_BYTES ((uint64_t)64 << 20)

typedef struct variable {
    const char *name;
    wefti_nv_kind kind;
    const char *text;
} variable;

static const variable variables[] = {
#define VARIABLE(NAME, KIND, TEXT) {#NAME, WEFTI_NV_##KIND, TEXT},
    WEFTI_NV_VARIABLES(VARIABLE)
#undef VARIABLE
};
#define COUNT (sizeof variables / sizeof variables[0])

const char *wefti_nv_variable(const char *name)
{
    char whole[96];
    (void)snprintf(whole, sizeof whole, "NVSHMEM_%s", name);
    const char *value = getenv(whole);
    return value == NULL || value[0] == 0 ? NULL : value;
}

int wefti_nv_is_on(const char *name)
{
    const char *value = wefti_nv_variable(name);
    return value != NULL && strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0 && strcasecmp(value, "off") != 0;
}

/* ---- the size of the heap ---- */

static int read_size(const char *call, const char *text, uint64_t *size)
{
    if (!wefti_size_parse(text, size)) {
        char cause[256];
        (void)snprintf(
            cause, sizeof cause,
            "NVSHMEM_SYMMETRIC_SIZE is \"%.100s\"; give a positive number, with k, m, g or t after it or nothing",
            text);
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_INVALID_VALUE, cause);
    }
    return NVSHMEMX_SUCCESS;
}

/* ---- a debugger's time ---- */

static int sleep_first(const char *call)
{
    static int has_slept;
    const char *text = wefti_nv_variable("DEBUG_ATTACH_DELAY");
    char *end;
    if (text == NULL || has_slept) {
        return NVSHMEMX_SUCCESS;
    }
    const long seconds = strtol(text, &end, 10);
    if (end == text || *end != 0 || seconds < 0 || seconds > INT_MAX) {
        char cause[256];
        (void)snprintf(cause, sizeof cause, "NVSHMEM_DEBUG_ATTACH_DELAY is \"%.100s\"; give a number of seconds", text);
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_INVALID_VALUE, cause);
    }
    has_slept = 1;
    for (unsigned left = (unsigned)seconds; left > 0;) {
        left = sleep(left);
    }
    return NVSHMEMX_SUCCESS;
}

/* ---- what weft is told ---- */

static void set_log(void)
{
    static const char *const levels[][2] = {{"WARN", "warn"}, {"INFO", "info"}, {"ABORT", "error"}, {"TRACE", "debug"}};
    const char *said = wefti_nv_variable("DEBUG");
    for (size_t i = 0; said != NULL && i < sizeof levels / sizeof levels[0]; i++) {
        if (strcasecmp(said, levels[i][0]) == 0) {
            (void)setenv("WEFT_LOG", levels[i][1], 0);
        }
    }
    /* A call that fails returns its error; weft logs it only if the program asked for that. */
    (void)setenv("WEFT_LOG_ERRORS", said != NULL ? "1" : "0", 0);
}

int wefti_nv_environment(const char *call, weft_world_config *config)
{
    const char *text = wefti_nv_variable("SYMMETRIC_SIZE");
    const char *deadline = getenv("WEFT_DEADLINE");
    set_log();
    if (deadline == NULL || deadline[0] == 0) {
        config->deadline_ns = WEFT_FOREVER; /* NVSHMEM has no deadlines */
    }
    if (text != NULL) {
        uint64_t size;
        int result = read_size(call, text, &size);
        if (result != NVSHMEMX_SUCCESS) {
            return result;
        }
        config->heap_max_bytes = (size_t)(size + OWN_BYTES);
    }
    return sleep_first(call);
}

/* ---- what is printed, by the first PE ---- */

static void print_variables(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        const char *value = wefti_nv_variable(variables[i].name);
        const char *what = variables[i].kind == WEFTI_NV_TAKEN     ? ""
                           : variables[i].kind == WEFTI_NV_INSTEAD ? "not read; instead: "
                                                                   : "without effect: ";
        (void)printf("NVSHMEM_%s\n    %s%s\n    %s\n", variables[i].name, what, variables[i].text,
                     value != NULL ? value : "(not set)");
    }
}

static void warn_of_others(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (variables[i].kind == WEFTI_NV_INSTEAD && wefti_nv_variable(variables[i].name) != NULL) {
            (void)fprintf(stderr, "NVSHMEM_%s is set, and not read by weft; instead: %s\n", variables[i].name,
                          variables[i].text);
        }
    }
}

void wefti_nv_print(void)
{
    const char *debug = wefti_nv_variable("DEBUG");
    if (weft_world_pe(wefti_nvshmem.world) != 0) {
        return;
    }
    if (wefti_nv_is_on("VERSION") || (debug != NULL && strcasecmp(debug, "VERSION") == 0)) {
        (void)printf("%s, weft %s\n", NVSHMEM_VENDOR_STRING, weft_version_text());
    }
    if (wefti_nv_is_on("INFO")) {
        print_variables();
    }
    warn_of_others();
    (void)fflush(stdout);
}

/* faces/shmem/environment.c: environment variables. (OpenSHMEM 1.6, 8.) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/size.h"
#include "faces/shmem/setup.h"

/* X(NAME, what it does): SHMEM_NAME, or SMA_NAME, which is deprecated. */
#define VARIABLES(X)                                                                                                   \
    X(SYMMETRIC_SIZE, "bytes of the symmetric heap of a PE, at least; with k, m, g or t, as in 20m or 3.1G")           \
    X(VERSION, "if set: print the library's version at start-up")                                                      \
    X(INFO, "if set: print this text at start-up")                                                                     \
    X(DEBUG, "if set: print what the library does")

/* What the library itself takes from the heap, beside what the program asks for: scratch of teams. */
#define OWN_BYTES ((uint64_t)64 << 20)

/* The value of SHMEM_NAME, else of SMA_NAME; NULL if neither is set. */
static const char *value_of(const char *name)
{
    static const char *const prefixes[] = {"SHMEM_", "SMA_"};
    for (int i = 0; i < 2; i++) {
        char variable[64];
        (void)snprintf(variable, sizeof variable, "%s%s", prefixes[i], name);
        const char *value = getenv(variable);
        if (value != NULL) {
            return value;
        }
    }
    return NULL;
}

static uint64_t parse_size(const char *call, const char *text)
{
    uint64_t size = 0;
    if (!wefti_size_parse(text, &size)) {
        char cause[256];
        (void)snprintf(
            cause, sizeof cause,
            "SHMEM_SYMMETRIC_SIZE is \"%.100s\"; give a positive number, with k, m, g or t after it or nothing", text);
        wefti_shmem_refuse(call, cause);
    }
    return size;
}

/* Weft's own log of errors is off: a routine that ends the program prints why itself, also before init, and a failure
 * that it only returns is not printed. */
__attribute__((constructor)) static void keep_errors_from_log(void)
{
    (void)setenv("WEFT_LOG_ERRORS", value_of("DEBUG") != NULL ? "1" : "0", 0);
}

void wefti_shmem_environment(const char *call, weft_world_config *config)
{
    const char *size = value_of("SYMMETRIC_SIZE");
    const char *deadline = getenv("WEFT_DEADLINE");
    config->name = "shmem";
    if (deadline == NULL || deadline[0] == 0) {
        config->deadline_ns = WEFT_FOREVER; /* OpenSHMEM has no deadlines */
    }
    if (size != NULL) {
        config->heap_max_bytes = (size_t)(parse_size(call, size) + OWN_BYTES);
    }
    if (value_of("DEBUG") != NULL) {
        (void)setenv("WEFT_LOG", "debug", 0);
    }
}

static void print_debug(const weft_world *world)
{
    char map[1024];
    (void)weft_world_transport_map(world, map, sizeof map);
    (void)fprintf(
        stderr, "PE %d of %d: process %d; thread level %d; %zu bytes of static data are symmetric; reaches\n%s",
        weft_world_pe(world), weft_world_pes(world), (int)getpid(), wefti_shmem.thread_level, wefti_static.bytes, map);
}

void wefti_shmem_print(void)
{
    const int is_first = weft_world_pe(wefti_shmem.world) == 0;
    if (value_of("DEBUG") != NULL) {
        print_debug(wefti_shmem.world);
    }
    if (is_first && value_of("VERSION") != NULL) {
        (void)printf("OpenSHMEM %d.%d, weft %s\n", SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, weft_version_text());
    }
    if (is_first && value_of("INFO") != NULL) {
#define PRINT_VARIABLE(NAME, TEXT)                                                                                     \
    (void)printf("SHMEM_%-16s%s\n%22s%s\n", #NAME, TEXT, "", value_of(#NAME) != NULL ? value_of(#NAME) : "(not set)");
        VARIABLES(PRINT_VARIABLE)
#undef PRINT_VARIABLE
    }
    (void)fflush(stdout);
}

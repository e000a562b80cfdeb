/* Start: how long it takes from nothing until PEs have met: `weftrun -n N hello`, from its start to its end, and the
 * creation of a world whose PEs are threads of one process and meet by a unique id. Run it alone, from anywhere:
 * `bench_start [--pes N] [--threads N] [--json FILE] [--blocks N]`. See bench/README.md. */
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite/options.h"
#include "tools/lib/clock.h"
#include "tools/lib/record.h"
#include "weft.h"

extern char **environ;

/* Where this program lies: weftrun and hello lie beside it. */
static int find_beside(char *folder, size_t bytes)
{
    ssize_t length = readlink("/proc/self/exe", folder, bytes - 1);
    if (length < 0) {
        return -1;
    }
    folder[length] = '\0';
    (void)dirname(folder);
    return 0;
}

/* weftrun with its output thrown away: its duration in ms, or a negative number. */
static double run_hello(const char *folder, char *pes)
{
    char option[] = "-n";
    char weftrun[PATH_MAX + 16];
    char hello[PATH_MAX + 16];
    (void)snprintf(weftrun, sizeof weftrun, "%s/weftrun", folder);
    (void)snprintf(hello, sizeof hello, "%s/hello", folder);
    char *const arguments[] = {weftrun, option, pes, hello, NULL};
    posix_spawn_file_actions_t quiet;
    pid_t pid;
    int status = -1;
    if (posix_spawn_file_actions_init(&quiet) != 0 ||
        posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", 1, 0) != 0) {
        return -1;
    }
    uint64_t start = tool_now_ns();
    if (posix_spawn(&pid, weftrun, &quiet, NULL, arguments, environ) == 0) {
        (void)waitpid(pid, &status, 0);
    }
    uint64_t end = tool_now_ns();
    (void)posix_spawn_file_actions_destroy(&quiet);
    return status == 0 ? (double)(end - start) * 1e-6 : -1;
}

static int bench_hello(const bench_options *options, int pes)
{
    char folder[PATH_MAX];
    char number[16];
    tool_samples samples = {0};
    tool_record record;
    (void)snprintf(number, sizeof number, "%d", pes);
    if (find_beside(folder, sizeof folder) != 0 || tool_record_open(&record, options->json, "weft", 0, pes) != 0) {
        return -1;
    }
    for (int i = 0; i < options->blocks; i++) {
        double ms = run_hello(folder, number);
        if (ms < 0) {
            fprintf(stderr, "%s/weftrun -n %s hello failed\n", folder, number);
            return -1;
        }
        tool_samples_add(&samples, ms);
    }
    tool_record_write(&record, &(tool_measurement){.name = "hello", .unit = "ms"}, &samples);
    tool_record_close(&record);
    return 0;
}

static int said(weft_status status)
{
    if (status != WEFT_OK) {
        fprintf(stderr, "%s: %s\n", weft_status_name(status), weft_last_error());
    }
    return status != WEFT_OK;
}

/* One world of `pes` threads: the duration of its creation in ms, or a negative number. */
static double create_threads(int pes, weft_world_config *configs, weft_world **worlds)
{
    weft_uid uid;
    if (said(weft_uid_create("lo", &uid))) {
        return -1;
    }
    for (int pe = 0; pe < pes; pe++) {
        configs[pe] = (weft_world_config)WEFT_WORLD_CONFIG_INIT;
        configs[pe].bootstrap = WEFT_BOOTSTRAP_UID;
        configs[pe].uid = &uid;
        configs[pe].pe = pe;
        configs[pe].pes = pes;
        configs[pe].heap_max_bytes = (size_t)1 << 20;
    }
    uint64_t start = tool_now_ns();
    if (said(weft_world_create_many(configs, (size_t)pes, worlds))) {
        return -1;
    }
    double ms = (double)(tool_now_ns() - start) * 1e-6;
    for (int pe = 0; pe < pes; pe++) {
        if (said(weft_world_destroy(worlds[pe]))) {
            return -1;
        }
    }
    return ms;
}

static int bench_threads(const bench_options *options, int pes)
{
    weft_world_config *configs = calloc((size_t)pes, sizeof *configs);
    weft_world **worlds = calloc((size_t)pes, sizeof *worlds);
    tool_samples samples = {0};
    tool_record record;
    int failed = configs == NULL || worlds == NULL || tool_record_open(&record, options->json, "weft", 0, pes) != 0;
    for (int i = 0; i < options->blocks && !failed; i++) {
        double ms = create_threads(pes, configs, worlds);
        failed = ms < 0;
        tool_samples_add(&samples, ms);
    }
    if (!failed) {
        const tool_measurement figure = {.name = "world_create", .unit = "ms", .more = "\"mode\": \"threads by uid\""};
        tool_record_write(&record, &figure, &samples);
        tool_record_close(&record);
    }
    free(configs);
    free(worlds);
    return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
    int pes = 64;
    int threads = 512;
    const tool_option own[] = {BENCH_NUMBER("pes", &pes), BENCH_NUMBER("threads", &threads)};
    bench_options options = BENCH_OPTIONS_INIT;
    options.blocks = 5;
    if (bench_options_read(&options, own, 2, argc, argv) != 0) {
        return 1;
    }
    return bench_hello(&options, pes) != 0 || bench_threads(&options, threads) != 0;
}

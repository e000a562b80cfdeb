/* tools/weftrun/options.c: the command line of weftrun. */
#include "tools/weftrun/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2
#define PES_MAX 4096
#define KILL_AFTER_NS UINT64_C(2000000000)

static const char help[] =
    "usage: weftrun -n N [options] program [arguments]\n"
    "\n"
    "Start N processes of a program on this machine as the PEs of a job. weft_world_create in them\n"
    "finds the others without further ado.\n"
    "\n"
    "  -n, --pes N               the number of PEs, 1 to 4096\n"
    "  -t, --timeout SECONDS     end all and exit with 124 when the job takes longer\n"
    "  -x, --set NAME=VALUE      set an environment variable in all PEs; may be repeated\n"
    "  -b, --bind                pin PE i to core i modulo the number of cores; so by default where the PEs\n"
    "                            are a multiple of the cores, more than one each\n"
    "  -f, --no-bind             let the PEs float\n"
    "  -k, --keep-going          when a PE fails, let the others go on\n"
    "      --kill-after SECONDS  how long PEs that are to end may take before they are killed (default 2)\n"
    "  -l, --lines               no prefixes: lines as they are, each whole\n"
    "  -q, --raw                 no prefixes: the PEs write to this output themselves\n"
    "  -h, --help                this text\n"
    "\n"
    "Each line of output begins with \"[PE] \" unless told otherwise. Standard input goes to PE 0. SIGINT, SIGTERM, "
    "SIGHUP,\n"
    "SIGUSR1 and SIGUSR2 are passed on to all PEs, the first three with SIGCONT for those that are\n"
    "stopped. When a PE fails, weftrun says which and why, ends the others with SIGTERM (then SIGKILL)\n"
    "and exits with its code, 128 + the signal if it was killed, 127\n"
    "or 126 if the program cannot be started, 1 if what the PEs write cannot be written (a full disk).\n"
    "No PE outlives weftrun.\n";

static int usage_error(const char *problem, const char *value)
{
    (void)fprintf(stderr, "weftrun: %s%s%s; see weftrun --help\n", problem, value[0] != '\0' ? ": " : "", value);
    return EXIT_USAGE;
}

static int parse_pes(const char *text, int *pes)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 1 || value > PES_MAX) {
        return usage_error("the number of PEs must be from 1 to 4096", text);
    }
    *pes = (int)value;
    return RUN_GO_ON;
}

static int parse_seconds(const char *text, uint64_t *ns)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !isfinite(value) || value < 0 || value > 1e9) {
        return usage_error("a time must be a number of seconds", text);
    }
    *ns = (uint64_t)(value * 1e9);
    return RUN_GO_ON;
}

static int add_assignment(run_options *options, char *text)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text) {
        return usage_error("a variable must be given as NAME=VALUE", text);
    }
    options->assignments[options->assignment_count++] = text;
    return RUN_GO_ON;
}

enum { OPTION_KILL_AFTER = 256 };

static int apply(run_options *options, int letter, char *value)
{
    switch (letter) {
    case 'n':
        return parse_pes(value, &options->pes);
    case 't':
        return parse_seconds(value, &options->timeout_ns);
    case OPTION_KILL_AFTER:
        return parse_seconds(value, &options->kill_after_ns);
    case 'x':
        return add_assignment(options, value);
    case 'b':
        options->binding = RUN_BIND;
        return RUN_GO_ON;
    case 'f':
        options->binding = RUN_FLOAT;
        return RUN_GO_ON;
    case 'k':
        options->keeps_going = 1;
        return RUN_GO_ON;
    case 'l':
        options->is_plain = 1;
        return RUN_GO_ON;
    case 'q':
        options->is_raw = 1;
        return RUN_GO_ON;
    case 'h':
        (void)fputs(help, stdout);
        return 0;
    default: /* getopt has said what is wrong */
        return usage_error("bad usage", "");
    }
}

static int parse_all(run_options *options, int argc, char **argv)
{
    static const struct option table[] = {
        {"pes", required_argument, NULL, 'n'},
        {"timeout", required_argument, NULL, 't'},
        {"set", required_argument, NULL, 'x'},
        {"bind", no_argument, NULL, 'b'},
        {"no-bind", no_argument, NULL, 'f'},
        {"keep-going", no_argument, NULL, 'k'},
        {"kill-after", required_argument, NULL, OPTION_KILL_AFTER},
        {"lines", no_argument, NULL, 'l'},
        {"raw", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int letter;
    while ((letter = getopt_long(argc, argv, "+n:t:x:bfklqh", table, NULL)) != -1) {
        int code = apply(options, letter, optarg);
        if (code != RUN_GO_ON) {
            return code;
        }
    }
    if (options->pes == 0) {
        return usage_error("-n N is missing", "");
    }
    if (optind == argc) {
        return usage_error("the program is missing", "");
    }
    options->program = &argv[optind];
    return RUN_GO_ON;
}

int run_options_parse(run_options *options, int argc, char **argv)
{
    memset(options, 0, sizeof *options);
    options->kill_after_ns = KILL_AFTER_NS;
    options->assignments = calloc((size_t)argc + 1, sizeof *options->assignments);
    if (options->assignments == NULL) {
        (void)fprintf(stderr, "weftrun: no memory\n");
        return 1;
    }
    int code = parse_all(options, argc, argv);
    if (code != RUN_GO_ON) {
        run_options_fini(options);
    }
    return code;
}

void run_options_fini(run_options *options)
{
    free(options->assignments);
    options->assignments = NULL;
}

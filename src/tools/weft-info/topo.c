/* tools/weft-info/topo.c: the command line of weft-info topo. */
#include "tools/weft-info/topo.h"

#include <getopt.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "topo/nic_of_pe.h"

#define EXIT_USAGE 2
#define PES_MAX 1000000

extern char **environ;

static const char help[] =
    "usage: weft-info topo [options]\n"
    "\n"
    "Show a machine: its GPUs, NICs and what lies between, which port of a NIC each GPU uses and why, and which GPUs\n"
    "load and store each other's memory (link domains).\n"
    "\n"
    "  -m, --machine FILE   a description (see docs/topology.md) or an XML that lstopo wrote; else WEFT_TOPO_FILE or "
    "this\n"
    "                       machine\n"
    "  -n, --pes N          PEs; else one a GPU, or one a host\n"
    "      --map LIST       ports for the GPUs in PCI order, as mlx5_0:1:3,mlx5_0:2:5; else WEFT_NIC_MAPPING\n"
    "      --list LIST      ports to use, as mlx5_1:1,mlx5_2:2, or ^ and those not to use; else WEFT_NIC_LIST\n"
    "      --round-robin    GPUs take the ports in turn; else WEFT_NIC_ROUND_ROBIN\n"
    "  -j, --json           one JSON object, with a member for each table\n"
    "      --dot            a graph in the language of graphviz\n"
    "      --svg FILE       draw it, by graphviz's dot\n"
    "  -h, --help           this text\n"
    "\n"
    "Exits with 1 when the machine or a list cannot be read, which one line says, and with 2 when the command line is\n"
    "wrong.\n";

enum { OPTION_MAP = 256, OPTION_LIST, OPTION_ROUND_ROBIN, OPTION_DOT, OPTION_SVG };
#define GO_ON (-1)

static int parse_pes(const char *text, int *pes)
{
    char *end;
    const long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < 1 || number > PES_MAX) {
        (void)fprintf(stderr, "weft-info topo: --pes \"%s\" is no number of 1 .. %d\n", text, PES_MAX);
        return EXIT_USAGE;
    }
    *pes = (int)number;
    return GO_ON;
}

static void parse_lists(info_topo_options *options, int letter)
{
    switch (letter) {
    case OPTION_MAP:
        options->wish.mapping = optarg;
        options->wish.mapping_name = "--map";
        break;
    case OPTION_LIST:
        options->wish.list = optarg;
        options->wish.list_name = "--list";
        break;
    case OPTION_ROUND_ROBIN:
        options->wish.is_round_robin = 1;
        break;
    case OPTION_DOT:
        options->is_dot = 1;
        break;
    default:
        options->svg = optarg;
        break;
    }
}

static int parse(info_topo_options *options, int argc, char **argv)
{
    static const struct option table[] = {{"machine", required_argument, NULL, 'm'},
                                          {"pes", required_argument, NULL, 'n'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"map", required_argument, NULL, OPTION_MAP},
                                          {"list", required_argument, NULL, OPTION_LIST},
                                          {"round-robin", no_argument, NULL, OPTION_ROUND_ROBIN},
                                          {"dot", no_argument, NULL, OPTION_DOT},
                                          {"svg", required_argument, NULL, OPTION_SVG},
                                          {NULL, 0, NULL, 0}};
    int letter;
    int code = GO_ON;
    while (code == GO_ON && (letter = getopt_long(argc, argv, "m:n:jh", table, NULL)) != -1) {
        switch (letter) {
        case 'm':
            options->machine = optarg;
            break;
        case 'n':
            code = parse_pes(optarg, &options->pes);
            break;
        case 'j':
            options->is_json = 1;
            break;
        case 'h':
            (void)fputs(help, stdout);
            return 0;
        case '?':
            (void)fputs("weft-info topo: bad usage; see weft-info topo --help\n", stderr);
            return EXIT_USAGE;
        default:
            parse_lists(options, letter);
            break;
        }
    }
    if (code == GO_ON && optind < argc) {
        (void)fprintf(stderr, "weft-info topo: \"%s\" is not understood; see weft-info topo --help\n", argv[optind]);
        return EXIT_USAGE;
    }
    return code;
}

/* dot reads the graph from a pipe. */
static int draw_svg(const info_topo *all, const char *file)
{
    int ends[2];
    pid_t dot;
    int code = 0;
    char *argv[] = {(char *)(uintptr_t) "dot", (char *)(uintptr_t) "-Tsvg", (char *)(uintptr_t) "-o",
                    (char *)(uintptr_t)file, NULL};
    posix_spawn_file_actions_t actions;
    if (pipe(ends) != 0 || posix_spawn_file_actions_init(&actions) != 0) {
        perror("weft-info topo: no pipe to dot");
        return 1;
    }
    (void)posix_spawn_file_actions_adddup2(&actions, ends[0], 0);
    (void)posix_spawn_file_actions_addclose(&actions, ends[1]);
    const int failed = posix_spawnp(&dot, "dot", &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[0]);
    if (failed != 0) {
        (void)close(ends[1]);
        (void)fprintf(stderr,
                      "weft-info topo: dot cannot be started (%s); install the package graphviz, or use --dot\n",
                      strerror(failed));
        return 1;
    }
    FILE *to = fdopen(ends[1], "w");
    if (to != NULL) {
        info_topo_draw(all, to);
        (void)fclose(to);
    }
    if (waitpid(dot, &code, 0) != dot || code != 0) {
        (void)fprintf(stderr, "weft-info topo: dot failed to draw \"%s\"\n", file);
        return 1;
    }
    return 0;
}

static int show(const info_topo *all, const info_topo_options *options)
{
    if (options->svg != NULL) {
        return draw_svg(all, options->svg);
    }
    if (options->is_dot) {
        info_topo_draw(all, stdout);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    return info_topo_print(all, options->is_json);
}

int info_topo_main(int argc, char **argv)
{
    info_topo all;
    wefti_topo_rails_ask ask = {0};
    info_topo_options options = {0};
    weft_status status = wefti_topo_rails_ask_read(&ask);
    options.wish = ask.wish;
    const int code = parse(&options, argc, argv);
    if (code != GO_ON) {
        return code;
    }
    memset(&all, 0, sizeof all);
    status = status == WEFT_OK ? info_topo_collect(&all, &options) : status;
    if (status != WEFT_OK) {
        (void)fprintf(stderr, "weft-info: %s\n", weft_last_error());
    }
    const int failed = status != WEFT_OK || show(&all, &options) != 0;
    info_topo_release(&all);
    return failed;
}

/* tools/weft-info/options.c: the command line of weft-info. */
#include "tools/weft-info/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "weft/status.h"

#define EXIT_USAGE 2

static const char help_head[] =
    "usage: weft-info [--json] [section...]\n"
    "\n"
    "Show what this build of weft is, which variables it reads, and what a world looks like here. Started by\n"
    "weftrun the world has its PEs, and PE 0 prints; else it has one PE. Without a section: all of them.\n"
    "weft-info topo shows a machine: GPUs, NICs, who is near whom; see weft-info topo --help.\n"
    "\n";

static const char help_tail[] =
    "\n"
    "  -j, --json     one JSON object, with a member for each table\n"
    "  -h, --help     this text\n"
    "      --version  the version\n"
    "\n"
    "Exits with 1 when the world cannot be created, which the sections that need it then say, and with 2 when the\n"
    "command line is wrong.\n";

static void print_help(void)
{
    (void)fputs(help_head, stdout);
    for (int i = 0; i < INFO_SECTIONS; i++) {
        (void)printf("  %-13s  %s\n", info_section_name((info_section)i), info_section_text((info_section)i));
    }
    (void)fputs(help_tail, stdout);
}

static int want(info_options *options, const char *name)
{
    const char *names[INFO_SECTIONS];
    for (int i = 0; i < INFO_SECTIONS; i++) {
        names[i] = info_section_name((info_section)i);
        if (strcmp(name, names[i]) == 0) {
            options->wanted[i] = 1;
            return INFO_GO_ON;
        }
    }
    int nearest = wefti_nearest(name, names, INFO_SECTIONS, 2);
    (void)fprintf(stderr, "weft-info: no section \"%s\"%s%s%s; see weft-info --help\n", name,
                  nearest < 0 ? "" : "; did you mean \"", nearest < 0 ? "" : names[nearest], nearest < 0 ? "" : "\"?");
    return EXIT_USAGE;
}

enum { OPTION_VERSION = 256 };

int info_options_parse(info_options *options, int argc, char **argv)
{
    static const struct option table[] = {
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, OPTION_VERSION},
        {NULL, 0, NULL, 0},
    };
    memset(options, 0, sizeof *options);
    int letter;
    while ((letter = getopt_long(argc, argv, "jh", table, NULL)) != -1) {
        switch (letter) {
        case 'j':
            options->is_json = 1;
            break;
        case 'h':
            print_help();
            return 0;
        case OPTION_VERSION:
            (void)printf("weft %d.%d.%d\n", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);
            return 0;
        default: /* getopt has said what is wrong */
            (void)fputs("weft-info: bad usage; see weft-info --help\n", stderr);
            return EXIT_USAGE;
        }
    }
    for (int i = optind; i < argc; i++) {
        int code = want(options, argv[i]);
        if (code != INFO_GO_ON) {
            return code;
        }
    }
    for (int i = 0; i < INFO_SECTIONS && optind == argc; i++) {
        options->wanted[i] = 1;
    }
    return INFO_GO_ON;
}

int info_options_need_world(const info_options *options)
{
    int needed = 0;
    for (int i = 0; i < INFO_SECTIONS; i++) {
        needed |= options->wanted[i] && info_section_needs_world((info_section)i);
    }
    return needed;
}

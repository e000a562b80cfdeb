#include "part/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "part/stats.h"

static int read_number(const char *name, const char *text, int *value)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < 0 || number > INT_MAX) {
        fprintf(stderr, "%s: \"%s\" is no number\n", name, text);
        return -1;
    }
    *value = (int)number;
    return 0;
}

static int read_option(bench_options *options, const bench_number *numbers, const char *name, const char *value)
{
    if (strcmp(name, "--json") == 0) {
        options->json = value;
        return 0;
    }
    if (strcmp(name, "--blocks") == 0) {
        return read_number(name, value, &options->blocks);
    }
    for (const bench_number *own = numbers; own != NULL && own->name != NULL; own++) {
        if (strcmp(name, own->name) == 0) {
            return read_number(name, value, own->value);
        }
    }
    fprintf(stderr, "%s: no such option\n", name);
    return -1;
}

int bench_options_read(bench_options *options, const bench_number *numbers, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) {
            fprintf(stderr, "%s: a value is missing\n", argv[i]);
            return -1;
        }
        if (read_option(options, numbers, argv[i], argv[i + 1]) != 0) {
            return -1;
        }
    }
    if (options->blocks < 1 || options->blocks > BENCH_SAMPLES_MAX) {
        fprintf(stderr, "--blocks: give 1 to %d\n", BENCH_SAMPLES_MAX);
        return -1;
    }
    return 0;
}

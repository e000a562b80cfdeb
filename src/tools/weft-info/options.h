/* tools/weft-info/options.h: the command line of weft-info. */
#ifndef WEFT_INFO_OPTIONS_H
#define WEFT_INFO_OPTIONS_H

#include "tools/weft-info/sections.h"

#define INFO_GO_ON (-1)

typedef struct info_options {
    int is_json;
    int wanted[INFO_SECTIONS];
} info_options;

/* INFO_GO_ON, or the code to exit with: help was given, or a mistake was told. */
int info_options_parse(info_options *options, int argc, char **argv);

/* Whether some wanted section needs a world to look at. */
int info_options_need_world(const info_options *options);

#endif

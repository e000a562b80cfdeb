/* tools/weft-info.c: what this build of weft is, reads and does here. Its parts are in tools/weft-info/. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weft-info/options.h"
#include "tools/weft-info/sections.h"
#include "tools/weft-info/topo.h"
#include "tools/weft-info/trial.h"

static int print(const info_options *options, const info_trial *trial)
{
    int first = 1;
    if (options->is_json) {
        (void)fputs("{", stdout);
    }
    for (int section = 0; section < INFO_SECTIONS; section++) {
        if (!options->wanted[section]) {
            continue;
        }
        info_table *tables[INFO_TABLES_MAX];
        int count = info_section_tables((info_section)section, trial, tables);
        for (int i = 0; i < count; i++) {
            if (options->is_json) {
                (void)fputs(first ? "\n" : ",\n", stdout);
                info_table_print_json(tables[i], stdout);
            } else {
                (void)fputs(first ? "" : "\n", stdout);
                info_table_print_text(tables[i], stdout);
            }
            first = 0;
            info_table_destroy(tables[i]);
        }
    }
    if (options->is_json) {
        (void)fputs("\n}\n", stdout);
    }
    if (fflush(stdout) != 0) {
        perror("weft-info: cannot write");
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "topo") == 0) {
        return info_topo_main(argc - 1, argv + 1);
    }
    info_options options;
    int code = info_options_parse(&options, argc, argv);
    if (code != INFO_GO_ON) {
        return code;
    }
    info_trial trial = {.pe = 0};
    if (info_options_need_world(&options)) {
        info_trial_open(&trial);
    }
    code = trial.pe == 0 ? print(&options, &trial) : 0;
    return info_trial_close(&trial) || code;
}

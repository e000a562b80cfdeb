/* lib/options.h: command lines of options with lists of values. */
#ifndef TOOL_OPTIONS_H
#define TOOL_OPTIONS_H

#define TOOL_GO_ON (-1)
#define TOOL_USAGE 2
#define TOOL_LIST_MAX 64

/* The values of one parameter that a sweep goes through. */
typedef struct tool_list {
    int count;
    long values[TOOL_LIST_MAX];
} tool_list;

typedef enum tool_option_kind {
    TOOL_NUMBERS, /* a tool_list: "8", "8,20" or "8:1024", doubling; K, M, G after a number are 2^10, 2^20, 2^30 */
    TOOL_NAMES, /* a tool_list of indices of `names` */
    TOOL_NUMBER, /* an int */
    TOOL_TEXT, /* a const char * */
    TOOL_SEED, /* a uint64_t */
    TOOL_FLAG /* an int that becomes 1 */
} tool_option_kind;

typedef struct tool_option {
    const char *name; /* without the dashes; NULL ends a table */
    char letter;
    tool_option_kind kind;
    void *at;
    long least; /* of numbers */
    long most;
    const char *const *names;
    int names_count;
} tool_option;

/* Read the command line into what the rows point to. TOOL_GO_ON, or TOOL_USAGE after saying what is wrong. */
int tool_options_read(const tool_option *rows, int argc, char **argv);

/* *i numbers a combination of values of several lists. Returns this list's value in it; *i becomes the number of the
 * combination of the other lists. */
long tool_list_take(const tool_list *list, long *i);

/* The machine's name, version and date are said by lib/record.h; this prints "weft X.Y.Z". */
void tool_print_version(void);

#endif

/* tools/weft-info/table.h: a table of cells, printed as text or as JSON. */
#ifndef WEFT_INFO_TABLE_H
#define WEFT_INFO_TABLE_H

#include <stdio.h>

#include "weft/status.h"

typedef struct info_table info_table;

/* Columns by name, apart by blanks; one that ends in '#' holds numbers. A table of the columns "name value" is a
 * record: one JSON object, whose values are numbers when they look so. Ends the process when there is no memory. */
info_table *info_table_create(const char *name, const char *columns);
void info_table_destroy(info_table *table);

/* Fill the next cell, row by row. */
void info_table_add(info_table *table, const char *format, ...) WEFT_PRINTF(2, 3);

void info_table_print_text(const info_table *table, FILE *to);
/* "name": [{...}, ...] or "name": {...}, without what stands around it. */
void info_table_print_json(const info_table *table, FILE *to);

#endif

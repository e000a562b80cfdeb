/* transport/plugin/table.h: a transport between nodes that is written to weft/transport.h, in a library that
 * WEFT_TRANSPORT names (plugin.h), or in this one, where its file ends with
 *
 *     static const wefti_transport_table in_tree = {.functions = &functions, .path = "src/transport/NAME"};
 *     const wefti_transport_ops wefti_transport_NAME = WEFTI_TRANSPORT_OF_TABLE("NAME", in_tree);
 */
#ifndef WEFTI_TRANSPORT_PLUGIN_TABLE_H
#define WEFTI_TRANSPORT_PLUGIN_TABLE_H

#include "transport/transport.h"
#include "weft/transport.h"

typedef struct wefti_transport_table {
    const weft_transport_plugin *functions; /* none is NULL; where `fate` is, ops->fate becomes it, too */
    const char *path; /* of the library it is in, or its folder; for texts */
} wefti_transport_table;

void wefti_table_close(wefti_transport *transport);
weft_status wefti_table_open(wefti_transport *transport, const wefti_transport_setup *setup);
int wefti_table_reaches(const wefti_transport *transport, int pe);
void wefti_table_describe(const wefti_transport *transport, char *text, size_t bytes);
weft_status wefti_table_put(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes);
weft_status wefti_table_get(wefti_transport *transport, int pe, uint64_t offset, void *dest, size_t bytes);
weft_status wefti_table_put_signal(wefti_transport *transport, int pe, uint64_t offset, const void *source,
                                   size_t bytes, uint64_t signal_offset, uint64_t value, weft_signal_op op);
weft_status wefti_table_amo(wefti_transport *transport, int pe, uint64_t offset, wefti_amo_op op, int bits,
                            uint64_t value, uint64_t cond, uint64_t *old);
weft_status wefti_table_read_soon(wefti_transport *transport, int pe, uint64_t offset, uint64_t *value);
weft_status wefti_table_fence(wefti_transport *transport);
weft_status wefti_table_quiet(wefti_transport *transport);
wefti_transport_fate wefti_table_fate(const wefti_transport *transport, int pe);

/* The functions of a transport of this name by such a table, as an initializer. */
#define WEFTI_TRANSPORT_OF_TABLE(given_name, given)                                                                    \
    {                                                                                                                  \
        .name = (given_name), .table = &(given), .open = wefti_table_open, .close = wefti_table_close,                 \
        .reaches = wefti_table_reaches, .describe = wefti_table_describe, .put = wefti_table_put,                      \
        .get = wefti_table_get, .put_signal = wefti_table_put_signal, .amo = wefti_table_amo,                          \
        .read_soon = wefti_table_read_soon, .fate = wefti_table_fate, .fence = wefti_table_fence,                      \
        .quiet = wefti_table_quiet,                                                                                    \
    }

#endif

/* topo/xml.h: an XML file as a tree of elements with their attributes; text between elements is passed over. No DTD of
 * the file's own, so no entities but the five of XML and numbered ones. What is wrong is told with line and column. */
#ifndef WEFTI_TOPO_XML_H
#define WEFTI_TOPO_XML_H

#include <stddef.h>

#include "weft/status.h"

#define WEFTI_TOPO_XML_MAX (16u << 20) /* bytes of a file */
#define WEFTI_TOPO_XML_DEPTH_MAX 64 /* of elements in one another */

typedef struct wefti_topo_xml_text { /* a part of the file */
    const char *at;
    size_t bytes;
} wefti_topo_xml_text;

typedef struct wefti_topo_xml_attribute {
    wefti_topo_xml_text name;
    wefti_topo_xml_text value;
} wefti_topo_xml_attribute;

typedef struct wefti_topo_xml_element {
    wefti_topo_xml_text name;
    int parent; /* numbers of elements; -1: none */
    int first_child;
    int last_child;
    int next; /* of the same parent */
    int attribute; /* its first */
    int attribute_count;
} wefti_topo_xml_element;

typedef struct wefti_topo_xml {
    const char *name; /* of the file, for errors */
    const char *text;
    size_t bytes;
    wefti_topo_xml_element *elements; /* in the order of the file; the first is the root */
    int count;
    wefti_topo_xml_attribute *attributes;
    int attribute_count;
} wefti_topo_xml;

/* `name` and `text` are kept until fini. Errors: WEFT_ERR_ARGUMENT, with "NAME:LINE:COLUMN: " in front;
 * WEFT_ERR_MEMORY. On an error `xml` is empty. */
weft_status wefti_topo_xml_parse(wefti_topo_xml *xml, const char *name, const char *text, size_t bytes);
void wefti_topo_xml_fini(wefti_topo_xml *xml);

/* The error WEFT_ERR_ARGUMENT that points at `at`, of the text. */
weft_status wefti_topo_xml_wrong(const wefti_topo_xml *xml, const char *at, const char *format, ...) WEFT_PRINTF(3, 4);

int wefti_topo_xml_is(const wefti_topo_xml *xml, int element, const char *name);
/* The attribute of that name, or NULL. */
const wefti_topo_xml_attribute *wefti_topo_xml_find(const wefti_topo_xml *xml, int element, const char *name);
/* Its value with entities resolved. Returns its length; not all of it is in `to` unless that is less than `room`. */
size_t wefti_topo_xml_value(const wefti_topo_xml_attribute *attribute, char *to, size_t room);

#endif

#include "topo/xml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "topo/machine.h"

/* The most that is read of a file: many times what real machines have. */
#define ELEMENTS_MAX (1 << 20)
#define ATTRIBUTES_MAX (1 << 22)

typedef struct reader {
    wefti_topo_xml *xml;
    const char *at;
    const char *end;
    int open; /* the element whose end has not come; -1: none */
    int depth;
} reader;

weft_status wefti_topo_xml_wrong(const wefti_topo_xml *xml, const char *at, const char *format, ...)
{
    char what[400];
    int line = 1;
    const char *start = xml->text;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    for (const char *c = xml->text; c < at; c++) {
        line += *c == '\n';
        start = *c == '\n' ? c + 1 : start;
    }
    return wefti_error(WEFT_ERR_ARGUMENT, "%s:%d:%d: %s", xml->name, line, (int)(at - start) + 1, what);
}

#define WRONG(r, where, ...) wefti_topo_xml_wrong((r)->xml, where, __VA_ARGS__)

/* ---- characters ---- */

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == ':' || (unsigned char)c >= 0x80;
}

static int begins(const reader *r, const char *text)
{
    const size_t length = strlen(text);
    return (size_t)(r->end - r->at) >= length && memcmp(r->at, text, length) == 0;
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && is_blank(*r->at)) {
        r->at++;
    }
}

/* What is at `at`: a character of its own, or an entity, of which *bytes are the file's. -1: neither. */
static int read_character(const char *at, const char *end, size_t *bytes)
{
    static const struct {
        const char *text;
        char c;
    } entities[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    const unsigned char first = (unsigned char)*at;
    *bytes = 1;
    if (first != '&') {
        return first >= ' ' || is_blank(*at) ? first : -1;
    }
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
        *bytes = strlen(entities[i].text);
        if ((size_t)(end - at) >= *bytes && memcmp(at, entities[i].text, *bytes) == 0) {
            return entities[i].c;
        }
    }
    if (end - at < 4 || at[1] != '#') {
        return -1;
    }
    int value = 0;
    const int is_hex = at[2] == 'x';
    const char *first_digit = at + 2 + is_hex;
    const char *digit = first_digit;
    for (; digit < end && value <= 0x10ffff; digit++) {
        const int number = wefti_topo_hex_digit(*digit);
        if (number < 0 || (number > 9 && !is_hex)) {
            break;
        }
        value = value * (is_hex ? 16 : 10) + number;
    }
    *bytes = (size_t)(digit - at) + 1;
    const int is_number = digit > first_digit && digit < end && *digit == ';' && value > 0 && value <= 0x10ffff;
    return !is_number ? -1 : value < 0x80 ? value : '?';
}

static weft_status check_character(reader *r)
{
    size_t bytes;
    if (read_character(r->at, r->end, &bytes) < 0) {
        return *r->at == '&' ? WRONG(r, r->at, "& begins no entity that is known; a plain one is &amp;")
                             : WRONG(r, r->at, "a control character, %d", (unsigned char)*r->at);
    }
    r->at += bytes;
    return WEFT_OK;
}

/* ---- what is passed over ---- */

static weft_status skip(reader *r, const char *open, const char *close, const char *what)
{
    const char *start = r->at;
    r->at += strlen(open);
    while (r->at < r->end && !begins(r, close)) {
        r->at++;
    }
    if (r->at == r->end) {
        return WRONG(r, start, "this %s has no end, %s", what, close);
    }
    r->at += strlen(close);
    return WEFT_OK;
}

static weft_status skip_doctype(reader *r)
{
    for (const char *at = r->at; at < r->end && *at != '>'; at++) {
        if (*at == '[') {
            return WRONG(r, at, "a DTD inside of the file is not read");
        }
    }
    return r->xml->count > 0 ? WRONG(r, r->at, "a DOCTYPE behind the first element")
                             : skip(r, "<!DOCTYPE", ">", "DOCTYPE");
}

/* ---- elements ---- */

static weft_status read_name(reader *r, wefti_topo_xml_text *name, const char *expected)
{
    name->at = r->at;
    while (r->at < r->end && is_name(*r->at)) {
        r->at++;
    }
    name->bytes = (size_t)(r->at - name->at);
    return name->bytes > 0 ? WEFT_OK : WRONG(r, r->at, "expected %s", expected);
}

static int is_same(const wefti_topo_xml_text *left, const wefti_topo_xml_text *right)
{
    return left->bytes == right->bytes && memcmp(left->at, right->at, left->bytes) == 0;
}

static weft_status read_attribute(reader *r, wefti_topo_xml_element *element)
{
    wefti_topo_xml_attribute *all = &r->xml->attributes[element->attribute];
    wefti_topo_xml_attribute *attribute = &all[element->attribute_count];
    if (r->xml->attribute_count == ATTRIBUTES_MAX) {
        return WRONG(r, r->at, "more than %d attributes", ATTRIBUTES_MAX);
    }
    WEFT_TRY(read_name(r, &attribute->name, "an attribute, > or />"));
    for (int i = 0; i < element->attribute_count; i++) {
        if (is_same(&all[i].name, &attribute->name)) {
            return WRONG(r, attribute->name.at, "%.*s is given already", (int)attribute->name.bytes,
                         attribute->name.at);
        }
    }
    skip_blanks(r);
    if (r->at == r->end || *r->at != '=') {
        return WRONG(r, r->at, "expected = and a value of %.*s", (int)attribute->name.bytes, attribute->name.at);
    }
    r->at++;
    skip_blanks(r);
    if (r->at == r->end || (*r->at != '"' && *r->at != '\'')) {
        return WRONG(r, r->at, "expected a value in quotes");
    }
    const char *quote = r->at++;
    attribute->value.at = r->at;
    while (r->at < r->end && *r->at != *quote) {
        if (*r->at == '<') {
            return WRONG(r, r->at, "< inside of a value");
        }
        WEFT_TRY(check_character(r));
    }
    if (r->at >= r->end) {
        return WRONG(r, quote, "this value has no end");
    }
    attribute->value.bytes = (size_t)(r->at++ - attribute->value.at);
    element->attribute_count++;
    r->xml->attribute_count++;
    return WEFT_OK;
}

static void add_to_parent(wefti_topo_xml *xml, int index, int parent)
{
    if (parent >= 0) {
        wefti_topo_xml_element *above = &xml->elements[parent];
        if (above->last_child >= 0) {
            xml->elements[above->last_child].next = index;
        } else {
            above->first_child = index;
        }
        above->last_child = index;
    }
}

static weft_status read_start(reader *r)
{
    const char *start = r->at++;
    const int index = r->xml->count;
    wefti_topo_xml_element *element = &r->xml->elements[index];
    if (r->open < 0 && index > 0) {
        return WRONG(r, start, "a second root element");
    }
    if (index == ELEMENTS_MAX) {
        return WRONG(r, start, "more than %d elements", ELEMENTS_MAX);
    }
    if (r->depth == WEFTI_TOPO_XML_DEPTH_MAX) {
        return WRONG(r, start, "elements are more than %d deep in one another", WEFTI_TOPO_XML_DEPTH_MAX);
    }
    *element = (wefti_topo_xml_element){
        .parent = r->open, .first_child = -1, .last_child = -1, .next = -1, .attribute = r->xml->attribute_count};
    WEFT_TRY(read_name(r, &element->name, "the name of an element"));
    r->xml->count++;
    add_to_parent(r->xml, index, r->open);
    while (1) {
        const char *before = r->at;
        skip_blanks(r);
        if (begins(r, "/>")) {
            r->at += 2;
            return WEFT_OK;
        }
        if (begins(r, ">")) {
            r->at++;
            r->open = index;
            r->depth++;
            return WEFT_OK;
        }
        if (r->at == r->end) {
            return WRONG(r, start, "this element has no end, > or />");
        }
        if (r->at == before) {
            return WRONG(r, r->at, "expected a blank, > or />");
        }
        WEFT_TRY(read_attribute(r, element));
    }
}

static weft_status read_end(reader *r)
{
    const char *start = r->at;
    wefti_topo_xml_text name;
    r->at += 2;
    WEFT_TRY(read_name(r, &name, "the name of an element"));
    const wefti_topo_xml_element *element = r->open >= 0 ? &r->xml->elements[r->open] : NULL;
    if (element == NULL) {
        return WRONG(r, start, "no element has begun that this ends");
    }
    if (!is_same(&name, &element->name)) {
        return WRONG(r, name.at, "expected the end of %.*s", (int)element->name.bytes, element->name.at);
    }
    skip_blanks(r);
    if (!begins(r, ">")) {
        return WRONG(r, r->at, "expected >");
    }
    r->at++;
    r->open = element->parent;
    r->depth--;
    return WEFT_OK;
}

static weft_status read_text(reader *r)
{
    if (r->open < 0 && !is_blank(*r->at)) {
        return WRONG(r, r->at, "text outside of the root element");
    }
    return check_character(r);
}

static weft_status read_all(reader *r)
{
    while (r->at < r->end) {
        weft_status status;
        if (*r->at != '<') {
            status = read_text(r);
        } else if (begins(r, "<!--")) {
            status = skip(r, "<!--", "-->", "comment");
        } else if (begins(r, "<?")) {
            status = skip(r, "<?", "?>", "declaration");
        } else if (begins(r, "<!DOCTYPE")) {
            status = skip_doctype(r);
        } else {
            status = begins(r, "</") ? read_end(r) : read_start(r);
        }
        WEFT_TRY(status);
    }
    if (r->open >= 0) {
        return WRONG(r, r->xml->elements[r->open].name.at, "this element has no end, </%.*s>",
                     (int)r->xml->elements[r->open].name.bytes, r->xml->elements[r->open].name.at);
    }
    return r->xml->count > 0 ? WEFT_OK : WRONG(r, r->end, "expected an element");
}

weft_status wefti_topo_xml_parse(wefti_topo_xml *xml, const char *name, const char *text, size_t bytes)
{
    size_t elements = 0; /* at most: what begins one, and what an attribute has */
    size_t attributes = 0;
    memset(xml, 0, sizeof *xml);
    if (bytes > WEFTI_TOPO_XML_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: an XML of more than %u bytes", name, WEFTI_TOPO_XML_MAX);
    }
    for (size_t i = 0; i < bytes; i++) {
        elements += text[i] == '<';
        attributes += text[i] == '=';
    }
    *xml = (wefti_topo_xml){.name = name, .text = text, .bytes = bytes};
    elements = elements < ELEMENTS_MAX ? elements : ELEMENTS_MAX;
    attributes = attributes < ATTRIBUTES_MAX ? attributes : ATTRIBUTES_MAX;
    xml->elements = wefti_alloc_zeroed(elements + 1, sizeof *xml->elements);
    xml->attributes = wefti_alloc_zeroed(attributes + 1, sizeof *xml->attributes);
    reader r = {.xml = xml, .at = text, .end = text + bytes, .open = -1};
    const weft_status status = xml->elements != NULL && xml->attributes != NULL
                                   ? read_all(&r)
                                   : wefti_error(WEFT_ERR_MEMORY, "%s: no memory to read %zu bytes", name, bytes);
    if (status != WEFT_OK) {
        wefti_topo_xml_fini(xml);
    }
    return status;
}

void wefti_topo_xml_fini(wefti_topo_xml *xml)
{
    wefti_free(xml->elements);
    wefti_free(xml->attributes);
    memset(xml, 0, sizeof *xml);
}

/* ---- what was read ---- */

static int has_text(const wefti_topo_xml_text *text, const char *wanted)
{
    return text->bytes == strlen(wanted) && memcmp(text->at, wanted, text->bytes) == 0;
}

int wefti_topo_xml_is(const wefti_topo_xml *xml, int element, const char *name)
{
    return has_text(&xml->elements[element].name, name);
}

const wefti_topo_xml_attribute *wefti_topo_xml_find(const wefti_topo_xml *xml, int element, const char *name)
{
    const wefti_topo_xml_element *of = &xml->elements[element];
    for (int i = 0; i < of->attribute_count; i++) {
        if (has_text(&xml->attributes[of->attribute + i].name, name)) {
            return &xml->attributes[of->attribute + i];
        }
    }
    return NULL;
}

size_t wefti_topo_xml_value(const wefti_topo_xml_attribute *attribute, char *to, size_t room)
{
    const char *end = attribute->value.at + attribute->value.bytes;
    size_t length = 0;
    size_t bytes;
    for (const char *at = attribute->value.at; at < end; at += bytes) {
        const int c = read_character(at, end, &bytes);
        if (length + 1 < room) {
            to[length] = (char)c;
        }
        length++;
    }
    to[length < room ? length : room - 1] = '\0';
    return length;
}

#include "topo/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

weft_status wefti_topo_wrong(const wefti_topo_reader *r, int column, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return wefti_error(WEFT_ERR_ARGUMENT, "%s:%d:%d: %s", r->name != NULL ? r->name : "topology", r->line, column,
                       text);
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static int column_of(const wefti_topo_reader *r)
{
    return (int)(r->at - r->line_start) + 1;
}

/* Whether all behind the first word of this line is one text. */
static int is_text_line(const wefti_topo_reader *r)
{
    return strcmp(r->words[0].text, "machine") == 0 || strcmp(r->words[0].text, "source") == 0;
}

weft_status wefti_topo_split(wefti_topo_reader *r)
{
    r->count = 0;
    r->at = r->line_start;
    while (1) {
        while (r->at < r->line_end && is_blank(*r->at)) {
            r->at++;
        }
        if (r->at == r->line_end || *r->at == '#') {
            return WEFT_OK;
        }
        if (r->count == 1 && is_text_line(r)) {
            return WEFT_OK;
        }
        if (r->count == WEFTI_TOPO_WORDS_MAX) {
            return wefti_topo_wrong(r, column_of(r), "more than %d words in a line", WEFTI_TOPO_WORDS_MAX);
        }
        wefti_topo_word *w = &r->words[r->count++];
        size_t length = 0;
        w->column = column_of(r);
        for (; r->at < r->line_end && !is_blank(*r->at); r->at++) {
            if ((unsigned char)*r->at < ' ' || length == WEFTI_TOPO_WORD_BYTES - 1) {
                return wefti_topo_wrong(r, column_of(r),
                                        length == WEFTI_TOPO_WORD_BYTES - 1
                                            ? "a word of more than %d bytes"
                                            : "a control character (words have at most %d)",
                                        WEFTI_TOPO_WORD_BYTES - 1);
            }
            w->text[length++] = *r->at;
        }
        w->text[length] = '\0';
    }
}

void wefti_topo_rest(const wefti_topo_reader *r, char *to, size_t room)
{
    size_t length = 0;
    const char *at = r->line_start + r->words[0].column - 1 + strlen(r->words[0].text);
    while (at < r->line_end && is_blank(*at)) {
        at++;
    }
    for (; at < r->line_end && *at != '\r' && length < room - 1; at++) {
        to[length++] = *at;
    }
    to[length] = '\0';
}

weft_status wefti_topo_number(const wefti_topo_reader *r, const wefti_topo_word *w, const char *text, long most,
                              int *value)
{
    char *end;
    const long number = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : -1;
    if (number < 0 || *end != '\0' || number > most) {
        return wefti_topo_wrong(r, w->column + (int)(text - w->text), "\"%s\" is no number of 0 .. %ld", text, most);
    }
    *value = (int)number;
    return WEFT_OK;
}

const char *wefti_topo_value(const wefti_topo_word *w, const char *key)
{
    const size_t length = strlen(key);
    return strncmp(w->text, key, length) == 0 && w->text[length] == '=' ? w->text + length + 1 : NULL;
}

weft_status wefti_topo_choice(const wefti_topo_reader *r, const wefti_topo_word *w, const char *text, const char *yes,
                              const char *no, uint8_t *value)
{
    if (strcmp(text, yes) != 0 && strcmp(text, no) != 0) {
        return wefti_topo_wrong(r, w->column + (int)(text - w->text), "\"%s\" is neither %s nor %s", text, yes, no);
    }
    *value = strcmp(text, yes) == 0;
    return WEFT_OK;
}

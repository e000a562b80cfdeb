/* topo/words.h: a text in lines of words, and errors that point at a word of it. */
#ifndef WEFTI_TOPO_WORDS_H
#define WEFTI_TOPO_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"

#define WEFTI_TOPO_WORDS_MAX 16 /* of a line */
#define WEFTI_TOPO_WORD_BYTES 256

typedef struct wefti_topo_word {
    char text[WEFTI_TOPO_WORD_BYTES];
    int column; /* from 1 on */
} wefti_topo_word;

typedef struct wefti_topo_reader {
    const char *name; /* of the file, for errors, or NULL */
    const char *at; /* in the line that is being read */
    const char *line_start;
    const char *line_end;
    const char *end;
    int line;
    wefti_topo_word words[WEFTI_TOPO_WORDS_MAX];
    int count;
} wefti_topo_reader;

/* The error WEFT_ERR_ARGUMENT, "NAME:LINE:COLUMN: " and the text. */
weft_status wefti_topo_wrong(const wefti_topo_reader *r, int column, const char *format, ...) WEFT_PRINTF(3, 4);

/* The words of the line from line_start to line_end; of lines whose first word is machine or source only that. */
weft_status wefti_topo_split(wefti_topo_reader *r);
/* The rest of the line behind the first word. */
void wefti_topo_rest(const wefti_topo_reader *r, char *to, size_t room);

/* `text` is a part of the word, from its beginning or behind a "key=". */
weft_status wefti_topo_number(const wefti_topo_reader *r, const wefti_topo_word *w, const char *text, long most,
                              int *value);
weft_status wefti_topo_choice(const wefti_topo_reader *r, const wefti_topo_word *w, const char *text, const char *yes,
                              const char *no, uint8_t *value);
/* The text behind "key=" if the word begins so, else NULL. */
const char *wefti_topo_value(const wefti_topo_word *w, const char *key);

#endif

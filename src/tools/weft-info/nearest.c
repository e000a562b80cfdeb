/* tools/weft-info/nearest.c: the distance of Levenshtein. */
#include "tools/weft-info/nearest.h"

#include <stddef.h>
#include <string.h>

#define WORD_MAX 63

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* One row of the table a prefix of `a`, one column a prefix of `b`. */
static size_t distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1];
    size_t length = strlen(b);
    for (size_t j = 0; j <= length; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[length];
}

int info_nearest(const char *word, const char *const *names, int count)
{
    size_t length = strlen(word);
    size_t best = length / 3 > 2 ? length / 3 : 2;
    int nearest = -1;
    for (int i = 0; i < count && length <= WORD_MAX; i++) {
        size_t changes = strlen(names[i]) <= WORD_MAX ? distance(word, names[i]) : WORD_MAX;
        if (changes < best || (changes == best && nearest < 0)) {
            best = changes;
            nearest = i;
        }
    }
    return nearest;
}

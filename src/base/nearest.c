/* base/nearest.c: the distance of Damerau and Levenshtein, where no letter is moved twice. */
#include "base/nearest.h"

#include <stddef.h>
#include <string.h>

#define WORD_MAX 63

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* One row of the table a prefix of `a`, one column a prefix of `b`; three rows are kept. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1];
    size_t length = strlen(b);
    for (size_t j = 0; j <= length; j++) {
        rows[0][j] = j;
    }
    size_t i = 1;
    for (; a[i - 1] != '\0'; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *above_that = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = least(row[j], above_that[j - 2] + 1);
            }
        }
    }
    return rows[(i - 1) % 3][length];
}

int wefti_nearest(const char *word, const char *const *names, int count, unsigned changes)
{
    size_t length = strlen(word);
    size_t best = length / 3 > changes ? length / 3 : changes;
    int nearest = -1;
    for (int i = 0; i < count && length <= WORD_MAX; i++) {
        size_t far = strlen(names[i]) <= WORD_MAX ? distance(word, names[i]) : WORD_MAX;
        if (far < best || (far == best && nearest < 0)) {
            best = far;
            nearest = i;
        }
    }
    return nearest;
}

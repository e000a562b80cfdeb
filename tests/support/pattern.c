/* support/pattern.c: bytes that name who sent them and where they belong. */
#include "support/pattern.h"

#include <stdio.h>

#include "support/check.h"

#define INDICES 13

unsigned char pattern_byte(int from, size_t index)
{
    return (unsigned char)((unsigned)from << 4 | (unsigned)(index % INDICES));
}

void pattern_fill(void *to, size_t count, int from, size_t first)
{
    unsigned char *bytes = to;
    for (size_t i = 0; i < count; i++) {
        bytes[i] = pattern_byte(from, first + i);
    }
}

/* What a byte looks like. */
static const char *describe(unsigned char byte, char text[64])
{
    if (byte == POISON) {
        return "poison";
    }
    if ((byte & 15) >= INDICES) {
        (void)snprintf(text, 64, "0x%02x, which nobody sends", byte);
    } else {
        (void)snprintf(text, 64, "an index that is %d modulo 13, from PE %d modulo 16", byte & 15, byte >> 4);
    }
    return text;
}

int pattern_check(const void *at, size_t count, int from, size_t first, const char *what)
{
    const unsigned char *bytes = at;
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != pattern_byte(from, first + i)) {
            char text[64];
            return CHECK_SAY(0, "%s: byte %zu of %zu (index %zu) from PE %d is %s", what, i, count, first + i, from,
                             describe(bytes[i], text));
        }
    }
    return 1;
}

int poison_check(const void *at, size_t count, const char *what)
{
    const unsigned char *bytes = at;
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != POISON) {
            char text[64];
            return CHECK_SAY(0, "%s: byte %zu of %zu is %s, not poison", what, i, count, describe(bytes[i], text));
        }
    }
    return 1;
}

/* support/pattern.h: bytes that name who sent them and where they belong. A byte holds its sender's number modulo 16
 * above its index modulo 13; poison is the byte of no sender. */
#ifndef SUPPORT_PATTERN_H
#define SUPPORT_PATTERN_H

#include <stddef.h>

#define POISON 0xee

unsigned char pattern_byte(int from, size_t index);

/* Write the bytes first .. first + count - 1 of this sender. */
void pattern_fill(void *to, size_t count, int from, size_t first);

/* Whether those bytes are there; a failed check that says what else is, if not. */
int pattern_check(const void *at, size_t count, int from, size_t first, const char *what);

/* Whether there is poison only. */
int poison_check(const void *at, size_t count, const char *what);

#endif

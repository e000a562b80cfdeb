/* tools/weft-info/nearest.h: what somebody may have meant. */
#ifndef WEFT_INFO_NEAREST_H
#define WEFT_INFO_NEAREST_H

/* Which of `count` names is the fewest changes (letters added, dropped or replaced) from `word`; -1 when all are further
 * than a third of its length, and two changes, away. */
int info_nearest(const char *word, const char *const *names, int count);

#endif

/* base/nearest.h: the name that a mistyped word probably stands for. */
#ifndef WEFTI_BASE_NEAREST_H
#define WEFTI_BASE_NEAREST_H

/* Which of `count` names is the fewest changes (letters added, dropped, replaced, or swapped with the next) from
 * `word`; -1 when all are further than a third of its length, and `changes` changes, away. Long words are near to
 * none. */
int wefti_nearest(const char *word, const char *const *names, int count, unsigned changes);

#endif

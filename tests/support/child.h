/* support/child.h: forked children that do nothing. */
#ifndef SUPPORT_CHILD_H
#define SUPPORT_CHILD_H

#include <sys/types.h>

/* A child that waits to be killed, and is when the thread that forked it ends. */
pid_t child_start(void);
void child_end(pid_t child);

#endif

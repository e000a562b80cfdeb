/* Checks for programs on several PEs: what is not so is said with its PE, and ends the program on all. */
#ifndef STATIC_CHECK_H
#define STATIC_CHECK_H

#include <shmem.h>
#include <stdio.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "%s:%d: PE %d: not so: %s\n", __FILE__, __LINE__, shmem_my_pe(), #condition);        \
            shmem_global_exit(1);                                                                                      \
        }                                                                                                              \
    } while (0)

#endif

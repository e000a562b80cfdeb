/* base/library.h: libraries of others that are loaded when they are used, and may be absent. */
#ifndef WEFTI_BASE_LIBRARY_H
#define WEFTI_BASE_LIBRARY_H

/* Load the library of that file name with RTLD_LOCAL; NULL if it cannot be loaded. */
void *wefti_library_open(const char *name);
/* The same with RTLD_GLOBAL: for a library whose plugins need its symbols. */
void *wefti_library_open_for_plugins(const char *name);
void wefti_library_close(void *library); /* NULL is allowed */

/* Why the last one could not be loaded; the thread's, until its next call. */
const char *wefti_library_error(void);
/* Whether this process has more rights than who started it (AT_SECURE): then no library is loaded that a variable
 * names. */
int wefti_process_is_privileged(void);

/* Of these three, `function` is the address of a pointer to a function, which is stored there: ISO C has no conversion
 * from an object pointer to one. Each returns 0 and stores NULL if there is none. */

/* The function `name` that something loaded in this process has, seen by all or in the library `soname` (NULL: none).
 * Nothing is loaded. */
int wefti_library_find_loaded(const char *soname, const char *name, void *function);
/* The function `name` of the library. */
int wefti_library_find(void *library, const char *name, void *function);
/* The same of that version of it: the one whose structures the headers declare, which a newer library has, too. */
int wefti_library_find_version(void *library, const char *name, const char *version, void *function);

#endif

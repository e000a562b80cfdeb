/* base/library.h: libraries of others that are loaded when they are used, and may be absent. */
#ifndef WEFTI_BASE_LIBRARY_H
#define WEFTI_BASE_LIBRARY_H

/* The library of that file name, its symbols seen by nobody else; NULL if it cannot be loaded. */
void *wefti_library_open(const char *name);
/* The same, its symbols seen by all that is loaded afterwards: for a library whose plugins have them of it. */
void *wefti_library_open_for_plugins(const char *name);
void wefti_library_close(void *library); /* NULL is allowed */

/* Why the last one could not be loaded; the thread's, until its next call. */
const char *wefti_library_error(void);
/* Whether this process has more rights than who started it: then nothing is loaded that a variable names. */
int wefti_library_is_secure(void);

/* Store the function `name` that something loaded in this process has, seen by all or in the library `soname` (NULL:
 * none). Nothing is loaded. Returns 0, and NULL is stored, if none has it. */
int wefti_library_find_loaded(const char *soname, const char *name, void *function);
/* Store the function `name` of the library in *function, which is a pointer to a function; ISO C has no conversion to
 * one. NULL, and 0 is returned, if the library has none. */
int wefti_library_find(void *library, const char *name, void *function);
/* The same of that version of it: the one whose structures the headers declare, which a newer library has, too. */
int wefti_library_find_version(void *library, const char *name, const char *version, void *function);

#endif

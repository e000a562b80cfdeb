/* os/posix/descriptor.h: descriptors beside the standard ones. */
#ifndef WEFTI_OS_POSIX_DESCRIPTOR_H
#define WEFTI_OS_POSIX_DESCRIPTOR_H

/* What a process opens that has no standard input, output or error gets their numbers, and what is printed or logged
 * goes there: into shared memory, for one. Returns `descriptor` where it is none of these, else a copy that is not
 * inherited, and closes it; -1 with errno set when there is none. */
int wefti_os_descriptor_beyond_standard(int descriptor);

#endif

/* world/build.h: what tells builds of the library apart whose PEs would not understand each other. */
#ifndef WEFTI_WORLD_BUILD_H
#define WEFTI_WORLD_BUILD_H

#include <stdint.h>

/* Equal for two builds only if they lay out shared memory alike, and use it alike: made of the text of the library's
 * sources, and of what compilers and options may change. */
uint64_t wefti_build_key(void);

#endif

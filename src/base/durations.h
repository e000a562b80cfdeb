/* base/durations.h: units of time, which is counted in ns. */
#ifndef WEFTI_BASE_DURATIONS_H
#define WEFTI_BASE_DURATIONS_H

#include <stdint.h>

#define WEFTI_MILLISECOND_NS UINT64_C(1000000)
#define WEFTI_SECOND_NS UINT64_C(1000000000)

#endif

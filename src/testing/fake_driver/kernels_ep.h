/* testing/fake_driver/kernels_ep.h: the kernels of expert parallelism by name; run by grid.h. */
#ifndef WEFTI_CUDA_FAKE_KERNELS_EP_H
#define WEFTI_CUDA_FAKE_KERNELS_EP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fake_ep_kernel {
    const char *name; /* NULL: the last */
    void (*body)(const void *args);
    size_t args_bytes;
} fake_ep_kernel;

extern const fake_ep_kernel fake_ep_kernels[];

#ifdef __cplusplus
}
#endif
#endif

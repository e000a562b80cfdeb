/* transformer_engine/comm_window.h: a place in a window of NCCL's, as in TransformerEngine's header of this name. */
#ifndef TRANSFORMER_ENGINE_COMM_WINDOW_H_
#define TRANSFORMER_ENGINE_COMM_WINDOW_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ncclWindow_vidmem;

typedef struct {
    struct ncclWindow_vidmem *window; /* NULL: the tensor's own data */
    uint64_t offset; /* bytes */
    struct ncclWindow_vidmem *scale_window; /* likewise, of the scales */
    uint64_t scale_offset;
} NVTECommWindow;

#ifdef __cplusplus
}
#endif
#endif

/* faces/nvte/face.h: what the files of the face of TransformerEngine's calls of expert parallelism share. Groups are
 * those of the NCCL EP face. */
#ifndef WEFTI_FACES_NVTE_FACE_H
#define WEFTI_FACES_NVTE_FACE_H

#include <pthread.h>

#include "faces/nccl_ep/face.h"
#include "weft_nvte.h"

/* ---- status.c ---- */

/* Decide an error: its text becomes weft_last_error's. Returns `status`. */
weft_status nvte_fail(weft_status status, const char *format, ...) WEFT_PRINTF(2, 3);

/* The thread's last call has ended so. */
weft_status nvte_end(weft_status status);

/* ---- sizes.c: the bytes of a layer's memory stand for its group, top_k and alignment ---- */

#define NVTE_NUMBERS 64 /* of groups; none has number 0 */
#define NVTE_ALIGNMENTS 11 /* 1, 2, 4 .. 1024 */
#define NVTE_TOPK_MAX 64

typedef struct nvte_layer {
    int number; /* of the group */
    int alignment; /* as a power of two */
    int topk;
} nvte_layer;

/* The size of a tensor that has at least `bytes` bytes. */
size_t nvte_size_of(const nvte_layer *layer, size_t bytes);
/* Whether `size` is one that nvte_size_of may return. */
int nvte_layer_of(size_t size, nvte_layer *layer);

/* ---- groups.c ---- */

typedef struct nvte_plan {
    weft_ep_route *route; /* attached, by each call, to the memory that it is given */
    size_t bytes; /* that it wants */
    size_t size; /* nvte_size_of */
    int is_prepared; /* some memory has a routing */
    unsigned char prepared[]; /* bit T: a routing of T tokens has been made */
} nvte_plan;

struct weft_nvte_group {
    ncclEpGroup_t nccl;
    pthread_mutex_t lock; /* held during a call of the group */
    int device;
    int number;
    nvte_plan *plans[NVTE_TOPK_MAX][NVTE_ALIGNMENTS];
};

/* The layer that handle_mem names: its group, locked, and its plan. On success nvte_leave is to come. */
weft_status nvte_enter(const char *call, const NVTETensor handle_mem, weft_nvte_group **group, nvte_plan **plan,
                       void **memory);
void nvte_leave(weft_nvte_group *group);

/* Copy the caller's config, of any version. */
weft_status nvte_read_layer(const char *call, const NVTEEpLayerConfig *theirs, NVTEEpLayerConfig *copy);

/* ---- tensors.c ---- */

typedef struct nvte_tensor {
    void *data;
    NVTEDType type;
    size_t ndim;
    size_t sizes[WEFT_NVTE_DIMENSIONS_MAX];
    size_t elements;
    NVTEScalingMode scaling_mode; /* none, or NVTE_MXFP8_1D_SCALING */
    void *scales;
} nvte_tensor;

/* Look for TransformerEngine's accessors. Any thread. */
void nvte_find_accessors(void);

/* What a tensor says; NULL is an error. `window` NULL, or without a window: its own data. */
weft_status nvte_read_tensor(const char *call, const char *name, const NVTETensor tensor, const NVTECommWindow *window,
                             const weft_nvte_group *group, nvte_tensor *copy);

/* Rows [..][H], and how many. `moves`: they are only moved, and may have scales. */
weft_status nvte_read_rows(const char *call, const char *name, const NVTETensor tensor, const NVTECommWindow *window,
                           const weft_nvte_group *group, int moves, weft_ep_rows *rows, size_t *count);

/* Read a tensor of float32 with `count` elements in all. */
weft_status nvte_read_floats(const char *call, const char *name, const NVTETensor tensor, const NVTECommWindow *window,
                             const weft_nvte_group *group, size_t count, float **data);

/* Bytes of an element; 0: of a type that is none of rows. */
size_t nvte_element_bytes(NVTEDType type);

#endif

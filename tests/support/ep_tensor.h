/* support/ep_tensor.h: an array that a call reads or writes. It is first put together as an image in host memory,
 * between guards; the image is placed where the call is to find it, symmetric or not, on the host or on a device; what
 * the call must leave there is then worked into the image, and what lies there is compared with it, byte for byte,
 * guards included. So what a call must not touch is checked like what it must write. */
#ifndef SUPPORT_EP_TENSOR_H
#define SUPPORT_EP_TENSOR_H

#include <stddef.h>

#define EP_POISON 0xa5 /* what memory holds that nobody has written */

/* Where arrays are placed. */
typedef struct ep_memory {
    void *context;
    /* Memory that holds `image`; aligned to 16 bytes at least. `random`: to choose from where there is a choice. */
    void *(*place)(void *context, const void *image, size_t bytes, unsigned random);
    /* Read back what lies at `there`. */
    void (*fetch)(void *context, void *image, const void *there, size_t bytes);
    /* Overwrite and free, so that a late read or write shows. */
    void (*release)(void *context, void *there, size_t bytes);
} ep_memory;

typedef struct ep_tensor {
    const ep_memory *memory;
    const char *name;
    unsigned char *image; /* guard, data, guard */
    unsigned char *there; /* the same, placed; NULL before */
    size_t bytes; /* of the data */
    int is_f32; /* float32 numbers: any NaN equals any other */
} ep_tensor;

/* A poisoned image for `bytes` bytes of data. */
ep_tensor ep_tensor_create(const ep_memory *memory, const char *name, size_t bytes);
/* The data of the image. */
void *ep_tensor_image(const ep_tensor *tensor);
/* Place the image; returns where its data lies. */
void *ep_tensor_place(ep_tensor *tensor, unsigned random);
/* Fetch what lies there. NULL when it equals the image; else what does, to be freed by the caller, and in *at the first
 * byte that differs, counted from the data's beginning (negative in the guard before it). */
unsigned char *ep_tensor_differs(const ep_tensor *tensor, long *at);
/* Release the memory and the image. A tensor never created, all zero, is allowed. */
void ep_tensor_destroy(ep_tensor *tensor);

#endif

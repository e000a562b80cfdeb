/* support/ep_tensor.c: an array that a call reads or writes, with what it must hold. */
#include "support/ep_tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GUARD ((size_t)64)

ep_tensor ep_tensor_create(const ep_memory *memory, const char *name, size_t bytes)
{
    ep_tensor tensor = {.memory = memory, .name = name, .bytes = bytes};
    tensor.image = malloc(bytes + 2 * GUARD);
    memset(tensor.image, EP_POISON, bytes + 2 * GUARD);
    return tensor;
}

void *ep_tensor_image(const ep_tensor *tensor)
{
    return tensor->image + GUARD;
}

void *ep_tensor_place(ep_tensor *tensor, unsigned random)
{
    tensor->there = tensor->memory->place(tensor->memory->context, tensor->image, tensor->bytes + 2 * GUARD, random);
    return tensor->there + GUARD;
}

/* Take the image's NaN for a NaN found in its place. */
static void equate_nans(const ep_tensor *tensor, unsigned char *found)
{
    for (size_t at = 0; at + sizeof(float) <= tensor->bytes; at += sizeof(float)) {
        float wanted;
        float got;
        memcpy(&wanted, tensor->image + GUARD + at, sizeof wanted);
        memcpy(&got, found + GUARD + at, sizeof got);
        if (isnan(wanted) && isnan(got)) {
            memcpy(found + GUARD + at, &wanted, sizeof wanted);
        }
    }
}

unsigned char *ep_tensor_differs(const ep_tensor *tensor, long *at)
{
    size_t bytes = tensor->bytes + 2 * GUARD;
    unsigned char *found = malloc(bytes);
    tensor->memory->fetch(tensor->memory->context, found, tensor->there, bytes);
    if (tensor->is_f32) {
        equate_nans(tensor, found);
    }
    if (memcmp(found, tensor->image, bytes) == 0) {
        free(found);
        return NULL;
    }
    size_t i = 0;
    while (found[i] == tensor->image[i]) {
        i++;
    }
    *at = (long)i - (long)GUARD;
    memmove(found, found + GUARD, tensor->bytes);
    return found;
}

void ep_tensor_destroy(ep_tensor *tensor)
{
    if (tensor->there != NULL) {
        tensor->memory->release(tensor->memory->context, tensor->there, tensor->bytes + 2 * GUARD);
    }
    free(tensor->image);
    *tensor = (ep_tensor){0};
}

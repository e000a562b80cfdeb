/* device/access.h: the seam to GPUs: what an access to a far PE is, from the host or on a stream. */
#ifndef WEFTI_DEVICE_ACCESS_H
#define WEFTI_DEVICE_ACCESS_H

#include <stddef.h>
#include <stdint.h>

#include "weft/device.h"
#include "weft/protocol/wait.h"

typedef struct wefti_device wefti_device;

typedef enum wefti_device_request_kind {
    WEFTI_DEVICE_PUT,
    WEFTI_DEVICE_GET,
    WEFTI_DEVICE_AMO,
    WEFTI_DEVICE_STORE, /* of `value`, `bits` bits: on streams only */
} wefti_device_request_kind;

/* An access to a far PE; what its kind does not need is zero. */
typedef struct wefti_device_request {
    wefti_device_request_kind kind;
    int pe;
    void *address; /* symmetric, checked: on `pe`, if it is there, too */
    const void *local; /* PUT: source; GET: dest */
    size_t bytes;
    wefti_amo_op op;
    int bits;
    uint64_t value;
    uint64_t cond;
    void *old; /* AMO: gets the value before, of 64 bits (on a stream: of `bits`); NULL: not wanted */
} wefti_device_request;

#endif

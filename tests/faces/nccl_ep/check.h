/* faces/nccl_ep/check.h: what the tests of the NCCL EP face share: tensors, and results with their texts. */
#ifndef WEFT_TESTS_NCCL_EP_CHECK_H
#define WEFT_TESTS_NCCL_EP_CHECK_H

#include <stdio.h>
#include <string.h>

#include <nccl_ep.h>
#include <weft/status.h>

static inline ncclEpTensor_t tensor(void *data, ncclDataType_t type, unsigned ndim, size_t *sizes)
{
    ncclEpTensor_t made = NCCL_EP_TENSOR_INIT;
    made.ndim = ndim;
    made.datatype = type;
    made.data = data;
    made.sizes = sizes;
    return made;
}

/* A call has the result that is wanted, and `word`, if any, in the thread's last text; else a line says so and
 * `*failures` counts it. */
static inline void expect(int *failures, int rank, int line, ncclResult_t got, ncclResult_t wanted, const char *word)
{
    if (got != wanted || (word != NULL && strstr(weft_last_error(), word) == NULL)) {
        (void)fprintf(stderr, "rank %d, line %d: result %d, wanted %d with \"%s\"; text \"%s\"\n", rank, line, (int)got,
                      (int)wanted, word != NULL ? word : "", weft_last_error());
        (*failures)++;
    }
}

/* In a function of a rank `r`, which has a number and counts its failures. */
#define EXPECT(call, wanted, word) expect(&r->failures, r->rank, __LINE__, call, wanted, word)
#define OK(call) EXPECT(call, ncclSuccess, NULL)

#endif

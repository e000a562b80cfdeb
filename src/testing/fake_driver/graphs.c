/* testing/fake_driver/graphs.c: captured graphs: what a thread launches and fills between fakeCapture(1) and (0) is
 * done at once, as if the graph were launched once, and done again by each fakeReplay, with the arguments of then. */
#include <stdlib.h>
#include <string.h>

#include "testing/fake_driver/libcuda.h"

/* A node of the thread's graph. */
typedef struct node {
    void (*run)(const void *args);
    struct node *next;
    _Alignas(16) unsigned char args[];
} node;

static __thread int is_capturing;
static __thread CUstreamCaptureMode capture_mode;
static __thread node *graph;

int fake_is_recorded(void)
{
    return is_capturing && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
}

void *fake_record(void (*run)(const void *args), size_t bytes)
{
    node **place = &graph;
    node *made = calloc(1, sizeof *made + bytes);
    if (made == NULL) {
        abort();
    }
    while (*place != NULL) {
        place = &(*place)->next;
    }
    made->run = run;
    *place = made;
    return made->args;
}

/* As if all streams of the thread were captured, but for what it does in the mode RELAXED, which is on others. */
FAKE void fakeCapture(int on);
FAKE void fakeCapture(int on)
{
    while (on && graph != NULL) {
        node *next = graph->next;
        free(graph);
        graph = next;
    }
    is_capturing = on;
}

FAKE void fakeReplay(void);
FAKE void fakeReplay(void)
{
    for (const node *at = graph; at != NULL; at = at->next) {
        at->run(at->args);
    }
}

FAKE CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    const CUstreamCaptureMode before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

FAKE CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    *status = is_capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

/* testing/fake_driver/graphs.c: captured graphs: what a thread launches and fills between fakeCapture(1) and (0) is
 * done at once, as if the graph were launched once, and done again by each fakeReplay, with the arguments of then. */
#include <pthread.h>
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

static void free_nodes(void *first)
{
    for (node *at = first; at != NULL;) {
        node *next = at->next;
        free(at);
        at = next;
    }
}

/* The thread's graph ends with the thread. */
static pthread_key_t of_thread;

static void make_key(void)
{
    if (pthread_key_create(&of_thread, free_nodes) != 0) {
        abort();
    }
}

static void set_graph(node *first)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_key);
    (void)pthread_setspecific(of_thread, first);
    graph = first;
}

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
    made->run = run;
    if (graph == NULL) {
        set_graph(made);
        return made->args;
    }
    while (*place != NULL) {
        place = &(*place)->next;
    }
    *place = made;
    return made->args;
}

/* As if all streams of the thread were captured, but for what it does in the mode RELAXED, which is on others. */
FAKE void fakeCapture(int on);
FAKE void fakeCapture(int on)
{
    if (on) {
        free_nodes(graph);
        set_graph(NULL);
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

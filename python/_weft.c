/* python/_weft.c: weft for Python, on the limited API (3.10 and later): one binary for all versions.
 *
 * Thin: handles and addresses are integers, a tensor is its address (_tensor.h), None is NULL; the classes of weft/
 * keep objects alive and check shapes. The interpreter's lock is released in every call that may wait. A status that is
 * not WEFT_OK becomes the exception that `raises` was given for: raises(function): function(status, text) returns it.
 */
#define Py_LIMITED_API 0x030a0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <weft.h>
#include <weft/device.h>
#include <weft_ep.h>

#include "_slab.h"
#include "_tensor.h"

static _Thread_local int calls_inside; /* of this thread: it is one of Python's, and waits without the lock */

static PyObject *error_of; /* what makes exceptions; set once, when weft is imported */

static PyObject *fail(weft_status status)
{
    if (PyErr_Occurred()) {
        return NULL; /* a signal's handler has raised, or the function that a world meets by */
    }
    PyObject *made = error_of == NULL ? NULL : PyObject_CallFunction(error_of, "is", (int)status, weft_last_error());
    if (made != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
        Py_DECREF(made);
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_RuntimeError, weft_last_error());
    }
    return NULL;
}

static PyObject *none_or_fail(weft_status status)
{
    return status == WEFT_OK ? Py_NewRef(Py_None) : fail(status);
}

/* `CALL` without the interpreter's lock. */
#define WITHOUT_LOCK(CALL)                                                                                             \
    calls_inside++;                                                                                                    \
    Py_BEGIN_ALLOW_THREADS;                                                                                            \
    status = (CALL);                                                                                                   \
    Py_END_ALLOW_THREADS;                                                                                              \
    calls_inside--

#define INTERRUPT_CODE 130 /* what an abort by Ctrl-C is known by; weft/__init__.py */

/* Asked by calls that wait: handlers of signals run here, on the main thread. */
static int interrupted(void *context)
{
    (void)context;
    if (calls_inside == 0) {
        return 0;
    }
    const PyGILState_STATE state = PyGILState_Ensure();
    int code = 0;
    if (PyErr_CheckSignals() != 0) {
        code = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) ? INTERRUPT_CODE : 1;
    }
    PyGILState_Release(state);
    return code;
}

/* ---- arguments: integers, and tensors for their addresses ---- */

#define ARGUMENTS_MAX 32

static int read_argument(PyObject *given, uint64_t *out)
{
    if (given == Py_None) {
        *out = 0;
        return 1;
    }
    if (!PyLong_Check(given) && tensor_is(given)) {
        return tensor_address(given, out);
    }
    *out = PyLong_AsUnsignedLongLongMask(given);
    return *out != (uint64_t)-1 || !PyErr_Occurred();
}

static int read_arguments(PyObject *const *given, Py_ssize_t count, Py_ssize_t wanted, uint64_t *out)
{
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "%zd arguments were given where %zd are taken", count, wanted);
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!read_argument(given[i], &out[i])) {
            return 0;
        }
    }
    return 1;
}

#define POINTER(WORD) ((void *)(uintptr_t)(WORD))
#define NUMBER(WORD) ((int)(int64_t)(WORD))

/* py_NAME: a function of COUNT integers a[], whose value is `RESULT`. */
#define DEFINE(NAME, COUNT, RESULT)                                                                                    \
    static PyObject *py_##NAME(PyObject *self, PyObject *const *given, Py_ssize_t count)                               \
    {                                                                                                                  \
        (void)self;                                                                                                    \
        uint64_t a[ARGUMENTS_MAX];                                                                                     \
        return read_arguments(given, count, COUNT, a) ? (RESULT) : NULL;                                               \
    }

/* py_NAME: a call that may wait, without the interpreter's lock; None. */
#define CALL(NAME, COUNT, STATUS)                                                                                      \
    static PyObject *py_##NAME(PyObject *self, PyObject *const *given, Py_ssize_t count)                               \
    {                                                                                                                  \
        (void)self;                                                                                                    \
        uint64_t a[ARGUMENTS_MAX];                                                                                     \
        weft_status status;                                                                                            \
        if (!read_arguments(given, count, COUNT, a)) {                                                                 \
            return NULL;                                                                                               \
        }                                                                                                              \
        WITHOUT_LOCK(STATUS);                                                                                          \
        return none_or_fail(status);                                                                                   \
    }

/* The same of a call that gives a value: a TYPE in `value`, which MAKE makes an object of. */
#define CALL_GIVING(NAME, COUNT, TYPE, MAKE, STATUS)                                                                   \
    static PyObject *py_##NAME(PyObject *self, PyObject *const *given, Py_ssize_t count)                               \
    {                                                                                                                  \
        (void)self;                                                                                                    \
        uint64_t a[ARGUMENTS_MAX];                                                                                     \
        weft_status status;                                                                                            \
        TYPE value = {0};                                                                                              \
        if (!read_arguments(given, count, COUNT, a)) {                                                                 \
            return NULL;                                                                                               \
        }                                                                                                              \
        WITHOUT_LOCK(STATUS);                                                                                          \
        return status == WEFT_OK ? MAKE(value) : fail(status);                                                         \
    }

/* ---- worlds ---- */

/* What a world's creation asks of Python: a function that takes this PE's bytes and returns all PEs'. */
typedef struct exchange {
    PyObject *gather;
    int pes;
} exchange;

static int gather(void *context, const void *mine, void *all, size_t bytes)
{
    const exchange *with = context;
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *got =
        PyErr_Occurred() ? NULL : PyObject_CallFunction(with->gather, "y#", (const char *)mine, (Py_ssize_t)bytes);
    char *data = NULL;
    Py_ssize_t length = -1;
    int failed =
        got == NULL || PyBytes_AsStringAndSize(got, &data, &length) != 0 || length != (Py_ssize_t)bytes * with->pes;
    if (!failed) {
        memcpy(all, data, (size_t)length);
    }
    Py_XDECREF(got);
    if (PyErr_Occurred() && calls_inside == 0) {
        PyErr_WriteUnraisable(with->gather); /* else it is what the creation raises */
    }
    PyGILState_Release(state);
    return failed;
}

/* world_create(name, pe, pes, gather, deadline_ns, heap_max_bytes, on_device): pe and pes of -1 and 0, and gather of
 * None: by the launcher. */
static PyObject *py_world_create(PyObject *self, PyObject *arguments)
{
    (void)self;
    const char *name;
    int on_device;
    unsigned long long deadline_ns, heap_max_bytes;
    exchange with = {0};
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_callback_ops ops = WEFTI_SIZED(weft_callback_ops);
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    if (!PyArg_ParseTuple(arguments, "ziiOKKp", &name, &config.pe, &config.pes, &with.gather, &deadline_ns,
                          &heap_max_bytes, &on_device)) {
        return NULL;
    }
    config.name = name;
    config.deadline_ns = deadline_ns;
    config.heap_max_bytes = heap_max_bytes;
    config.device = on_device ? &device : NULL;
    config.interrupted = interrupted;
    if (with.gather != Py_None) {
        with.pes = config.pes;
        ops.context = &with;
        ops.allgather = gather;
        config.bootstrap = WEFT_BOOTSTRAP_CALLBACK;
        config.callback = &ops;
    }
    weft_world *world = NULL;
    weft_status status;
    WITHOUT_LOCK(weft_world_create(&config, &world));
    return status == WEFT_OK ? PyLong_FromVoidPtr(world) : fail(status);
}

CALL(world_destroy, 1, weft_world_destroy(POINTER(a[0])))
CALL(world_abort, 2, weft_world_abort(POINTER(a[0]), NUMBER(a[1])))
/* (the fault's status, who caused it or -1) */
static PyObject *py_world_fault(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    uint64_t a[1];
    int culprit = -1;
    if (!read_arguments(given, count, 1, a)) {
        return NULL;
    }
    const weft_status status = weft_world_fault(POINTER(a[0]), &culprit);
    return Py_BuildValue("ii", (int)status, culprit);
}
DEFINE(world_pe, 1, PyLong_FromLong(weft_world_pe(POINTER(a[0]))))
DEFINE(world_pes, 1, PyLong_FromLong(weft_world_pes(POINTER(a[0]))))
DEFINE(world_team, 1, PyLong_FromVoidPtr(weft_team_world(POINTER(a[0]))))

static PyObject *py_world_map(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    uint64_t a[1];
    char text[4096];
    if (!read_arguments(given, count, 1, a)) {
        return NULL;
    }
    (void)weft_world_transport_map(POINTER(a[0]), text, sizeof text);
    return PyUnicode_FromString(text);
}

/* ---- teams ---- */

CALL_GIVING(team_split, 4, weft_team *, PyLong_FromVoidPtr,
            weft_team_split_strided(POINTER(a[0]), NUMBER(a[1]), NUMBER(a[2]), NUMBER(a[3]), &value))
CALL(team_destroy, 1, weft_team_destroy(POINTER(a[0])))
DEFINE(team_pe, 1, PyLong_FromLong(weft_team_pe(POINTER(a[0]))))
DEFINE(team_pes, 1, PyLong_FromLong(weft_team_pes(POINTER(a[0]))))
CALL(team_sync, 1, weft_team_sync(POINTER(a[0])))
CALL(team_barrier, 1, weft_team_barrier(POINTER(a[0])))

/* ---- memory, one-sided access ---- */

CALL_GIVING(heap_alloc, 3, void *, PyLong_FromVoidPtr, weft_align(POINTER(a[0]), (size_t)a[1], (size_t)a[2], &value))
CALL(heap_free, 2, weft_free(POINTER(a[0]), POINTER(a[1])))
DEFINE(pointer, 3, PyLong_FromVoidPtr(weft_ptr(POINTER(a[0]), POINTER(a[1]), NUMBER(a[2]))))
CALL(put, 5, weft_putmem(POINTER(a[0]), POINTER(a[1]), POINTER(a[2]), (size_t)a[3], NUMBER(a[4])))
CALL(get, 5, weft_getmem(POINTER(a[0]), POINTER(a[1]), POINTER(a[2]), (size_t)a[3], NUMBER(a[4])))
CALL(put_signal, 8,
     weft_putmem_signal(POINTER(a[0]), POINTER(a[1]), POINTER(a[2]), (size_t)a[3], POINTER(a[4]), a[5],
                        (weft_signal_op)a[6], NUMBER(a[7])))
CALL_GIVING(signal_wait, 4, uint64_t, PyLong_FromUnsignedLongLong,
            weft_signal_wait_until(POINTER(a[0]), POINTER(a[1]), (weft_cmp)a[2], a[3], &value))
CALL_GIVING(fetch_add, 4, int64_t, PyLong_FromLongLong,
            weft_int64_atomic_fetch_add(POINTER(a[0]), POINTER(a[1]), (int64_t)a[2], NUMBER(a[3]), &value))
CALL_GIVING(compare_swap, 5, int64_t, PyLong_FromLongLong,
            weft_int64_atomic_compare_swap(POINTER(a[0]), POINTER(a[1]), (int64_t)a[2], (int64_t)a[3], NUMBER(a[4]),
                                           &value))
CALL(fence, 1, weft_fence(POINTER(a[0])))
CALL(quiet, 1, weft_quiet(POINTER(a[0])))

/* ---- collectives ---- */

CALL(broadcast, 5, weft_broadcastmem(POINTER(a[0]), POINTER(a[1]), POINTER(a[2]), (size_t)a[3], NUMBER(a[4])))
CALL(fcollect, 4, weft_fcollectmem(POINTER(a[0]), POINTER(a[1]), POINTER(a[2]), (size_t)a[3]))
CALL(alltoall, 4, weft_alltoallmem(POINTER(a[0]), POINTER(a[1]), POINTER(a[2]), (size_t)a[3]))

/* reduce(team, dest, source, count, type, operation): numbers as in weft/__init__.py. */
#define REDUCE(NAME, OP) weft_##NAME##_##OP##_reduce(POINTER(a[0]), POINTER(a[1]), POINTER(a[2]), (size_t)a[3])
#define DEFINE_REDUCE(OP)                                                                                              \
    static weft_status reduce_##OP(const uint64_t *a)                                                                  \
    {                                                                                                                  \
        switch (a[4]) {                                                                                                \
        case 0:                                                                                                        \
            return REDUCE(int32, OP);                                                                                  \
        case 1:                                                                                                        \
            return REDUCE(int64, OP);                                                                                  \
        case 2:                                                                                                        \
            return REDUCE(float, OP);                                                                                  \
        default:                                                                                                       \
            return REDUCE(double, OP);                                                                                 \
        }                                                                                                              \
    }
DEFINE_REDUCE(sum)
DEFINE_REDUCE(min)
DEFINE_REDUCE(max)
CALL(reduce, 6, a[5] == 0 ? reduce_sum(a) : a[5] == 1 ? reduce_min(a) : reduce_max(a))

/* ---- expert parallelism ---- */

#define ROWS_WORDS 8

static weft_ep_rows rows_of(const uint64_t *a)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = POINTER(a[0]);
    rows.dtype = (weft_ep_dtype)a[1];
    rows.hidden = NUMBER(a[2]);
    rows.stride_bytes = (size_t)a[3];
    rows.scales = POINTER(a[4]);
    rows.scale_type = (weft_ep_scale_type)a[5];
    rows.scale_row_stride = (size_t)a[6];
    rows.scale_word_stride = (size_t)a[7];
    return rows;
}

static weft_ep_config config_of(const uint64_t *a)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = NUMBER(a[0]);
    config.tokens_max = NUMBER(a[1]);
    config.topk_max = NUMBER(a[2]);
    config.row_bytes_max = (size_t)a[3];
    config.rows_max = (size_t)a[4];
    config.overflow = (weft_ep_overflow)a[5];
    config.slot_tokens_max = NUMBER(a[6]);
    config.on_device = NUMBER(a[7]);
    config.flags = (unsigned)a[8];
    config.pairs_max = NUMBER(a[9]);
    config.experts_of_rank = POINTER(a[10]);
    return config;
}

static weft_status create_group(const uint64_t *a, weft_ep **ep)
{
    const weft_ep_config config = config_of(a + 1);
    return weft_ep_create(POINTER(a[0]), &config, ep);
}
CALL_GIVING(ep_create, 12, weft_ep *, PyLong_FromVoidPtr, create_group(a, &value))
CALL(ep_destroy, 1, weft_ep_destroy(POINTER(a[0])))
CALL(ep_mask, 3, weft_ep_mask(POINTER(a[0]), NUMBER(a[1]), NUMBER(a[2])))
CALL(ep_mask_query, 2, weft_ep_mask_query(POINTER(a[0]), POINTER(a[1]), NULL))

static weft_ep_plan plan_of(const uint64_t *a)
{
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = NUMBER(a[0]);
    plan.layout = (weft_ep_layout)a[1];
    plan.alignment = NUMBER(a[2]);
    plan.slot_tokens = NUMBER(a[3]);
    plan.flags = (unsigned)a[4];
    plan.sms = NUMBER(a[5]);
    plan.order = (weft_ep_order)a[6];
    return plan;
}

static weft_status create_route(const uint64_t *a, weft_ep_route **route)
{
    const weft_ep_plan plan = plan_of(a + 1);
    return weft_ep_route_create(POINTER(a[0]), &plan, POINTER(a[8]), route);
}
CALL_GIVING(route_create, 9, weft_ep_route *, PyLong_FromVoidPtr, create_route(a, &value))

static weft_status bytes_of_route(const uint64_t *a, size_t *bytes)
{
    const weft_ep_plan plan = plan_of(a + 1);
    return weft_ep_route_bytes(POINTER(a[0]), &plan, bytes);
}
CALL_GIVING(route_bytes, 8, size_t, PyLong_FromSize_t, bytes_of_route(a, &value))
CALL(route_destroy, 1, weft_ep_route_destroy(POINTER(a[0])))
CALL_GIVING(route_generation, 1, uint64_t, PyLong_FromUnsignedLongLong, weft_ep_route_generation(POINTER(a[0]), &value))
CALL(route_expect, 2, weft_ep_route_expect(POINTER(a[0]), a[1]))
CALL(route_sms, 2, weft_ep_route_sms(POINTER(a[0]), NUMBER(a[1])))

static weft_ep_choices choices_of(const uint64_t *a)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = NUMBER(a[0]);
    choices.id_type = (weft_ep_id_type)a[1];
    choices.ids = POINTER(a[2]);
    choices.weights = POINTER(a[3]);
    choices.destinations = POINTER(a[4]);
    return choices;
}

static weft_status update(const uint64_t *a)
{
    const weft_ep_choices choices = choices_of(a + 1);
    return weft_ep_route_update(POINTER(a[0]), &choices, POINTER(a[6]));
}
CALL(route_update, 7, update(a))

static weft_status choose(const uint64_t *a)
{
    const weft_ep_choices choices = choices_of(a + 1);
    return weft_ep_route_choose(POINTER(a[0]), &choices);
}
CALL(route_choose, 6, choose(a))

/* (rows, tokens, dropped, local experts, first expert, status, dropped rows) */
static PyObject *tuple_of(weft_ep_host_counts counts)
{
    return Py_BuildValue("LLLiiiL", (long long)counts.rows, (long long)counts.tokens, (long long)counts.dropped,
                         counts.local_experts, counts.first_expert, (int)counts.status, (long long)counts.dropped_rows);
}
CALL_GIVING(route_query, 2, weft_ep_host_counts, tuple_of, weft_ep_route_query(POINTER(a[0]), POINTER(a[1]), &value))

/* Addresses, in the order of weft_ep_counts, which has nothing but pointers. */
static PyObject *addresses_of(weft_ep_counts counts)
{
    const int32_t *at[sizeof counts / sizeof(int32_t *)];
    memcpy(at, &counts, sizeof at);
    PyObject *tuple = PyTuple_New(sizeof at / sizeof *at);
    for (size_t i = 0; tuple != NULL && i < sizeof at / sizeof *at; i++) {
        (void)PyTuple_SetItem(tuple, (Py_ssize_t)i, PyLong_FromVoidPtr((void *)(uintptr_t)at[i]));
    }
    return tuple;
}
CALL_GIVING(route_counts, 1, weft_ep_counts, addresses_of, weft_ep_route_counts(POINTER(a[0]), &value))

/* counts_to(route, memory): int64 [2] generations and [2][L] rows of each local expert, in the host's memory. */
static weft_status counts_to(const uint64_t *a)
{
    weft_ep_count_arrays arrays = WEFT_EP_COUNT_ARRAYS_INIT;
    arrays.generation = POINTER(a[1]);
    arrays.type = WEFT_EP_INT64;
    arrays.rows_of_expert = arrays.generation + 2;
    return weft_ep_route_counts_to(POINTER(a[0]), &arrays);
}
CALL(route_counts_to, 2, counts_to(a))

static weft_ep_received received_of(const uint64_t *a)
{
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    received.rows = rows_of(a);
    received.rows_capacity = (size_t)a[8];
    received.weights = POINTER(a[9]);
    received.experts = POINTER(a[10]);
    received.source_rank = POINTER(a[11]);
    received.source_token = POINTER(a[12]);
    received.scale_group_stride = (size_t)a[13];
    received.expert_type = (weft_ep_id_type)a[14];
    return received;
}

static weft_status pad(const uint64_t *a)
{
    const weft_ep_received received = received_of(a + 1);
    return weft_ep_route_pad(POINTER(a[0]), &received, POINTER(a[16]), POINTER(a[17]));
}
CALL(route_pad, 18, pad(a))

/* dispatch(route, whether the sending half only, stream, in rows, received) */
static weft_status dispatch(const uint64_t *a)
{
    const weft_ep_rows in = rows_of(a + 3);
    const weft_ep_received out = received_of(a + 3 + ROWS_WORDS);
    return a[1] == 0 ? weft_ep_dispatch(POINTER(a[0]), &in, &out, POINTER(a[2]))
                     : weft_ep_dispatch_send(POINTER(a[0]), &in, &out, POINTER(a[2]));
}
CALL(dispatch, 3 + ROWS_WORDS + 15, dispatch(a))
CALL(dispatch_recv, 2, weft_ep_dispatch_recv(POINTER(a[0]), POINTER(a[1])))

/* count_choices(ids [T][K], whether of 64 bits, tokens, choices, experts, ranks, nodes, and the results: whether a
 * token goes to a rank [T][R], a byte each, tokens to each rank [R], to each node [nodes] and to each expert [E],
 * int32), in host memory; ranks divide experts, and nodes ranks. What is no expert is no choice. */
static weft_status count_choices(const uint64_t *a)
{
    const int tokens = NUMBER(a[2]), choices = NUMBER(a[3]), experts = NUMBER(a[4]);
    const int ranks = NUMBER(a[5]), nodes = NUMBER(a[6]);
    unsigned char *goes = POINTER(a[7]);
    int32_t *to_rank = POINTER(a[8]), *to_node = POINTER(a[9]), *to_expert = POINTER(a[10]);
    memset(to_rank, 0, (size_t)ranks * sizeof *to_rank);
    memset(to_node, 0, (size_t)nodes * sizeof *to_node);
    memset(to_expert, 0, (size_t)experts * sizeof *to_expert);
    for (int t = 0; t < tokens; t++, goes += ranks) {
        memset(goes, 0, (size_t)ranks);
        for (int k = 0; k < choices; k++) {
            const size_t at = (size_t)t * (size_t)choices + (size_t)k;
            const int64_t id = a[1] != 0 ? ((const int64_t *)POINTER(a[0]))[at] : ((const int32_t *)POINTER(a[0]))[at];
            if (id >= 0 && id < experts) {
                to_expert[id]++;
                goes[id / (experts / ranks)] = 1;
            }
        }
        for (int node = 0; node < nodes; node++) {
            int is_first = 1;
            for (int rank = node * (ranks / nodes); rank < (node + 1) * (ranks / nodes); rank++) {
                to_node[node] += goes[rank] & is_first;
                is_first = is_first && goes[rank] == 0;
                to_rank[rank] += goes[rank];
            }
        }
    }
    return WEFT_OK;
}
CALL(count_choices, 11, count_choices(a))

/* combine(route, whether the sending half only, stream, in rows, out rows, flags, weights, ids, their type, bias, bias,
 * values_in, values_out) */
static weft_status combine(const uint64_t *a)
{
    const weft_ep_rows in = rows_of(a + 3);
    const weft_ep_rows out = rows_of(a + 3 + ROWS_WORDS);
    const uint64_t *more = a + 3 + 2 * ROWS_WORDS;
    weft_ep_rows bias[2];
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    options.flags = (unsigned)more[0];
    options.weights = POINTER(more[1]);
    options.ids = POINTER(more[2]);
    options.id_type = (weft_ep_id_type)more[3];
    for (int i = 0; i < 2; i++) {
        bias[i] = in;
        bias[i].data = POINTER(more[4 + i]);
        bias[i].stride_bytes = 0;
        options.bias[i] = bias[i].data != NULL ? &bias[i] : NULL;
    }
    options.values_in = POINTER(more[6]);
    options.values_out = POINTER(more[7]);
    return a[1] == 0 ? weft_ep_combine_with(POINTER(a[0]), &in, &out, &options, POINTER(a[2]))
                     : weft_ep_combine_send_with(POINTER(a[0]), &in, &out, &options, POINTER(a[2]));
}
CALL(combine, 3 + 2 * ROWS_WORDS + 8, combine(a))
CALL(combine_recv, 2, weft_ep_combine_recv(POINTER(a[0]), POINTER(a[1])))

#include "_slots.h"
#include "_steps.h"

/* dispatch_bwd(route, stream, grad_received, grad_in, grad_weights_received, grad_weights) */
static weft_status dispatch_bwd(const uint64_t *a)
{
    const weft_ep_rows in = rows_of(a + 2);
    const weft_ep_rows out = rows_of(a + 2 + ROWS_WORDS);
    const uint64_t *more = a + 2 + 2 * ROWS_WORDS;
    return weft_ep_dispatch_bwd(POINTER(a[0]), &in, POINTER(more[0]), &out, POINTER(more[1]), POINTER(a[1]));
}
CALL(dispatch_bwd, 2 + 2 * ROWS_WORDS + 2, dispatch_bwd(a))

/* combine_bwd(route, stream, grad_out, rows, grad_rows, grad_weights, flags); rows with grad_weights only */
static weft_status combine_bwd(const uint64_t *a)
{
    const weft_ep_rows grad_out = rows_of(a + 2);
    const weft_ep_rows rows = rows_of(a + 2 + ROWS_WORDS);
    const weft_ep_rows grad_rows = rows_of(a + 2 + 2 * ROWS_WORDS);
    const uint64_t *more = a + 2 + 3 * ROWS_WORDS;
    return weft_ep_combine_bwd(POINTER(a[0]), &grad_out, more[0] != 0 ? &rows : NULL, &grad_rows, POINTER(more[0]),
                               (unsigned)more[1], POINTER(a[1]));
}
CALL(combine_bwd, 2 + 3 * ROWS_WORDS + 2, combine_bwd(a))

/* ---- slabs, whose numbers are from slab_open ---- */

CALL_GIVING(device_alloc, 2, void *, PyLong_FromVoidPtr, weft_device_malloc(POINTER(a[0]), (size_t)a[1], &value))
CALL(device_free, 2, weft_device_free(POINTER(a[0]), POINTER(a[1])))

static PyObject *nothing(void)
{
    return Py_NewRef(Py_None);
}
#define SLAB(WORD) ((int)((WORD) % SLABS_MAX))
DEFINE(slab_open, 4, PyLong_FromLong(slab_open(POINTER(a[0]), (size_t)a[1], POINTER(a[2]), POINTER(a[3]))))
DEFINE(slab_alloc, 2, PyLong_FromVoidPtr(slab_alloc(SLAB(a[0]), (size_t)a[1])))
DEFINE(slab_free, 2, (slab_free(SLAB(a[0]), POINTER(a[1])), nothing()))
DEFINE(slab_used, 1, PyLong_FromSize_t(slab_used(SLAB(a[0]))))
DEFINE(slab_end, 1, (slab_end(SLAB(a[0])), nothing()))

/* ---- the module ---- */

static PyObject *py_raises(PyObject *self, PyObject *function)
{
    (void)self;
    Py_XDECREF(error_of);
    error_of = Py_NewRef(function);
    return Py_NewRef(Py_None);
}

static PyObject *py_status_name(PyObject *self, PyObject *number)
{
    (void)self;
    const long status = PyLong_AsLong(number);
    return PyErr_Occurred() ? NULL : PyUnicode_FromString(weft_status_name((weft_status)status));
}

static PyObject *py_version(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return PyUnicode_FromString(weft_version_text());
}

#define METHOD(NAME)                                                                                                   \
    {                                                                                                                  \
#NAME, (PyCFunction)(void (*)(void))py_##NAME, METH_FASTCALL, NULL                                             \
    }
static PyMethodDef methods[] = {
    {"raises", py_raises, METH_O, NULL},
    {"status_name", py_status_name, METH_O, NULL},
    {"version", py_version, METH_NOARGS, NULL},
    {"world_create", py_world_create, METH_VARARGS, NULL},
    METHOD(tensors),
    METHOD(leased),
    METHOD(world_destroy),
    METHOD(world_abort),
    METHOD(world_fault),
    METHOD(world_pe),
    METHOD(world_pes),
    METHOD(world_team),
    METHOD(world_map),
    METHOD(team_split),
    METHOD(team_destroy),
    METHOD(team_pe),
    METHOD(team_pes),
    METHOD(team_sync),
    METHOD(team_barrier),
    METHOD(heap_alloc),
    METHOD(heap_free),
    METHOD(pointer),
    METHOD(put),
    METHOD(get),
    METHOD(put_signal),
    METHOD(signal_wait),
    METHOD(fetch_add),
    METHOD(compare_swap),
    METHOD(fence),
    METHOD(quiet),
    METHOD(broadcast),
    METHOD(fcollect),
    METHOD(alltoall),
    METHOD(reduce),
    METHOD(ep_create),
    METHOD(ep_destroy),
    METHOD(ep_mask),
    METHOD(ep_mask_query),
    METHOD(route_create),
    METHOD(route_bytes),
    METHOD(route_destroy),
    METHOD(route_generation),
    METHOD(route_expect),
    METHOD(route_sms),
    METHOD(route_update),
    METHOD(route_choose),
    METHOD(route_counts_to),
    METHOD(route_query),
    METHOD(route_counts),
    METHOD(route_pad),
    METHOD(dispatch),
    METHOD(dispatch_recv),
    METHOD(count_choices),
    METHOD(are_there),
    METHOD(array),
    METHOD(arrays),
    METHOD(rows),
    METHOD(slots_given),
    METHOD(slots_dispatch),
    METHOD(slots_results),
    METHOD(slots_combine),
    METHOD(steps_route),
    METHOD(steps_width),
    METHOD(steps_move),
    METHOD(steps_combine),
    METHOD(combine),
    METHOD(combine_recv),
    METHOD(dispatch_bwd),
    METHOD(combine_bwd),
    METHOD(device_alloc),
    METHOD(device_free),
    METHOD(slab_open),
    METHOD(slab_alloc),
    METHOD(slab_free),
    METHOD(slab_used),
    METHOD(slab_end),
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "weft._weft", "weft's calls; see weft.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__weft(void)
{
    return PyModule_Create(&module);
}

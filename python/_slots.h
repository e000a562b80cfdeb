/* python/_slots.h: what calls of low latency of deep_ep are made of, each one call of the extension; part of _weft.c.
 *
 * A plan is what calls of a shape have in common, as bytes: a slots_plan (deep_ep/slots.py packs it). The checks tell
 * whether tensors are what the plan's calls take, packed and all; where they say no, or do not know, deep_ep asks torch
 * for what is wrong, or makes them so. */
#ifndef WEFT_PYTHON_SLOTS_H
#define WEFT_PYTHON_SLOTS_H

typedef struct slots_plan {
    int64_t device; /* as DLPack has it */
    int64_t topk, hidden, local_experts, rows_of_expert;
    int64_t dtype, received_dtype, id_type;
    int64_t scale_type, scale_row_stride, scale_word_stride, scale_group_stride;
} slots_plan;

static const slots_plan *slots_plan_of(PyObject *bytes)
{
    if (!PyBytes_Check(bytes) || PyBytes_Size(bytes) != sizeof(slots_plan)) {
        PyErr_SetString(PyExc_TypeError, "a plan is the bytes of a slots_plan");
        return NULL;
    }
    return (const slots_plan *)(const void *)PyBytes_AsString(bytes);
}

static int slots_count(Py_ssize_t count, Py_ssize_t wanted)
{
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "%zd arguments were given where %zd are taken", count, wanted);
    }
    return count == wanted;
}

/* slots_given(plan, x, ids): the tokens of a dispatch that they are right for; -1. */
static PyObject *py_slots_given(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    tensor_view x, ids;
    const slots_plan *plan = slots_count(count, 3) ? slots_plan_of(given[0]) : NULL;
    if (plan == NULL) {
        return NULL;
    }
    const int device = (int)plan->device;
    const int are_right = tensor_read(given[1], &x) && tensor_read(given[2], &ids) && x.dimensions == 2 &&
                          tensor_dtype(&x) == plan->dtype && tensor_id_type(&ids) == plan->id_type &&
                          tensor_is_matrix(&x, device, x.shape[0], plan->hidden) &&
                          tensor_is_matrix(&ids, device, x.shape[0], plan->topk);
    return PyLong_FromLongLong(are_right ? x.shape[0] : -1);
}

/* The number of the type of ids of a combine of so many tokens that these are right for; -1. */
static int slots_check(const slots_plan *plan, int64_t tokens, PyObject *const *given)
{
    tensor_view x, ids, weights, out;
    const int device = (int)plan->device;
    const int64_t rows = plan->local_experts * plan->rows_of_expert;
    if (!tensor_read(given[0], &x) || !tensor_read(given[1], &ids) || !tensor_read(given[2], &weights)) {
        return -1;
    }
    if (x.device != device || x.dimensions != 3 || tensor_dtype(&x) != plan->dtype || !tensor_is_packed(&x) ||
        x.shape[0] * x.shape[1] != rows || x.shape[2] != plan->hidden) {
        return -1;
    }
    if (!tensor_is_matrix(&ids, device, tokens, plan->topk) ||
        !tensor_is_matrix(&weights, device, tokens, plan->topk) || tensor_dtype(&weights) != WEFT_EP_F32) {
        return -1;
    }
    if (given[3] != Py_None && (!tensor_read(given[3], &out) || tensor_dtype(&out) != plan->dtype ||
                                !tensor_is_matrix(&out, device, tokens, plan->hidden))) {
        return -1;
    }
    return tensor_id_type(&ids);
}

/* slots_results(plan, tokens, x, ids, weights, out or None) */
static PyObject *py_slots_results(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    const slots_plan *plan = slots_count(count, 6) ? slots_plan_of(given[0]) : NULL;
    const long long tokens = plan != NULL ? PyLong_AsLongLong(given[1]) : -1;
    if (plan == NULL || PyErr_Occurred()) {
        return NULL;
    }
    return PyLong_FromLong(slots_check(plan, tokens, given + 2));
}

/* Choose and dispatch in one call; `a` as slots_dispatch has it behind the plan. */
static weft_status slots_dispatch(const slots_plan *plan, const uint64_t *a)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    choices.tokens = NUMBER(a[3]);
    choices.id_type = (weft_ep_id_type)plan->id_type;
    choices.ids = POINTER(a[4]);
    in.data = POINTER(a[5]);
    in.dtype = (weft_ep_dtype)plan->dtype;
    in.hidden = out.rows.hidden = (int)plan->hidden;
    out.rows.data = POINTER(a[6]);
    out.rows.dtype = (weft_ep_dtype)plan->received_dtype;
    out.rows.scales = POINTER(a[7]);
    out.rows.scale_type = (weft_ep_scale_type)plan->scale_type;
    out.rows.scale_row_stride = (size_t)plan->scale_row_stride;
    out.rows.scale_word_stride = (size_t)plan->scale_word_stride;
    out.scale_group_stride = (size_t)plan->scale_group_stride;
    out.rows_capacity = (size_t)(plan->local_experts * plan->rows_of_expert);
    out.source_token = POINTER(a[8]);
    weft_ep_count_arrays counts = WEFT_EP_COUNT_ARRAYS_INIT;
    counts.on_stream = 1;
    counts.rows_of_expert = POINTER(a[9]);
    weft_status status = weft_ep_route_counts_to(POINTER(a[0]), &counts);
    status = status == WEFT_OK ? weft_ep_route_choose(POINTER(a[0]), &choices) : status;
    if (status != WEFT_OK) {
        return status;
    }
    return a[1] == 0 ? weft_ep_dispatch(POINTER(a[0]), &in, &out, POINTER(a[2]))
                     : weft_ep_dispatch_send(POINTER(a[0]), &in, &out, POINTER(a[2]));
}

/* slots_dispatch(plan, route, whether the sending half only, stream, tokens, ids, x, received rows, their scales or
 * None, source_token, count). `count`: [L] int32, the rows of each local expert, there with what is received. */
static PyObject *py_slots_dispatch(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    uint64_t a[10];
    weft_status status;
    const slots_plan *plan = slots_count(count, 11) ? slots_plan_of(given[0]) : NULL;
    if (plan == NULL || !read_arguments(given + 1, 10, 10, a)) {
        return NULL;
    }
    WITHOUT_LOCK(slots_dispatch(plan, a));
    return none_or_fail(status);
}

/* slots_combine(plan, route, whether the sending half only, stream, number of the type of rows, rows, sums, weights,
 * ids, the number of their type): weighted. */
static weft_status slots_combine(const slots_plan *plan, const uint64_t *a)
{
    weft_ep_rows in = WEFT_EP_ROWS_INIT, out = WEFT_EP_ROWS_INIT;
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    in.dtype = out.dtype = (weft_ep_dtype)a[3];
    in.hidden = out.hidden = (int)plan->hidden;
    in.data = POINTER(a[4]);
    out.data = POINTER(a[5]);
    options.flags = WEFT_EP_WEIGHTED;
    options.weights = POINTER(a[6]);
    options.ids = POINTER(a[7]);
    options.id_type = (weft_ep_id_type)a[8];
    return a[1] == 0 ? weft_ep_combine_with(POINTER(a[0]), &in, &out, &options, POINTER(a[2]))
                     : weft_ep_combine_send_with(POINTER(a[0]), &in, &out, &options, POINTER(a[2]));
}

static PyObject *py_slots_combine(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    uint64_t a[9];
    weft_status status;
    const slots_plan *plan = slots_count(count, 10) ? slots_plan_of(given[0]) : NULL;
    if (plan == NULL || !read_arguments(given + 1, 9, 9, a)) {
        return NULL;
    }
    WITHOUT_LOCK(slots_combine(plan, a));
    return none_or_fail(status);
}

#endif

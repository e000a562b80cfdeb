/* python/_steps.h: what eager calls of weft.torch.Step are made of; part of _weft.c.
 *
 * The checks tell whether tensors are what a call takes, packed and all, in the memory that DLPack's number says; where
 * they say no, or do not know, nothing is done, and weft.torch asks torch for what is wrong, or makes them so. */
#ifndef WEFT_PYTHON_STEPS_H
#define WEFT_PYTHON_STEPS_H

static weft_ep_rows steps_rows(const tensor_view *view, uint64_t address)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = POINTER(address);
    rows.dtype = (weft_ep_dtype)tensor_dtype(view);
    rows.hidden = (int)view->shape[1];
    return rows;
}

/* steps_route(route, stream, device, choices of a token, ids, weights): the tokens that a routing is agreed on for; -1:
 * none is. */
static PyObject *py_steps_route(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    uint64_t a[6];
    tensor_view ids, weights;
    weft_status status;
    if (!read_arguments(given, count, 6, a)) {
        return NULL;
    }
    const int device = NUMBER(a[2]), topk = NUMBER(a[3]);
    if (!tensor_read(given[4], &ids) || !tensor_read(given[5], &weights) || ids.dimensions != 2 ||
        ids.shape[0] > INT32_MAX || tensor_id_type(&ids) < 0 || tensor_dtype(&weights) != WEFT_EP_F32 ||
        !tensor_is_matrix(&ids, device, ids.shape[0], topk) ||
        !tensor_is_matrix(&weights, device, ids.shape[0], topk)) {
        return PyLong_FromLong(-1);
    }
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = (int)ids.shape[0];
    choices.id_type = (weft_ep_id_type)tensor_id_type(&ids);
    choices.ids = POINTER(a[4]);
    choices.weights = POINTER(a[5]);
    WITHOUT_LOCK(weft_ep_route_update(POINTER(a[0]), &choices, POINTER(a[1])));
    return status == WEFT_OK ? PyLong_FromLong(choices.tokens) : fail(status);
}

/* steps_width(device, count, x): H, if x is packed rows [count][H] there; -1. */
static PyObject *py_steps_width(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    uint64_t a[2];
    tensor_view x;
    if (count != 3 || !read_arguments(given, 2, 2, a)) {
        return count != 3 ? PyErr_Format(PyExc_TypeError, "%zd arguments were given where 3 are taken", count) : NULL;
    }
    const int are_right = tensor_read(given[2], &x) && x.dimensions == 2 && tensor_dtype(&x) != 0 &&
                          x.shape[1] <= INT32_MAX && tensor_is_matrix(&x, NUMBER(a[0]), (int64_t)a[1], x.shape[1]);
    return PyLong_FromLongLong(are_right ? x.shape[1] : -1);
}

static PyObject *steps_no_tensors(void)
{
    PyErr_SetString(PyExc_TypeError, "rows are tensors that steps_width knows");
    return NULL;
}

/* steps_move(route, stream, x, received rows, their weights, their experts): a dispatch on the last routing. */
static PyObject *py_steps_move(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    uint64_t a[6];
    tensor_view x, received;
    weft_status status;
    if (!read_arguments(given, count, 6, a)) {
        return NULL;
    }
    if (!tensor_read(given[2], &x) || !tensor_read(given[3], &received)) {
        return steps_no_tensors();
    }
    const weft_ep_rows in = steps_rows(&x, a[2]);
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    out.rows = steps_rows(&received, a[3]);
    out.rows_capacity = (size_t)received.shape[0];
    out.weights = POINTER(a[4]);
    out.experts = POINTER(a[5]);
    WITHOUT_LOCK(weft_ep_dispatch(POINTER(a[0]), &in, &out, POINTER(a[1])));
    return none_or_fail(status);
}

/* steps_combine(route, stream, rows, sums) */
static PyObject *py_steps_combine(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    uint64_t a[4];
    tensor_view rows, sums;
    weft_status status;
    if (!read_arguments(given, count, 4, a)) {
        return NULL;
    }
    if (!tensor_read(given[2], &rows) || !tensor_read(given[3], &sums)) {
        return steps_no_tensors();
    }
    const weft_ep_rows in = steps_rows(&rows, a[2]), out = steps_rows(&sums, a[3]);
    const weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    WITHOUT_LOCK(weft_ep_combine_with(POINTER(a[0]), &in, &out, &options, POINTER(a[1])));
    return none_or_fail(status);
}

#endif

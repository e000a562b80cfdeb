/* python/_tensor.h: torch's tensors as their addresses, and what calls check of them, read by DLPack's exchange
 * functions: without an object made and without a wait, in a tenth of the time that an attribute of a tensor takes.
 *
 * What is used of dlpack.h's layouts (version 1.3) is declared here under names of weft's. A torch without exchange
 * functions is asked for addresses by data_ptr(), and checks say that they do not know. */
#ifndef WEFT_PYTHON_TENSOR_H
#define WEFT_PYTHON_TENSOR_H

#include <stdint.h>
#include <stdlib.h>

/* DLTensor */
typedef struct tensor_view {
    char *data;
    int32_t device, device_number, dimensions;
    uint8_t kind, bits;
    uint16_t lanes;
    const int64_t *shape, *strides; /* in elements; strides of NULL: packed */
    uint64_t offset;
} tensor_view;

enum { DEVICE_CPU = 1, DEVICE_CUDA = 2 };
enum { KIND_INT = 0, KIND_FLOAT = 2, KIND_BFLOAT = 4, KIND_E4M3FN = 10 };

/* DLPackExchangeAPI */
typedef struct tensor_exchange {
    uint32_t major, minor;
    struct tensor_exchange *before;
    void (*unused[3])(void);
    int (*view)(void *tensor, tensor_view *out);
} tensor_exchange;

#define TENSOR_EXCHANGE_MAJOR 1

/* torch.Tensor, and its functions; NULL: torch is not used, it has none. */
static PyTypeObject *tensor_type;
static const tensor_exchange *tensor_exchange_of;

/* Where a tensor without elements lies, which is not NULL. */
static char tensor_nothing[64] __attribute__((aligned(64)));

/* tensors(torch.Tensor, its capsule of exchange functions or None): what is a tensor from now on. */
static PyObject *py_tensors(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    if (count != 2 || !PyType_Check(given[0])) {
        PyErr_SetString(PyExc_TypeError, "tensors takes a type and a capsule or None");
        return NULL;
    }
    const tensor_exchange *exchange = NULL;
    if (given[1] != Py_None) {
        exchange = PyCapsule_GetPointer(given[1], "dlpack_exchange_api");
        if (exchange == NULL) {
            return NULL;
        }
    }
    PyTypeObject *before = tensor_type;
    tensor_type = (PyTypeObject *)Py_NewRef(given[0]);
    tensor_exchange_of = exchange != NULL && exchange->major == TENSOR_EXCHANGE_MAJOR ? exchange : NULL;
    Py_XDECREF((PyObject *)before);
    return Py_NewRef(Py_None);
}

/* Whether it is a tensor that exchange functions tell of: subclasses may have no memory, and are left to torch. */
static int tensor_read(PyObject *object, tensor_view *out)
{
    if (tensor_exchange_of == NULL || Py_TYPE(object) != tensor_type) {
        return 0;
    }
    if (tensor_exchange_of->view(object, out) != 0) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

static int tensor_is(PyObject *object)
{
    return tensor_type != NULL && PyObject_TypeCheck(object, tensor_type);
}

/* The address of its first element, and one that is not NULL where there is none. */
static int tensor_address(PyObject *tensor, uint64_t *out)
{
    tensor_view view;
    if (tensor_read(tensor, &view)) {
        *out = (uint64_t)(uintptr_t)view.data + (view.data != NULL ? view.offset : 0);
    } else {
        PyObject *told = PyObject_CallMethod(tensor, "data_ptr", NULL);
        *out = told == NULL ? 0 : PyLong_AsUnsignedLongLongMask(told);
        Py_XDECREF(told);
        if (PyErr_Occurred()) {
            return 0;
        }
    }
    *out = *out != 0 ? *out : (uint64_t)(uintptr_t)tensor_nothing;
    return 1;
}

static int tensor_is_packed(const tensor_view *view)
{
    int64_t expected = 1;
    int is_packed = 1, is_empty = 0;
    for (int i = view->dimensions - 1; i >= 0; i--) {
        is_packed = is_packed && (view->shape[i] == 1 || view->strides == NULL || view->strides[i] == expected);
        is_empty = is_empty || view->shape[i] == 0;
        expected *= view->shape[i];
    }
    return is_packed || is_empty;
}

/* A tensor that stands for a lease, and what ends it when the tensor's memory has no user any more: DLManagedTensor. */
typedef struct tensor_lease {
    tensor_view view;
    void *context;
    void (*end)(struct tensor_lease *lease);
    int64_t one;
    PyObject *owner;
} tensor_lease;

/* Of any thread, with the interpreter's lock or without, and perhaps at the interpreter's end. */
static void tensor_lease_end(tensor_lease *lease)
{
    if (Py_IsInitialized()) {
        PyObject *kind, *value, *trace;
        const PyGILState_STATE state = PyGILState_Ensure();
        PyErr_Fetch(&kind, &value, &trace);
        PyObject *ended = PyObject_CallMethod(lease->owner, "end", NULL);
        if (ended == NULL) {
            PyErr_WriteUnraisable(lease->owner);
        }
        Py_XDECREF(ended);
        Py_DECREF(lease->owner);
        PyErr_Restore(kind, value, trace);
        PyGILState_Release(state);
    }
    free(lease);
}

/* A capsule that no torch has taken. */
static void tensor_lease_drop(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        tensor_lease_end(PyCapsule_GetPointer(capsule, "dltensor"));
    }
}

/* leased(address, number of the GPU or -1, owner): for torch.from_dlpack, a tensor [1] of float64 there. owner.end() is
 * called once the tensor and all that share its memory are gone. */
static PyObject *py_leased(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "leased takes an address, a GPU and an owner");
        return NULL;
    }
    void *address = PyLong_AsVoidPtr(given[0]);
    const long gpu = PyErr_Occurred() ? -1 : PyLong_AsLong(given[1]);
    tensor_lease *lease = PyErr_Occurred() ? NULL : calloc(1, sizeof *lease);
    if (lease == NULL) {
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    lease->view = (tensor_view){.data = address, .dimensions = 1, .kind = KIND_FLOAT, .bits = 64, .lanes = 1};
    lease->view.device = gpu < 0 ? DEVICE_CPU : DEVICE_CUDA;
    lease->view.device_number = gpu < 0 ? 0 : (int32_t)gpu;
    lease->one = 1;
    lease->view.shape = lease->view.strides = &lease->one;
    lease->context = lease;
    lease->end = tensor_lease_end;
    PyObject *capsule = PyCapsule_New(lease, "dltensor", tensor_lease_drop);
    if (capsule == NULL) {
        free(lease);
        return NULL;
    }
    lease->owner = Py_NewRef(given[2]);
    return capsule;
}

/* The number of its type among those of rows, weft_ep_dtype; 0: none. */
static int tensor_dtype(const tensor_view *view)
{
    switch (view->lanes == 1 ? view->kind * 256 + view->bits : 0) {
    case KIND_FLOAT * 256 + 32:
        return WEFT_EP_F32;
    case KIND_BFLOAT * 256 + 16:
        return WEFT_EP_BF16;
    case KIND_FLOAT * 256 + 16:
        return WEFT_EP_F16;
    case KIND_E4M3FN * 256 + 8:
        return WEFT_EP_FP8_E4M3;
    default:
        return 0;
    }
}

/* The number of its type among those of ids, weft_ep_id_type; -1: none. */
static int tensor_id_type(const tensor_view *view)
{
    if (view->kind != KIND_INT || view->lanes != 1) {
        return -1;
    }
    return view->bits == 32 ? WEFT_EP_INT32 : view->bits == 64 ? WEFT_EP_INT64 : -1;
}

/* are_there(number of the memory as DLPack has it, tensors or None...): whether all of them are known to lie there. */
static PyObject *py_are_there(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    tensor_view view;
    const long device = count > 0 ? PyLong_AsLong(given[0]) : -1;
    if (PyErr_Occurred()) {
        return NULL;
    }
    for (Py_ssize_t i = 1; i < count; i++) {
        if (given[i] != Py_None && (!tensor_read(given[i], &view) || view.device != device)) {
            return Py_NewRef(Py_False);
        }
    }
    return Py_NewRef(Py_True);
}

enum { ARRAY_FLOAT32 = 1, ARRAY_INT32 = 2, ARRAY_INT64 = 4 };

/* The address of a packed array of so many elements, or more, of one of the kinds ARRAY_; 0 where it is none, or not
 * known. */
static uint64_t tensor_array(PyObject *tensor, unsigned kinds, int64_t wanted, tensor_view *view)
{
    int64_t elements = 1;
    if (!tensor_read(tensor, view) || view->data == NULL || !tensor_is_packed(view)) {
        return 0;
    }
    const int id_type = tensor_id_type(view);
    const unsigned kind = tensor_dtype(view) == WEFT_EP_F32 ? ARRAY_FLOAT32
                          : id_type == WEFT_EP_INT32        ? ARRAY_INT32
                          : id_type == WEFT_EP_INT64        ? ARRAY_INT64
                                                            : 0;
    for (int i = 0; i < view->dimensions; i++) {
        elements *= view->shape[i];
    }
    return (kinds & kind) != 0 && elements >= wanted ? (uint64_t)(uintptr_t)(view->data + view->offset) : 0;
}

/* array(tensor, kinds, elements): tensor_array's address. */
static PyObject *py_array(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    tensor_view view;
    const unsigned kinds = count == 3 ? (unsigned)PyLong_AsUnsignedLong(given[1]) : 0;
    const long long wanted = count == 3 ? PyLong_AsLongLong(given[2]) : 0;
    if (PyErr_Occurred()) {
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(count == 3 ? tensor_array(given[0], kinds, wanted, &view) : 0);
}

/* arrays(rows, places of a row, group stride, weights, experts, source_rank, source_token, each None or a tensor): what
 * the extension's calls take behind the rows received; None where one is none, or not known. */
static PyObject *py_arrays(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    static const unsigned kinds[] = {ARRAY_FLOAT32, ARRAY_INT32 | ARRAY_INT64, ARRAY_INT32, ARRAY_INT32};
    uint64_t addresses[4] = {0, 0, 0, 0};
    tensor_view view;
    const long long rows = count == 7 ? PyLong_AsLongLong(given[0]) : 0;
    const long long places = count == 7 ? PyLong_AsLongLong(given[1]) : 0;
    int id_type = WEFT_EP_INT32;
    if (PyErr_Occurred()) {
        return NULL;
    }
    for (int i = 0; i < (count == 7 ? 4 : 0); i++) {
        if (given[3 + i] == Py_None) {
            continue;
        }
        addresses[i] = tensor_array(given[3 + i], kinds[i], i < 2 ? rows * places : rows, &view);
        if (addresses[i] == 0) {
            return Py_NewRef(Py_None);
        }
        id_type = i == 1 ? tensor_id_type(&view) : id_type;
    }
    return count != 7 ? Py_NewRef(Py_None)
                      : Py_BuildValue("LKKKKOi", rows, addresses[0], addresses[1], addresses[2], addresses[3], given[2],
                                      id_type);
}

/* rows(tensor, scales or None, their type, row stride, word stride): (n, what _weft's calls take of rows [n][H]); None
 * where the tensor is none of packed rows, or not known. */
static PyObject *py_rows(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    tensor_view view;
    uint64_t scales = 0;
    const int is_known = count == 5 && tensor_read(given[0], &view) && view.dimensions == 2 && view.data != NULL;
    const int dtype = is_known ? tensor_dtype(&view) : 0;
    if (dtype == 0 || (view.strides != NULL && view.shape[0] > 0 && view.shape[1] > 1 && view.strides[1] != 1)) {
        return Py_NewRef(Py_None);
    }
    if (given[1] != Py_None && !tensor_address(given[1], &scales)) {
        return NULL;
    }
    const int64_t pitch = view.shape[0] <= 1 ? 0 : view.strides != NULL ? view.strides[0] : view.shape[1];
    return Py_BuildValue("L(KiLLKOOO)", (long long)view.shape[0],
                         (unsigned long long)(uintptr_t)(view.data + view.offset), dtype, (long long)view.shape[1],
                         (long long)(pitch * (view.bits / 8)), (unsigned long long)scales, given[2], given[3],
                         given[4]);
}

/* Whether it is a packed tensor [rows][columns] there. */
static int tensor_is_matrix(const tensor_view *view, int device, int64_t rows, int64_t columns)
{
    return view->device == device && view->dimensions == 2 && view->shape[0] == rows && view->shape[1] == columns &&
           tensor_is_packed(view);
}

#endif

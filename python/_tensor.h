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

/* Whether it is a packed tensor [rows][columns] there. */
static int tensor_is_matrix(const tensor_view *view, int device, int64_t rows, int64_t columns)
{
    return view->device == device && view->dimensions == 2 && view->shape[0] == rows && view->shape[1] == columns &&
           tensor_is_packed(view);
}

#endif

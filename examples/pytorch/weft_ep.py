"""Expert parallelism of weft for Python, by ctypes: no PyTorch here, tensors are addresses.

    library = Library("libweft.so")                 # or where it lies; WEFT_LIBRARY
    world = library.world(on_device=True)           # all processes of torchrun or weftrun; the current CUDA context's GPU
    group = world.group(experts=64, tokens_max=4096, topk_max=8, row_bytes_max=2 * 7168)
    route = group.route(topk=8)
    rows = route.update(ids, weights, tokens, stream)           # how many this rank receives; waits
    route.dispatch(Rows(x, BF16, 7168), Rows(received, BF16, 7168), rows, experts, stream)
    route.combine(Rows(results, BF16, 7168), Rows(y, BF16, 7168), stream)

Every argument that stands for a tensor is its address (tensor.data_ptr()), of the host's memory or of the GPU's. A call
that fails raises WeftError with weft's text. The contracts are in weft_ep.h.
"""

import ctypes
import os

F32, BF16, F16, FP8_E4M3 = 1, 2, 3, 4
RANK_MAJOR, EXPERT_MAJOR, SLOTS_SOURCE, SLOTS_EXPERT = 0, 1, 2, 3
WEIGHTED = 1
INT64 = 1

_int, _size, _pointer, _i64 = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int64


class WeftError(RuntimeError):
    pass


class _Sized(ctypes.Structure):
    """A struct that begins with its size; zero is the default of every other field."""

    def __init__(self, **fields):
        super().__init__(size=ctypes.sizeof(type(self)), **fields)


class Config(_Sized):
    _fields_ = [("size", _size), ("experts", _int), ("tokens_max", _int), ("topk_max", _int), ("row_bytes_max", _size),
                ("rows_max", _size), ("overflow", _int), ("experts_of_rank", _pointer), ("slot_tokens_max", _int),
                ("on_device", _int)]


class Plan(_Sized):
    _fields_ = [("size", _size), ("topk", _int), ("layout", _int), ("alignment", _int), ("slot_tokens", _int),
                ("flags", ctypes.c_uint), ("sms", _int)]


class Choices(_Sized):
    _fields_ = [("size", _size), ("tokens", _int), ("id_type", _int), ("ids", _pointer), ("weights", _pointer),
                ("tokens_at", _pointer)]


class Rows(_Sized):
    _fields_ = [("size", _size), ("data", _pointer), ("dtype", _int), ("hidden", _int), ("stride_bytes", _size),
                ("scales", _pointer), ("scale_type", _int), ("scale_row_stride", _size), ("scale_word_stride", _size)]

    def __init__(self, data=None, dtype=0, hidden=0):
        super().__init__(data=data, dtype=dtype, hidden=hidden)


class Received(_Sized):
    _fields_ = [("size", _size), ("rows", Rows), ("rows_capacity", _size), ("weights", _pointer), ("experts", _pointer),
                ("source_rank", _pointer), ("source_token", _pointer)]


class HostCounts(ctypes.Structure):
    _fields_ = [("rows", _i64), ("tokens", _i64), ("dropped", _i64), ("local_experts", _int), ("first_expert", _int),
                ("status", _int), ("dropped_rows", _i64)]


class Library:
    def __init__(self, path=None):
        self.library = ctypes.CDLL(path or os.environ.get("WEFT_LIBRARY", "libweft.so"))
        self.library.weft_last_error.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        """Call a function that returns a weft_status. Addresses are ints, structs are passed by address."""
        arguments = [ctypes.byref(a) if isinstance(a, ctypes.Structure) else
                     _pointer(a) if a is None or (isinstance(a, int) and a > 0xFFFF) else a for a in arguments]
        if getattr(self.library, name)(*arguments) != 0:
            raise WeftError(f"{name}: {self.library.weft_last_error().decode()}")

    def world(self, on_device=False):
        return World(self, on_device)


class World:
    """This process's PE of a world of all processes. Close it last."""

    def __init__(self, library, on_device):
        self.library, self.on_device, self.handle = library, on_device, _pointer()
        library.call("weft_world_create", None, ctypes.byref(self.handle))
        library.library.weft_team_world.restype = _pointer
        self.team = library.library.weft_team_world(self.handle)
        self.pe = library.library.weft_world_pe(self.handle)
        self.pes = library.library.weft_world_pes(self.handle)
        if on_device:
            library.call("weft_device_attach", self.handle, None)

    def group(self, **limits):
        return Group(self, Config(on_device=int(self.on_device), **limits))

    def close(self):
        self.library.call("weft_world_destroy", self.handle)


class Group:
    """What steps of a layer share: the limits and the memory. Collective to make and to close."""

    def __init__(self, world, config):
        self.world, self.library, self.handle = world, world.library, _pointer()
        self.library.call("weft_ep_create", _pointer(world.team), config, ctypes.byref(self.handle))

    def route(self, topk, layout=EXPERT_MAJOR, **plan):
        return Route(self, Plan(topk=topk, layout=layout, **plan))

    def close(self):
        self.library.call("weft_ep_destroy", self.handle)


class Route:
    """Who sends what to whom in a step, until the next update. Close it before its group."""

    def __init__(self, group, plan):
        self.library, self.handle = group.library, _pointer()
        self.library.call("weft_ep_route_create", group.handle, plan, None, ctypes.byref(self.handle))

    def update(self, ids, weights, tokens, stream=None):
        """ids [tokens][topk] int64, weights [tokens][topk] float32. Returns the HostCounts: rows to receive, experts here."""
        counts = HostCounts()
        choices = Choices(tokens=tokens, id_type=INT64, ids=ids, weights=weights)
        self.library.call("weft_ep_route_update", self.handle, choices, _pointer(stream))
        self.library.call("weft_ep_route_query", self.handle, _pointer(stream), counts)
        if counts.status != 0:
            raise WeftError(f"the routing has status {counts.status}: a choice out of range, or more rows than rows_max")
        return counts

    def dispatch(self, rows, received, capacity, experts=None, stream=None):
        """experts: int32 [capacity], gets each row's local expert."""
        out = Received(rows=received, rows_capacity=capacity, experts=experts)
        self.library.call("weft_ep_dispatch", self.handle, rows, out, _pointer(stream))

    def combine(self, results, sums, stream=None):
        self.library.call("weft_ep_combine", self.handle, results, sums, ctypes.c_uint(WEIGHTED), _pointer(stream))

    def dispatch_backward(self, grad_received, grad_rows, stream=None):
        self.library.call("weft_ep_dispatch_bwd", self.handle, grad_received, None, grad_rows, None, _pointer(stream))

    def combine_backward(self, grad_sums, results, grad_results, grad_weights, stream=None):
        """grad_weights: float32 [tokens][topk]."""
        self.library.call("weft_ep_combine_bwd", self.handle, grad_sums, results, grad_results, _pointer(grad_weights),
                          ctypes.c_uint(WEIGHTED), _pointer(stream))

    def close(self):
        self.library.call("weft_ep_route_destroy", self.handle)

"""Expert parallelism for PyTorch: dispatch and combine with autograd, eager and compiled, and a layer.

    group = weft.ep.Group(world, experts=64, tokens_max=4096, topk_max=8, row_bytes_max=4 * 7168)
    step = Step(group, topk=8)                              # one a layer; a step is one dispatch and its combine
    rows, weights, experts = step.dispatch(x, ids, weights) # x [T][H] -> rows [N][H] of this rank's experts
    y = step.combine(expert(rows) * weights[:, None])       # [T][H], differentiable in all of x, weights and the experts

Calls are collective over the group's ranks, in the same order on all of them, their backwards too. Tensors are of the CPU,
or of the world's GPU; then calls are enqueued on the current stream.

Each dispatch has a routing of its own, which its combine and both backwards use. The routing lives in memory that a tensor
stands for, `step.routing` after a dispatch: as long as the tensor, or an autograd graph that has it, is there. So a step may
be dispatched again before the backward of an earlier dispatch. A copy of that tensor is no routing.

torch.compile sees operators: torch.ops.weft.route, move, dispatch (both in one), combine, dispatch_bwd and combine_bwd. All
take the group's tensor `order` as one that they change, so that no compiler removes them or puts them in another order than the
program's, forward or backward, on any rank. The number of rows N is told to the host, an unbacked size: set
torch._dynamo.config.capture_scalar_outputs to have it inside one graph, or give dispatch a capacity.
"""

import contextlib
import ctypes
import itertools
import math
import weakref

import torch

from weft import _weft, ep
from weft._memory import Memory

__all__ = ["MemPool", "MoE", "Step"]

ep.take_tensors_of(torch)


# The address of a GPU's current stream, as torch's compiled code asks for it: current_stream() makes objects first.
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (lambda gpu: torch.cuda.current_stream(gpu).cuda_stream)
_from_dlpack = torch._C._from_dlpack if hasattr(torch._C, "_from_dlpack") else torch.from_dlpack


def _stream(tensor):
    if not tensor.is_cuda:
        return None
    return _raw_stream(tensor.get_device())


def _is_captured(stream):
    """Whether a graph takes the current stream's calls, of its address: that of the default stream, 0, cannot be captured."""
    return bool(stream) and torch.cuda.is_current_stream_capturing()


# ---- routings ----

_HEADER = 64  # bytes before a route's memory; the first eight are what the tensor of a routing shows: its number
_at = {}  # address of the header: the lease that has it now
_numbered = {}  # the leases by number
_steps = weakref.WeakValueDictionary()  # by number, which operators take
_numbers = itertools.count(1)


class _Routing:
    """A route, its memory, and the stream of its calls. A captured graph uses the route at each launch, so that it has memory of
    the library's own: others get that of the graph's pool in between. So it has arrays of its own, too, into which its calls
    receive: only rows that change then have to be written."""

    __slots__ = ("route", "memory", "gpu", "new", "place", "address", "shown", "stream", "is_padded", "kept", "calls", "rows")

    def __init__(self, step, device, stream):
        bytes_wanted = step.group.route_bytes(*step.plan[0], **step.plan[1]) if stream != "captured" else 0
        self.memory = torch.empty(_HEADER + 64 + bytes_wanted, dtype=torch.uint8, device=device)
        self.gpu = device.index if device.type == "cuda" else -1
        self.new = Memory(device)
        self.place = ep._ON_DEVICE if step.group.on_device else ep._ON_CPU  # of tensors
        shift = -self.memory.data_ptr() % 64
        self.address = self.memory.data_ptr() + shift
        self.shown = self.memory[shift:shift + 8].view(torch.int64)
        route_memory = self.memory[shift + _HEADER:shift + _HEADER + bytes_wanted] if bytes_wanted > 0 else None
        self.route = step.group.route(*step.plan[0], **step.plan[1], memory=route_memory)
        self.stream = stream
        self.is_padded = False  # arrays have more rows than come
        self.rows = 0  # of arrays: N, or the capacity
        self.kept = [] if stream == "captured" else None  # of each call that receives: [arrays and their mark]
        self.calls = 0  # of these

    def current_stream(self):
        """Its address."""
        return 0 if self.gpu < 0 else _raw_stream(self.gpu)

    def arrays(self, *wanted):
        """Memory for rows that come, each of them (type, shape), and the address of its mark (0: none)."""
        device = self.memory.device
        if self.kept is None:
            return (*(torch.empty(shape, dtype=dtype, device=device) for dtype, shape in wanted), 0)
        if self.calls == len(self.kept):
            with _outside_of_captures(device):
                self.kept.append([*(torch.full(shape, -1 if dtype == torch.int32 else 0, dtype=dtype, device=device)
                                    for dtype, shape in wanted),
                                  torch.zeros(1, dtype=torch.int64, device=device)])
        *arrays, mark = self.kept[self.calls]
        self.calls += 1
        return (*(array.detach() for array in arrays), mark.data_ptr())

    def mark_written(self):
        """After the program's work on what came: where it wrote in place, no row is known to be padding any more."""
        for *arrays, mark in self.kept or ():
            if any(array._version != 0 for array in arrays):
                mark.fill_(arrays[0].shape[0])


def _is_capturing(stream):
    with torch.cuda.stream(stream):
        return torch.cuda.is_current_stream_capturing()


@contextlib.contextmanager
def _outside_of_captures(device):
    """Memory that is taken here is of no graph's pool, and what is enqueued here is done at the end, while another stream captures."""
    if device.type != "cuda":
        yield
        return
    mode = ctypes.c_int(2)  # cudaStreamCaptureModeRelaxed
    exchange = _cuda_library().cudaThreadExchangeStreamCaptureMode
    stream = next(stream for stream in iter(lambda: torch.cuda.Stream(device), None) if not _is_capturing(stream))
    exchange(ctypes.byref(mode))
    try:
        with torch.cuda.stream(stream):
            yield
        stream.synchronize()
    finally:
        exchange(ctypes.byref(mode))


class _Lease:
    """A routing for as long as its tensor is there, or one of the same storage; then the routing is idle. The tensor is of float64, whose
    bits are the lease's number: whoever compares results of operators, as torch.library.opcheck does, finds any two close."""

    __slots__ = ("routing", "idle", "number")

    def __init__(self, routing, idle):
        self.routing, self.idle, self.number = routing, idle, next(_numbers)
        _at[routing.address] = _numbered[self.number] = self

    def end(self):
        if _at is not None and _numbered is not None:  # the interpreter is not at its end
            _at.pop(self.routing.address, None)
            _numbered.pop(self.number, None)
            self.idle.append(self.routing)


def _step_of(number):
    step = _steps.get(number)
    if step is None:
        raise RuntimeError(f"weft.torch: step {number} is gone: keep the Step for as long as what was compiled with it")
    return step


def _routing_of(routing):
    found = _at.get(routing.data_ptr())
    if found is None:
        found = _numbered.get(int(routing.view(torch.int64)))
    if found is None:
        raise RuntimeError("weft.torch: this tensor is no routing of a dispatch that is still there: a copy names it only while the "
                           "dispatch's own tensor lives (saved-tensor hooks that copy must leave it alone)")
    return found.routing


# ---- the calls ----


def _packed(tensor, code):
    """A packed tensor of rows as the extension takes it, as ep.Rows has it."""
    return tensor, code, tensor.shape[1], 0, 0, 0, 0, 0


def _code_of(route, x):
    """Of rows that a program gives, which are looked at; what is made here is right."""
    name, code = ep._known(x.dtype)
    if code is None or x.dim() != 2 or x.is_cuda != route.group.on_device:
        ep._check_place(route.group.on_device, x)
        ep.Rows(x)  # whose error says what is wrong
    return code


def _check_choices(step, ids, weights):
    tokens = ids.shape[0]
    if ids.dtype not in _ID_TYPES:
        raise TypeError(f"ids is of {ep._name_of(ids.dtype)} where int32 or int64 is taken")
    if ids.dim() != 2 or ids.shape[1] != step.topk or weights.shape != ids.shape or weights.dtype != torch.float32:
        raise ValueError(f"ids is {tuple(ids.shape)} and weights {tuple(weights.shape)} of {ep._name_of(weights.dtype)}; both are "
                         f"[T][{step.topk}], weights of float32")
    if ids.is_cuda != step.group.on_device or weights.is_cuda != ids.is_cuda:
        ep._check_place(step.group.on_device, ids, weights)
    return tokens, _ID_TYPES[ids.dtype], ids, weights, 0


_ID_TYPES = {torch.int32: 0, torch.int64: 1}


def _route(step, ids, weights, is_numbered=False):
    """Agree on a routing, and wait for its counts: (the tensor that stands for it, the routing, N)."""
    stream = _stream(ids)
    if _is_captured(stream):
        raise RuntimeError("weft.torch: the number of rows is told to the host, which a captured graph cannot wait for: give dispatch "
                           "a capacity, or dispatch outside of the capture")
    routing = step._routing_for(ids, stream)
    routing.is_padded = False
    route = routing.route
    try:
        tokens = _weft.steps_route(route._handle, stream, routing.place, step.topk, ids, weights)
        if tokens < 0:
            tokens, *choices = _check_choices(step, ids.contiguous(), weights.contiguous())
            _weft.route_update(route._handle, tokens, *choices, stream)
        route.tokens = tokens
    except BaseException:
        step._idle.append(routing)
        raise
    shown = step._shown(routing, is_numbered)  # while a GPU's ranks agree
    counts = _weft.route_query(route._handle, stream)
    if counts[5] != 0:
        _check(step, ep.Counts(*counts))
    routing.rows = counts[0]
    return shown, routing, counts[0]


def _check_shapes(routing, rows, tokens):
    """Of a call's rows in the order received, and of its tokens."""
    if rows < routing.rows or tokens != routing.route.tokens:
        raise ValueError(f"{rows} rows and {tokens} tokens were given where the dispatch had {routing.rows} rows and "
                         f"{routing.route.tokens} tokens")


def _move(routing, x, rows):
    width = _weft.steps_width(routing.place, routing.route.tokens, x)
    if width < 0 or rows < routing.rows:
        return _move_other(routing, x, rows)
    new = routing.new
    made = new.matrix(x.dtype, rows, width), new.vector(torch.float32, rows), new.vector(torch.int32, rows)
    _weft.steps_move(routing.route._handle, routing.current_stream(), x, *made)
    return made


def _move_other(routing, x, rows):
    """The same of x that the extension does not know, or that is wrong."""
    x, route = x.contiguous(), routing.route
    code = _code_of(route, x)
    _check_shapes(routing, rows, x.shape[0])
    received = x.new_empty(rows, x.shape[1])
    row_weights = x.new_empty(rows, dtype=torch.float32)
    experts = x.new_empty(rows, dtype=torch.int32)
    _send(route, x, received, code, row_weights, experts)
    return received, row_weights, experts


def _send(route, x, received, code, row_weights, experts):
    _weft.dispatch(route._handle, 0, _stream(x) or 0, *_packed(x, code), *_packed(received, code), received.shape[0],
                   row_weights, experts, 0, 0, 0, 0)


def _dispatch(step, x, ids, weights, capacity, is_numbered=False):
    """A dispatch that agrees on its routing on its way."""
    x, ids, weights = x.contiguous(), ids.contiguous(), weights.contiguous()
    stream = _stream(x)
    routing = step._routing_for(x, "captured" if _is_captured(stream) else stream)
    shown = step._shown(routing, is_numbered)
    return *_dispatch_on(step, routing, x, ids, weights, capacity), shown


def _dispatch_on(step, routing, x, ids, weights, capacity):
    routing.is_padded, routing.rows = True, capacity
    code, choices = _code_of(routing.route, x), _check_choices(step, ids, weights)
    if x.shape[0] != choices[0]:
        raise ValueError(f"x has {x.shape[0]} tokens, and ids {choices[0]}")
    received, row_weights, experts, mark = routing.arrays(
        (x.dtype, (capacity, x.shape[1])), (torch.float32, (capacity,)), (torch.int32, (capacity,)))
    routing.route.tokens = choices[0]
    _weft.route_choose(routing.route._handle, *choices)
    _send(routing.route, x, received, code, row_weights, experts)
    if not x.is_cuda:
        _check(step, routing.route.query())
    _pad(routing.route, received, mark, code, row_weights, experts)
    return received, row_weights, experts


def _pad(route, rows, mark, code, row_weights=0, experts=0):
    """Rows that did not come are zero, of weight 0 and expert -1."""
    _weft.route_pad(route._handle, *_packed(rows, code), rows.shape[0], row_weights, experts, 0, 0, 0, 0, mark, _stream(rows) or 0)


def _check(step, counts):
    if counts.status != 0:
        raise ValueError(f"{counts.dropped} of ids are no experts of 0 .. {step.group.experts - 1}, or too many rows arrive "
                         f"({counts.rows})")


def _combine(rows, routing, tokens):
    route = routing.route
    width = _weft.steps_width(routing.place, routing.rows, rows)
    if width < 0 or tokens != route.tokens:
        return _combine_other(rows, routing, tokens)
    routing.mark_written()
    out = routing.new.matrix(rows.dtype, tokens, width)
    _weft.steps_combine(route._handle, routing.current_stream(), rows, out)
    return out


def _combine_other(rows, routing, tokens):
    """The same of rows that the extension does not know, that are more than came, or that are wrong."""
    rows, route = rows.contiguous(), routing.route
    code = _code_of(route, rows)
    _check_shapes(routing, rows.shape[0], tokens)
    routing.mark_written()
    out = rows.new_empty(tokens, rows.shape[1])
    _weft.combine(route._handle, 0, _stream(rows) or 0, *_packed(rows, code), *_packed(out, code), 0, 0, 0, 0, 0, 0, 0, 0)
    return out


def _dispatch_bwd(step, grad_rows, grad_weights, routing, tokens):
    _check_shapes(routing, grad_rows.shape[0], tokens)
    routing.mark_written()
    grad_rows, grad_weights = grad_rows.contiguous(), grad_weights.contiguous()
    grad_x = grad_rows.new_empty(tokens, grad_rows.shape[1])
    grad_choices = grad_weights.new_empty(tokens, step.topk)
    routing.route.dispatch_bwd(ep.Rows(grad_rows), ep.Rows(grad_x), grad_weights, grad_choices, stream=_stream(grad_rows))
    return grad_x, grad_choices


def _combine_bwd(grad_out, routing, rows):
    grad_out = grad_out.contiguous()
    _check_shapes(routing, rows, grad_out.shape[0])
    routing.mark_written()
    grad_rows, mark = routing.arrays((grad_out.dtype, (rows, grad_out.shape[1])))
    routing.route.combine_bwd(ep.Rows(grad_out), ep.Rows(grad_rows), stream=_stream(grad_out))
    if routing.is_padded:
        _pad(routing.route, grad_rows, mark, ep._known(grad_rows.dtype)[1])
    return grad_rows


# ---- operators ----

_library = torch.library.Library("weft", "FRAGMENT")
_library.define("route(Tensor ids, Tensor weights, Tensor(a!) order, int step) -> (Tensor, Tensor)")
_library.define("move(Tensor x, Tensor weights, Tensor routing, Tensor(a!) order, int step, SymInt rows) -> (Tensor, Tensor, Tensor)")
_library.define("dispatch(Tensor x, Tensor ids, Tensor weights, Tensor(a!) order, int step, SymInt capacity) -> "
                "(Tensor, Tensor, Tensor, Tensor)")
_library.define("combine(Tensor rows, Tensor routing, Tensor(a!) order, int step, SymInt tokens) -> Tensor")
_library.define("dispatch_bwd(Tensor grad_rows, Tensor grad_weights, Tensor routing, Tensor(a!) order, int step, SymInt tokens) -> "
                "(Tensor, Tensor)")
_library.define("combine_bwd(Tensor grad_out, Tensor routing, Tensor(a!) order, int step, SymInt rows) -> Tensor")
_ops = torch.ops.weft


def _kernel(name):
    return lambda function: _library.impl(name, function, "CompositeExplicitAutograd") or function


def _fake(name):
    return torch.library.register_fake(f"weft::{name}", lib=_library)


@_kernel("route")
def _(ids, weights, order, step):
    routing, _, rows = _route(_step_of(step), ids, weights, True)
    return routing, torch.tensor(rows)


@_kernel("move")
def _(x, weights, routing, order, step, rows):
    return _move(_routing_of(routing), x, rows)


@_kernel("dispatch")
def _(x, ids, weights, order, step, capacity):
    return _dispatch(_step_of(step), x, ids, weights, capacity, True)


@_kernel("combine")
def _(rows, routing, order, step, tokens):
    return _combine(rows, _routing_of(routing), tokens)


@_kernel("dispatch_bwd")
def _(grad_rows, grad_weights, routing, order, step, tokens):
    return _dispatch_bwd(_step_of(step), grad_rows, grad_weights, _routing_of(routing), tokens)


@_kernel("combine_bwd")
def _(grad_out, routing, order, step, rows):
    return _combine_bwd(grad_out, _routing_of(routing), rows)


@_fake("route")
def _(ids, weights, order, step):
    return ids.new_empty(1, dtype=torch.float64), torch.empty((), dtype=torch.int64)


def _fake_rows(x, rows):
    return x.new_empty(rows, x.shape[1]), x.new_empty(rows, dtype=torch.float32), x.new_empty(rows, dtype=torch.int32)


@_fake("move")
def _(x, weights, routing, order, step, rows):
    return _fake_rows(x, rows)


@_fake("dispatch")
def _(x, ids, weights, order, step, capacity):
    return *_fake_rows(x, capacity), x.new_empty(1, dtype=torch.float64)


@_fake("combine")
def _(rows, routing, order, step, tokens):
    return rows.new_empty(tokens, rows.shape[1])


@_fake("dispatch_bwd")
def _(grad_rows, grad_weights, routing, order, step, tokens):
    return grad_rows.new_empty(tokens, grad_rows.shape[1]), grad_weights.new_empty(tokens, _step_of(step).topk)


@_fake("combine_bwd")
def _(grad_out, routing, order, step, rows):
    return grad_out.new_empty(rows, grad_out.shape[1])


# ---- autograd ----


class _DispatchNow(torch.autograd.Function):
    """A dispatch that an eager call makes, of whichever kind: what torch takes for it is done before the ranks' call."""

    @staticmethod
    def forward(ctx, x, weights, ids, step, capacity):
        made = step._dispatch_now(x, ids, weights, capacity)
        ctx.save_for_backward(step.routing)
        ctx.number = step.number
        ctx.mark_non_differentiable(made[2])
        return made

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_rows, grad_weights, _):
        routing = _routing_of(*ctx.saved_tensors)
        return *_dispatch_bwd(_step_of(ctx.number), grad_rows, grad_weights, routing, routing.route.tokens), None, None, None


class _CombineNow(torch.autograd.Function):
    """A combine that an eager call makes."""

    @staticmethod
    def forward(ctx, rows, shown, routing):
        ctx.save_for_backward(shown)
        ctx.rows = rows.shape[0]
        return _combine(rows, routing, routing.route.tokens)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_out):
        return _combine_bwd(grad_out, _routing_of(*ctx.saved_tensors), ctx.rows), None, None


def _grads_of_dispatch(ctx, routing, grad_rows, grad_weights):
    return _ops.dispatch_bwd.default(grad_rows, grad_weights, routing, ctx.order, ctx.number, ctx.tokens)


class _Move(torch.autograd.Function):
    """Of the operator, as the next two; `keys`: what is left of the dispatcher's."""

    @staticmethod
    def forward(ctx, x, weights, routing, order, number, rows, keys):
        with torch._C._AutoDispatchBelowAutograd():
            made = _ops.move.default.redispatch(keys, x, weights, routing, order, number, rows)
        ctx.save_for_backward(routing)
        ctx.order, ctx.number, ctx.tokens = order, number, x.shape[0]
        ctx.mark_non_differentiable(made[2])
        return made

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_rows, grad_weights, _):
        return *_grads_of_dispatch(ctx, *ctx.saved_tensors, grad_rows, grad_weights), None, None, None, None, None


class _Dispatch(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ids, weights, order, number, capacity, keys):
        with torch._C._AutoDispatchBelowAutograd():
            made = _ops.dispatch.default.redispatch(keys, x, ids, weights, order, number, capacity)
        ctx.save_for_backward(made[3])
        ctx.order, ctx.number, ctx.tokens = order, number, x.shape[0]
        ctx.mark_non_differentiable(made[2], made[3])
        return made

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_rows, grad_weights, *_):
        grad_x, grad_choices = _grads_of_dispatch(ctx, *ctx.saved_tensors, grad_rows, grad_weights)
        return grad_x, None, grad_choices, None, None, None, None


class _Combine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, routing, order, number, tokens, keys):
        with torch._C._AutoDispatchBelowAutograd():
            out = _ops.combine.default.redispatch(keys, rows, routing, order, number, tokens)
        ctx.save_for_backward(routing)
        ctx.order, ctx.number, ctx.rows = order, number, rows.shape[0]
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_out):
        routing, = ctx.saved_tensors
        grad_rows = _ops.combine_bwd.default(grad_out, routing, ctx.order, ctx.number, ctx.rows)
        return grad_rows, None, None, None, None, None


def _with_autograd(name, function, differentiable):
    """Calls of the operator go through the autograd function where a gradient may be asked for."""
    operator = getattr(_ops, name).default

    def call(keys, *arguments):
        keys = keys & torch._C._after_autograd_keyset
        if torch.is_grad_enabled() and any(arguments[i].requires_grad for i in differentiable):
            return function.apply(*arguments, keys)
        with torch._C._AutoDispatchBelowAutograd():
            return operator.redispatch(keys, *arguments)

    _library.impl(name, call, "Autograd", with_keyset=True)


_with_autograd("move", _Move, (0, 1))
_with_autograd("dispatch", _Dispatch, (0, 2))
_with_autograd("combine", _Combine, (0,))


# ---- what programs use ----


def _order_of(group, device):
    """The tensor that all operators of a group say they change; nothing is ever written there."""
    if getattr(group, "_order", None) is None or group._order.device != device:
        group._order = torch.zeros(1, dtype=torch.int64, device=device)
    return group._order


class Step:
    """A dispatch and its combine, expert-major: rows are grouped by local expert, each group's first row at a multiple of
    `alignment`; rows of padding are zero, and their expert is -1.

    group      weft.ep.Group; tensors lie where its calls take them
    topk       K, the choices of a token
    alignment  rows
    """

    def __init__(self, group, topk, alignment=1):
        self.group, self.topk = group, topk
        self.first_expert, self.local_experts = group.first_expert, group.local_experts
        self.plan = (topk, ep.Layout.EXPERT_MAJOR), {"alignment": alignment, "flags": ep.ZERO_PADDING}
        self.number = next(_numbers)
        device = torch.device("cuda", torch.cuda.current_device()) if group.on_device else torch.device("cpu")
        self.order = _order_of(group, device)
        self._gpu = -1 if device.index is None else device.index
        self.routing = None  # of the last dispatch
        self._tokens = 0
        self._idle = []  # routings that nobody uses
        self._made = []  # all
        _steps[self.number] = self

    def _routing_for(self, tensor, stream):
        """A routing that nobody uses, where the tensor lies; of a GPU one whose last calls were on this stream. One of a captured
        graph, whose stream is "captured", stays its."""
        if stream != "captured":
            for i, routing in enumerate(self._idle):
                if routing.stream == stream and routing.route._handle:
                    del self._idle[i]
                    return routing
        made = _Routing(self, tensor.device, stream)
        self._made.append(made)
        return made

    def _shown(self, routing, is_numbered):
        """The tensor that stands for a routing. On a GPU it shows the number only where an operator is called by itself."""
        lease = _Lease(routing, self._idle)
        if not self.group.on_device:
            ctypes.c_int64.from_address(routing.address).value = lease.number
        elif is_numbered:
            routing.shown.fill_(lease.number)
        return _from_dlpack(_weft.leased(routing.address, self._gpu, lease))

    def dispatch(self, x, ids, weights, capacity=None):
        """x [T][H], ids [T][K] int32 or int64 (-1: none), weights [T][K] float32 -> (rows [N][H], the choice's weight of each
        row [N] float32, its local expert [N] int32). Collective.

        capacity  None: the call waits until N is known. Else N is this number, rows that do not come are zero, of weight 0
                  and expert -1, and nothing waits for the host: what a captured graph needs. More rows are an overflow on all
                  ranks, an error in CPU memory, or are dropped where the group drops. A dispatch that is captured has its
                  results in memory that the Step keeps until close(), as its combine's backward has; they may be written in
                  place before the combine and not after the last backward.

        ValueError: an id that is no expert. weft.Error: what the library says; MISMATCH, TIMEOUT and OVERFLOW on all ranks.
        """
        weights = weights if weights.dtype == torch.float32 else weights.to(torch.float32)
        self._tokens = x.shape[0]
        if torch.compiler.is_compiling():
            if capacity is not None:
                *made, self.routing = _ops.dispatch.default(x, ids, weights, self.order, self.number, capacity)
                return tuple(made)
            self.routing, count = _ops.route.default(ids, weights.detach(), self.order, self.number)
            rows = count.item()
            torch._check(rows >= 0)
            return _ops.move.default(x, weights, self.routing, self.order, self.number, rows)
        if torch.is_grad_enabled() and (x.requires_grad or weights.requires_grad):
            return _DispatchNow.apply(x, weights, ids, self, capacity)
        return self._dispatch_now(x, ids, weights, capacity)

    def _dispatch_now(self, x, ids, weights, capacity):
        if capacity is not None:
            *made, self.routing = _dispatch(self, x, ids, weights, capacity)
            return tuple(made)
        self.routing, routing, rows = _route(self, ids, weights)
        return _move(routing, x, rows)

    def combine(self, rows, routing=None, tokens=None):
        """Results of the experts [N][H], in the order of dispatch -> [T][H]: the sum of each token's choices. Collective.

        routing  step.routing as it was after the dispatch; None: of the last one
        tokens   T of that dispatch; needed with a routing where torch.compile sees the call
        """
        if torch.compiler.is_compiling():
            if routing is None:
                routing, tokens = self.routing, self._tokens
            elif tokens is None:
                raise ValueError("in a compiled function combine takes tokens beside routing")
            return _ops.combine.default(rows, routing, self.order, self.number, tokens)
        routing = self.routing if routing is None else routing
        if routing is None:
            raise RuntimeError("combine before a dispatch")
        found = _routing_of(routing)
        if torch.is_grad_enabled() and rows.requires_grad:
            return _CombineNow.apply(rows, routing, found)
        return _combine(rows, found, found.route.tokens)

    def close(self):
        """Local. Routings that tensors and autograd graphs still have are gone, too."""
        self.routing = None
        for routing in self._made:
            routing.route.close()
        self._made.clear()
        self._idle.clear()


class MoE(torch.nn.Module):
    """A mixture of experts over a group's ranks: a linear gate, and `expert(index)` makes each of this rank's experts.

    Expert e lives on rank e // (E / R); E is a multiple of R. forward takes and gives [..., H]; collective.
    """

    def __init__(self, group, hidden, topk, expert):
        super().__init__()
        if group.experts % group.ranks != 0:
            raise ValueError(f"{group.experts} experts do not divide among {group.ranks} ranks")
        self.step, self.topk = Step(group, topk), topk
        self.gate = torch.nn.Linear(hidden, group.experts, bias=False)
        self.experts = torch.nn.ModuleList(expert(group.first_expert + i) for i in range(group.local_experts))

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        chosen, ids = torch.topk(torch.softmax(self.gate(flat).float(), -1), self.topk, -1)
        rows, weights, experts = self.step.dispatch(flat, ids, chosen / chosen.sum(-1, keepdim=True))
        out = torch.zeros_like(rows)
        for i, expert in enumerate(self.experts):
            mine = (experts == i).nonzero().flatten()
            out = out.index_add(0, mine, expert(rows.index_select(0, mine)))
        return self.step.combine(out * weights[:, None].to(out.dtype)).reshape(x.shape)


# ---- memory ----


def _cuda_library():
    """The runtime library that torch has loaded."""
    with open("/proc/self/maps") as maps:
        path = next((line.split()[-1] for line in maps if "libcudart" in line), None)
    if path is None:
        raise RuntimeError("weft.torch: this process has no libcudart, which takes memory beside a captured graph, and beside a MemPool's slab")
    return ctypes.CDLL(path)


def _cuda_functions():
    """Addresses of cudaMalloc and cudaFree."""
    library = _cuda_library()
    return tuple(ctypes.cast(function, ctypes.c_void_p).value for function in (library.cudaMalloc, library.cudaFree))


class MemPool:
    """Tensors in symmetric memory, of the GPU where the world has one, else of the CPU: rows that lie there are received, sent and
    combined in place. Collective to make, over the world: it takes a slab, and what tensors take from it is local.

        pool = MemPool(world, 1 << 30)
        x = pool.empty(4096, 7168, dtype=torch.bfloat16)
        with pool.use():                              # on a GPU: whatever torch allocates meanwhile, of this thread
            y = model(x)

    size  bytes of the slab on each rank. What does not fit is ordinary memory: contains() tells. torch takes memory of a GPU in
          segments of 2 MiB and more.

    A tensor has the same place on all ranks where these make and drop the same tensors in the same order. Up to 16 pools a
    process. Tensors must not be used after the world's end.
    """

    def __init__(self, world, size):
        self._world, self.size = world, size
        ordinary = _cuda_functions() if world.on_device else (0, 0)
        self._block = None if world.on_device else world.alloc(size)
        self.address = _weft.device_alloc(world._handle, size) if world.on_device else self._block.address
        self._number = _weft.slab_open(self.address, size, *ordinary)
        if self._number < 0:
            self._give_back()
            raise RuntimeError("weft.torch.MemPool: this process has 16 pools, or tensors of those that it had: drop some")
        self.pool = None  # torch's
        if world.on_device:
            names = (f"wefti_slab_{what}_{self._number}" for what in ("alloc", "free"))
            self._allocator = torch.cuda.memory.CUDAPluggableAllocator(_weft.__file__, *names)
            self.pool = torch.cuda.MemPool(self._allocator.allocator())
        world._dependents.add(self)

    def _end(self):
        if self._number is not None:
            _weft.slab_end(self._number)
            self._number = None

    def _give_back(self):
        if self._block is not None:
            self._block.free()
        else:
            _weft.device_free(self._world._handle, self.address)

    def _check(self):
        if self._number is None:
            raise RuntimeError("weft.torch.MemPool: the pool is closed, or its world has ended")

    def use(self):
        """A context in which torch allocates the GPU's memory here. torch has no such thing for the CPU's: there is empty()."""
        self._check()
        if self.pool is None:
            raise RuntimeError("weft.torch.MemPool: torch's memory of the CPU cannot be taken from a pool; make tensors with empty()")
        return torch.cuda.use_mem_pool(self.pool)

    def empty(self, *shape, dtype=torch.float32):
        """A tensor [shape], not set to anything. Local."""
        self._check()
        if self.pool is not None:
            with self.use():
                return torch.empty(shape, dtype=dtype, device="cuda")
        count = math.prod(shape)
        if count == 0:
            return torch.empty(shape, dtype=dtype)
        address = _weft.slab_alloc(self._number, count * dtype.itemsize)
        if address == 0:
            raise MemoryError(f"weft.torch.MemPool: no memory for {count} elements of {dtype}")
        memory = (ctypes.c_ubyte * (count * dtype.itemsize)).from_address(address)
        weakref.finalize(memory, _weft.slab_free, self._number, address).atexit = False
        return torch.frombuffer(memory, dtype=dtype, count=count).reshape(shape)

    def contains(self, tensor):
        """Whether the tensor lies in the slab."""
        return self.address <= tensor.data_ptr() < self.address + self.size

    def used(self):
        """Bytes of the slab that tensors have; on a GPU the segments that torch has taken."""
        self._check()
        return _weft.slab_used(self._number)

    def close(self):
        """Collective. RuntimeError while tensors have parts of the slab."""
        if self._number is None:
            return
        self.pool = None
        if self.used() > 0:
            raise RuntimeError(f"weft.torch.MemPool: tensors have {self.used()} bytes of the pool: drop them before close()")
        self._end()
        self._give_back()

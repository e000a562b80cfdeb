"""What calls of low latency keep, so that one takes little of the CPU's time: a plan for each shape of call, with its routes."""

import copy
import ctypes
import math
import struct

import torch

from weft import ep

ep.take_tensors_of(torch)

_BY_EXPERT_SOURCE = 7  # of Route.counts()
_POWERS_A_WORD = 4
_COUNTS_A_BLOCK = 32  # arrays of counts that are made at once


class DeviceInts:
    """int32 memory of the GPU, for torch.as_tensor."""

    def __init__(self, address, shape):
        self.__cuda_array_interface__ = {"data": (address, False), "shape": shape, "typestr": "<i4", "version": 3}


def ints_at(address, shape, device):
    """A tensor that shows int32 memory of weft's: on a GPU without waiting for it."""
    if device.type != "cpu":
        return torch.as_tensor(DeviceInts(address, shape), device=device)
    count = math.prod(shape)
    if count == 0:
        return torch.empty(shape, dtype=torch.int32)
    return torch.frombuffer((ctypes.c_int32 * count).from_address(address), dtype=torch.int32).view(shape)


def _like(shape, dtype, device):
    """What torch.empty_like makes a packed tensor of, in less time than torch.empty; it has one element of memory."""
    return torch.empty((1,) * len(shape), dtype=dtype, device=device).expand(shape)


def _by_column(local, rows, words, dtype, device):
    """What torch.empty_like makes [L][rows][words] of whose rows are packed, as DeepEP's scales lie; it has no memory."""
    made = torch.empty_strided((local, rows, words), (words * rows, 1, rows), dtype=dtype, device=device)
    made.untyped_storage().resize_(0)
    return made


class Held:
    """A route, and what is made once for it, or for several of its calls."""

    __slots__ = ("plan", "route", "stream", "source", "counts", "idle")

    def __init__(self, plan, route, stream, source, idle):
        self.plan, self.route, self.stream, self.source, self.idle = plan, route, stream, source, idle
        self.counts = []  # what is left of a block of them

    def more_counts(self):
        """New [L] int32, aligned to 16 bytes, of memory of the current stream, which is that of the route's calls: a list to take
        from."""
        plan = self.plan
        if self.idle is not plan.idle:  # of a graph, whose memory it has to be
            return [_empty_like(plan.count)]
        padding = -plan.local % 4
        sizes = [plan.local, padding] if padding else [plan.local]
        with torch.inference_mode(False):  # they may be given to calls that are not in it
            block = torch.empty(_COUNTS_A_BLOCK * sum(sizes), dtype=torch.int32, device=plan.device)
            self.counts = list(torch.unsafe_split_with_sizes(block, sizes * _COUNTS_A_BLOCK)[::len(sizes)])
        return self.counts

    def move(self, stream):
        """Its calls are on another stream from now on, and so is memory for them."""
        self.stream, self.source, self.counts = stream, None, []


class SlotsHandle(tuple):
    """DeepEP's five (src_info, layout_range, num_max_dispatch_tokens_per_rank, hidden, num_experts), made when a program looks at
    them. It has a route, which calls of the same shape take when it is gone."""

    combine_buffer = None
    _five = None

    def __del__(self):
        held = self.held
        if self._five is not None:
            held.source = None  # the program may have it still
        if held.plan.is_open:
            held.idle.append(held)

    @property
    def route(self):
        return self.held.route

    def _fields(self):
        """layout_range [L][R] int64, (first row << 32 | rows), is made of the route's counts."""
        if self._five is None:
            plan, at = self.held.plan, self.held.route.counts()[_BY_EXPERT_SOURCE]
            many = ints_at(at, (plan.local, plan.ranks), plan.device).to(torch.int64)
            self._five = (self.held.source, (torch.cumsum(many, 1) - many) << 32 | many, plan.most, plan.hidden, plan.experts)
        return self._five

    def __getitem__(self, index):
        return self._fields()[index]

    def __iter__(self):
        return iter(self._fields())


_EMPTY = (None,) * 5
_empty_like = torch.empty_like


class Plan:
    """What dispatches with the same num_max_dispatch_tokens_per_rank, H, K, E and types have in common."""

    def __init__(self, group, device, streams, captured, experts, most, hidden, topk, dtype, id_dtype, use_fp8, round_scale, use_ue8m0):
        name, code = ep._known(dtype)
        id_name = ep._name_of(id_dtype)
        if code is None:
            raise TypeError(f"rows of {name}: give one of {', '.join(ep._DTYPES)}")
        if id_name not in ep._IDS:
            raise TypeError(f"topk_idx is of {id_name} where {' or '.join(ep._IDS)} is taken")
        self.group, self.device, self.on_device, self._streams, self._captured = group, device, group.on_device, streams, captured
        self.experts, self.most, self.hidden, self.topk = experts, most, hidden, topk
        self.ranks, self.local = group.ranks, experts // group.ranks
        self.slots, self._dtype, self.code = self.ranks * most, dtype, code
        self.idle = []  # routes that no handle has
        self.is_open = True  # takes them
        out = torch.float8_e4m3fn if use_fp8 else dtype
        self.rows = _like((self.local, self.slots, hidden), out, device)
        self.count, self.source = (_like(shape, torch.int32, device) for shape in ((self.local,), (self.local, self.slots)))
        self.scales = None
        scale = 0, 0, 0, 0
        if use_fp8:
            groups = math.ceil(hidden / 128)
            kind = ep.Scale.UE8M0 if use_ue8m0 else ep.Scale.F32_POW2 if round_scale else ep.Scale.F32
            words = math.ceil(groups / _POWERS_A_WORD) if use_ue8m0 else groups
            self.scales = _by_column(self.local, self.slots, words, torch.int32 if use_ue8m0 else torch.float32, device)
            scale = int(kind), 1, self.slots, words * self.slots
        self.sums = {}  # what combines add up is like, by their tokens and type
        self._elements = self.local * self.slots * hidden  # of a combine's rows
        #: what the extension's calls of slots take: slots_plan in python/_slots.h
        self._layout = [ep._ON_DEVICE if self.on_device else ep._ON_CPU, topk, hidden, self.local, self.slots, code, ep._known(out)[1],
                        ep._IDS[id_name], *scale]
        self.packed = struct.pack("12q", *self._layout)
        self._others = {}  # by H

    def close(self):
        """Its idle routes go now, each of which has the plan, and others with their handles."""
        self.is_open = False
        self.idle.clear()

    def of_rows(self, x):
        """The plan of a combine of x: this one, or if x has rows of another H than were dispatched, one like this with that H."""
        hidden = x.shape[-1] if x.dim() == 3 else self.hidden
        if hidden == self.hidden:
            return self
        other = self._others.get(hidden)
        if other is None:
            other = self._others[hidden] = copy.copy(self)
            other.hidden, other.sums, other._elements = hidden, {}, self.local * self.slots * hidden
            other._others = None  # or it would have itself
            other._layout = [*self._layout[:2], hidden, *self._layout[3:]]
            other.packed = struct.pack("12q", *other._layout)
        return other

    def sums_of(self, tokens, x, code):
        """What a combine of rows of x, whose type has that number, adds up is like this from now on."""
        like = self.sums[tokens, code] = _like((tokens, self.hidden), x.dtype, self.device)
        return like

    def check(self, x, topk_idx):
        """Raises what is wrong with them, if something is."""
        ep._check_place(self.on_device, x, topk_idx)
        if topk_idx.shape[0] != x.shape[0]:
            raise ValueError(f"topk_idx has {topk_idx.shape[0]} tokens, and x {x.shape[0]}")

    def check_results(self, x, ids, weights, out, tokens):
        """The numbers of the types of x and of ids. Raises what is wrong with the tensors of a combine, packed ones but `out`, if
        something is."""
        on_device, shape = self.on_device, (tokens, self.topk)
        code = self.code if x.dtype is self._dtype else ep._known(x.dtype)[1]
        id_code = ep._IDS.get(ep._name_of(ids.dtype))
        if x.is_cuda is not on_device or ids.is_cuda is not on_device or weights.is_cuda is not on_device:
            ep._check_place(on_device, x, ids, weights)
        if code is None or x.numel() != self._elements:
            raise ValueError(f"x is {tuple(x.shape)} of {ep._name_of(x.dtype)} where rows [{self.local}][{self.slots}][{self.hidden}] are "
                             f"taken")
        if ids.shape != shape or weights.shape != shape or weights.dtype is not torch.float32 or id_code is None:
            raise ValueError(f"topk_idx is {tuple(ids.shape)} of {ep._name_of(ids.dtype)} and topk_weights {tuple(weights.shape)} of "
                             f"{ep._name_of(weights.dtype)} where {shape} of int32 or int64, and of float32, are taken")
        if out is not None:
            sums = tokens, self.hidden
            ep._check_place(on_device, out)
            if out.shape != sums or out.dtype is not x.dtype or not out.is_contiguous():
                raise ValueError(f"out is {tuple(out.shape)} of {ep._name_of(out.dtype)} where {sums} of {ep._name_of(x.dtype)}, packed, is "
                                 f"taken")
        return code, id_code

    def take(self, stream, is_captured):
        """A handle that has an idle route of calls on the stream of that address; else one of another stream's calls once that has
        nothing more to do; else a new one. One of a graph is the graph's for good."""
        idle = self.idle
        held = idle.pop() if idle and idle[-1].stream == stream and not is_captured else self._held(stream, is_captured)
        if held.source is None:
            held.source = _empty_like(self.source)
        handle = SlotsHandle(_EMPTY)
        handle.held = held
        return handle

    def _held(self, stream, is_captured):
        if is_captured:
            return self._new(stream, self._captured)
        for i in range(len(self.idle) - 1, -1, -1):
            if self.idle[i].stream == stream:
                break
        else:
            i = next((i for i, held in enumerate(self.idle) if self._streams.is_idle(held.stream)), None)
            if i is None:
                return self._new(stream, self.idle)
            self.idle[i].move(stream)
        return self.idle.pop(i)

    def _new(self, stream, idle):
        route = self.group.route(self.topk, ep.Layout.SLOTS_EXPERT, slot_tokens=self.most)
        return Held(self, route, stream, _empty_like(self.source), idle)


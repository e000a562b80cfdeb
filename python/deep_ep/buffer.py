"""Buffer: DeepEP's calls as calls of weft.ep.

Limits grow: a dispatch of high throughput hears of all ranks' tokens, choices and widths, in host memory, and where they exceed
the group's there is a larger group from then on; calls of which DeepEP demands that ranks give the same numbers exchange
none. Handles keep the route of their dispatch.
"""

import logging
import math
from contextlib import nullcontext

import torch

import weft
from deep_ep.events import EventHandle, EventOverlap, has_event
from deep_ep.slots import Plan
from deep_ep.streams import Call, Streams
from weft import _weft, ep
from weft._memory import Memory

_log = logging.getLogger("deep_ep")
_told = set()


def _tell_once(what):
    if what not in _told:
        _told.add(what)
        _log.info("deep_ep on weft: %s", what)


RANKS_A_NODE = 8  # where there are more: what DeepEP takes for ranks that share links
_empty_like = torch.empty_like
_new_overlap = EventOverlap.__new__  # of no event, for a third of the time


class Config:
    """DeepEP's tuning of its kernels. weft uses num_sms; the rest is kept, and its size hints are what weft needs: nothing
    beforehand."""

    def __init__(self, num_sms=20, num_max_nvl_chunked_send_tokens=6, num_max_nvl_chunked_recv_tokens=256,
                 num_max_rdma_chunked_send_tokens=6, num_max_rdma_chunked_recv_tokens=256):
        self.num_sms = num_sms
        self.num_max_nvl_chunked_send_tokens = num_max_nvl_chunked_send_tokens
        self.num_max_nvl_chunked_recv_tokens = num_max_nvl_chunked_recv_tokens
        self.num_max_rdma_chunked_send_tokens = num_max_rdma_chunked_send_tokens
        self.num_max_rdma_chunked_recv_tokens = num_max_rdma_chunked_recv_tokens

    def get_nvl_buffer_size_hint(self, hidden_bytes, num_ranks):
        return hidden_bytes * num_ranks

    def get_rdma_buffer_size_hint(self, hidden_bytes, num_ranks):
        return 0


class _Lease:
    """A route for as long as a handle has it; then it is idle, and the next call of the same shape takes it: on another stream
    once that of its calls has nothing more to do."""

    def __init__(self, route, key, idle, stream):
        self.route, self._key, self._idle, self._stream = route, key, idle, stream

    def __del__(self):
        self._idle.append((self._key, self.route, self._stream))


class _LazyHandle(tuple):
    """The tuple that DeepEP gives, whose tensors that few programs look at are made when one does; and the route."""

    def __new__(cls, fields, lease, make):
        self = super().__new__(cls, fields)
        self.lease, self.route = lease, lease.route
        self._make, self._made = make, None
        return self

    def _fields(self):
        if self._made is None:
            self._made = self._make(super().__getitem__(slice(None)))
        return self._made

    def __getitem__(self, index):
        return self._fields()[index]

    def __iter__(self):
        return iter(self._fields())


class _Handle(_LazyHandle):
    """DeepEP's six (rank_prefix_matrix, channel_prefix_matrix, recv_channel_prefix_matrix, recv_src_idx, is_token_in_rank,
    send_head), or between nodes its ten, of which weft's channels are one."""

    def __new__(cls, lease, source, in_rank, rank, nodes):
        told = []  # once it is known, a table [R][R + nodes]: how many tokens each rank sends to each, and to each node
        fields = (None, None, None, source, in_rank, None) if nodes == 1 else (None,) * 10
        make = cls._six if nodes == 1 else lambda told, fields: cls._ten(told, source, in_rank, rank, nodes)
        self = super().__new__(cls, fields, lease, lambda fields: make(told[0], fields))
        self.source, self.in_rank, self.told = source, in_rank, told
        return self

    @staticmethod
    def _six(told, fields):
        source, in_rank = fields[3:5]
        prefix = torch.tensor(told.cumsum(0).tolist(), dtype=torch.int32, device=in_rank.device)
        head = torch.where(in_rank, torch.cumsum(in_rank, 0, dtype=torch.int32) - 1, -1).to(torch.int32)
        empty = prefix[:, :1].contiguous()
        return prefix, empty, empty, source, in_rank, head

    @staticmethod
    def _ten(told, source, in_rank, rank, nodes):
        """(is_token_in_rank, rdma_channel_prefix_matrix [nodes][1], gbl_channel_prefix_matrix [R][1], recv_rdma_channel_prefix_matrix
        [nodes][1], recv_rdma_rank_prefix_sum [nodes], recv_gbl_channel_prefix_matrix [R][1], recv_gbl_rank_prefix_sum [R], recv_src_meta
        [N][8] bytes, send_rdma_head [T][nodes], send_nvl_head): what its names say, but that recv_src_meta has the source's node and
        the token's number there, and that nothing is forwarded, so that send_nvl_head is -1 everywhere."""
        ranks = in_rank.shape[1]
        each, device = ranks // nodes, in_rank.device

        def ints(numbers):
            return torch.tensor(numbers.tolist(), dtype=torch.int32, device=device)

        by_rank, through = told[:, rank].cumsum(), told[rank % each::each, ranks + rank // each].cumsum()
        to_node = in_rank.view(-1, nodes, each).any(2)
        head = torch.where(to_node, torch.cumsum(to_node, 0, dtype=torch.int32) - 1, -1).to(torch.int32)
        node_of = torch.bucketize(torch.arange(source.numel(), device=device), ints(by_rank[each - 1::each]), right=True)
        meta = torch.stack((node_of.clamp(max=nodes - 1).to(torch.int32), source), 1).view(torch.uint8)
        forwarded = torch.full((int(through[-1]), each), -1, dtype=torch.int32, device=device)
        return (in_rank, ints(told[rank, ranks:, None]), ints(told[rank, :ranks, None]), head.new_zeros(nodes, 1), ints(through),
                head.new_zeros(ranks, 1), ints(by_rank), meta, head, forwarded)


class Buffer:
    """Expert-parallel communication of the ranks of a torch process group, or an mpi4py communicator: on the current GPU where
    the group has nccl or the process uses CUDA, else in CPU memory.

    Collective to make. The sizes, low_latency_mode, num_qps_per_rank and the rest are taken and not needed: memory is
    taken when a call needs it, and every Buffer has all calls.
    """

    num_sms = 20

    def __init__(self, group, num_nvl_bytes=0, num_rdma_bytes=0, low_latency_mode=False, num_qps_per_rank=24,
                 allow_nvlink_for_low_latency_mode=True, allow_mnnvl=False, use_fabric=False, explicitly_destroy=False,
                 enable_shrink=False, comm=None):
        self.group = group if group is not None else comm
        if self.group is None:
            raise ValueError("a Buffer needs a process group, or comm, an mpi4py communicator")
        self.num_nvl_bytes, self.num_rdma_bytes = num_nvl_bytes, num_rdma_bytes
        self.low_latency_mode, self.explicitly_destroy, self.enable_shrink = low_latency_mode, explicitly_destroy, enable_shrink
        on_device = _is_on_device(self.group)
        self._world = weft.World("deep_ep", self.group, on_device=on_device)
        self._device = torch.device("cuda", torch.cuda.current_device()) if on_device else torch.device("cpu")
        self._new = Memory(self._device)
        self._streams = Streams(self._device) if on_device else None
        self._comm_stream = self._streams.comm if on_device else None
        self.rank, self.group_size = self._world.pe, self._world.pes
        nodes, more = divmod(self.group_size, RANKS_A_NODE)
        self._nodes = nodes if nodes > 1 and not more else 1
        self._groups = {}
        self._plans = {}  # of calls of low latency, by what is equal in them
        self._last_plans = {}  # of them, by what can be told without a look at tensors
        self._retired, self._retired_plans = [], []  # of groups that were too small: handles may have their routes
        self._numbers = {}  # 0, 1 and so on, as many as there are experts
        self._idle = []  # routes without a handle, each with the stream of its calls
        self._captured = []  # those of graphs
        self._blocks = {}  # symmetric memory of gathers, by words
        self._masked = set()
        if num_qps_per_rank != 24:
            _tell_once("num_qps_per_rank is not needed")

    # ---- the whole ----

    @property
    def runtime(self):
        """What has DeepEP's calls of its extension: this, and None after destroy(). No attribute of it, which would keep a Buffer
        from ending with its last reference, at the same place on all ranks."""
        return self if self._world is not None else None

    def destroy(self):
        """Collective."""
        if self._world is not None:
            if self._device.type == "cuda":
                torch.cuda.synchronize()
            world, self._world = self._world, None
            for plan in (*self._plans.values(), *self._retired_plans):
                plan.close()
            self._groups, self._retired, self._retired_plans = {}, [], []
            self._plans.clear()
            self._last_plans.clear()
            for routes in (self._idle, self._captured):
                routes.clear()
            self._idle, self._captured = [], []  # handles that there still are have those before
            self._blocks.clear()
            world.close()

    def __del__(self):
        if not getattr(self, "explicitly_destroy", True) and getattr(self, "_world", None) is not None:
            self.destroy()

    def is_available(self):
        return self._world is not None

    def is_internode_available(self):
        return self.is_available() and self._nodes > 1

    def get_num_rdma_ranks(self):
        """Nodes, as DeepEP has them: of 8 ranks each where there are more than 8. What calls give and what handles have is by this;
        how rows go is not."""
        return self._nodes

    def get_rdma_rank(self):
        return self.rank // (self.group_size // self._nodes)

    def get_local_device_id(self):
        return self._device.index if self._device.type == "cuda" else -1

    @staticmethod
    def is_sm90_compiled():
        return True

    @staticmethod
    def set_num_sms(new_num_sms):
        """The multiprocessors of calls without a Config, of all Buffers; an even number."""
        assert new_num_sms % 2 == 0, f"num_sms is {new_num_sms}, an odd number"
        Buffer.num_sms = new_num_sms

    @staticmethod
    def capture():
        """The work that is on the current stream now."""
        return EventOverlap(EventHandle())

    @staticmethod
    def get_low_latency_rdma_size_hint(num_max_dispatch_tokens_per_rank, hidden, num_ranks, num_experts):
        """The bytes of rows that a rank may receive; memory is taken when it is needed. In a Buffer made with num_rdma_bytes of this
        number rows of a combine may have `hidden` elements where those of its dispatch had half as many or more."""
        return num_max_dispatch_tokens_per_rank * num_experts * hidden * 2

    @staticmethod
    def get_dispatch_config(num_ranks):
        return Config(Buffer.num_sms)

    @staticmethod
    def get_combine_config(num_ranks):
        return Config(Buffer.num_sms)

    def get_comm_stream(self):
        """The stream on which asynchronous calls run, and all but those of low latency; on the CPU None."""
        return self._comm_stream

    def get_local_buffer_tensor(self, dtype, size=None, offset=0, use_rdma_buffer=False):
        """Memory of num_nvl_bytes, or num_rdma_bytes, less `offset` bytes, of its own: what calls use is weft's, and not shown."""
        held = self.num_rdma_bytes if use_rdma_buffer else self.num_nvl_bytes
        block = torch.zeros((held - offset) // dtype.itemsize, dtype=dtype, device=self._device)
        assert size is None or size.numel() <= block.numel(), f"{tuple(size)} of {dtype} in {held - offset} bytes"
        return block if size is None else block[:size.numel()].view(size)

    # ---- limits ----

    def _tell_all(self, *values):
        """[R][n] int64 of each rank's values, of numpy. Collective; in host memory, so that no stream is waited for."""
        count = len(values)
        if count not in self._blocks:
            blocks = self._world.alloc(8 * count), self._world.alloc(8 * count * self.group_size)
            self._blocks[count] = *blocks, blocks[0].numpy("int64", (count,)), blocks[1].numpy("int64", (self.group_size, count))
        give, take, mine, all_of_them = self._blocks[count]
        mine[:] = values
        self._world.team.fcollect(take, give, 8 * count)
        return all_of_them.copy()

    def _experts_a_rank(self, experts):
        each, more = divmod(experts, self.group_size)
        if more:
            raise ValueError(f"{experts} experts do not divide among {self.group_size} ranks, of which each has as many")
        return each

    def _group_of(self, kind, experts, tokens, topk, row_bytes, slots=0):
        """The group of that kind and number of experts, large enough for this; all ranks want the same."""
        held = self._groups.get((kind, experts))
        if held is None:
            self._experts_a_rank(experts)
        if held is None or any(want > have for want, have in zip((tokens, topk, row_bytes, slots), held[0])):
            small = None if held is None else held[1]
            if small is not None:
                tokens, topk, row_bytes, slots = (max(pair) for pair in zip((tokens, topk, row_bytes, slots), held[0]))
            limits = (max(tokens, slots, 1), max(topk, 1), -(-row_bytes // 16) * 16, slots)
            masks_itself = self.enable_shrink and slots and self._device.type == "cpu"  # not there on GPUs
            group = ep.Group(self._world, experts=experts, tokens_max=limits[0], topk_max=limits[1], row_bytes_max=limits[2],
                             slot_tokens_max=slots, pairs=2 if slots else 1, flags=ep.MASK_ON_TIMEOUT if masks_itself else 0)
            for rank in self._masked:
                group.mask(rank)
            held = self._groups[kind, experts] = (limits, group)
            if small is not None:
                self._retire(small)
        return held[1]

    def _lease(self, group, stream, topk, layout=ep.Layout.RANK_MAJOR, is_told=False, **more):
        """A route of the group, made or idle, for calls on `stream`. One of a graph is the graph's for good. is_told: it knows
        rows_of_experts()."""
        stream = getattr(stream, "cuda_stream", stream)
        if stream is not None and self._streams.is_captured():
            return _Lease(group.route(topk, layout, **more), None, self._captured, None)
        key = (group, topk, layout, is_told, *more.values())
        for i, (shape, route, last) in enumerate(self._idle):
            if shape == key and (last == stream or self._streams.is_idle(last)):
                del self._idle[i]
                route.use_sms(0)
                return _Lease(route, key, self._idle, stream)
        route = group.route(topk, layout, **more)
        if is_told:
            route.tell_experts(torch.empty(2 + 2 * group.local_experts, dtype=torch.int64, device="cpu", pin_memory=group.on_device))
        return _Lease(route, key, self._idle, stream)

    @staticmethod
    def _sms_of(config):
        return Buffer.num_sms if config is None else config.num_sms

    def _call(self, previous_event, async_finish, allocate_on_comm_stream):
        return Call(self._streams, previous_event, async_finish and allocate_on_comm_stream and has_event(previous_event))

    # ---- high throughput ----

    def get_dispatch_layout(self, topk_idx, num_experts, previous_event=None, async_finish=False,
                            allocate_on_comm_stream=False):
        """topk_idx [T][K], -1 for none -> (tokens to each rank [R] int32, to each node [R / 8] int32 where there are several, else
        None, tokens to each expert [E] int32, whether a token goes to a rank [T][R] bool, event)."""
        local = self._experts_a_rank(num_experts)
        if topk_idx.dtype is not torch.int64 and topk_idx.dtype is not torch.int32:
            raise TypeError(f"topk_idx is of {topk_idx.dtype} where torch.int32 or torch.int64 is taken")
        if not (topk_idx.is_cpu or topk_idx.is_cuda):
            raise TypeError(f"topk_idx is on {topk_idx.device} where the CPU or a GPU is taken")
        with self._call(previous_event, async_finish, allocate_on_comm_stream) as call, call.work():
            results = (self._layout_on_gpu if topk_idx.is_cuda else self._layout)(topk_idx, num_experts, local)
        return *results, call.end(async_finish, (topk_idx,), results)

    def _layout(self, topk_idx, experts, local):
        tokens, topk = topk_idx.shape
        ranks, nodes, ids = self.group_size, self._nodes, topk_idx.contiguous()
        in_rank = ids.new_empty(tokens, ranks, dtype=torch.bool)  # whatever torch's default device is
        per_rank, per_node, per_expert = (ids.new_empty(many, dtype=torch.int32) for many in (ranks, nodes, experts))
        _weft.count_choices(ids.data_ptr(), ids.dtype is torch.int64, tokens, topk, experts, ranks, nodes, in_rank.data_ptr(),
                            per_rank.data_ptr(), per_node.data_ptr(), per_expert.data_ptr())
        return per_rank, per_node if nodes > 1 else None, per_expert, in_rank

    def _layout_on_gpu(self, topk_idx, experts, local):
        """By few operations, since each takes the host longer than the GPU: a table of T * E * K bytes."""
        tokens, topk = topk_idx.shape
        numbers = self._numbers.get(experts)
        if numbers is None:
            numbers = torch.arange(experts, dtype=torch.int32, device=topk_idx.device).view(experts, 1)
            if self._streams is None or not self._streams.is_captured():  # or they are there only when the graph has run
                self._numbers[experts] = numbers
        is_chosen = topk_idx.contiguous().unsqueeze(1) == numbers  # laid out as the ids are, which the next line needs plain
        in_rank = is_chosen.view(tokens, self.group_size, local * topk).any(2)
        return in_rank.sum(0, dtype=torch.int32), self._per_node(in_rank), is_chosen.sum((0, 2), dtype=torch.int32), in_rank

    def _per_node(self, in_rank):
        """Tokens to each node; None where there is one."""
        if self._nodes == 1:
            return None
        return in_rank.view(in_rank.shape[0], self._nodes, self.group_size // self._nodes).any(2).sum(0, dtype=torch.int32)

    def dispatch(self, x, handle=None, num_tokens_per_rank=None, num_tokens_per_rdma_rank=None, is_token_in_rank=None,
                 num_tokens_per_expert=None, topk_idx=None, topk_weights=None, expert_alignment=1, num_worst_tokens=0, config=None,
                 previous_event=None, async_finish=False, allocate_on_comm_stream=False):
        """x [T][H], or (fp8 x, scales [T][H / 128] float32 or int32, or [T][H / 512] int32), to the ranks of its experts.

        Returns (recv_x, recv_topk_idx [N][K] of local ids or -1, recv_topk_weights [N][K], the number of tokens of each local
        expert, rounded up to expert_alignment, as a list, handle, event); N is num_worst_tokens if that is not 0, and then
        the list is empty and nothing is awaited. With a handle: the rows again, on its routing; the rest is None.
        """
        stream = self._comm_stream
        data, scales = x if isinstance(x, tuple) else (x, None)
        is_new, given = handle is None, (data, scales, topk_idx, topk_weights, is_token_in_rank)
        with self._call(previous_event, async_finish, allocate_on_comm_stream) as call:
            data = call.packed(data)
            if is_new:
                topk_idx, topk_weights = call.packed(topk_idx), call.packed(topk_weights)
                handle, sent, per_expert = self._route(call, data, num_tokens_per_rank, num_tokens_per_rdma_rank, is_token_in_rank,
                                                       num_tokens_per_expert, topk_idx, topk_weights, expert_alignment, num_worst_tokens,
                                                       config, stream)
            else:
                assert topk_idx is None and topk_weights is None, "with a handle topk_idx and topk_weights are its"
                handle.route.use_sms(self._sms_of(config))
                assert data.shape[0] == handle.in_rank.shape[0], f"x has {data.shape[0]} tokens, and the handle {handle.in_rank.shape[0]}"
            results = self._move(handle, data, scales, topk_idx, topk_weights, is_new, stream, num_worst_tokens)
            if is_new:  # while the rows move
                handle.told.append(self._tell_all(*sent))
        event = call.end(async_finish, (*given, data, topk_idx, topk_weights, handle.in_rank), (handle.source, *results), is_of_work=False)
        recv_x, recv_scales, recv_idx, recv_weights = results
        received = recv_x if scales is None else (recv_x, recv_scales)
        if not is_new:
            return received, None, None, None, None, event
        return received, recv_idx, recv_weights, per_expert, handle, event

    def _route(self, call, data, per_rank, per_node, in_rank, per_expert, topk_idx, topk_weights, alignment, worst, config, stream):
        assert in_rank is not None and per_expert is not None, "give is_token_in_rank and num_tokens_per_expert, or a handle"
        experts = per_expert.numel()
        width = data.shape[1] * max(data.element_size(), 2)
        by_rank = topk_idx is None
        tokens, k = data.shape[0], self.group_size if by_rank else topk_idx.shape[1]
        assert in_rank.shape == (tokens, self.group_size) and (by_rank or topk_idx.shape[0] == tokens), (
            f"x has {tokens} tokens, is_token_in_rank is {tuple(in_rank.shape)}, topk_idx {'None' if by_rank else tuple(topk_idx.shape)}")
        group = self._group_of("ht", experts, *self._tell_all(tokens, k, width).max(0).tolist())
        sms = self._sms_of(config)
        lease = self._lease(group, stream, 0 if by_rank else k, is_told=not worst and not by_rank,
                            flags=ep.DESTINATIONS if by_rank else 0, sms=sms)
        route, counts, is_awaited = lease.route, None, not worst or stream is None
        if is_awaited:
            route.update(topk_idx, topk_weights, destinations=in_rank if by_rank else None, stream=stream)
        with call.work():
            sent = in_rank.sum(0) if per_rank is None else per_rank
            if self._nodes > 1:
                sent = torch.cat((sent, self._per_node(in_rank) if per_node is None else per_node))
            sent = sent.tolist()  # which waits for the routing, too
        if is_awaited:
            counts = route.query(stream)
            if counts.status == weft.Status.RANGE:
                raise ValueError(f"{counts.dropped} of topk_idx are no experts of 0 .. {experts - 1}")
        else:  # the dispatch agrees on its way
            route.choose(topk_idx, topk_weights, destinations=in_rank if by_rank else None)
        rows = worst or counts.rows
        if counts is not None and rows < counts.rows:
            raise ValueError(f"num_worst_tokens is {worst}, and {counts.rows} tokens arrive")
        with call.work():
            per = [] if worst else self._aligned_counts(route, by_rank, experts, alignment, per_expert)
        return _Handle(lease, self._new.vector(torch.int32, rows), in_rank, self.rank, self._nodes), sent, per

    def _aligned_counts(self, route, by_rank, experts, alignment, per_expert):
        """The tokens of each local expert, over all ranks."""
        local = experts // self.group_size
        if by_rank:  # the caller's numbers are all that is known
            told = self._tell_all(*per_expert.tolist())
            here = told.sum(0)[self.rank * local:(self.rank + 1) * local].tolist()
        else:
            here = route.rows_of_experts()
        return aligned(here, alignment)

    def _move(self, handle, data, scales, topk_idx, topk_weights, is_new, stream, worst):
        n, k, new = handle.source.numel(), None if topk_idx is None else topk_idx.shape[1], self._new
        recv = new.matrix(data.dtype, n, data.shape[1])
        recv_scales = None if scales is None else new.matrix(scales.dtype, n, scales.shape[1])
        local = None if k is None else new.matrix(topk_idx.dtype, n, k)
        weights = None if topk_weights is None else new.matrix(torch.float32, n, k)
        handle.route.dispatch(_rows(data, scales), _rows(recv, recv_scales), weights=weights, experts=local,
                              source_token=handle.source if is_new else None, stream=stream)
        if worst and (local is not None or weights is not None):  # also beyond the rows that come
            handle.route.pad(n, weights=weights, experts=local, stream=stream)
        return recv, recv_scales, local, weights

    def combine(self, x, handle, topk_weights=None, bias=None, config=None, previous_event=None, async_finish=False,
                allocate_on_comm_stream=False):
        """x [N][H] back to its ranks, added up there; topk_weights [N][K] likewise; bias: a tensor [T][H] or two, added before
        the one rounding. Returns (combined [T][H], combined weights [T][K] or None, event)."""
        tokens, summed, stream = handle.in_rank.shape[0], None, self._comm_stream
        biases = tuple(one for one in (bias if isinstance(bias, tuple) else (bias,)) if one is not None)
        given = x, topk_weights, *biases
        with self._call(previous_event, async_finish, allocate_on_comm_stream) as call:
            out = self._new.matrix(x.dtype, tokens, x.shape[1])
            if topk_weights is not None:
                summed = self._new.matrix(torch.float32, tokens, topk_weights.shape[1])
            x, topk_weights, biases = call.packed(x), call.packed(topk_weights), [call.packed(one) for one in biases]
            handle.route.use_sms(self._sms_of(config))
            handle.route.combine(_rows(x), _rows(out), bias=biases, values=topk_weights, values_out=summed, stream=stream)
        return out, summed, call.end(async_finish, (*given, x, topk_weights, *biases), (out, summed), is_of_work=False)

    internode_dispatch = dispatch
    internode_combine = combine

    # ---- low latency ----

    def clean_low_latency_buffer(self, num_max_dispatch_tokens_per_rank, hidden, num_experts):
        """Nothing has to be cleaned. With enable_shrink in CPU memory all ranks meet, and one that does not come by the deadline is
        masked."""
        if self.enable_shrink and self._device.type == "cpu":
            nothing = torch.empty(0, hidden, dtype=torch.bfloat16, device=self._device)
            none = torch.empty(0, 1, dtype=torch.int64, device=self._device)
            self.low_latency_dispatch(nothing, none, num_max_dispatch_tokens_per_rank, num_experts, use_fp8=False)

    def low_latency_dispatch(self, x, topk_idx, num_max_dispatch_tokens_per_rank, num_experts, cumulative_local_expert_recv_stats=None,
                             dispatch_wait_recv_cost_stats=None, use_fp8=True, round_scale=False, use_ue8m0=False,
                             async_finish=False, return_recv_hook=False):
        """x [T][H] bf16 to the slots of its experts: recv_x [L][R * Tmax][H] bf16, or with use_fp8 (fp8, scales [L][R * Tmax]
        [H / 128] float32, column-major; with use_ue8m0 int32 of four). Returns (recv_x, recv_count [L] int32, handle, event,
        hook); with return_recv_hook what is received is there after hook()."""
        assert not (async_finish and return_recv_hook), "async_finish and return_recv_hook are one or the other"
        call = num_experts, num_max_dispatch_tokens_per_rank, use_fp8, round_scale, use_ue8m0
        plan = self._last_plans.get(call)
        tokens = -1 if plan is None else _weft.slots_given(plan.packed, x, topk_idx)
        if tokens < 0:
            plan, x, topk_idx = self._plan(call, x, topk_idx)
            tokens = x.shape[0]
        stream, waits, address, is_captured = None, None, 0, False
        if self._streams is not None:
            stream, waits, is_captured = self._streams.begin(return_recv_hook, async_finish)
            address = stream.cuda_stream
        handle = plan.take(address, is_captured)
        held = handle.held
        route, recv, scales = held.route, _empty_like(plan.rows), plan.scales
        count = _empty_like(plan.count) if async_finish else (held.counts or held.more_counts()).pop()
        packed = recv
        if scales is not None:
            scales = _empty_like(scales)
            packed = recv, scales
        route.tokens = tokens
        _weft.slots_dispatch(plan.packed, route._handle, return_recv_hook, address, tokens, topk_idx, x, recv, scales, held.source, count)
        if waits is not None:
            self._streams.wait(waits)
        stats = cumulative_local_expert_recv_stats
        if return_recv_hook:
            hook = self._receive_hook(route, stream, stats, count, (x, topk_idx, recv, scales, handle))
            return packed, count, handle, _new_overlap(EventOverlap), hook
        if async_finish:
            event = self._leave_ahead((x, topk_idx, recv, scales, count, held.source), stats, count)
            return packed, count, handle, event, None
        if stats is not None:
            stats.add_(count)
        return packed, count, handle, _new_overlap(EventOverlap), None

    def _receive_hook(self, route, stream, stats, count, tensors):
        """The hook of a dispatch, apart from it: a function with variables for another one takes longer, whether it makes that or
        not. It has the tensors of both halves, which a program may have dropped."""

        def hook(kept=tensors):
            _weft.dispatch_recv(route._handle, 0 if stream is None else stream.cuda_stream)
            if stats is not None:
                with nullcontext() if stream is None else self._streams.on(stream):
                    stats.add_(count)

        return hook

    @staticmethod
    def _combine_hook(route, address, tensors):
        def hook(kept=tensors):
            _weft.combine_recv(route._handle, address)

        return hook

    def _plan(self, call, x, topk_idx):
        """(the plan of calls like this one, from now on, x and topk_idx as it takes them); raises what is wrong with them."""
        (tokens, hidden), (given, topk) = x.shape, topk_idx.shape
        experts, most, *scales = call
        wanted = (experts, most, hidden, topk, x.dtype, topk_idx.dtype, *scales)
        plan = self._plans.get(wanted)
        if plan is None:
            group = self._group_of("ll", experts, most, topk, 2 * self._hidden_of_combines(experts, most, hidden), most)
            plan = self._plans[wanted] = Plan(group, self._device, self._streams, self._captured, *wanted)
        if given != tokens or x.is_cuda is not plan.on_device or topk_idx.is_cuda is not plan.on_device:
            plan.check(x, topk_idx)
        self._last_plans[call] = plan
        return plan, x.contiguous(), topk_idx.contiguous()

    def _hidden_of_combines(self, experts, most, hidden):
        """The H that rows of combines may have: what num_rdma_bytes was asked for, where that is up to twice what is dispatched."""
        asked, rest = divmod(int(self.num_rdma_bytes), max(self.get_low_latency_rdma_size_hint(most, 1, self.group_size, experts), 1))
        return asked if rest == 0 and hidden < asked <= 2 * hidden else hidden

    def _retire(self, group):
        """New calls are not the group's any more; what handles have of it stays until destroy(), and so do its plans, so that no
        garbage collection destroys routes at a time of its own."""
        self._retired.append(group)
        for wanted in [wanted for wanted, plan in self._plans.items() if plan.group is group]:
            self._retired_plans.append(self._plans.pop(wanted))
        self._last_plans.clear()

    def _leave_ahead(self, tensors, stats=None, count=None):
        """An asynchronous call of low latency has been made; what is left of it is that stats, if there are any, get the count. Returns
        its event."""
        if self._streams is None:
            if stats is not None:
                stats.add_(count)
            return EventOverlap(EventHandle(), tensors)
        if stats is not None:
            with self._streams.on(self._streams.comm):
                stats.add_(count)
        tensors = (*tensors, stats)
        self._streams.keep(tensors, self._streams.comm)
        return EventOverlap(EventHandle(self._streams.event()), tensors)

    def low_latency_combine(self, x, topk_idx, topk_weights, handle, use_logfmt=False, zero_copy=False, async_finish=False,
                            return_recv_hook=False, out=None, combine_wait_recv_cost_stats=None):
        """x [L][R * Tmax][H] bf16 back to its tokens, each choice's row times its weight. topk_idx may have choices turned to -1
        since the dispatch. Returns (combined [T][H], event, hook)."""
        assert not (async_finish and return_recv_hook), "async_finish and return_recv_hook are one or the other"
        if use_logfmt:
            _tell_once("use_logfmt: rows are sent as bf16")
        if zero_copy and handle.combine_buffer is not None:
            x = handle.combine_buffer
        held = handle.held
        plan, route = held.plan, held.route
        tokens = route.tokens
        if x.shape[-1] != plan.hidden:
            plan = plan.of_rows(x)
        code, id_type = plan.code, _weft.slots_results(plan.packed, tokens, x, topk_idx, topk_weights, out)
        if id_type < 0:
            x, topk_idx, topk_weights = x.contiguous(), topk_idx.contiguous(), topk_weights.contiguous()
            code, id_type = plan.check_results(x, topk_idx, topk_weights, out, tokens)
        if out is None:
            like = plan.sums.get((tokens, code))
            out = _empty_like(plan.sums_of(tokens, x, code) if like is None else like)
        address, waits = 0, None
        if self._streams is not None:
            stream, waits, _ = self._streams.begin(return_recv_hook, async_finish)
            address = stream.cuda_stream
        _weft.slots_combine(plan.packed, route._handle, return_recv_hook, address, code, x, out, topk_weights, topk_idx, id_type)
        if waits is not None:
            self._streams.wait(waits)
        if return_recv_hook:
            return out, _new_overlap(EventOverlap), self._combine_hook(route, address, (x, topk_idx, topk_weights, out, handle))
        if async_finish:
            return out, self._leave_ahead((x, topk_idx, topk_weights, out)), None
        return out, _new_overlap(EventOverlap), None

    def get_next_low_latency_combine_buffer(self, handle):
        """[L][R * Tmax][H] bf16 to be filled for a combine with zero_copy."""
        plan = handle.held.plan
        handle.combine_buffer = torch.empty(plan.local, plan.slots, plan.hidden, dtype=torch.bfloat16, device=self._device)
        return handle.combine_buffer

    # ---- ranks that are gone ----

    def low_latency_update_mask_buffer(self, rank_to_mask, mask=False):
        """Go on without a rank (True), or with it again."""
        (self._masked.add if mask else self._masked.discard)(rank_to_mask)
        for _, group in self._groups.values():
            group.mask(rank_to_mask, not mask)

    def low_latency_query_mask_buffer(self, mask_status):
        """mask_status [R] int32: 1 for each rank that is masked."""
        masked = set(self._masked)
        for _, group in self._groups.values():
            masked |= {rank for rank, one in enumerate(group.masked()) if one}
        mask_status.copy_(torch.tensor([int(rank in masked) for rank in range(self.group_size)], dtype=mask_status.dtype))

    def low_latency_clean_mask_buffer(self):
        for rank in list(self._masked):
            self.low_latency_update_mask_buffer(rank, False)


def _is_on_device(group):
    """DeepEP is on the current GPU whatever its group is for: vLLM gives its group of gloo. So is this where the group has nccl,
    alone or beside gloo, or the process uses CUDA."""
    import torch.distributed as dist

    return torch.cuda.is_initialized() or (not hasattr(group, "Get_rank") and "nccl" in dist.get_backend(group))


def aligned(counts, alignment):
    """Each of them, rounded up."""
    return counts if alignment == 1 else [-(-one // alignment) * alignment for one in counts]


def _rows(data, scales=None):
    if scales is None:
        return ep.Rows(data)
    groups, words = math.ceil(data.shape[1] / 128), scales.shape[1]
    if scales.element_size() != 4 or scales.shape[0] != data.shape[0] or words not in (groups, math.ceil(groups / 4)):
        raise ValueError(f"scales {tuple(scales.shape)} of {scales.dtype} for rows {tuple(data.shape)}: words of 4 bytes, one for 128 "
                         f"elements or for 512")
    kind = ep.Scale.F32 if words == groups else ep.Scale.UE8M0  # they move as they are, whatever they mean
    return ep.Rows(data, scales, kind, *(scales.stride() if scales.numel() else (0, 0)))

"""ElasticBuffer: the dispatch and combine of DeepEP 2.x as calls of weft.ep."""

import dataclasses

import torch

from deep_ep.buffer import Buffer, _rows, _tell_once, aligned
from deep_ep.events import EventHandle, after
from deep_ep.streams import Call
from weft import ep


@dataclasses.dataclass(eq=False)
class EPHandle:
    """What a dispatch leaves for its combine, and for dispatches with the same routing. The tensors of _LATER, if they are not given,
    are made of `seen` when a program first looks at one, which few do: on the stream that is current then, behind the dispatch.

    A program that adds up a token's expanded rows itself says so in recv_src_metadata, as it may with DeepEP: columns 2 and on
    name the rows of a combine's x, -1 none."""

    do_expand: bool
    num_experts: int
    expert_alignment: int
    num_max_tokens_per_rank: int
    num_sms: int
    topk_idx: torch.Tensor  # [T][K]
    num_recv_tokens: int  # with do_cpu_sync off, like the next, the most that there may be
    num_expanded_tokens: int
    num_recv_tokens_per_expert_list: list  # [] with do_cpu_sync off
    psum_num_recv_tokens_per_scaleup_rank: torch.Tensor  # [R]
    psum_num_recv_tokens_per_expert: torch.Tensor  # [L]
    num_unaligned_recv_tokens_per_expert: torch.Tensor  # [L], with do_expand
    recv_src_metadata: torch.Tensor  # [N][2 + K]: source rank * Tmax + token, slot, with do_expand the rows of its choices
    dst_buffer_slot_idx: torch.Tensor  # [T][K]: the slot at the destination, -1 where there is none
    token_metadata_at_forward: object = None
    channel_linked_list: object = None
    lease: object = None
    seen: object = None
    is_synced: bool = True
    by_choice: object = None  # a routing of each choice by itself, for a combine that adds them up in one sum
    event: object = None  # of an asynchronous dispatch

    _LATER = ("psum_num_recv_tokens_per_scaleup_rank", "psum_num_recv_tokens_per_expert", "num_unaligned_recv_tokens_per_expert",
              "recv_src_metadata", "dst_buffer_slot_idx")

    def __post_init__(self):
        for name in self._LATER:
            if self.__dict__[name] is None:
                del self.__dict__[name]

    def __getattr__(self, name):
        if name not in self._LATER:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        after(self.event)
        for one, tensor in zip(self._LATER, self.seen.fields(self)):
            self.__dict__.setdefault(one, tensor)
        return self.__dict__[name]

    @property
    def route(self):
        return self.lease.route

    def has_fields(self):
        """Whether those of _LATER are made."""
        return "psum_num_recv_tokens_per_expert" in self.__dict__

    def names_rows(self, count):
        """Whether recv_src_metadata may name other rows of an x [count][H] than those of the dispatch: it is another tensor, or
        torch has written to it, or x has another number of rows (what other kernels write to it is not seen by itself)."""
        meta, made = self.__dict__.get("recv_src_metadata"), self.seen.metadata
        if not self.do_expand or meta is None:
            return False
        is_made = made is not None and meta.data_ptr() == made.data_ptr() and _version(meta) == self.seen.version
        return not is_made or count != self.num_expanded_tokens or count == meta.shape[0]

    def by_dispatch(self, x, weights):
        """x and weights, whose rows recv_src_metadata names, where the dispatch had the token's: the rows of x in any of its places,
        since they are added up, weights in those of their choices; the others 0."""
        if self.seen.places is None:
            self.seen.fields(self)
        places, named = self.seen.places, self.recv_src_metadata[:, 2:].to(torch.int64)
        if not x.is_cuda and named.numel() > 0:
            most = int(torch.where(self.seen.source_rank.unsqueeze(1) >= 0, named, -1).max())
            assert most < x.shape[0], f"recv_src_metadata names row {most} of an x of {x.shape[0]} rows"
        moved = _moved(x, _valid_first(places), _valid_first(named), self.num_expanded_tokens)
        return moved, None if weights is None else _moved(weights, places, named, self.num_expanded_tokens)

    def tensors(self):
        return self.topk_idx, *self.seen.tensors(), *(self.__dict__.get(name) for name in self._LATER)


class _Seen:
    """Of the tokens that a rank has a row of, by (source rank, token): [N] where they come from, and [N][K] their choices, local
    ids or -1; places beyond the tokens have -1."""

    def __init__(self, new, rank, ranks, count, k):
        """new: a Memory"""
        self.rank, self.ranks = rank, ranks
        self.source_rank, self.source_token = new.vector(torch.int32, count), new.vector(torch.int32, count)
        self.experts = new.matrix(torch.int32, count, k)
        self.places = self.metadata = self.version = None  # of the expanded rows [N][K], and recv_src_metadata as it was made

    def tensors(self):
        return self.source_rank, self.source_token, self.experts

    def arrays(self):
        """As arguments of a dispatch by source."""
        return {"experts": self.experts, "source_rank": self.source_rank, "source_token": self.source_token}

    def fields(self, handle):
        """The tensors of a handle's _LATER, in that order."""
        if self.experts.is_cuda:
            for tensor in (*self.tensors(), handle.topk_idx):
                tensor.record_stream(torch.cuda.current_stream())
        device, local, most = self.experts.device, handle.num_experts // self.ranks, handle.num_max_tokens_per_rank
        count, k = self.experts.shape
        is_here = self.source_rank >= 0
        psum = (self.source_rank.unsqueeze(1) == torch.arange(self.ranks, device=device)).sum(0).cumsum(0).to(torch.int32)
        flat = torch.where(self.experts >= 0, self.experts, local).flatten().long()
        counts = torch.zeros(local + 1, dtype=torch.int64, device=device).scatter_add_(0, flat, torch.ones_like(flat))[:local]
        ends = torch.cumsum(_aligned(counts, handle.expert_alignment), 0)
        starts = ends - _aligned(counts, handle.expert_alignment)
        meta = torch.full((count, 2 + k), -1, dtype=torch.int32, device=device)
        meta[:, 0] = torch.where(is_here, self.source_rank * most + self.source_token, -1)
        before = torch.cat([psum.new_zeros(1), psum])[self.source_rank.clamp(min=0).long()]
        number = torch.arange(count, device=device, dtype=torch.int32)
        meta[:, 1] = torch.where(is_here, self.source_rank * most + number - before, -1)
        if handle.do_expand:
            order_of = torch.argsort(flat, stable=True)
            first = torch.cumsum(counts, 0) - counts
            expert = flat[order_of].clamp(max=local - 1)
            place = torch.arange(flat.numel(), device=device) - first[expert] + starts[expert]
            rows = torch.empty_like(place).scatter_(0, order_of, place)
            self.places = torch.where(self.experts >= 0, rows.view(count, k), -1)
            meta[:, 2:] = self.places
        self.metadata, self.version = meta, _version(meta)
        psum_experts = (starts + counts if handle.do_expand else ends).to(torch.int32)
        return psum, psum_experts, counts.to(torch.int32), meta, self._slots(handle.topk_idx, local, most)

    def _slots(self, chosen, local, most):
        tokens, k = chosen.shape
        target = torch.where(chosen >= 0, chosen // local, self.ranks)
        in_rank = torch.zeros(tokens, self.ranks + 1, dtype=torch.int32, device=chosen.device).scatter_(1, target.long(), 1)
        slots = torch.cumsum(in_rank, 0) - 1 + self.rank * most
        is_first = (target.unsqueeze(2) == target.unsqueeze(1)).int().argmax(2) == torch.arange(k, device=chosen.device)
        return torch.where((chosen >= 0) & is_first, slots.gather(1, target.long()), -1).to(torch.int32)


def _version(tensor):
    return 0 if tensor.is_inference() else tensor._version


def _valid_first(places):
    """Each row's entries, the negative ones last."""
    return places.gather(1, torch.argsort((places < 0).to(torch.int8), dim=1, stable=True))


def _moved(x, places, named, count):
    """[count] rows: those of x that are named where `places` says, and 0; waits for no GPU."""
    row_of = torch.full((count + 1,), -1, dtype=torch.int64, device=x.device)  # the last is of what has no place
    row_of.scatter_(0, torch.where(places >= 0, places, count).flatten(), named.flatten())
    row_of = row_of[:count]
    if x.shape[0] == 0:
        return x.new_zeros(count, *x.shape[1:])
    rows = x.index_select(0, row_of.clamp(0, x.shape[0] - 1))
    return rows.masked_fill_((row_of < 0).view(-1, *[1] * (x.dim() - 1)), 0)


def _aligned(count, alignment):
    return -(-count // alignment) * alignment


class _Absent(NotImplementedError, AttributeError):
    """So that hasattr() is False, and a call says what is missing."""


class ElasticBuffer:
    """Dispatch and combine of the ranks of a torch process group. Collective to make; memory is taken when a call needs it."""

    def __init__(self, group, num_bytes=None, num_cpu_bytes=0, num_max_tokens_per_rank=0, hidden=0, num_topk=0,
                 use_fp8_dispatch=False, deterministic=False, allow_hybrid_mode=True, allow_multiple_reduction=True,
                 prefer_overlap_with_compute=True, sl_idx=3, num_allocated_qps=0, num_cpu_timeout_secs=300,
                 num_gpu_timeout_secs=100, explicitly_destroy=False):
        if num_cpu_bytes:
            raise NotImplementedError("num_cpu_bytes: engram storage is not there in weft's deep_ep")
        for name, value, default in (("deterministic", deterministic, False), ("allow_hybrid_mode", allow_hybrid_mode, True),
                                     ("sl_idx", sl_idx, 3), ("num_allocated_qps", num_allocated_qps, 0)):
            if value != default:
                _tell_once(f"{name} is taken and not needed")
        self._buffer = Buffer(group, explicitly_destroy=True)
        self.group, self.rank_idx, self.num_ranks = group, self._buffer.rank, self._buffer.group_size
        self.num_max_tokens_per_rank, self.num_bytes = num_max_tokens_per_rank, num_bytes
        if num_bytes is None:
            self.num_bytes = self.get_buffer_size_hint(group, num_max_tokens_per_rank, hidden, num_topk)
        self.deterministic, self.allow_hybrid_mode = deterministic, allow_hybrid_mode
        self.allow_multiple_reduction, self.explicitly_destroy = allow_multiple_reduction, explicitly_destroy
        self.prefer_overlap_with_compute = prefer_overlap_with_compute
        self.num_allocated_qps = num_allocated_qps or (129 if allow_hybrid_mode else 17)
        self.num_scaleout_ranks, self.num_scaleup_ranks = self.get_logical_domain_size()
        self.num_rdma_ranks, self.num_nvlink_ranks = self.get_physical_domain_size()
        self.scaleout_rank_idx, self.scaleup_rank_idx = 0, self.rank_idx

    @property
    def runtime(self):
        """This, and None after destroy()."""
        return self if self._buffer.runtime is not None else None

    def destroy(self):
        """Collective; of a buffer made with explicitly_destroy."""
        assert self.explicitly_destroy, "destroy() is for buffers made with explicitly_destroy=True"
        self._buffer.destroy()

    def __del__(self):
        if not getattr(self, "explicitly_destroy", True):
            self._buffer.destroy()

    def __getattr__(self, name):
        if name.startswith(("engram_", "pp_", "agrs_")) or name in _ABSENT:
            raise _Absent(f"ElasticBuffer.{name} is not there in weft's deep_ep")
        raise AttributeError(f"'ElasticBuffer' object has no attribute '{name}'")

    @staticmethod
    def capture():
        """The work that is on the current stream now."""
        return EventHandle()

    @staticmethod
    def get_buffer_size_hint(group, num_max_tokens_per_rank, hidden, num_topk=0, use_fp8_dispatch=False,
                             allow_hybrid_mode=True, allow_multiple_reduction=True):
        """The bytes of the rows that a rank may receive, rounded up to 2 MiB; memory is taken when it is needed."""
        return _aligned(group.size() * num_max_tokens_per_rank * hidden * 2, 1 << 21)

    def get_comm_stream(self):
        """The stream on which calls run; on the CPU None."""
        return self._buffer.get_comm_stream()

    def get_physical_domain_size(self):
        return 1, self.num_ranks

    def get_logical_domain_size(self):
        return 1, self.num_ranks

    def get_theoretical_num_sms(self, num_experts, num_topk, num_scaleout_topk=0, rdma_gbs=0, nvlink_gbs=0, sm_read_gbs=200,
                                sm_write_gbs=50):
        """Buffer.num_sms, and 64 or more of the GPU's where none need be left to others (prefer_overlap_with_compute=False): weft
        has no model of bandwidths. A dispatch without num_sms takes so many."""
        if self.prefer_overlap_with_compute or self._buffer._device.type == "cpu":
            return Buffer.num_sms
        return min(max(Buffer.num_sms, 64), torch.cuda.get_device_properties(self._buffer._device).multi_processor_count)

    def get_theoretical_num_qps(self, num_sms):
        """What DeepEP would take of num_allocated_qps; weft needs none."""
        return min(num_sms * 16 + 1 if self.allow_hybrid_mode else min(num_sms, 9), self.num_allocated_qps)

    def barrier(self, use_comm_stream=True, with_cpu_sync=False, sequential=True):
        """All ranks' streams have come here: on a GPU the host waits for its own."""
        if self._buffer._device.type == "cuda":
            stream = self._buffer._comm_stream if use_comm_stream else torch.cuda.current_stream()
            torch.cuda.synchronize() if with_cpu_sync else stream.synchronize()
        self._buffer._world.team.barrier()

    def dispatch(self, x, topk_idx=None, topk_weights=None, cumulative_local_expert_recv_stats=None, num_experts=None,
                 num_max_tokens_per_rank=None, expert_alignment=None, num_sms=0, num_qps=0, previous_event=None,
                 previous_event_before_epilogue=None, async_with_compute_stream=False, allocate_on_comm_stream=False,
                 handle=None, do_handle_copy=True, do_cpu_sync=None, do_expand=False, do_zero_padding=False,
                 use_tma_aligned_col_major_sf=False):
        """x [T][H], or (fp8 x, scales), to the ranks of its experts: a row a token, or with do_expand a row a choice, by
        expert. Returns (recv_x, recv_topk_idx, recv_topk_weights, handle, event)."""
        data, scales = x if isinstance(x, tuple) else (x, None)
        buffer, given = self._buffer, (data, scales, topk_idx, topk_weights, cumulative_local_expert_recv_stats)
        stream, is_new = buffer._comm_stream, handle is None
        had_fields = not is_new and handle.has_fields()
        if num_qps:
            _tell_once("num_qps is taken and not needed")
        chosen = topk_idx if is_new else handle.topk_idx
        assert data.shape[0] == chosen.shape[0], f"x has {data.shape[0]} tokens, and topk_idx {chosen.shape[0]}"
        with Call(self._buffer._streams, previous_event, allocate_on_comm_stream) as call:
            data, weights, ids = call.packed(data), call.packed(topk_weights), call.packed(topk_idx)
            if is_new:
                most = num_max_tokens_per_rank or self.num_max_tokens_per_rank
                assert data.shape[0] <= most, f"{data.shape[0]} tokens are more than num_max_tokens_per_rank, {most}"
                handle = self._route(call, data, topk_idx, ids, weights, num_experts, most, expert_alignment or 1, num_sms, do_handle_copy,
                                     do_cpu_sync is None or do_cpu_sync, do_expand)
            else:
                assert topk_idx is None and not do_cpu_sync, "with a handle topk_idx and do_cpu_sync are its"
                assert do_expand == handle.do_expand, "do_expand is the handle's"
                for name, value in (("num_experts", num_experts), ("expert_alignment", expert_alignment),
                                    ("num_max_tokens_per_rank", num_max_tokens_per_rank)):
                    assert value in (None, getattr(handle, name)), f"{name} is {value}, and the handle's {getattr(handle, name)}"
                handle.route.use_sms(num_sms)
                if weights is not None:  # the same routing, with other weights
                    handle.route.update(handle.topk_idx, weights, stream=stream)
            recv, recv_scales, got_weights, here = self._results(data, scales, weights, handle, use_tma_aligned_col_major_sf)
            if do_zero_padding:
                with call.work():
                    for tensor in (recv,) if recv_scales is None else (recv, recv_scales):
                        tensor.zero_()
            call.come_after(previous_event_before_epilogue)
            told = handle.seen.arrays() if is_new and not do_expand else {}
            handle.route.dispatch(_rows(data, scales), _rows(recv, recv_scales), weights=got_weights, stream=stream, **told)
            if not handle.is_synced and (told or got_weights is not None):  # also beyond the rows that come
                handle.route.pad(recv.shape[0], weights=got_weights, stream=stream, **told)
            with call.work():
                self._copy(handle, topk_idx, here, cumulative_local_expert_recv_stats)
                if is_new and buffer._streams is not None and buffer._streams.is_captured():
                    handle.recv_src_metadata  # and the others: a replay makes them again
        makes_fields = handle.has_fields() and not had_fields
        results = recv, recv_scales, got_weights, here, *(handle.tensors() if is_new or makes_fields else ())
        event = call.end(async_with_compute_stream, (*given, data, weights, ids), results, is_of_work=makes_fields)
        if is_new:
            handle.event = event.event
        return recv if scales is None else (recv, recv_scales), here, got_weights, handle, event

    @staticmethod
    def _copy(handle, topk_idx, here, stats):
        """What a dispatch leaves in several places, on the communication stream."""
        if topk_idx is not None and handle.topk_idx is not topk_idx:
            handle.topk_idx.copy_(topk_idx)
        if here is not None:
            here.copy_(handle.seen.experts)
        if stats is not None:
            stats.add_(handle.num_unaligned_recv_tokens_per_expert)

    def _results(self, data, scales, given_weights, handle, is_by_column):
        """(rows, scales, weights, ids) of a dispatch, the last for programs to write: vLLM makes them global in their place."""
        recv_scales = weights = here = None
        new, count = self._buffer._new, handle.num_expanded_tokens if handle.do_expand else handle.num_recv_tokens
        if not handle.do_expand:
            here = new.matrix(handle.topk_idx.dtype, *handle.seen.experts.shape)
        recv = new.matrix(data.dtype, count, data.shape[1])
        if scales is not None and is_by_column:
            recv_scales = new.matrix(scales.dtype, scales.shape[1], _aligned(max(count, 1), 4)).t()[:count]
        elif scales is not None:
            recv_scales = new.matrix(scales.dtype, count, scales.shape[1])
        if given_weights is not None and handle.do_expand:
            weights = new.vector(torch.float32, count)
        elif given_weights is not None:
            weights = new.matrix(torch.float32, count, handle.topk_idx.shape[1])
        return recv, recv_scales, weights, here

    def _route(self, call, data, topk_idx, chosen, weights, experts, most, alignment, sms, is_copied, is_synced, do_expand):
        """A new handle. By source the dispatch of the rows tells who comes; with do_expand one of four words a token does, by source,
        and the rows have a routing by expert. All of it is on the communication stream."""
        buffer, local = self._buffer, experts // self.num_ranks
        stream, (tokens, k) = buffer._comm_stream, topk_idx.shape
        width = max(data.shape[1] * max(data.element_size(), 2), 16)
        group = buffer._group_of("elastic", experts, max(tokens, most), k, width)
        plan = {"order": ep.ORDER_CHOICE, "sms": (sms or self.get_theoretical_num_sms(experts, k)) if buffer._device.type == "cuda" else 0}
        leases = [buffer._lease(group, stream, k, is_told=is_synced, **plan)]
        if do_expand:
            leases.append(buffer._lease(group, stream, k, ep.Layout.EXPERT_MAJOR, alignment=alignment, **plan))
        count, expanded = self.num_ranks * most, 0
        if is_synced:
            for lease in leases:
                lease.route.update(chosen, weights, stream=stream)
            count, *more = (lease.route.query(stream).rows for lease in leases)
            expanded = more[0] if do_expand else 0
        elif do_expand:
            expanded = _aligned(self.num_ranks * most * min(k, local) + local * (alignment - 1), alignment)
        seen = _Seen(buffer._new, self.rank_idx, self.num_ranks, count, k)
        kept = buffer._new.matrix(topk_idx.dtype, tokens, k) if is_copied else topk_idx
        if do_expand:
            with call.work():
                words = buffer._new.matrix(torch.float32, tokens + count, 4).split((tokens, count))
            if not is_synced:
                leases[0].route.choose(chosen, weights)
            leases[0].route.dispatch(ep.Rows(words[0]), ep.Rows(words[1]), stream=stream, **seen.arrays())
            if not is_synced:
                leases[0].route.pad(count, stream=stream, **seen.arrays())
        if not is_synced:  # the dispatch of the rows agrees on its way
            leases[-1].route.choose(chosen, weights)
        by_choice = None
        if do_expand and not self.allow_multiple_reduction:
            with call.work():
                by_choice = self._route_choices(topk_idx, experts, max(tokens, most), alignment, width, plan["sms"])
        per = aligned(leases[0].route.rows_of_experts(), alignment) if is_synced else []
        return EPHandle(do_expand=do_expand, num_experts=experts, expert_alignment=alignment, num_max_tokens_per_rank=most,
                        num_sms=plan["sms"], topk_idx=kept, num_recv_tokens=count, num_expanded_tokens=expanded,
                        num_recv_tokens_per_expert_list=per, **dict.fromkeys(EPHandle._LATER), lease=leases[-1], seen=seen,
                        is_synced=is_synced, by_choice=by_choice)

    def _route_choices(self, topk_idx, experts, most, alignment, width, sms):
        """Each choice as a token of its own: its rows lie where those of the choices do."""
        buffer, k = self._buffer, topk_idx.shape[1]
        group = buffer._group_of("elastic choices", experts, most * k, 1, width)
        lease = buffer._lease(group, buffer._comm_stream, 1, ep.Layout.EXPERT_MAJOR, alignment=alignment, sms=sms)
        lease.route.update(topk_idx.reshape(-1, 1).contiguous(), None, stream=buffer._comm_stream)
        return lease

    def combine(self, x, handle, topk_weights=None, bias=None, num_sms=0, num_qps=0, previous_event=None,
                previous_event_before_epilogue=None, async_with_compute_stream=False, allocate_on_comm_stream=False):
        """x, rows as dispatch gave them, back to their ranks and added up there; topk_weights likewise; bias: a tensor [T][H] or
        two. Returns (combined [T][H], combined weights [T][K] or None, event)."""
        stream, (tokens, k) = self._buffer._comm_stream, handle.topk_idx.shape
        biases = tuple(one for one in (bias if isinstance(bias, tuple) else (bias,)) if one is not None)
        given = x, topk_weights, *biases
        with Call(self._buffer._streams, previous_event, allocate_on_comm_stream) as call:
            new = self._buffer._new
            x, topk_weights, biases = call.packed(x), call.packed(topk_weights), [call.packed(one) for one in biases]
            out = new.matrix(x.dtype, tokens, x.shape[1])
            summed = None if topk_weights is None else new.matrix(torch.float32, tokens, k)
            if handle.names_rows(x.shape[0]):
                given = *given, handle.recv_src_metadata, handle.seen.places
                with call.work():
                    x, topk_weights = handle.by_dispatch(x, topk_weights)
            call.come_after(previous_event_before_epilogue)
            (handle if handle.by_choice is None else handle.by_choice).route.use_sms(num_sms)
            if handle.by_choice is not None:
                with call.work():
                    self._combine_choices(x, handle, topk_weights, out, summed, biases, stream)
            else:
                handle.route.combine(_rows(x), _rows(out), bias=biases, values=topk_weights, values_out=summed, stream=stream)
        return out, summed, call.end(async_with_compute_stream, (*given, x, topk_weights, *biases), (out, summed), is_of_work=False)

    @staticmethod
    def _combine_choices(x, handle, weights, out, summed, biases, stream):
        """Without allow_multiple_reduction: one sum of the biases and the rows of all choices, in ascending choice."""
        tokens, k = handle.topk_idx.shape
        each = torch.empty(tokens * k, x.shape[1], dtype=x.dtype, device=x.device)
        handle.by_choice.route.combine(_rows(x), _rows(each), values=weights,
                                       values_out=None if summed is None else summed.view(-1, 1), stream=stream)
        total = sum((one.float() for one in biases), torch.zeros(tokens, x.shape[1], dtype=torch.float32, device=x.device))
        for row in each.view(tokens, k, x.shape[1]).unbind(1):
            total = total + row.float()
        out.copy_(total)


_ABSENT = ("get_engram_storage_size_hint", "get_pp_buffer_size_hint", "get_agrs_buffer_size_hint",
           "get_agrs_num_max_session_bytes", "create_agrs_session", "destroy_agrs_session", "all_gather")

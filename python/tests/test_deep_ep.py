"""deep_ep.Buffer in CPU memory, or with WEFT_TEST_DEVICE=cuda on a GPU a rank, beside what each rank computes by itself from
all ranks' inputs: bit for bit, since rows and weights are small whole numbers, but for fp8."""

import os
import shutil
import subprocess
import sys
import weakref

import pytest
import ranks

torch = pytest.importorskip("torch")

HIDDEN, TOPK, LOCAL = 1024, 4, 6
ON_GPU = os.environ.get("WEFT_TEST_DEVICE") == "cuda"
COUNTS = ranks.counts(1, 2, 3) if not ON_GPU else [count for count in (1, 2, 4) if count <= torch.cuda.device_count()]


def open_group():
    import torch.distributed as dist

    torch.set_num_threads(1)
    if ON_GPU:
        torch.cuda.set_device(int(os.environ["RANK"]))
        torch.set_default_device("cuda")
    dist.init_process_group(os.environ.get("WEFT_TEST_BACKEND") or ("nccl" if ON_GPU else "gloo"))
    return dist.group.WORLD


def close_group():
    import torch.distributed as dist

    dist.barrier()  # or rank 0 takes the store away from those that still use it
    dist.destroy_process_group()  # whose threads must not outlive the interpreter


def everybody(group, *mine):
    import torch.distributed as dist

    out = [None] * group.size()
    dist.all_gather_object(out, tuple(one.cpu() for one in mine), group)
    return [tuple(one.to(mine[0].device) for one in theirs) for theirs in out]


def inputs(group, seed, empty_rank=-1):
    rank = group.rank()
    torch.manual_seed(1000 * seed + rank)
    tokens = 0 if rank == empty_rank else 60 + 7 * (rank % 3)
    experts = LOCAL * group.size()
    x = torch.randint(-8, 9, (tokens, HIDDEN)).to(torch.bfloat16)
    ids = torch.stack([torch.randperm(experts)[:TOPK] for _ in range(tokens)]) if tokens else torch.empty(0, TOPK, dtype=torch.int64)
    ids[torch.rand(tokens, TOPK) < 0.2] = -1
    weights = torch.randint(1, 9, (tokens, TOPK)).float()
    return x, ids, weights, experts


def expected(all_ranks, me):
    """What rank `me` receives: rows, local ids, weights, tokens of each source."""
    rows, ids, weights, counts = [], [], [], []
    for x, chosen, held in all_ranks:
        here = (chosen >= 0) & (chosen // LOCAL == me)
        to_me = here.any(1)
        rows.append(x[to_me])
        ids.append(torch.where(here, chosen - me * LOCAL, -1)[to_me])
        weights.append(torch.where(here, held, 0.0)[to_me])
        counts.append(int(to_me.sum()))
    return torch.cat(rows), torch.cat(ids), torch.cat(weights), counts


def check_layout(buffer, group, ids, experts):
    per_rank, per_node, per_expert, in_rank, _ = buffer.get_dispatch_layout(ids, experts)
    assert (per_node is None) == (buffer.runtime.get_num_rdma_ranks() == 1) and per_rank.dtype == per_expert.dtype == torch.int32 and in_rank.dtype == torch.bool
    for t in range(ids.shape[0]):
        wanted = {int(one) // LOCAL for one in ids[t] if one >= 0}
        assert {r for r in range(group.size()) if in_rank[t, r]} == wanted
    assert per_rank.tolist() == in_rank.sum(0).tolist()
    assert per_expert.tolist() == [int((ids == e).sum()) for e in range(experts)]
    for same in (torch.where(ids < 0, -1000, ids), torch.where(ids < 0, experts, ids), ids.to(torch.int32), ids.T.contiguous().T):
        again = buffer.get_dispatch_layout(same, experts)  # what is no expert is none
        assert torch.equal(again[0], per_rank) and torch.equal(again[2], per_expert) and torch.equal(again[3], in_rank)
    for same in (ids, ids.T.contiguous().T):
        for got, wanted in zip(buffer._layout_on_gpu(same, experts, LOCAL), (per_rank, per_node, per_expert, in_rank)):
            assert got is wanted or torch.equal(got, wanted) and got.dtype == wanted.dtype
    with pytest.raises(TypeError, match="topk_idx"):
        buffer.get_dispatch_layout(ids.to(torch.int16), experts)
    return per_rank, per_expert, in_rank


def high_throughput():
    import deep_ep

    group = open_group()
    buffer = deep_ep.Buffer(group, 1 << 20)
    me = group.rank()
    for seed in range(3):
        x, ids, weights, experts = inputs(group, seed, empty_rank=1 if seed == 2 else -1)
        per_rank, per_expert, in_rank = check_layout(buffer, group, ids, experts)
        rows, local, held, counts = expected(everybody(group, x, ids, weights), me)
        for is_async in (False, True):
            given = {"num_tokens_per_rank": per_rank, "is_token_in_rank": in_rank, "num_tokens_per_expert": per_expert,
                     "async_finish": is_async, "previous_event": buffer.capture() if is_async else None}
            got, got_ids, got_weights, per, handle, event = buffer.dispatch(x, topk_idx=ids, topk_weights=weights,
                                                                            expert_alignment=8, **given)
            if is_async:
                event.current_stream_wait()
            assert torch.equal(got, rows) and torch.equal(got_ids, local) and torch.equal(got_weights, held)
            assert per == [-(-int((local == e).sum()) // 8) * 8 for e in range(LOCAL)]
            assert handle[0][:, me].tolist() == [sum(counts[:i + 1]) for i in range(group.size())]
            with pytest.raises(AssertionError):
                buffer.dispatch(x, handle=handle, topk_idx=ids)
            again = buffer.dispatch(x + 1, handle=handle)
            assert torch.equal(again[0], rows + 1) and again[1:5] == (None, None, None, None)
            bias = [torch.randint(-3, 4, x.shape).to(torch.bfloat16) for _ in range(2)]
            summed, summed_weights, _ = buffer.combine(got, handle, topk_weights=got_weights, bias=tuple(bias))
            assert torch.equal(summed, (x.float() * in_rank.sum(1, keepdim=True) + sum(bias).float()).to(torch.bfloat16))
            assert torch.equal(summed_weights, torch.where(ids >= 0, weights, 0.0))
            all_weights = torch.full_like(got_weights, me + 1.0)  # of all places, also of choices of other ranks
            _, summed_weights, _ = buffer.combine(got, handle, topk_weights=all_weights)
            numbers = torch.arange(1, group.size() + 1).float()
            assert torch.equal(summed_weights, (in_rank * numbers).sum(1, keepdim=True).expand_as(ids))
            worst = 80 * group.size()
            wide, wide_ids, wide_weights, none, _, event = buffer.dispatch(x, topk_idx=ids, topk_weights=weights,
                                                                           num_worst_tokens=worst, **given)
            if is_async:
                event.current_stream_wait()
            assert none == [] and len(wide) == len(wide_ids) == len(wide_weights) == worst
            assert torch.equal(wide[:len(rows)], rows) and torch.equal(wide_ids[:len(rows)], local)
            assert (wide_ids[len(rows):] == -1).all()
            plain, no_ids, no_weights, _, handle, event = buffer.dispatch(x, **given)
            if is_async:
                event.current_stream_wait()
            assert torch.equal(plain, rows) and no_ids is None and no_weights is None
            assert torch.equal(buffer.combine(plain, handle)[0], (x.float() * in_rank.sum(1, keepdim=True)).to(torch.bfloat16))
        narrow, given = x.to(torch.float8_e4m3fn), {"num_tokens_per_rank": per_rank, "is_token_in_rank": in_rank,
                                                    "num_tokens_per_expert": per_expert}
        for words, dtype in ((HIDDEN // 128, torch.float32), (HIDDEN // 128, torch.int32), (HIDDEN // 512, torch.int32)):
            scales = torch.randint(1, 1 << 22, (x.shape[0], words)).to(dtype)
            (got, got_scales), *_ = buffer.dispatch((narrow, scales), topk_idx=ids, topk_weights=weights, **given)
            assert torch.equal(got.float(), rows.float())
            wanted = torch.cat([s[o[:, me]] for s, o in everybody(group, scales, in_rank)])
            assert torch.equal(got_scales, wanted)
    with pytest.raises(ValueError, match="scales"):
        deep_ep.buffer._rows(narrow, scales[:, :1])
    buffer.destroy()
    close_group()


def unpacked(scales, is_packed):
    if not is_packed:
        return scales
    parts = scales.contiguous().view(torch.uint8).reshape(*scales.shape[:2], -1)[:, :, :HIDDEN // 128]
    return torch.exp2(parts.float() - 127)


def low_latency():
    import deep_ep

    group = open_group()
    buffer = deep_ep.Buffer(group, low_latency_mode=True, num_rdma_bytes=deep_ep.Buffer.get_low_latency_rdma_size_hint(
        128, HIDDEN, group.size(), LOCAL * group.size()))
    me, most = group.rank(), 128
    cases = [(False, False, False), (True, False, False), (True, True, False), (True, True, True)]
    for seed, (use_fp8, round_scale, use_ue8m0) in enumerate(cases):
        for is_halved in (False, True):
            x, ids, weights, experts = inputs(group, seed)
            stats = torch.ones(LOCAL, dtype=torch.int32)
            packed, count, handle, _, hook = buffer.low_latency_dispatch(
                x, ids, most, experts, use_fp8=use_fp8, round_scale=round_scale, use_ue8m0=use_ue8m0,
                return_recv_hook=is_halved, cumulative_local_expert_recv_stats=stats)
            if is_halved:
                hook()
            rows = packed
            if use_fp8:
                assert packed[1].shape == (LOCAL, group.size() * most, HIDDEN // (512 if use_ue8m0 else 128))
                assert packed[1].stride() == (packed[1][0].numel(), 1, group.size() * most)
                by_group = unpacked(packed[1], use_ue8m0)
                assert not round_scale or torch.equal(torch.exp2(torch.log2(by_group[0, :1]).round()), by_group[0, :1])
                wide = packed[0].float().reshape(LOCAL, -1, HIDDEN // 128, 128) * by_group.unsqueeze(-1)
                rows = wide.reshape(LOCAL, -1, HIDDEN).to(torch.bfloat16)
            everyone = everybody(group, x, ids)
            for local in range(LOCAL):
                expert = me * LOCAL + local
                assert count[local] == sum(int((chosen == expert).sum()) for _, chosen in everyone)
                for source, (theirs, chosen) in enumerate(everyone):
                    word = int(handle[1][local, source])
                    begin, many = word >> 32, word & 0xffffffff
                    tokens = (chosen == expert).any(1).nonzero().flatten()
                    assert handle[0][local, begin:begin + many].tolist() == tokens.tolist()
                    wanted, got = theirs[tokens].float(), rows[local, begin:begin + many].float()
                    assert torch.allclose(wanted, got, rtol=0, atol=0.6 if use_fp8 else 0)
            assert torch.equal(stats - 1, count)
            turned_off = ids.clone()
            turned_off[:, 0] = -1
            results = rows.contiguous()
            if is_halved:
                buffer.get_next_low_latency_combine_buffer(handle)[:] = results
                results = torch.empty_like(results)
            summed, _, hook = buffer.low_latency_combine(results, turned_off, weights, handle, return_recv_hook=is_halved,
                                                         zero_copy=is_halved)
            if is_halved:
                hook()
            total = torch.where(turned_off >= 0, weights, 0.0).sum(1, keepdim=True)
            assert torch.allclose(summed.float(), x.float() * total, rtol=1 / 64, atol=0.6 * 32 if use_fp8 else 1)
    x, ids, weights, experts = inputs(group, 99)
    first = buffer.low_latency_dispatch(x, ids, most, experts, use_fp8=False, return_recv_hook=True)
    second = buffer.low_latency_dispatch(x + 1, ids, most, experts, use_fp8=False, return_recv_hook=True)
    first[4]()
    second[4]()
    assert torch.equal(first[1], second[1])
    buffer.destroy()
    close_group()


class Counted:
    """An event that counts who waits for it."""

    waits = 0

    def current_stream_wait(self):
        self.waits += 1


def life():
    """Several at once, of several sizes; made again; what is not there."""
    import deep_ep
    import weft.ep

    group = open_group()
    one, two = deep_ep.Buffer(group, explicitly_destroy=True), deep_ep.Buffer(group, 1 << 30, low_latency_mode=True)
    for turn in range(10):
        x, ids, weights, experts = inputs(group, turn)
        for buffer in (one, two):
            layout = buffer.get_dispatch_layout(ids, experts)
            got = buffer.dispatch(x, topk_idx=ids, topk_weights=weights, num_tokens_per_rank=layout[0],
                                  num_tokens_per_expert=layout[2], is_token_in_rank=layout[3])
            buffer.combine(got[0], got[4])
        two.destroy()
        two = deep_ep.Buffer(group, 1 << 20)
    event = Counted()
    named = {"previous_event": deep_ep.EventOverlap(event)}
    layout = one.get_dispatch_layout(ids, experts, **named)
    got = one.dispatch(x, topk_idx=ids, topk_weights=weights, num_tokens_per_rank=layout[0], num_tokens_per_expert=layout[2],
                       is_token_in_rank=layout[3], **named)
    one.combine(got[0], got[4], **named)
    assert event.waits == 3  # it may be of a stream that is not the caller's
    assert one.runtime.get_num_rdma_ranks() == 1
    given = {"num_tokens_per_rank": layout[0], "num_tokens_per_expert": layout[2], "is_token_in_rank": layout[3]}
    for wrong in ({"x": x[:-1], "handle": got[4]}, {"x": x[:-1], "topk_idx": ids, **given}, {"x": x, "topk_idx": ids[:-1], **given},
                  {"x": x, **given, "is_token_in_rank": layout[3][:-1]}):
        with pytest.raises(AssertionError, match="tokens"):
            one.dispatch(**wrong)
    if len(got[0]) > 0:
        for wrong in ({"x": got[0][:-1]}, {"x": got[0], "bias": x[:-1]}, {"x": got[0], "bias": x.float()},
                      {"x": got[0], "topk_weights": got[2].double()}):
            with pytest.raises((TypeError, ValueError)):
                one.combine(handle=got[4], **wrong)
    one.combine(got[0], got[4])
    numbers, use_sms = [], weft.ep.Route.use_sms
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weft.ep.Route, "use_sms", lambda route, count: (numbers.append(count), use_sms(route, count)))
        one.dispatch(x, handle=got[4], config=deep_ep.Config(8))
        one.combine(got[0], got[4], config=deep_ep.Config(4))
        one.combine(got[0], got[4])
    assert numbers == [8, 4, deep_ep.Buffer.num_sms]
    raw = deep_ep.Buffer(group, 1030, explicitly_destroy=True)
    assert raw.get_local_buffer_tensor(torch.int32).shape == (257,)
    assert raw.get_local_buffer_tensor(torch.int64, torch.Size([2, 3]), offset=1000 - 48).shape == (2, 3)
    with pytest.raises(AssertionError):
        raw.get_local_buffer_tensor(torch.int64, torch.Size([2, 64]), offset=8)
    assert raw.get_local_buffer_tensor(torch.int8, use_rdma_buffer=True).numel() == 0
    raw.destroy()
    one.destroy()
    assert one.runtime is None
    if group.size() > 1:
        uneven = deep_ep.Buffer(group, explicitly_destroy=True)
        for function in (lambda: uneven.get_dispatch_layout(ids, experts + 1),
                         lambda: uneven.low_latency_dispatch(x, ids, 128, experts + 1)):
            with pytest.raises(ValueError, match="experts do not divide"):
                function()
        uneven.destroy()
    with pytest.raises(AttributeError, match="HybridEPBuffer"):
        deep_ep.HybridEPBuffer
    config = deep_ep.Config(24, 8, 256)
    assert config.num_sms == 24 and config.get_nvl_buffer_size_hint(1024, 8) > 0
    with pytest.raises(AssertionError):
        deep_ep.Buffer.set_num_sms(23)
    ended = weakref.ref(two)
    del buffer, two  # which ends it on all ranks, while they have a group
    assert ended() is None
    close_group()


def ends():
    """Without a garbage collection nothing is left of a Buffer after destroy() but what handles have, and that goes with them; handles
    from before its limits grew are as good as new ones."""
    import gc

    import deep_ep
    import weft.ep

    group = open_group()
    gc.disable()
    made, route_of = [], weft.ep.Group.route

    def noted(*given, **named):
        route = route_of(*given, **named)
        made.append(weakref.ref(route))
        return route

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weft.ep.Group, "route", noted)
        buffer = deep_ep.Buffer(group, low_latency_mode=True, explicitly_destroy=True)
        experts, tokens = 2 * group.size(), 4
        x, weights = torch.full((tokens, 64), group.rank() + 1.0, dtype=torch.bfloat16), torch.ones(tokens, 2)
        ids = torch.arange(tokens * 2).view(tokens, 2) % experts

        def send(most):
            rows, _, handle, _, _ = buffer.low_latency_dispatch(x, ids, most, experts, use_fp8=False)
            return rows, handle

        sent = [send(tokens) for _ in range(3)]
        small = sent[0][1].held.plan
        del sent[1:]  # their routes are idle
        sent.append(send(8 * tokens))
        assert sent[1][1].held.plan is not small
        layout = buffer.get_dispatch_layout(ids, experts)
        got = buffer.dispatch(x, topk_idx=ids, topk_weights=weights, num_tokens_per_rank=layout[0], num_tokens_per_expert=layout[2],
                              is_token_in_rank=layout[3])  # a group of another kind
        buffer.dispatch(x, topk_idx=ids, topk_weights=weights, num_tokens_per_rank=layout[0], num_tokens_per_expert=layout[2],
                        is_token_in_rank=layout[3])  # whose route is idle
        for turn in range(2):
            for rows, handle in sent:
                assert torch.equal(buffer.low_latency_combine(rows, ids, weights, handle)[0], 2 * x)
            sent.append(send(8 * tokens))
        assert sent[3][1].held.plan is sent[1][1].held.plan  # the other kind is not theirs
        del handle, sent[3]
        handles = [handle for _, handle in sent]
        buffer.destroy()
        alive = [route for route in (one() for one in made) if route is not None]
        assert {id(route) for route in alive} == {id(handle.route) for handle in (*handles, got[4])}, (len(alive), len(made))
        del alive, sent, handles, got, small, rows
    assert not any(one() for one in made)
    gc.enable()
    close_group()


def as_bytes():
    """Low latency as TensorRT-LLM calls it with quantised rows: what is dispatched are fp8 rows seen as half as many bf16, and what is
    combined by the same handle are whole bf16 rows, for which the Buffer's size was asked."""
    import gc

    import deep_ep

    group = open_group()
    gc.disable()
    ranks, me, hidden, most = group.size(), group.rank(), 128, 6
    experts, local = 3 * ranks, 3
    size = deep_ep.Buffer.get_low_latency_rdma_size_hint(most, hidden, ranks, experts)
    buffer = deep_ep.Buffer(group, 0, size, low_latency_mode=True, num_qps_per_rank=local, explicitly_destroy=True)
    small = deep_ep.Buffer(group, low_latency_mode=True, explicitly_destroy=True)
    for turn in range(3):
        tokens = (most - me + turn) % (most + 1)
        torch.manual_seed(10 * turn + me)
        x = torch.randn(tokens, hidden).to(torch.float8_e4m3fn)
        ids = torch.rand(tokens, experts).topk(2, 1).indices.to(torch.int32)
        weights = torch.tensor([0.5, 0.25]).repeat(tokens, 1)
        rows, count, handle, event, hook = buffer.low_latency_dispatch(x.view(torch.bfloat16), ids, most, experts, use_fp8=False)
        assert event.event is None and hook is None and rows.shape == (local, ranks * most, hidden // 2)
        wide = rows.view(torch.float8_e4m3fn).to(torch.bfloat16)
        is_there = torch.arange(ranks * most) < count[:, None]
        wide = torch.where(is_there[:, :, None], wide, torch.nan)
        for again in range(2):
            combined, event, hook = buffer.low_latency_combine(wide, ids, weights, handle)
            assert event.event is None and hook is None
            assert torch.equal(combined, (0.75 * x.float()).to(torch.bfloat16)), (turn, again)
        narrow = torch.where(is_there[:, :, None], torch.ones_like(rows), torch.nan)  # H as dispatched, too
        assert torch.equal(buffer.low_latency_combine(narrow, ids, weights, handle)[0],
                           torch.full((tokens, hidden // 2), 0.75, dtype=torch.bfloat16))
        with pytest.raises(ValueError, match="where rows"):
            buffer.low_latency_combine(wide[:, 1:], ids, weights, handle)
    rows, _, handle, _, _ = small.low_latency_dispatch(x.view(torch.bfloat16), ids, most, experts, use_fp8=False)
    with pytest.raises(Exception, match="row_bytes_max"):  # nobody asked for more
        small.low_latency_combine(torch.zeros(local, ranks * most, hidden, dtype=torch.bfloat16), ids, weights, handle)
    wider = weakref.ref(handle.held.plan.of_rows(torch.empty(local, ranks * most, hidden)))
    del handle
    buffer.destroy()
    small.destroy()
    assert wider() is None  # it does not keep itself
    gc.enable()
    close_group()


def held():
    """(resident bytes, descriptors) of this process."""
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd"))


def leaks(count):
    """Many Buffers made, used and destroyed, two alive at once and of different sizes: memory and descriptors stay."""
    import gc

    import deep_ep

    group = open_group()
    experts, tokens = 2 * group.size(), 4
    x, ids = torch.ones(tokens, 64, dtype=torch.bfloat16), torch.arange(tokens * 2).view(tokens, 2) % experts
    alive, first = [], None
    for turn in range(int(count)):
        alive.append(deep_ep.Buffer(group, 1 << (10 + turn % 8), low_latency_mode=True, explicitly_destroy=True))
        got, _, handle, _, _ = alive[-1].low_latency_dispatch(x, ids, tokens * (1 + turn % 3), experts, use_fp8=False)
        del got, handle
        if len(alive) > 2:
            alive.pop(0).destroy()
        if turn == int(count) // 4:
            gc.collect()
            first = held()
    gc.collect()
    memory, descriptors = held()
    assert descriptors == first[1], (descriptors, first[1])
    assert memory - first[0] < 8 << 20, f"{(memory - first[0]) >> 10} KiB more after {count} Buffers"
    for one in alive:
        one.destroy()
    close_group()


def nodes():
    """Of two ranks each: what calls give and what handles have of them."""
    import deep_ep

    deep_ep.buffer.RANKS_A_NODE = 2
    group = open_group()
    buffer, me, size = deep_ep.Buffer(group, explicitly_destroy=True), group.rank(), group.size()
    runtime, count = buffer.runtime, size // 2
    assert (runtime.get_num_rdma_ranks(), runtime.get_rdma_rank(), runtime.is_internode_available()) == (count, me // 2, True)
    for seed in range(2):
        x, ids, weights, experts = inputs(group, seed, empty_rank=1 if seed == 1 else -1)
        per_rank, per_expert, in_rank = check_layout(buffer, group, ids, experts)
        per_node = buffer.get_dispatch_layout(ids, experts)[1]
        to_node = in_rank[:, 0::2] | in_rank[:, 1::2]
        assert per_node.dtype == torch.int32 and per_node.tolist() == to_node.sum(0).tolist()
        rows, local, held, counts = expected(everybody(group, x, ids, weights), me)
        everyone = everybody(group, to_node, in_rank)
        for more in ({"num_tokens_per_rdma_rank": per_node, "num_tokens_per_rank": per_rank}, {}):
            got, got_ids, _, _, handle, _ = buffer.internode_dispatch(x, topk_idx=ids, topk_weights=weights, is_token_in_rank=in_rank,
                                                                      num_tokens_per_expert=per_expert, **more)
            assert torch.equal(got, rows) and torch.equal(got_ids, local) and len(handle) == 10
            before = [sum(counts[:i + 1]) for i in range(size)]
            through = [int(everyone[2 * i + me % 2][0][:, me // 2].sum()) for i in range(count)]
            own, to_nodes, to_ranks, zeros, by_node, more_zeros, by_rank, meta, head, forwarded = handle
            assert own is in_rank and to_nodes.tolist() == [[one] for one in per_node.tolist()]
            assert to_ranks.tolist() == [[one] for one in per_rank.tolist()]
            assert zeros.tolist() == [[0]] * count and more_zeros.tolist() == [[0]] * size
            assert handle[-4] is by_rank and by_rank.tolist() == before and by_rank.dtype == by_node.dtype == torch.int32
            assert by_node.tolist() == [sum(through[:i + 1]) for i in range(count)]
            sent = [(i // 2, int(t)) for i, one in enumerate(everyone) for t in one[1][:, me].nonzero().flatten()]
            assert meta.shape == (len(rows), 8) and [tuple(one) for one in meta.view(torch.int32).tolist()] == sent
            assert [head[to_node[:, i], i].tolist() for i in range(count)] == [list(range(int(n))) for n in per_node]
            assert (head[~to_node] == -1).all() and forwarded.shape == (sum(through), 2)
            assert torch.equal(buffer.dispatch(x + 1, handle=handle)[0], rows + 1)
            summed, _, _ = buffer.internode_combine(got, handle)
            assert torch.equal(summed, (x.float() * in_rank.sum(1, keepdim=True)).to(torch.bfloat16))
    buffer.destroy()
    close_group()


@pytest.mark.skipif(ON_GPU and max(COUNTS) < 4, reason="two nodes of two ranks")
def test_nodes():
    ranks.run(__file__, "nodes", 4)


@pytest.mark.skipif(ON_GPU, reason="the memory of processes is looked at")
def test_leaks():
    ranks.run(__file__, "leaks", 2, os.environ.get("WEFT_TEST_BUFFERS", "1000"))


def shrinks(where):
    """The last rank leaves before a dispatch or a call that cleans: the others' calls go on without it, and the mask shows it."""
    import deep_ep

    group = open_group()
    buffer = deep_ep.Buffer(group, low_latency_mode=True, explicitly_destroy=True, enable_shrink=True)
    me, last, most = group.rank(), group.size() - 1, 128
    x, ids, weights, experts = inputs(group, 0)
    mask = torch.full((group.size(),), 7, dtype=torch.int32)
    for turn in range(3):
        buffer.low_latency_query_mask_buffer(mask)
        assert mask.tolist() == [0] * last + [int(turn > 1)]
        if turn == 1 and me == last:
            os._exit(0)  # as one that is killed
        if where == "clean":
            buffer.clean_low_latency_buffer(most, x.shape[1], experts)
            buffer.low_latency_query_mask_buffer(mask)
            assert mask.tolist() == [0] * last + [int(turn > 0)]
        got, count, handle, _, _ = buffer.low_latency_dispatch(x, ids, most, experts, use_fp8=False)
        summed, _, _ = buffer.low_latency_combine(got, ids, weights, handle)
        there = (ids >= 0) & ((turn == 0) | (ids < last * LOCAL))
        total = torch.where(there, weights, 0.0).sum(1, keepdim=True)
        assert torch.allclose(summed.float(), x.float() * total, rtol=1 / 64, atol=1), turn
        if turn > 1:  # rows of the living alone
            everyone = [inputs(Numbered(group.size(), rank), 0) for rank in range(last)]
            assert count.tolist() == [sum(int((one[1] == me * LOCAL + e).sum()) for one in everyone) for e in range(LOCAL)]
    os._exit(0)  # the process group has lost a rank: nothing of it ends as it should


class Numbered:
    """As much of a process group as inputs() asks for."""

    def __init__(self, size, rank):
        self._size, self._rank = size, rank

    def size(self):
        return self._size

    def rank(self):
        return self._rank


@pytest.mark.skipif(ON_GPU, reason="ranks are not masked at a deadline there")
@pytest.mark.parametrize("where", ["dispatch", "clean"])
def test_shrink(where):
    ranks.run(__file__, "shrinks", 3, where, deadline=3)


def by_mpi():
    """comm= of mpi4py, in processes that mpirun started."""
    from mpi4py import MPI

    import deep_ep

    buffer = deep_ep.Buffer(None, comm=MPI.COMM_WORLD, explicitly_destroy=True)
    assert (buffer.rank, buffer.group_size) == (MPI.COMM_WORLD.Get_rank(), 2)
    experts = 2 * buffer.group_size
    x, ids = torch.ones(4, 64, dtype=torch.bfloat16), torch.arange(8).view(4, 2) % experts
    got, count, handle, _, _ = buffer.low_latency_dispatch(x, ids, 4, experts, use_fp8=False)
    assert int(count.sum()) == 8
    assert torch.equal(buffer.low_latency_combine(got, ids, torch.ones(4, 2), handle)[0], 2 * x)
    buffer.destroy()
    MPI.COMM_WORLD.Barrier()


def test_mpi():
    pytest.importorskip("mpi4py")
    launcher = shutil.which("mpirun")
    if launcher is None:
        pytest.skip("there is no mpirun")
    here = os.path.dirname(os.path.abspath(__file__))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([launcher, "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable, "-c",
                           "import test_deep_ep; test_deep_ep.by_mpi()"], env=env, capture_output=True, text=True, timeout=120)
    if "cannot load MPI library" in done.stderr:
        pytest.skip("mpi4py finds no MPI library: build it over the one of mpirun")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("function", ["high_throughput", "low_latency", "life", "ends", "as_bytes"])
@pytest.mark.parametrize("count", COUNTS)
def test_ranks(function, count):
    ranks.run(__file__, function, count)


if __name__ == "__main__":
    pytest.main([os.path.abspath(__file__)])

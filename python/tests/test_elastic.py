"""deep_ep.ElasticBuffer in CPU memory, beside what each rank computes from all ranks' inputs: rows, ids, weights, counts and sums
bit for bit, the sums in float32 with the biases first, then each rank's partial where its last choice stands."""

import copy

import pytest
import ranks
from test_deep_ep import COUNTS, HIDDEN, LOCAL, TOPK, Counted, close_group, everybody, expected, inputs, open_group

torch = pytest.importorskip("torch")


def summed(partials, ids, bias):
    """partials [T][R][H] bf16 -> [T][H] bf16."""
    out = torch.zeros(ids.shape[0], HIDDEN)
    for one in bias:
        out += one.float()
    for t in range(ids.shape[0]):
        targets = [int(one) // LOCAL if one >= 0 else -1 for one in ids[t]]
        for k, rank in enumerate(targets):
            if rank >= 0 and rank not in targets[k + 1:]:
                out[t] += partials[t, rank].float()
    return out.to(torch.bfloat16)


def check(buffer, group, seed, do_expand, is_synced, is_fp8):
    x, ids, weights, experts = inputs(group, seed, empty_rank=1 if seed == 2 else -1)
    me, most = group.rank(), 80
    rows, local, held, counts = expected(everybody(group, x, ids, weights), me)
    given = x
    scales = torch.randint(1, 5, (x.shape[0], HIDDEN // 128)).float()
    if is_fp8:
        given = (x.to(torch.float8_e4m3fn), scales)
    chosen = torch.cat((ids, ids), 1)[:, :TOPK] if seed % 2 else ids  # not packed
    got, got_ids, got_weights, handle, event = buffer.dispatch(
        given, topk_idx=chosen, topk_weights=weights, num_experts=experts, num_max_tokens_per_rank=most, expert_alignment=8,
        do_cpu_sync=is_synced, do_expand=do_expand, use_tma_aligned_col_major_sf=do_expand)
    assert event.event is None and (handle.topk_idx.data_ptr() != ids.data_ptr() or ids.numel() == 0)
    n = len(rows)
    per = [int((local == e).sum()) for e in range(LOCAL)]
    aligned = [-(-one // 8) * 8 for one in per]
    assert handle.psum_num_recv_tokens_per_scaleup_rank.tolist() == [sum(counts[:i + 1]) for i in range(group.size())]
    assert handle.num_recv_tokens_per_expert_list == (aligned if is_synced else [])
    assert handle.num_recv_tokens == (n if is_synced else most * group.size())
    begins = [sum(aligned[:e]) for e in range(LOCAL)]
    ends = [b + c for b, c in zip(begins, per if do_expand else aligned)]
    assert handle.psum_num_recv_tokens_per_expert.tolist() == ends
    data = got[0] if is_fp8 else got
    if is_fp8:
        in_rank = (ids >= 0).unsqueeze(2) & (ids.unsqueeze(2) // LOCAL == torch.arange(group.size()))
        wanted_scales = torch.cat([s[o[:, me]] for s, o in everybody(group, scales, in_rank.any(1))])
    places = handle.recv_src_metadata[:n, 2:]
    if do_expand:
        assert got_ids is None and torch.equal(places >= 0, local >= 0)
        for i, k in (local >= 0).nonzero().tolist():
            at, e = int(places[i, k]), int(local[i, k])
            assert begins[e] <= at < ends[e] and torch.equal(data[at].float(), rows[i].float()) and got_weights[at] == held[i, k]
            assert not is_fp8 or torch.equal(got[1][at], wanted_scales[i])
    else:
        assert torch.equal(data[:n].float(), rows.float()) and torch.equal(got_ids[:n], local)
        assert torch.equal(got_weights[:n], held) and (not is_fp8 or torch.equal(got[1][:n], wanted_scales))
    again = buffer.dispatch(x + 1, handle=handle, do_expand=do_expand)
    where = places[local >= 0].long() if do_expand else torch.arange(n)
    assert torch.equal(again[0][where], (rows + 1)[(local >= 0).nonzero()[:, 0]] if do_expand else rows + 1)
    torch.manual_seed(77 * seed + me)
    bias = tuple(torch.randn(x.shape).to(torch.bfloat16) for _ in range(seed % 3))
    results = torch.full((len(data), HIDDEN), float("nan"), dtype=torch.bfloat16)  # what is padding is not read
    results[where] = torch.randn(len(where), HIDDEN).to(torch.bfloat16)
    partial = torch.zeros(n, HIDDEN)
    if do_expand:
        for i, k in (local >= 0).nonzero().tolist():
            partial[i] += results[int(places[i, k])].float()
    else:
        partial = results[:n]
    everyone = everybody(group, handle.recv_src_metadata[:n, 0], partial.to(torch.bfloat16))
    partials = torch.zeros(x.shape[0], group.size(), HIDDEN, dtype=torch.bfloat16)
    for rank, (sources, rows_back) in enumerate(everyone):
        mine = sources // most == me
        partials[(sources[mine] % most).long(), rank] = rows_back[mine]
    out, out_weights, event = buffer.combine(results, handle, topk_weights=got_weights, bias=bias[0] if len(bias) == 1 else bias or None)
    assert event.event is None and torch.equal(out, summed(partials, ids, bias))
    assert torch.equal(out_weights, torch.where(ids >= 0, weights, 0.0))
    if do_expand:
        renamed(buffer, me, handle, (results, got_weights), partial, bias or None, (out, out_weights))


def renamed(buffer, me, handle, given, partial, bias, wanted):
    """Programs that write recv_src_metadata: LightLLM's add up a token's rows themselves, one a token, on a copied handle or in
    the dispatch's tensor, by kernels that torch does not see (here by `data`), and leave what is beyond the tokens as it was. Ranks
    without, and ranks with it, meet."""
    results, weights = given
    rows, meta = len(results), handle.recv_src_metadata
    other, order = copy.copy(handle), torch.randperm(rows)
    assert other.recv_src_metadata is meta
    back = torch.empty_like(order)
    back[order] = torch.arange(rows)
    other.recv_src_metadata = meta.clone()
    other.recv_src_metadata[:, 2:] = torch.where(meta[:, 2:] >= 0, back[meta[:, 2:].clamp(min=0).long()] if rows > 0 else 0, -1)
    is_named = me % 2 == 0
    x, w, one = (results[order], weights[order], other) if is_named else (results, weights, handle)
    out, out_weights, _ = buffer.combine(x, one, topk_weights=w, bias=bias)
    assert torch.equal(out, wanted[0]) and torch.equal(out_weights, wanted[1])
    if partial is None:  # else one a token
        return
    n = len(partial)
    dense = torch.full((len(meta), HIDDEN), float("nan"), dtype=torch.bfloat16)
    dense[:n] = partial.to(torch.bfloat16)
    by_row = torch.full_like(meta, 1 << 29)
    by_row[:n] = meta[:n]
    by_row[:n, 2:] = -1
    by_row[:n, 2] = torch.arange(n)
    other.recv_src_metadata = by_row
    out, _, _ = buffer.combine(dense, other, bias=bias) if is_named else buffer.combine(results, handle, bias=bias)
    assert torch.equal(out, wanted[0])
    meta.data[:n] = by_row[:n]
    out, _, _ = buffer.combine(dense, handle, bias=bias)
    assert torch.equal(out, wanted[0])
    if n > 0 and not dense.is_cuda:  # on a GPU nobody waits to look at it
        meta[0, 2] = len(dense)
        with pytest.raises(AssertionError, match="names row"):
            buffer.combine(dense, handle)


def references(buffer, group):
    """Beside deep_ep.utils.refs, as DeepEP's programs do."""
    import deep_ep
    from deep_ep.utils import envs, gate, refs

    envs.init_seed(5)
    ranks_count, me, most, tokens, experts, k = group.size(), group.rank(), 80, 61 - group.rank(), 4 * group.size(), 4
    scores = gate.get_unbalanced_scores(tokens, experts, ranks_count, k, 1.0, False)
    weights, ids = scores.to(torch.ones(1).device).topk(k)
    ids[torch.rand(ids.shape) < 0.2] = -1
    x = torch.randn(tokens, HIDDEN).to(torch.bfloat16)
    wanted = refs.dispatch(x, ids, weights, most, experts)
    y = refs.generate_pre_combine_data(me * most + torch.arange(tokens), most, k, HIDDEN)
    y[ids == -1] = 0
    bias = torch.randn(tokens, HIDDEN).to(torch.bfloat16)
    for do_expand in (False, True):
        got, got_ids, got_weights, handle, _ = buffer.dispatch(x, topk_idx=ids, topk_weights=weights, num_experts=experts,
                                                               num_max_tokens_per_rank=most, expert_alignment=8, do_expand=do_expand)
        n, meta = handle.num_recv_tokens, handle.recv_src_metadata
        assert torch.equal(wanted[3], meta[:n, 0]) and n == int(wanted[4].sum())
        rows = refs.generate_pre_combine_data(meta[:n, 0], most, k, HIDDEN)
        results = torch.zeros(len(got), HIDDEN, dtype=torch.bfloat16)
        if do_expand:
            here = meta[:n, 2:] >= 0
            results[meta[:n, 2:][here].long()] = rows[here]
            assert torch.equal(here, wanted[1] >= 0) and torch.equal(got[meta[:n, 2:][here].long()], wanted[0][here.nonzero()[:, 0]])
        else:
            assert torch.equal(got, wanted[0]) and torch.equal(got_ids, wanted[1])
            assert torch.equal(got_weights, wanted[2].masked_fill(wanted[1] < 0, 0))
            rows[wanted[1] < 0] = 0
            results = refs.ordered_accumulate(rows)
        out, out_weights, _ = buffer.combine(results, handle, topk_weights=got_weights, bias=bias)
        by_rank = buffer.allow_multiple_reduction or not do_expand
        if do_expand:
            renamed(buffer, me, handle, (results, got_weights), None, bias, (out, out_weights))
        assert torch.equal(out, refs.combine(y, ids, 1, ranks_count, experts, bias, by_rank, False))
        assert torch.equal(out_weights, weights.masked_fill(ids < 0, 0))
    assert deep_ep.get_logical_domain_size(group) == (1, ranks_count)


def elastic():
    import deep_ep

    group = open_group()
    buffer = deep_ep.ElasticBuffer(group, num_max_tokens_per_rank=80, hidden=HIDDEN, num_topk=TOPK, explicitly_destroy=True)
    assert buffer.get_logical_domain_size() == buffer.get_physical_domain_size() == (1, group.size())
    assert isinstance(buffer.capture(), deep_ep.EventHandle)
    assert [buffer.get_theoretical_num_qps(sms) for sms in (4, 8, 24)] == [65, 129, 129] and buffer.runtime is not None
    for seed in range(3):
        for do_expand in (False, True):
            for is_synced in (True, False):
                check(buffer, group, seed, do_expand, is_synced, is_fp8=is_synced)
    buffer.barrier()
    for name in ("engram_write", "engram_fetch", "pp_send", "pp_recv", "pp_set_config", "agrs_set_config", "all_gather",
                 "create_agrs_session"):
        with pytest.raises(NotImplementedError, match=name):
            getattr(buffer, name)
        assert not hasattr(buffer, name)
    references(buffer, group)
    x = torch.ones(4, HIDDEN, dtype=torch.bfloat16)
    _, ids, _, handle, _ = buffer.dispatch(x, torch.zeros(4, 1, dtype=torch.int64), num_experts=2 * group.size())
    ids += 100
    assert (buffer.dispatch(x, handle=handle)[1] == ids - 100).all()
    event = Counted()
    named = {"previous_event": event, "previous_event_before_epilogue": deep_ep.EventOverlap(event)}
    again = buffer.dispatch(x, handle=handle, num_experts=2 * group.size(), num_max_tokens_per_rank=80, expert_alignment=1, **named)
    buffer.combine(again[0], handle, **named)
    assert event.waits == 4
    for other in ({"num_experts": 4 * group.size()}, {"num_max_tokens_per_rank": 4}, {"expert_alignment": 8}, {"do_expand": True}):
        with pytest.raises(AssertionError):
            buffer.dispatch(x, handle=handle, **other)
    with pytest.raises(AssertionError, match="tokens"):
        buffer.dispatch(x[:3], handle=handle)
    with pytest.raises(AssertionError, match="tokens"):
        buffer.dispatch(x[:3], torch.zeros(4, 1, dtype=torch.int64), num_experts=2 * group.size())
    if len(again[0]) > 0:
        with pytest.raises(ValueError, match="rows"):
            buffer.combine(again[0][:-1], handle)
    buffer.destroy()
    assert buffer.runtime is None
    alone = deep_ep.ElasticBuffer(group, num_max_tokens_per_rank=80, hidden=HIDDEN, allow_multiple_reduction=False,
                                  explicitly_destroy=True, allow_hybrid_mode=False)
    assert [alone.get_theoretical_num_qps(sms) for sms in (4, 24)] == [4, 9]
    references(alone, group)
    x = torch.ones(0 if group.rank() == 0 else 4, HIDDEN, dtype=torch.bfloat16)  # a rank without tokens
    ids = torch.arange(2).expand(x.shape[0], 2)
    rows, _, _, handle, _ = alone.dispatch(x, ids, num_experts=2 * group.size(), do_expand=True)
    assert torch.equal(alone.combine(rows, handle)[0], 2 * x)
    alone.destroy()
    close_group()


HANDLE_TENSORS = ("topk_idx", "psum_num_recv_tokens_per_scaleup_rank", "psum_num_recv_tokens_per_expert", "recv_src_metadata",
                  "dst_buffer_slot_idx", "num_unaligned_recv_tokens_per_expert")


def trained():
    """As NeMo trains: calls as functions of autograd, a handle's tensors kept by autograd and put back onto it, layers computed
    again in the backward. The gradients are those of the same sums without communication."""
    from torch.utils.checkpoint import checkpoint

    import deep_ep

    group = open_group()
    buffer = deep_ep.ElasticBuffer(group, num_max_tokens_per_rank=80, hidden=HIDDEN, num_topk=TOPK, num_gpu_timeout_secs=300,
                                   explicitly_destroy=True, num_allocated_qps=4)
    x, ids, weights, experts = inputs(group, 0)

    def keep(ctx, handle):
        ctx.handle = handle
        ctx.save_for_backward(*(getattr(handle, name) for name in HANDLE_TENSORS))

    def kept(ctx):
        for name, tensor in zip(HANDLE_TENSORS, ctx.saved_tensors, strict=True):
            setattr(ctx.handle, name, tensor)
        return ctx.handle

    class Dispatch(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weights):
            rows, local, held, handle, event = buffer.dispatch(x, topk_idx=ids, topk_weights=weights, num_experts=experts,
                                                               num_max_tokens_per_rank=80, num_sms=0, num_qps=0,
                                                               async_with_compute_stream=True, allocate_on_comm_stream=True)
            event.current_stream_wait()
            keep(ctx, handle)
            return rows, local, held, torch.as_tensor(handle.num_recv_tokens_per_expert_list), handle

        @staticmethod
        def backward(ctx, grad, _ids, grad_held, _counts, _handle):
            to_x, to_weights, event = buffer.combine(grad.contiguous(), kept(ctx), topk_weights=grad_held.float(),
                                                     async_with_compute_stream=True, allocate_on_comm_stream=True)
            event.current_stream_wait()
            return to_x, to_weights

    class Combine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows, handle):
            keep(ctx, handle)
            return buffer.combine(rows.contiguous(), handle=handle)[0]

        @staticmethod
        def backward(ctx, grad):
            handle = kept(ctx)
            return buffer.dispatch(grad.contiguous(), handle=handle, num_sms=handle.num_sms, num_qps=0)[0], None

    def layer(x, weights):
        rows, local, held, counts, handle = Dispatch.apply(x, weights)
        assert counts.tolist() == [int((local == e).sum()) for e in range(LOCAL)]
        factor = torch.where(local >= 0, (1 + local) * held, 0.0).sum(1, keepdim=True)
        return Combine.apply((rows * factor).to(rows.dtype), handle)

    torch.manual_seed(5 + group.rank())
    grad = torch.randint(-2, 3, x.shape).to(torch.bfloat16)
    alone = x.float().requires_grad_(), weights.clone().requires_grad_()
    (alone[0] * torch.where(ids >= 0, (1 + ids % LOCAL) * alone[1], 0.0).sum(1, keepdim=True)).backward(grad.float())
    for is_again in (False, True):
        given = x.clone().requires_grad_(), weights.clone().requires_grad_()
        y = checkpoint(layer, *given, use_reentrant=False) if is_again else layer(*given)
        layer(x, weights)  # another step in between
        y.backward(grad)
        torch.testing.assert_close(given[0].grad.float(), alone[0].grad, rtol=1 / 32, atol=4)
        torch.testing.assert_close(given[1].grad, alone[1].grad, rtol=1 / 32, atol=4)
    buffer.destroy()
    close_group()


@pytest.mark.parametrize("function", ["elastic", "trained"])
@pytest.mark.parametrize("count", COUNTS)
def test_ranks(function, count):
    ranks.run(__file__, function, count)

"""The order of deep_ep's calls on streams, with a GPU a rank: every call's input is written by the caller behind a kernel of some
milliseconds and overwritten behind the call, and what was freed is filled, so that a call or a reader that does not wait has other
numbers. ElasticBuffer's calls without counts on the host also in a captured graph."""

import os

import pytest
import ranks

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

from test_gpu_graphs import COUNTS, HIDDEN, LOCAL, TOKENS, captured, choices  # noqa: E402

SLEEP = 3_000_000  # cycles


def opened():
    import torch.distributed as dist

    torch.cuda.set_device(int(os.environ["RANK"]))
    torch.set_default_device("cuda")
    dist.init_process_group("nccl")
    return dist.group.WORLD


def closed(buffer):
    import torch.distributed as dist

    torch.cuda.synchronize()
    dist.barrier()
    buffer.destroy()
    dist.destroy_process_group()


def late(new):
    """A tensor that has these numbers some milliseconds from now."""
    made = torch.zeros_like(new)
    torch.cuda._sleep(SLEEP)
    return made.copy_(new)


def littered():
    """Memory that is free is filled on the stream that may take it."""
    for rows in (1, 4, 16, 64):
        torch.full((rows * TOKENS, HIDDEN), -7, dtype=torch.bfloat16)
        torch.full((rows * TOKENS,), -7, dtype=torch.int64)


def named(stream, is_previous, is_apart):
    """(a call's previous_event, allocate_on_comm_stream): the event is of what `stream` has."""
    import deep_ep

    with torch.cuda.stream(stream):
        return {"previous_event": deep_ep.EventOverlap(deep_ep.EventHandle()) if is_previous else None,
                "allocate_on_comm_stream": is_apart}


def high_throughput():
    import torch.distributed as dist

    import deep_ep

    buffer = deep_ep.Buffer(opened(), explicitly_destroy=True)
    experts, me = LOCAL * dist.get_world_size(), dist.get_rank()
    for turn in range(16):
        is_async, is_previous, is_apart, is_beside = turn & 1, turn & 2, turn & 4, turn & 8
        new, ids, weights = choices(10 * turn + me, experts)
        new = new.to(torch.bfloat16)
        here = torch.cuda.Stream() if is_beside else torch.cuda.current_stream()
        here.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(here):
            x, given = late(new), late(ids)
            more = {**named(here, is_previous, is_apart and is_previous and is_async), "async_finish": bool(is_async)}
            per_rank, _, per_expert, in_rank, event = buffer.get_dispatch_layout(given, experts, **more)
            rows, local, held, _, handle, event = buffer.dispatch(
                x, topk_idx=given, topk_weights=weights, num_tokens_per_rank=per_rank, num_tokens_per_expert=per_expert,
                is_token_in_rank=in_rank, **more)
            if is_async:
                event.current_stream_wait()
            x.zero_()
            factor = torch.where(local >= 0, (local + 1 + me * LOCAL) * held, 0.0).sum(1, keepdim=True)
            results = late((rows.float() * factor).to(torch.bfloat16))
            del rows, local, held
            littered()
            more.update(named(here, is_previous, more["allocate_on_comm_stream"]))
            summed, _, event = buffer.combine(results, handle, **more)
            if is_async:
                event.current_stream_wait()
            results.zero_()
            seen = summed.clone()
            del summed, results
            littered()
        torch.cuda.synchronize()
        wanted = new.float() * ((ids + 1) * weights).sum(1, keepdim=True)
        torch.testing.assert_close(seen.float(), wanted, rtol=1 / 32, atol=4)
    closed(buffer)


def low_latency():
    """Whole calls, asynchronous ones and halves, in turn, on the current stream and on another."""
    import torch.distributed as dist

    import deep_ep

    buffer = deep_ep.Buffer(opened(), low_latency_mode=True, explicitly_destroy=True)
    experts, me, second = LOCAL * dist.get_world_size(), dist.get_rank(), torch.cuda.Stream()
    factors = torch.arange(1, LOCAL + 1).view(LOCAL, 1, 1) + me * LOCAL
    for turn in range(24):
        kind, is_beside = ({}, {"async_finish": True}, {"return_recv_hook": True})[turn % 3], turn % 2
        new, ids, weights = choices(10 * turn + me, experts)
        new = new.to(torch.bfloat16)
        here = second if is_beside else torch.cuda.current_stream()
        here.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(here):
            x, given = late(new), late(ids)
            rows, count, handle, event, hook = buffer.low_latency_dispatch(x, given, TOKENS, experts, use_fp8=False, **kind)
            end(event, hook)
            x.zero_()
            seen_count, results = count.clone(), late((rows.float() * factors).to(torch.bfloat16))
            del rows, count
            littered()
            summed, event, hook = buffer.low_latency_combine(results, given, weights, handle, **kind)
            end(event, hook)
            results.zero_()
            seen = summed.clone()
            del summed, results, handle
            littered()
        torch.cuda.synchronize()
        everyone = [torch.empty_like(ids) for _ in range(dist.get_world_size())]
        dist.all_gather(everyone, ids)
        assert seen_count.tolist() == [sum(int((one == me * LOCAL + i).sum()) for one in everyone) for i in range(LOCAL)], turn
        wanted = new.float() * ((ids + 1) * weights).sum(1, keepdim=True)
        torch.testing.assert_close(seen.float(), wanted, rtol=1 / 32, atol=4)
    closed(buffer)


def end(event, hook):
    """Of a call of low latency."""
    if hook is not None:
        hook()
    elif event.event is not None:
        event.current_stream_wait()


def elastic():
    import torch.distributed as dist

    import deep_ep

    buffer = deep_ep.ElasticBuffer(opened(), num_max_tokens_per_rank=TOKENS, hidden=HIDDEN, explicitly_destroy=True)
    experts, me = LOCAL * dist.get_world_size(), dist.get_rank()
    for turn in range(32):
        is_async, is_previous, is_expanded, is_synced, is_beside = (turn & bit for bit in (1, 2, 4, 8, 16))
        new, ids, weights = choices(10 * turn + me, experts)
        new = new.to(torch.bfloat16)
        here = torch.cuda.Stream() if is_beside else torch.cuda.current_stream()
        here.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(here):
            x, given = late(new), late(ids)
            more = {**named(here, is_previous, bool(is_previous)), "async_with_compute_stream": bool(is_async)}
            rows, local, held, handle, event = buffer.dispatch(x, given, weights, num_experts=experts, do_expand=bool(is_expanded),
                                                               do_cpu_sync=bool(is_synced), **more)
            if is_async:
                event.current_stream_wait()
            x.zero_()
            results = late(experts_of(rows, local, held, handle, me))
            del rows, local, held
            littered()
            more.update(named(here, is_previous, bool(is_previous)))
            summed, _, event = buffer.combine(results, handle, **more)
            if is_async:
                event.current_stream_wait()
            results.zero_()
            seen = summed.clone()
            del summed, results
            littered()
        torch.cuda.synchronize()
        wanted = new.float() * ((ids + 1) * weights).sum(1, keepdim=True)
        torch.testing.assert_close(seen.float(), wanted, rtol=1 / 32, atol=4)
    closed(buffer)


def experts_of(rows, local, held, handle, me):
    """What experts make of rows, each its number + 1 times the weight, without a look from the host."""
    if local is not None:
        factor = torch.where(local >= 0, (local + 1 + me * LOCAL) * held, 0.0).sum(1, keepdim=True)
    else:
        ends = handle.psum_num_recv_tokens_per_expert
        expert = torch.bucketize(torch.arange(rows.shape[0], dtype=torch.int32), ends, right=True)
        factor = ((expert + 1 + me * LOCAL) * held).unsqueeze(1)
    return torch.nan_to_num(rows.float() * factor).to(torch.bfloat16)


def elastic_captured():
    """As servers decode: no counts on the host, both layouts, replayed with other inputs."""
    import torch.distributed as dist

    import deep_ep

    buffer = deep_ep.ElasticBuffer(opened(), num_max_tokens_per_rank=TOKENS, hidden=HIDDEN, explicitly_destroy=True)
    experts, me = LOCAL * dist.get_world_size(), dist.get_rank()
    for do_expand in (False, True):
        x, ids, weights = choices(me, experts)
        x = x.to(torch.bfloat16)

        def pair(do_expand=do_expand, x=x, ids=ids, weights=weights):
            rows, local, held, handle, _ = buffer.dispatch(x, ids, weights, num_experts=experts, do_expand=do_expand, do_cpu_sync=False)
            summed, _, event = buffer.combine(experts_of(rows, local, held, handle, me), handle, async_with_compute_stream=True,
                                              allocate_on_comm_stream=True)
            event.current_stream_wait()
            return summed

        graph, made = captured(pair)
        for turn in range(3):
            for mine, new in zip((x, ids, weights), choices(100 * turn + me, experts)):
                mine.copy_(new)
            graph.replay()
            torch.cuda.synchronize()
            got = made.clone()
            torch.testing.assert_close(got, pair(), rtol=0, atol=0)
            wanted = x.float() * ((ids + 1) * weights).sum(1, keepdim=True)
            torch.testing.assert_close(got.float(), wanted, rtol=1 / 32, atol=4)
        del graph, made
    closed(buffer)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("function", ["high_throughput", "low_latency", "elastic", "elastic_captured"])
def test_ranks(function, count):
    ranks.run(__file__, function, count)

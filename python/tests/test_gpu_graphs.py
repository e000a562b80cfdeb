"""CUDA graphs of weft.torch and of deep_ep's low-latency calls, with a GPU a rank: what a replay gives beside the same calls outside
of a graph, with inputs that change between replays; and that a dispatch whose count is told to the host is refused in a capture,
by words, and works between two graphs."""

import os

import pytest
import ranks

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

TOKENS, HIDDEN, LOCAL, TOPK = 24, 256, 4, 2
COUNTS = [count for count in (1, 2) if count <= torch.cuda.device_count()]


def opened():
    import torch.distributed as dist

    import weft
    from weft import ep

    torch.cuda.set_device(int(os.environ["RANK"]))
    torch.set_default_device("cuda")
    dist.init_process_group("nccl")
    world = weft.World(group=dist.group.WORLD, on_device=True)
    group = ep.Group(world, experts=LOCAL * world.pes, tokens_max=TOKENS, topk_max=TOPK, row_bytes_max=4 * HIDDEN)
    return world, group


def closed(world):
    import torch.distributed as dist

    torch.cuda.synchronize()
    dist.barrier()
    world.close()
    dist.destroy_process_group()


def choices(seed, experts):
    torch.manual_seed(seed)
    x = torch.randint(-8, 9, (TOKENS, HIDDEN)).float()
    ids = torch.stack([torch.randperm(experts)[:TOPK] for _ in range(TOKENS)])
    return x, ids, torch.randint(1, 5, (TOKENS, TOPK)).float()


def captured(function):
    """A graph of function(), which has run before on a stream beside, and what it gave."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(2):
            function()
    torch.cuda.current_stream().wait_stream(beside)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = function()
    return graph, made


def fixed_capacity():
    """A pair, forward and backward, without counts on the host."""
    from weft.torch import Step

    world, group = opened()
    step, plain = Step(group, TOPK), Step(group, TOPK)
    capacity = TOPK * TOKENS * world.pes
    x, ids, weights = choices(world.pe, group.experts)
    x.requires_grad_()
    weights.requires_grad_()

    def pair(of):
        rows, w, experts = of.dispatch(x, ids, weights, capacity)
        y = of.combine(rows * w[:, None] * (2 + experts[:, None]))
        return (y, *torch.autograd.grad((y * y).sum(), (x, weights)))

    graph, made = captured(lambda: pair(step))
    for turn in range(3):
        with torch.no_grad():
            for mine, new in zip((x, ids, weights), choices(100 * turn + world.pe, group.experts)):
                mine.copy_(new)
        graph.replay()
        torch.cuda.synchronize()
        got = [one.clone() for one in made]
        torch.testing.assert_close(got, list(pair(plain)), rtol=0, atol=0)
        wanted = (x * ((2 + ids % LOCAL) * weights).sum(1, keepdim=True)).detach()
        torch.testing.assert_close(got[0], wanted, rtol=1e-5, atol=1e-3)
    del graph, made
    closed(world)


def with_counts():
    """The dispatch's count goes to the host, which no capture can do: the error says so, and the call works outside, before a graph
    of what follows."""
    from weft.torch import Step

    world, group = opened()
    step = Step(group, TOPK)
    x, ids, weights = choices(world.pe, group.experts)
    step.combine(step.dispatch(x, ids, weights)[0])
    torch.cuda.synchronize()
    with pytest.raises(RuntimeError, match="captur|capacity"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            step.dispatch(x, ids, weights)
    rows, w, _ = step.dispatch(x, ids, weights)
    kept = (rows * w[:, None]).clone()
    graph, y = captured(lambda: step.combine(kept))
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(y, x * weights.sum(1, keepdim=True), rtol=1e-5, atol=1e-3)
    kept.mul_(2)
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(y, 2 * x * weights.sum(1, keepdim=True), rtol=1e-5, atol=1e-3)
    del graph, y
    closed(world)


def low_latency(is_halved):
    """deep_ep's pair, with and without hooks, beside the same outside of the graph."""
    import torch.distributed as dist

    import deep_ep

    is_halved = is_halved == "True"
    torch.cuda.set_device(int(os.environ["RANK"]))
    torch.set_default_device("cuda")
    dist.init_process_group("nccl")
    buffer = deep_ep.Buffer(dist.group.WORLD, low_latency_mode=True, explicitly_destroy=True)
    experts, me = LOCAL * dist.get_world_size(), dist.get_rank()
    x, ids, weights = choices(me, experts)
    x = x.to(torch.bfloat16)

    def pair():
        got, count, handle, _, hook = buffer.low_latency_dispatch(x, ids, TOKENS, experts, use_fp8=False, return_recv_hook=is_halved)
        if is_halved:
            hook()
        summed, _, hook = buffer.low_latency_combine(got, ids, weights, handle, return_recv_hook=is_halved)
        if is_halved:
            hook()
        return summed, count

    graph, made = captured(pair)
    for turn in range(3):
        new = choices(100 * turn + me, experts)
        x.copy_(new[0])
        ids.copy_(new[1])
        weights.copy_(new[2])
        graph.replay()
        torch.cuda.synchronize()
        got = [one.clone() for one in made]
        torch.testing.assert_close(got, list(pair()), rtol=0, atol=0)
        wanted = (x.float() * weights.sum(1, keepdim=True)).to(torch.bfloat16)
        torch.testing.assert_close(got[0], wanted, rtol=1 / 64, atol=1)
    torch.cuda.synchronize()
    dist.barrier()
    del graph, made
    buffer.destroy()
    dist.destroy_process_group()


def in_order():
    """Calls of all kinds behind a kernel of some milliseconds, on the caller's stream and another: each must wait for its tensors."""
    import torch.distributed as dist

    import deep_ep

    torch.cuda.set_device(int(os.environ["RANK"]))
    torch.set_default_device("cuda")
    dist.init_process_group("nccl")
    buffer = deep_ep.Buffer(dist.group.WORLD, low_latency_mode=True, explicitly_destroy=True)
    experts, me = LOCAL * dist.get_world_size(), dist.get_rank()
    new, ids, weights = choices(me, experts)
    new = new.to(torch.bfloat16)
    wanted = (new.float() * weights.sum(1, keepdim=True)).to(torch.bfloat16)
    for turn in range(12):
        is_async, is_halved = turn % 3 == 1, turn % 3 == 2
        more = {"async_finish": is_async, "return_recv_hook": is_halved}
        with torch.cuda.stream(torch.cuda.Stream() if turn >= 6 else torch.cuda.current_stream()):
            x = torch.zeros_like(new)
            torch.cuda._sleep(5_000_000)
            x.copy_(new)
            got, _, handle, event, hook = buffer.low_latency_dispatch(x, ids, TOKENS, experts, use_fp8=False, **more)
            if is_async:
                event.current_stream_wait()
            if is_halved:
                hook()
            results = torch.zeros_like(got)
            torch.cuda._sleep(5_000_000)
            results.copy_(got)
            x.zero_()
            summed, event, hook = buffer.low_latency_combine(results, ids, weights, handle, **more)
            if is_async:
                event.current_stream_wait()
            if is_halved:
                hook()
            seen = summed.clone()
            torch.cuda.synchronize()
            torch.testing.assert_close(seen, wanted, rtol=1 / 64, atol=1)
    dist.barrier()
    buffer.destroy()
    dist.destroy_process_group()


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("function,arguments", [("fixed_capacity", ()), ("with_counts", ()), ("low_latency", (False,)),
                                                ("low_latency", (True,)), ("in_order", ())])
def test_ranks(function, arguments, count):
    ranks.run(__file__, function, count, *arguments)

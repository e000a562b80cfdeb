#!/usr/bin/env python3
"""CPU time of calls from Python over the same call in C, in us: one rank, tensors of a few rows, so that nothing waits.

    python3 bench/python_calls.py [--rounds 2000] [--device cuda]         # with weft and torch installed

With --device cuda the tensors are on the GPU, and a turn is 200 rounds: fewer launches than a stream holds. The GPU is waited for
between turns, which is not counted.

What C takes are the extension's functions that the call comes to, with ready numbers (of tensors that stay), less what a function
of the extension that does nothing takes.
Each line: the call, us in Python, us in C, the difference; medians of 7 interleaved turns. JSON lines with
--json, in the form of bench/records.
"""

import argparse
import json
import statistics
import time

import torch

import deep_ep
import weft
import weft.torch
from weft import _weft, ep

TOKENS, HIDDEN, TOPK, EXPERTS = 4, 64, 2, 4


def each_us(function, rounds):
    start = time.thread_time_ns()
    for _ in range(rounds):
        function()
    spent = time.thread_time_ns() - start
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return spent / rounds / 1000


def recorded(function, names):
    """What `function` asks of the extension: [(function, arguments)] of those names."""
    calls, kept = [], {name: getattr(_weft, name) for name in names}
    for name, inner in kept.items():
        setattr(_weft, name, lambda *a, inner=inner: calls.append((inner, a)) or inner(*a))
    try:
        function()
    finally:
        for name, inner in kept.items():
            setattr(_weft, name, inner)
    return calls


def in_c(calls, rounds):
    """The calls again, with ready numbers, less a call of the extension that does nothing."""

    def again():
        for inner, arguments in calls:
            inner(*arguments)

    def nothing():
        for _, _ in calls:
            _weft.team_pe(0)

    return max(each_us(again, rounds) - each_us(nothing, rounds), 0.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    on_device = given.device == "cuda"
    rounds = min(given.rounds, 200) if on_device else given.rounds
    torch.set_num_threads(1)
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    block_world = weft.World(pe=0, pes=1, gather=lambda mine: mine)
    block, numbers = block_world.alloc(64), torch.zeros(8, dtype=torch.int64)
    on = torch.device(given.device)
    torch.empty(1, device=on)  # a GPU is current
    world = weft.World(pe=0, pes=1, gather=lambda mine: mine, on_device=on_device)
    group = ep.Group(world, experts=EXPERTS, tokens_max=TOKENS, topk_max=TOPK, row_bytes_max=4 * HIDDEN)
    x, ids = torch.ones(TOKENS, HIDDEN, device=on), torch.arange(TOKENS * TOPK, device=on).view(TOKENS, TOPK) % EXPERTS
    weights = torch.ones(TOKENS, TOPK, device=on)
    step, trained = weft.torch.Step(group, TOPK), torch.ones(TOKENS, HIDDEN, device=on, requires_grad=True)
    buffer = deep_ep.Buffer(dist.group.WORLD, low_latency_mode=True, explicitly_destroy=True)
    wide = x.to(torch.bfloat16)
    handle = buffer.low_latency_dispatch(wide, ids, TOKENS, EXPERTS, use_fp8=False)
    rows, sums = torch.empty(TOKENS * TOPK, HIDDEN, device=on), torch.empty(TOKENS, HIDDEN, device=on)
    row_weights, experts = torch.empty(TOKENS * TOPK, device=on), torch.empty(TOKENS * TOPK, dtype=torch.int32, device=on)
    route = group.route(TOPK, ep.Layout.EXPERT_MAJOR, flags=ep.ZERO_PADDING)
    slots = torch.empty(EXPERTS * TOKENS, HIDDEN, dtype=torch.bfloat16, device=on)
    source, wide_sums = torch.empty(EXPERTS * TOKENS, dtype=torch.int32, device=on), torch.empty_like(wide)

    def pair():
        route.update(ids, weights)
        route.query()
        route.dispatch(ep.Rows(x), ep.Rows(rows), weights=row_weights, experts=experts)
        route.combine(ep.Rows(rows), ep.Rows(sums))

    def low_latency_dispatch():
        handle[2].route.choose(ids)
        handle[2].route.dispatch(ep.Rows(wide), ep.Rows(slots), source_token=source)

    def low_latency_combine():
        handle[2].route.combine(ep.Rows(slots), ep.Rows(wide_sums), is_weighted=True, weights=weights, ids=ids)

    def put():
        block_world.put(block, numbers, 0)

    def fetch_add():
        block_world.fetch_add(block, 1, 0)

    calls = {
        "weft put": (put, put, 3),
        "weft fetch_add": (fetch_add, fetch_add, 3),
        "weft.torch pair": (lambda: step.combine(step.dispatch(x, ids, weights)[0]), pair, 25),
        "weft.torch pair, grad": (lambda: step.combine(step.dispatch(trained, ids, weights)[0]), pair, 25),
        "deep_ep low_latency_dispatch": (lambda: buffer.low_latency_dispatch(wide, ids, TOKENS, EXPERTS, use_fp8=False),
                                         low_latency_dispatch, 12),
        "deep_ep low_latency_combine": (lambda: buffer.low_latency_combine(handle[0], ids, weights, handle[2]),
                                        low_latency_combine, 12),
    }
    names = ("put", "fetch_add", "route_update", "route_query", "route_choose", "dispatch", "combine")
    for name, (function, bare, bar) in calls.items():
        function()
        asked = recorded(bare, names)
        turns = [(each_us(function, rounds), in_c(asked, rounds)) for _ in range(7)]
        whole, c = (statistics.median(one) for one in zip(*turns))
        if given.json:
            print(json.dumps({"name": "python_call", "impl": name, "device": given.device, "pes": 1, "value": round(whole - c, 2), "unit": "us",
                              "stat": "median", "n": 7}))
        else:
            print(f"{name:30} {whole:8.2f} us, {c:8.2f} in C, {whole - c:8.2f} over it (bar {bar})")
    buffer.destroy()
    world.close()
    block_world.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

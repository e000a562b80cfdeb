#!/usr/bin/env python3
"""A captured pair of weft.torch.Step, dispatch and combine, beside the same calls of weft.ep on arrays that are there.

    torchrun --nproc-per-node 2 bench/gpu/step.py [TOKENS [PERCENT]]      # with weft and torch with CUDA installed

PERCENT: by how much the capacity of a replay exceeds the rows that come (6). us a replay by events, the median of 16
times 10 replays, of rank 0; in turn, so that both meet the same machine. 256 experts, 8 choices a token, rows of 7168
bfloat16 elements.
"""

import os
import statistics
import sys

import torch

import weft
import weft.torch
from weft import ep

EXPERTS, TOPK, HIDDEN, ROUNDS, REPLAYS = 256, 8, 7168, 16, 10


def capture(function):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            function()
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = function()
    return graph, out


def time_us(graph):
    graph.replay()
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(REPLAYS):
        graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / REPLAYS


def main():
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    percent = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))
    world = weft.World(on_device=True)
    group = ep.Group(world, experts=EXPERTS, tokens_max=tokens, topk_max=TOPK, row_bytes_max=2 * HIDDEN)
    torch.manual_seed(rank)
    x = torch.randn(tokens, HIDDEN, device="cuda", dtype=torch.bfloat16)
    ids = torch.rand(tokens, EXPERTS, device="cuda").topk(TOPK, -1).indices
    weights = torch.rand(tokens, TOPK, device="cuda")
    step = weft.torch.Step(group, TOPK)
    rows = step.dispatch(x, ids, weights)[0].shape[0]
    capacity = rows + rows * percent // 100

    def pair_of_step():
        return step.combine(step.dispatch(x, ids, weights, capacity)[0])

    route = group.route(TOPK, ep.Layout.EXPERT_MAJOR, flags=ep.ZERO_PADDING)
    received, received_weights = x.new_empty(capacity, HIDDEN), weights.new_empty(capacity)
    received_experts, result = torch.empty(capacity, dtype=torch.int32, device="cuda"), torch.empty_like(x)

    def pair_of_ep():
        stream = torch.cuda.current_stream()
        route.choose(ids, weights)
        route.dispatch(ep.Rows(x), ep.Rows(received), weights=received_weights, experts=received_experts, stream=stream)
        route.combine(ep.Rows(received), ep.Rows(result), stream=stream)
        return result

    captured = {"weft.ep": capture(pair_of_ep), "weft.torch.Step": capture(pair_of_step)}
    times = {name: [] for name in captured}
    for _ in range(ROUNDS):
        for name, (graph, _) in captured.items():
            times[name].append(time_us(graph))
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    is_equal = torch.equal(captured["weft.ep"][1], captured["weft.torch.Step"][1])
    if rank == 0:
        ratio = medians["weft.torch.Step"] / medians["weft.ep"]
        print(f"{tokens} tokens, {rows} rows, capacity {capacity}")
        print(", ".join(f"{name} {median:.1f} us" for name, median in medians.items()))
        print(f"ratio {ratio:.3f}, results {'equal' if is_equal else 'DIFFER'}")
    world.close()
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())

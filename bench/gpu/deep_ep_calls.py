#!/usr/bin/env python3
"""Times of deep_ep's calls on GPUs, a GPU a rank, and the host's time in each call.

    torchrun --nproc-per-node 2 bench/gpu/deep_ep_calls.py        # with weft, deep_ep and torch with CUDA installed

us by events, the largest over the ranks of each rank's median of 30 calls, each behind a flushed second level cache. Calls that do not
wait on the host begin together behind a meeting and a pause, so that the host is ahead of the GPU; the others begin when they
begin. 256 experts, 8 choices a token, 7168 elements a row.
"""

import os
import time

import torch
import torch.distributed as dist

import deep_ep

EXPERTS, TOPK, HIDDEN, REPEATS = 256, 8, 7168, 30


class Bench:
    def __init__(self):
        self.cache = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
        self.tick = torch.ones(1, device="cuda")

    def __call__(self, name, function, is_ahead=True):
        for _ in range(8):
            function()
        torch.cuda.synchronize()
        dist.barrier()
        pairs, host = [], 0.0
        for _ in range(REPEATS):
            pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            self.cache.zero_()
            if is_ahead:
                dist.all_reduce(self.tick)
                torch.cuda._sleep(800_000)
            pair[0].record()
            start = time.perf_counter()
            function()
            host += time.perf_counter() - start
            pair[1].record()
            pairs.append(pair)
        torch.cuda.synchronize()
        times = sorted(begin.elapsed_time(end) * 1e3 for begin, end in pairs)
        most = torch.tensor(times[REPEATS // 2], device="cuda")
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        if dist.get_rank() == 0:
            print(f"{name:52s} {most.item():8.1f} us   host {host / REPEATS * 1e6:7.1f} us", flush=True)


def inputs(tokens):
    x = torch.randn(tokens, HIDDEN, dtype=torch.bfloat16, device="cuda")
    ids = torch.rand(tokens, EXPERTS, device="cuda").topk(TOPK).indices
    return x, (x.to(torch.float8_e4m3fn), torch.rand(tokens, HIDDEN // 128, device="cuda")), ids, torch.rand(tokens, TOPK, device="cuda")


def elastic(bench, tokens, sms):
    x, x8, ids, weights = inputs(tokens)
    buffer = deep_ep.ElasticBuffer(dist.group.WORLD, num_max_tokens_per_rank=tokens, hidden=HIDDEN, num_topk=TOPK, explicitly_destroy=True)
    for kind, data in (("bf16", x), ("fp8", x8)):
        for do_expand in (False, True):
            what = f"ElasticBuffer {kind} T={tokens} sms={sms}{' expanded' if do_expand else ''}"

            def fresh(is_synced):
                return buffer.dispatch(data, topk_idx=ids, topk_weights=weights, num_experts=EXPERTS, num_max_tokens_per_rank=tokens,
                                       num_sms=sms, do_expand=do_expand, do_handle_copy=False, do_cpu_sync=is_synced)

            bench(f"{what} dispatch", lambda: fresh(False))
            bench(f"{what} dispatch, CPU wait", lambda: fresh(True), is_ahead=False)
            rows, _, row_weights, handle, _ = fresh(True)
            bench(f"{what} dispatch, cached", lambda: buffer.dispatch(data, handle=handle, do_expand=do_expand))
            if kind == "bf16":
                bench(f"{what} combine", lambda: buffer.combine(rows, handle))
                bench(f"{what} combine with weights", lambda: buffer.combine(rows, handle, topk_weights=row_weights))
    buffer.destroy()


def legacy(bench, tokens, sms):
    x, x8, ids, weights = inputs(tokens)
    buffer = deep_ep.Buffer(dist.group.WORLD, int(2e9), 0, explicitly_destroy=True)
    per_rank, _, per_expert, in_rank, _ = buffer.get_dispatch_layout(ids, EXPERTS)
    bench(f"Buffer layout T={tokens}", lambda: buffer.get_dispatch_layout(ids, EXPERTS))
    config = deep_ep.Config(sms, 8, 256)
    given = {"num_tokens_per_rank": per_rank, "is_token_in_rank": in_rank, "num_tokens_per_expert": per_expert, "topk_idx": ids,
             "topk_weights": weights, "config": config}
    for kind, data in (("bf16", x), ("fp8", x8)):
        what = f"Buffer {kind} T={tokens} sms={sms}"
        bench(f"{what} dispatch, CPU wait", lambda: buffer.dispatch(data, **given), is_ahead=False)
        rows, _, row_weights, _, handle, _ = buffer.dispatch(data, **given)
        bench(f"{what} dispatch, cached", lambda: buffer.dispatch(data, handle=handle, config=config))
        if kind == "bf16":
            bench(f"{what} combine", lambda: buffer.combine(rows, handle, config=config))
            bench(f"{what} combine with weights", lambda: buffer.combine(rows, handle, topk_weights=row_weights, config=config))
    buffer.destroy()


def low_latency(bench, tokens):
    x, _, ids, weights = inputs(tokens)
    room = deep_ep.Buffer.get_low_latency_rdma_size_hint(tokens, HIDDEN, dist.get_world_size(), EXPERTS)
    buffer = deep_ep.Buffer(dist.group.WORLD, 0, room, low_latency_mode=True, explicitly_destroy=True)
    for is_fp8 in (False, True):
        what = f"low latency T={tokens}{' fp8' if is_fp8 else ''}"

        def dispatch(with_hook=False):
            return buffer.low_latency_dispatch(x, ids, tokens, EXPERTS, use_fp8=is_fp8, return_recv_hook=with_hook)

        given, _, handle, *_ = dispatch()
        results = torch.randn((given[0] if is_fp8 else given).shape, dtype=torch.bfloat16, device="cuda")

        def combine(of, with_hook=False):
            return buffer.low_latency_combine(results, ids, weights, of, return_recv_hook=with_hook)

        def pair(with_hook=False):
            *_, one, _, receive = dispatch(with_hook)
            if with_hook:
                receive()
            _, _, receive = combine(one, with_hook)
            if with_hook:
                receive()

        bench(f"{what} dispatch", dispatch)
        bench(f"{what} combine", lambda: combine(handle))
        bench(f"{what} pair", pair)
        bench(f"{what} pair, hooks", lambda: pair(True))
        with torch.cuda.stream(torch.cuda.Stream()):
            pair()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            pair()
        bench(f"{what} pair in a graph", graph.replay)
        del graph, handle
    buffer.destroy()


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    torch.manual_seed(dist.get_rank())
    bench = Bench()
    for tokens in (4096, 512):
        elastic(bench, tokens, 64)
        legacy(bench, tokens, 24)
    for tokens in (8, 128):
        low_latency(bench, tokens)
    dist.barrier()
    torch.cuda.synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

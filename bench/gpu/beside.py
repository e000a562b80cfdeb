#!/usr/bin/env python3
"""Expert parallelism beside other kernels, and Buffers of deep_ep by the thousand, on GPUs, a GPU a rank.

    torchrun --nproc-per-node 2 bench/gpu/beside.py rounds [N] | product | buffers [N]      # with weft, deep_ep and torch with CUDA

rounds (10,000 of each kind): a dispatch or a combine, by weft.ep and by deep_ep's ElasticBuffer, and NCCL's all_reduce, without
and with a matrix product between them, on streams of their own, enqueued in opposite orders on even and odd ranks, at the default
number of multiprocessors; the sums are compared. All kernels have run before: what CUDA loads at its first launch may wait for
kernels that run, which in opposite orders are those that wait.
product: 30 products of 8192 x 8192 x 8192 bf16 on a stream beside dispatches and combines of 4,096 tokens that outlast them, on 8,
24 and 64 multiprocessors: us a product, medians of 5, and over the time alone on what is left of the multiprocessors.
buffers (1,000): made, used and destroyed, two alive at once and of different sizes; memory of the GPU and of the process.
"""

import gc
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

import deep_ep
import weft
from weft import ep

EXPERTS, TOPK, HIDDEN = 256, 8, 7168


def say(text):
    if dist.get_rank() == 0:
        print(text, flush=True)


def meet():
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()


class Layer:
    """A dispatch and a combine of weft.ep, whose experts give rows back as they came."""

    def __init__(self, world, tokens, sms=0):
        self.group = ep.Group(world, experts=EXPERTS, tokens_max=tokens, topk_max=TOPK, row_bytes_max=2 * HIDDEN)
        self.route = self.group.route(TOPK, ep.Layout.RANK_MAJOR, sms=sms)
        self.x = torch.randint(-3, 4, (tokens, HIDDEN), device="cuda").to(torch.bfloat16)
        self.ids = torch.rand(tokens, EXPERTS, device="cuda").topk(TOPK).indices
        self.weights = torch.full((tokens, TOPK), 1 / TOPK, device="cuda")
        self.route.update(self.ids, self.weights)
        self.rows = torch.empty(self.route.query().rows, HIDDEN, dtype=torch.bfloat16, device="cuda")
        self.out = torch.empty_like(self.x)

    def dispatch(self, stream):
        self.route.choose(self.ids, self.weights)
        self.route.dispatch(ep.Rows(self.x), ep.Rows(self.rows), stream=stream.cuda_stream)

    def combine(self, stream):
        self.route.combine(ep.Rows(self.rows), ep.Rows(self.out), stream=stream.cuda_stream)


class Elastic:
    """The same by deep_ep."""

    def __init__(self, tokens):
        self.x = torch.randint(-3, 4, (tokens, HIDDEN), device="cuda").to(torch.bfloat16)
        self.ids = torch.rand(tokens, EXPERTS, device="cuda").topk(TOPK).indices
        self.weights = torch.full((tokens, TOPK), 1 / TOPK, device="cuda")
        self.tokens, self.out = tokens, None
        self.buffer = deep_ep.ElasticBuffer(dist.group.WORLD, num_max_tokens_per_rank=tokens, hidden=HIDDEN, num_topk=TOPK,
                                            explicitly_destroy=True)
        self.dispatch(torch.cuda.current_stream())

    def dispatch(self, stream):
        with torch.cuda.stream(stream):
            self.rows, _, _, self.handle, _ = self.buffer.dispatch(
                self.x, topk_idx=self.ids, topk_weights=self.weights, num_experts=EXPERTS, num_max_tokens_per_rank=self.tokens,
                do_handle_copy=False, do_cpu_sync=False)

    def combine(self, stream):
        with torch.cuda.stream(stream):
            self.out = self.buffer.combine(self.rows, self.handle)[0]


def rounds(world, count):
    own, beside, third = (torch.cuda.Stream() for _ in range(3))
    ticks = torch.ones(1 << 20, device="cuda")
    matrix = torch.randn(4096, 4096, dtype=torch.bfloat16, device="cuda")
    layer, elastic = Layer(world, 512), Elastic(512)

    def reduce():
        with torch.cuda.stream(beside):
            dist.all_reduce(ticks, op=dist.ReduceOp.MAX)

    def product():
        with torch.cuda.stream(third):
            torch.mm(matrix, matrix)

    for what, one in (("weft.ep", layer), ("ElasticBuffer", elastic)):
        product()
        reduce()
        torch.cuda.synchronize()
        one.dispatch(own)
        one.combine(own)
        meet()
        first = one.out.clone()
        for kind in ("dispatch", "combine"):
            for also in ((), (product,)):
                begin = time.monotonic()
                for i in range(count):
                    call = getattr(one, kind)
                    order = (lambda: call(own), *also, reduce)
                    for each in order if dist.get_rank() % 2 == 0 else reversed(order):
                        each()
                    if i % 100 == 99:
                        torch.cuda.synchronize()
                one.combine(own)
                meet()
                assert torch.equal(one.out, first), f"{what} {kind}: the sums are not those of the first combine"
                assert bool((ticks == 1).all()), f"{what} {kind}: all_reduce is wrong"
                say(f"{what} {kind}{', a product' if also else ''} and all_reduce: {count} rounds, "
                    f"{(time.monotonic() - begin) / count * 1e6:.0f} us each, sums equal")
    elastic.buffer.destroy()


def product(world):
    count, have = 30, torch.cuda.get_device_properties(0).multi_processor_count
    a, b = (torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    out = torch.empty_like(a)
    own, compute = torch.cuda.Stream(), torch.cuda.Stream()
    begin, end, last = (torch.cuda.Event(enable_timing=True) for _ in range(3))

    def products():
        with torch.cuda.stream(compute):
            begin.record()
            for _ in range(count):
                torch.mm(a, b, out=out)
            end.record()

    for sms in (8, 24, 64):
        layer = Layer(world, 4096, sms)

        def pairs(n):
            for _ in range(n):
                layer.dispatch(own)
                layer.combine(own)
            last.record(own)

        pairs(4)
        alone, beside, outlasted = [], [], 0
        for _ in range(5):
            meet()
            products()
            torch.cuda.synchronize()
            alone.append(begin.elapsed_time(end) / count * 1e3)
            meet()
            pairs(10)
            products()
            pairs(300)
            end.synchronize()
            outlasted += not last.query()
            torch.cuda.synchronize()
            beside.append(begin.elapsed_time(end) / count * 1e3)
        before, now, share = statistics.median(alone), statistics.median(beside), have / (have - sms)
        say(f"{sms} multiprocessors: a product {before:.0f} us alone, {now:.0f} beside: {now / before:.3f} where {share:.3f} are taken, "
            f"{100 * (now / before / share - 1):+.1f} %; pairs outlasted it in {outlasted} of 5")


def held():
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    with open("/proc/self/statm") as statm:
        resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return torch.cuda.mem_get_info()[0] / 2**20, resident / 2**20, len(os.listdir("/proc/self/fd"))


def buffers(count):
    alive, begin = [], time.monotonic()
    for i in range(count):
        tokens = 4 * (1 + i % 3)
        room = deep_ep.Buffer.get_low_latency_rdma_size_hint(tokens, HIDDEN, dist.get_world_size(), EXPERTS)
        alive.append((deep_ep.Buffer(dist.group.WORLD, 0, room, low_latency_mode=True, explicitly_destroy=True), tokens))
        for buffer, most in alive:
            x = torch.full((most, HIDDEN), i % 7, dtype=torch.bfloat16, device="cuda")
            ids = torch.arange(most * TOPK, device="cuda").view(most, TOPK) % EXPERTS
            rows, _, handle, *_ = buffer.low_latency_dispatch(x, ids, most, EXPERTS, use_fp8=False)
            out = buffer.low_latency_combine(rows, ids, torch.full((most, TOPK), 0.125, device="cuda"), handle)[0]
            assert torch.equal(out, x), f"Buffer {i}: wrong sums"
        if len(alive) == 2:
            alive.pop(0)[0].destroy()
        if i in (9, count // 4, count // 2, count - 1):
            free, resident, descriptors = held()
            say(f"after {i + 1} Buffers: {free:.0f} MiB of the GPU free, {resident:.0f} MiB resident, {descriptors} descriptors, "
                f"{(time.monotonic() - begin) / (i + 1) * 1e3:.1f} ms each")
    alive[0][0].destroy()


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    torch.manual_seed(dist.get_rank())
    what, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None
    if what == "buffers":
        buffers(count or 1000)
    else:
        world = weft.World("beside", dist.group.WORLD, on_device=True)
        if what == "rounds":
            rounds(world, count or 10000)
        else:
            product(world)
        meet()
        world.close()
    meet()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

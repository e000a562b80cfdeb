#!/usr/bin/env python3
"""deep_ep's calls beside other kernels, and Buffers by the thousand, on GPUs, a GPU a rank.

    torchrun --nproc-per-node 2 bench/gpu/beside.py [ROUNDS [BUFFERS]]    # with weft, deep_ep and torch with CUDA installed

Rounds (10,000 of each kind): a dispatch or a combine and NCCL's all_reduce on streams of their own, enqueued in opposite
orders on neighbouring ranks, at the default number of multiprocessors; what came is compared with the first round's.
A matrix product of 8192 x 8192 x 8192 bf16 beside dispatches and combines that never pause, on 8, 24 and 64
multiprocessors: its time over the time alone, and over what the multiprocessors that are left would take.
Buffers (1,000): made, used and destroyed, two alive at once and of different sizes; memory of the GPU before and after.
"""

import os
import sys
import time

import torch
import torch.distributed as dist

import deep_ep

EXPERTS, TOPK, HIDDEN = 256, 8, 7168
DEADLINE = 60  # seconds in which a batch of rounds has to end


def say(*words):
    if dist.get_rank() == 0:
        print(*words, flush=True)


def finish(what):
    """Wait for the GPU, and end the program where it hangs."""
    done, end = torch.cuda.Event(), time.monotonic() + DEADLINE
    done.record()
    while not done.query():
        if time.monotonic() > end:
            print(f"rank {dist.get_rank()}: {what} has not ended within {DEADLINE} s", flush=True)
            os._exit(1)
        time.sleep(0.0005)


class Calls:
    """A dispatch and a combine of fresh routings, which never wait on the host."""

    def __init__(self, tokens, sms):
        self.x = torch.randn(tokens, HIDDEN, dtype=torch.bfloat16, device="cuda")
        self.ids = torch.rand(tokens, EXPERTS, device="cuda").topk(TOPK).indices
        self.weights = torch.rand(tokens, TOPK, device="cuda")
        self.tokens, self.sms = tokens, sms
        self.buffer = deep_ep.ElasticBuffer(dist.group.WORLD, num_max_tokens_per_rank=tokens, hidden=HIDDEN, num_topk=TOPK,
                                            explicitly_destroy=True)
        self.rows, _, _, self.handle, _ = self.dispatch()

    def dispatch(self):
        return self.buffer.dispatch(self.x, topk_idx=self.ids, topk_weights=self.weights, num_experts=EXPERTS, num_sms=self.sms,
                                    num_max_tokens_per_rank=self.tokens, do_handle_copy=False, do_cpu_sync=False)

    def combine(self):
        return self.buffer.combine(self.rows, self.handle, num_sms=self.sms)


def rounds(count):
    calls = Calls(128, 0)
    ones = torch.ones(1 << 20, device="cuda")
    streams = torch.cuda.Stream(), torch.cuda.Stream()
    first = calls.combine()[0].clone()
    torch.cuda.synchronize()
    for kind in ("dispatch", "combine"):
        begin, last = time.monotonic(), None
        for i in range(count):
            for which in ((0, 1) if (dist.get_rank() + i) % 2 == 0 else (1, 0)):
                with torch.cuda.stream(streams[which]):
                    if which == 1:
                        dist.all_reduce(ones, op=dist.ReduceOp.MAX)
                    elif kind == "dispatch":
                        calls.rows, _, _, calls.handle, _ = calls.dispatch()
                    else:
                        last = calls.combine()[0]
            if i % 50 == 49 or i == count - 1:
                finish(f"round {i} of {kind}")
        with torch.cuda.stream(streams[0]):
            last = calls.combine()[0]
        finish("the last combine")
        assert torch.equal(last, first) and bool((ones == 1).all()), f"{kind}: the results are not the first round's"
        say(f"{count} rounds of {kind} and all_reduce in opposite orders: {time.monotonic() - begin:.1f} s, results equal")
    calls.buffer.destroy()


def product_us(a, b, between=None, repeats=20):
    times = []
    for _ in range(repeats):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        if between is not None:
            between()
        events[0].record()
        torch.matmul(a, b)
        events[1].record()
        finish("a matrix product")
        times.append(events[0].elapsed_time(events[1]) * 1e3)
    return sorted(times)[repeats // 2]


def product():
    a, b = (torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    have = torch.cuda.get_device_properties(a.device).multi_processor_count
    product_us(a, b, repeats=5)
    other = torch.cuda.Stream()
    for sms in (8, 24, 64):
        calls = Calls(4096, sms)
        torch.cuda.synchronize()
        dist.barrier()
        alone = product_us(a, b)

        def keep_busy():
            # The product begins behind the first of them, and they outlast it.
            with torch.cuda.stream(other):
                for _ in range(12):
                    calls.rows, _, _, calls.handle, _ = calls.dispatch()
                    calls.combine()
            torch.cuda._sleep(1_000_000)

        beside = product_us(a, b, keep_busy)
        left = have / (have - sms)
        say(f"product alone {alone:.0f} us, beside {sms} multiprocessors {beside:.0f}: {beside / alone:.3f}, "
            f"{beside / alone / left:.3f} of {have}/{have - sms}")
        calls.buffer.destroy()
        torch.cuda.synchronize()


def buffers(count):
    free, alive, begin = None, [], time.monotonic()
    for i in range(count):
        tokens = 4 * (1 + i % 3)
        room = deep_ep.Buffer.get_low_latency_rdma_size_hint(tokens, HIDDEN, dist.get_world_size(), EXPERTS)
        alive.append((deep_ep.Buffer(dist.group.WORLD, 0, room, low_latency_mode=True, explicitly_destroy=True), tokens))
        for buffer, most in alive:
            x = torch.full((most, HIDDEN), i % 7, dtype=torch.bfloat16, device="cuda")
            ids = torch.arange(most * TOPK, device="cuda").view(most, TOPK) % EXPERTS
            rows, counts, handle, *_ = buffer.low_latency_dispatch(x, ids, most, EXPERTS, use_fp8=False)
            out, *_ = buffer.low_latency_combine(rows, ids, torch.full((most, TOPK), 0.125, device="cuda"), handle)
            finish(f"the calls of Buffer {i}")
            assert torch.equal(out, x), f"Buffer {i}: wrong sums"
        if len(alive) == 2:
            alive.pop(0)[0].destroy()
        if i == count // 4:
            free = torch.cuda.mem_get_info()[0]
    now = torch.cuda.mem_get_info()[0]
    say(f"{count} Buffers: {time.monotonic() - begin:.1f} s, {(free - now) / 2**20:.1f} MiB of the GPU more than after a quarter")
    alive[0][0].destroy()


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    torch.manual_seed(dist.get_rank())
    rounds(int(sys.argv[1]) if len(sys.argv) > 1 else 10000)
    product()
    buffers(int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
    dist.barrier()
    torch.cuda.synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

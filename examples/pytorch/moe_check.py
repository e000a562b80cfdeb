"""A mixture-of-experts layer trained for some steps through weft and, beside it, through all_to_all_single: outputs,
gradients and parameters must agree. For a GPU machine, by hand; on CPU tensors by weft's host backend. Needs the package
(pip install .).

    torchrun --nproc-per-node 4 examples/pytorch/moe_check.py --device cuda
    torchrun --nproc-per-node 2 examples/pytorch/moe_check.py

Exits with 1 when something differs.
"""

import argparse
import os
import sys

import torch
import torch.distributed as dist

import weft
import weft.ep
import weft.torch

DTYPES = {"float32": (torch.float32, 2e-5), "bfloat16": (torch.bfloat16, 3e-2)}


def through_host(tensor):
    """NCCL takes the tensors of GPUs, and at most one rank a GPU; gloo takes copies in host memory."""
    return tensor if dist.get_backend() == "nccl" else tensor.cpu()


def all_to_all(rows, sent, received):
    """As bytes, since not every backend moves every type."""
    rows_there = through_host(rows.contiguous())
    out = rows_there.new_empty(sum(received), rows.shape[1])
    dist.all_to_all_single(out.view(torch.uint8), rows_there.view(torch.uint8), received, sent)
    return out.to(rows.device)


class AllToAll(torch.autograd.Function):
    """all_to_all_single with its gradient, which is the same the other way."""

    @staticmethod
    def forward(ctx, rows, sent, received):
        ctx.sent, ctx.received = sent, received
        return all_to_all(rows, sent, received)

    @staticmethod
    def backward(ctx, grad):
        return all_to_all(grad, ctx.received, ctx.sent), None, None


class Layer(torch.nn.Module):
    """A gate over all experts, and this rank's experts: two matrices each. Equal on all that have the same seed."""

    def __init__(self, options, rank, ranks, dtype):
        super().__init__()
        maker = torch.Generator().manual_seed(7)

        def parameter(*shape):
            return torch.nn.Parameter((torch.randn(*shape, generator=maker) / shape[-1] ** 0.5).to(options.device, dtype))

        self.topk, self.experts = options.topk, options.experts
        self.gate = parameter(options.experts, options.hidden)
        each = options.experts // ranks
        up, down = parameter(options.experts, options.wide, options.hidden), parameter(options.experts, options.hidden, options.wide)
        self.first, self.local = rank * each, each
        self.up = torch.nn.Parameter(up.detach()[self.first : self.first + each].clone())
        self.down = torch.nn.Parameter(down.detach()[self.first : self.first + each].clone())

    def choose(self, x):
        scores = torch.softmax((x @ self.gate.t()).float(), dim=1)
        weights, ids = torch.topk(scores, self.topk, dim=1)
        return weights / weights.sum(dim=1, keepdim=True), ids

    def run_experts(self, rows, experts):
        """rows [N][H], grouped by local expert."""
        counts = torch.bincount(experts.long(), minlength=self.local).tolist()
        parts = rows.split(counts)
        return torch.cat([torch.relu(part @ self.up[e].t()) @ self.down[e].t() for e, part in enumerate(parts)])


class ByWeft(Layer):
    def __init__(self, options, rank, ranks, dtype, step):
        super().__init__(options, rank, ranks, dtype)
        self.step = step

    def forward(self, x):
        weights, ids = self.choose(x)
        rows, of_rows, experts = self.step.dispatch(x, ids, weights)
        return self.step.combine((self.run_experts(rows, experts).float() * of_rows[:, None]).to(x.dtype))


class ByAllToAll(Layer):
    def forward(self, x):
        weights, ids = self.choose(x)
        ranks = dist.get_world_size()
        order = torch.argsort(ids.flatten(), stable=True)  # by expert, so by rank
        chosen = torch.bincount(ids.flatten(), minlength=self.experts)
        there = all_to_all(chosen.view(ranks, -1), [1] * ranks, [1] * ranks).flatten()  # [source][local expert]
        sent = chosen.view(ranks, -1).sum(dim=1).tolist()
        received = there.view(ranks, -1).sum(dim=1).tolist()
        rows = AllToAll.apply(x[order // self.topk], sent, received)
        experts = torch.arange(self.local, device=x.device).repeat(ranks).repeat_interleave(there)
        by_expert = torch.argsort(experts, stable=True)
        results = self.run_experts(rows[by_expert], experts[by_expert])
        results = results[torch.argsort(by_expert)]
        back = AllToAll.apply(results, received, sent)
        choices = back[torch.argsort(order)].view(len(x), self.topk, -1)
        return (choices.float() * weights.unsqueeze(2)).sum(dim=1).to(x.dtype)


def off(one, other):
    """The largest difference, as a part of the largest value."""
    largest = other.float().abs().max().clamp(min=1e-6)
    return ((one.float() - other.float()).abs().max() / largest).item() if one.numel() > 0 else 0.0


def step(layer, x, wanted, rate):
    x = x.clone().requires_grad_()
    y = layer(x)
    loss = ((y.float() - wanted.float()) ** 2).mean()
    layer.zero_grad()
    loss.backward()
    gate = through_host(layer.gate.grad.float())  # experts are each one rank's; the gate is everybody's
    dist.all_reduce(gate)
    layer.gate.grad.copy_(gate)
    seen = {"output": y.detach(), "gradient of tokens": x.grad.clone()}
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            seen[f"gradient of {name}"] = parameter.grad.clone()
            parameter -= rate * parameter.grad
    return loss.item(), seen


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    for name, value in (("tokens", 64), ("hidden", 64), ("wide", 128), ("experts", 8), ("topk", 2), ("steps", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


def main():
    options = options_of()
    dtype, tolerance = DTYPES[options.dtype]
    if options.device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
        torch.cuda.init()
        torch.zeros(1, device="cuda")  # the context, which weft takes
    gpus = torch.cuda.device_count() if options.device == "cuda" else 0
    dist.init_process_group("nccl" if gpus >= int(os.environ.get("WORLD_SIZE", 1)) else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if options.experts % ranks != 0:
        sys.exit(f"{options.experts} experts on {ranks} ranks: give a multiple")
    world = weft.World(on_device=options.device == "cuda")
    group = weft.ep.Group(world, experts=options.experts, tokens_max=options.tokens, topk_max=options.topk,
                          row_bytes_max=options.hidden * dtype.itemsize)
    layer_step = weft.torch.Step(group, options.topk)
    ours = ByWeft(options, rank, ranks, dtype, layer_step)
    theirs = ByAllToAll(options, rank, ranks, dtype)
    maker = torch.Generator().manual_seed(1000 + rank)
    worst = 0.0
    for i in range(options.steps):
        x, wanted = (torch.randn(options.tokens, options.hidden, generator=maker).to(options.device, dtype) for _ in range(2))
        loss, seen = step(ours, x, wanted, rate=0.5)
        other_loss, other_seen = step(theirs, x, wanted, rate=0.5)
        for name, value in seen.items():
            difference = off(value, other_seen[name])
            worst = max(worst, difference)
            if not difference <= tolerance:
                print(f"rank {rank}, step {i}: {name}: off by {difference:.1e}")
        if rank == 0:
            print(f"step {i}: loss {loss:.6f} by weft, {other_loss:.6f} by all_to_all_single; largest difference {worst:.1e}")
        with torch.no_grad():  # what rounding moved apart must not choose other experts in the next step
            for one, other in zip(ours.parameters(), theirs.parameters()):
                one.copy_(other)
    dist.barrier()
    world.close()
    dist.destroy_process_group()
    sys.exit(0 if worst <= tolerance else 1)


if __name__ == "__main__":
    main()

"""Expert parallelism for PyTorch: dispatch and combine as autograd functions, and a layer.

    group = weft.ep.Group(world, experts=64, tokens_max=4096, topk_max=8, row_bytes_max=4 * 7168)
    step = Step(group, topk=8)                              # one a layer; a step is one dispatch and its combine
    rows, weights, experts = step.dispatch(x, ids, weights) # x [T][H] -> rows [N][H] of this rank's experts
    y = step.combine(expert(rows) * weights[:, None])       # [T][H], differentiable in all of x, weights and the experts

Calls are collective over the group's ranks, in the same order on all of them, their backwards too. Tensors are of the CPU,
or of the world's GPU; then calls are enqueued on the current stream. A backward on a routing that a later step has replaced
is an error (weft.Status.STATE), not a wrong gradient: a Step keeps one routing.
"""

import torch

from weft import ep


def _stream(tensor):
    return torch.cuda.current_stream(tensor.device) if tensor.is_cuda else None


class _Dispatch(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weights, ids, route, rows):
        x = x.contiguous()
        received = x.new_empty(rows, x.shape[1])
        row_weights = x.new_empty(rows, dtype=torch.float32)
        experts = torch.empty(rows, dtype=torch.int32, device=x.device)
        route.dispatch(ep.Rows(x), ep.Rows(received), weights=row_weights, experts=experts, stream=_stream(x))
        ctx.route, ctx.generation, ctx.shape = route, route.generation, weights.shape
        ctx.mark_non_differentiable(experts)
        return received, row_weights, experts

    @staticmethod
    def backward(ctx, grad_received, grad_row_weights, _):
        ctx.route.expect(ctx.generation)
        grad_received = grad_received.contiguous()
        grad_x = grad_received.new_empty(ctx.shape[0], grad_received.shape[1])
        grad_weights = grad_received.new_empty(ctx.shape, dtype=torch.float32)
        ctx.route.dispatch_bwd(ep.Rows(grad_received), ep.Rows(grad_x), grad_row_weights.contiguous(), grad_weights,
                               stream=_stream(grad_received))
        return grad_x, grad_weights, None, None, None


class _Combine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, route, tokens):
        rows = rows.contiguous()
        out = rows.new_empty(tokens, rows.shape[1])
        route.combine(ep.Rows(rows), ep.Rows(out), stream=_stream(rows))
        ctx.route, ctx.generation, ctx.rows = route, route.generation, rows.shape[0]
        return out

    @staticmethod
    def backward(ctx, grad_out):
        ctx.route.expect(ctx.generation)
        grad_out = grad_out.contiguous()
        grad_rows = grad_out.new_empty(ctx.rows, grad_out.shape[1])
        ctx.route.combine_bwd(ep.Rows(grad_out), ep.Rows(grad_rows), stream=_stream(grad_out))
        return grad_rows, None, None


class Step:
    """A dispatch and its combine, expert-major: rows are grouped by local expert, each group's first row at a multiple of
    `alignment`; rows of padding are zero, and their expert is -1."""

    def __init__(self, group, topk, alignment=1):
        self.group = group
        self._route = group.route(topk, ep.Layout.EXPERT_MAJOR, alignment=alignment, flags=ep.ZERO_PADDING)
        self._tokens = 0

    def dispatch(self, x, ids, weights):
        """x [T][H], ids [T][K] int32 or int64 (-1: none), weights [T][K] float32 -> (rows [N][H], the choice's weight of each
        row [N], its local expert [N] int32). Collective; waits for the number of rows."""
        ids = ids.contiguous()
        stream = _stream(x)
        weights32 = weights.to(torch.float32).contiguous()
        self._route.update(ids, weights32.detach(), stream=stream)
        counts = self._route.query(stream)
        if counts.status != 0:
            raise ValueError(f"{counts.dropped} of ids are no experts of 0 .. {self.group.experts - 1}, or too many rows arrive "
                             f"({counts.rows})")
        self._tokens, self.first_expert, self.local_experts = x.shape[0], counts.first_expert, counts.local_experts
        return _Dispatch.apply(x, weights32, ids, self._route, counts.rows)

    def combine(self, rows):
        """Results of the experts [N][H], in the order of dispatch -> [T][H]: the sum of each token's choices. Collective."""
        return _Combine.apply(rows, self._route, self._tokens)

    def close(self):
        self._route.close()


class MoE(torch.nn.Module):
    """A mixture of experts over a group's ranks: a linear gate, and `expert(index)` makes each of this rank's experts.

    Expert e lives on rank e // (E / R); E is a multiple of R. forward takes and gives [..., H]; collective.
    """

    def __init__(self, group, hidden, topk, expert):
        super().__init__()
        if group.experts % group.ranks != 0:
            raise ValueError(f"{group.experts} experts do not divide among {group.ranks} ranks")
        self.step, self.topk = Step(group, topk), topk
        self.gate = torch.nn.Linear(hidden, group.experts, bias=False)
        local = group.experts // group.ranks
        self.experts = torch.nn.ModuleList(expert(group.rank * local + i) for i in range(local))

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        chosen, ids = torch.topk(torch.softmax(self.gate(flat).float(), -1), self.topk, -1)
        rows, weights, experts = self.step.dispatch(flat, ids, chosen / chosen.sum(-1, keepdim=True))
        out = torch.zeros_like(rows)
        for i, expert in enumerate(self.experts):
            mine = (experts == i).nonzero().flatten()
            out = out.index_add(0, mine, expert(rows.index_select(0, mine)))
        return self.step.combine(out * weights[:, None].to(out.dtype)).reshape(x.shape)

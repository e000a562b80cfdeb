"""weft.ep and weft.torch: a layer over several ranks gives what all experts on one rank give, forward and backward."""

import ctypes
import threading

import pytest
import ranks

torch = pytest.importorskip("torch")
from weft import _weft  # noqa: E402

TOKENS, HIDDEN, EXPERTS, TOPK = 24, 32, 24, 2


class Expert(torch.nn.Module):
    def __init__(self, index):
        super().__init__()
        torch.manual_seed(50 + index)
        self.inner = torch.nn.Linear(HIDDEN, HIDDEN, dtype=torch.float32)

    def forward(self, x):
        return torch.tanh(self.inner(x))


def alone(x, gate, experts):
    """The same layer without communication."""
    chosen, ids = torch.topk(torch.softmax(gate(x).float(), -1), TOPK, -1)
    weights = chosen / chosen.sum(-1, keepdim=True)
    out = torch.zeros_like(x)
    for k in range(TOPK):
        for e, expert in enumerate(experts):
            mine = (ids[:, k] == e).nonzero().flatten()
            out = out.index_add(0, mine, expert(x[mine]) * weights[mine, k, None])
    return out


def trained():
    import torch.distributed as dist

    import weft
    from weft import ep
    from weft.torch import MoE

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    with weft.World(group=dist.group.WORLD) as world:
        group = ep.Group(world, experts=EXPERTS, tokens_max=TOKENS, topk_max=TOPK, row_bytes_max=4 * HIDDEN)
        torch.manual_seed(3)
        layer = MoE(group, HIDDEN, TOPK, Expert)
        layer.gate.weight.data.copy_(torch.randn(EXPERTS, HIDDEN))
        experts = [Expert(i) for i in range(EXPERTS)]
        gate = torch.nn.Linear(HIDDEN, EXPERTS, bias=False)
        gate.weight.data.copy_(layer.gate.weight.data)
        for turn in range(4):
            torch.manual_seed(100 * turn + world.pe)
            x = torch.randn(TOKENS - 3 * world.pe, HIDDEN, requires_grad=True)
            want = x.detach().clone().requires_grad_()
            got, wanted = layer(x), alone(want, gate, experts)
            torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
            pull = torch.randn_like(got)
            got.backward(pull)
            wanted.backward(pull)
            torch.testing.assert_close(x.grad, want.grad, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(layer.gate.weight.grad, gate.weight.grad, rtol=1e-4, atol=1e-5)
        local = EXPERTS // world.pes
        for e in range(EXPERTS):
            grad = experts[e].inner.weight.grad
            grad = torch.zeros(HIDDEN, HIDDEN) if grad is None else grad
            dist.all_reduce(grad)  # of all ranks' tokens
            if e // local == world.pe:
                torch.testing.assert_close(layer.experts[e % local].inner.weight.grad, grad, rtol=1e-4, atol=1e-5)
        group.close()
    dist.destroy_process_group()


def refused():
    """A backward on a routing that is gone, and choices that cannot be."""
    import weft
    from weft import ep
    from weft.torch import Step

    with weft.World() as world:
        group = ep.Group(world, experts=world.pes, tokens_max=8, topk_max=1, row_bytes_max=64)
        step = Step(group, 1)
        x = torch.ones(4, 16, requires_grad=True)
        ids, weights = torch.full((4, 1), world.pe), torch.ones(4, 1)
        rows, _, _ = step.dispatch(x, ids, weights)
        y = step.combine(rows)
        other = Step(group, 1)
        other.dispatch(x.detach(), ids, weights)
        step.close()
        with pytest.raises(weft.Error) as raised:
            y.sum().backward()
        assert raised.value.status == weft.Status.ARGUMENT
        step = other
        with pytest.raises(ValueError, match="no experts"):
            step.dispatch(x, ids + world.pes, weights)
        used = len(step._made) - len(step._idle)
        with pytest.raises(TypeError, match="int16"):
            step.dispatch(x, ids.to(torch.int16), weights)
        assert len(step._made) - len(step._idle) == used  # what the call would have used
        for capacity in (None, 8):
            with pytest.raises(ValueError, match="3"):  # fewer tokens than choices
                step.dispatch(x[:3], ids, weights, capacity)
            rows, _, _ = step.dispatch(x.detach(), ids, weights, capacity)
            with pytest.raises(ValueError, match="rows"):
                step.combine(rows[:-1])
            for tokens in (3, 5):
                with pytest.raises(ValueError, match="tokens"):
                    torch.ops.weft.combine(rows, step.routing, step.order, step.number, tokens)
            assert torch.equal(step.combine(rows), x)
        group.close()


def otherwise():
    """Tensors that the extension leaves to torch, which do not lie row after row or are Parameters, give the same."""
    import weft
    from weft import ep
    from weft.torch import Step

    with weft.World() as world:
        group = ep.Group(world, experts=2 * world.pes, tokens_max=8, topk_max=2, row_bytes_max=4 * HIDDEN)
        step = Step(group, 2)
        torch.manual_seed(world.pe)
        x, ids, weights = torch.randn(8, HIDDEN), torch.argsort(torch.rand(8, 2 * world.pes), 1)[:, :2].contiguous(), torch.rand(8, 2)
        results = []
        for turned, made in ((lambda one: one, torch.Tensor.detach), (lambda one: one.t().contiguous().t(), torch.Tensor.detach),
                             (lambda one: one, torch.nn.Parameter)):
            rows, row_weights, experts = step.dispatch(made(turned(x)), turned(ids), turned(weights))
            scaled = made((rows * row_weights[:, None]).detach())
            results.append([one.detach() for one in (rows, row_weights, experts, step.combine(turned(scaled)))])
        for one in results[1:]:
            torch.testing.assert_close(one, results[0], rtol=0, atol=0)
        group.close()


def padded():
    """Rows and gradients beyond those that come are zero in kept memory, as a captured graph has it, whatever came before; and only
    those that may not be are written."""
    import weft
    from weft import ep, torch as weft_torch

    capacity, hidden = 24, 16
    with weft.World() as world:
        group = ep.Group(world, experts=world.pes, tokens_max=16, topk_max=1, row_bytes_max=4 * hidden)
        step = weft_torch.Step(group, 1)
        routing = weft_torch._Routing(step, torch.device("cpu"), "captured")
        kept = []
        for turn, tokens in enumerate((9, 16, 4, 4, 0, 7, 2)):
            x = torch.full((tokens, hidden), 1.0 + turn)
            ids, weights = torch.full((tokens, 1), (world.pe + turn) % world.pes), torch.full((tokens, 1), 0.5)
            routing.calls = 0  # as a replay
            rows, row_weights, experts = weft_torch._dispatch_on(step, routing, x, ids, weights, capacity)
            out = weft_torch._combine(rows * 2, routing, tokens)
            grad_rows = weft_torch._combine_bwd(x, routing, capacity)
            assert torch.equal(out, 2 * x)
            for made, there in ((rows, 1.0 + turn), (grad_rows, 1.0 + turn), (row_weights, 0.5), (experts, 0)):
                assert (made[:tokens] == there).all()
                assert (made[tokens:] == (-1 if made is experts else 0)).all()
            kept.append((rows.data_ptr(), grad_rows.data_ptr()))
            assert [int(made[-1]) for made in routing.kept] == [tokens if turn < 4 else capacity, tokens]
            if turn == 3:  # in place: all rows are written, and from now on are taken to be at each combine
                rows.add_(1)
                weft_torch._combine(rows, routing, tokens)
                assert int(routing.kept[0][-1]) == capacity
        assert len(set(kept)) == 1
        assert weft_torch._combine_bwd(x, routing, capacity).data_ptr() != grad_rows.data_ptr()  # each call has its own
        routing.route.close()
        # the same without kept memory, through autograd
        for tokens in (16, 3):
            x = torch.ones(tokens, hidden, requires_grad=True)
            ids, weights = torch.full((tokens, 1), world.pe), torch.ones(tokens, 1)
            rows, row_weights, experts = step.dispatch(x, ids, weights, capacity)
            rows.retain_grad()
            step.combine(rows * 3).sum().backward()
            assert (rows.grad[tokens:] == 0).all() and (rows[tokens:] == 0).all() and (experts[tokens:] == -1).all()
            assert (row_weights[tokens:] == 0).all() and (x.grad == 3).all()
        step.close()
        group.close()


@pytest.mark.parametrize("function,count", [(function, count) for function, most in (("trained", 3), ("refused", 2), ("otherwise", 2),
                                                                             ("padded", 2))
                                            for count in ranks.counts(*range(1, most + 1))])
def test_ranks(function, count):
    ranks.run(__file__, function, count)


def test_what_a_tensor_leases():
    """Its end is told once, when nothing shares its memory any more, whichever thread had it last; also where no tensor is made."""
    ended = []

    class Owner:
        def end(self):
            ended.append(self)

    memory = (ctypes.c_int64 * 1)(5)
    made = torch.from_dlpack(_weft.leased(ctypes.addressof(memory), -1, Owner()))
    assert made.dtype == torch.float64 and made.view(torch.int64).tolist() == [5] and made.data_ptr() == ctypes.addressof(memory)
    shared = [made.detach()]
    del made
    assert not ended
    thread = threading.Thread(target=shared.clear)
    thread.start()
    thread.join()
    assert len(ended) == 1
    _weft.leased(ctypes.addressof(memory), -1, Owner())
    assert len(ended) == 2

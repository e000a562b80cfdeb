"""The operators of weft.torch: opcheck, and compiled functions over two ranks beside the same eager: values, gradients, and which
calls were made in which order. In CPU memory, or with WEFT_TEST_DEVICE=cuda on a GPU a rank."""

import os

import pytest
import ranks

torch = pytest.importorskip("torch")

TOKENS, HIDDEN, EXPERTS, TOPK = 12, 16, 4, 2
DEVICE = os.environ.get("WEFT_TEST_DEVICE", "cpu")
ON_GPU = DEVICE == "cuda"


def opened():
    import weft
    from weft import ep

    torch.set_num_threads(1)
    torch._dynamo.config.capture_scalar_outputs = True
    if ON_GPU:
        torch.cuda.set_device(int(os.environ["RANK"]))
    world = weft.World(on_device=ON_GPU)
    return world, ep.Group(world, experts=EXPERTS, tokens_max=TOKENS, topk_max=TOPK, row_bytes_max=4 * HIDDEN)


def choices(pe, tokens=TOKENS):
    torch.manual_seed(7 + pe)
    x = torch.randn(tokens, HIDDEN)
    ids = torch.stack([torch.randperm(EXPERTS)[:TOPK] for _ in range(tokens)])
    return x.to(DEVICE), ids.to(DEVICE), torch.rand(tokens, TOPK).to(DEVICE)


def checked():
    """torch.library.opcheck of all four. It calls each operator several times, on all ranks alike."""
    from weft.torch import Step

    world, group = opened()
    step = Step(group, TOPK)
    x, ids, weights = choices(world.pe)
    ops, order, number = torch.ops.weft, step.order, step.number
    for name in ("route", "move", "dispatch", "combine", "dispatch_bwd", "combine_bwd"):
        said = {one.name: one.alias_info for one in getattr(ops, name).default._schema.arguments}
        assert said["order"].is_write, f"a compiler may drop or move {name}"
    torch.library.opcheck(ops.route.default, (ids, weights, order, number))
    routing, count = ops.route(ids, weights, order, number)
    rows, row_weights, _ = ops.move(x, weights, routing, order, number, int(count))
    for grad in (False, True):
        given = x.clone().requires_grad_(grad), weights.clone().requires_grad_(grad)
        torch.library.opcheck(ops.dispatch.default, (given[0], ids, given[1], order, number, 2 * TOPK * TOKENS))
        torch.library.opcheck(ops.move.default, (*given, routing, order, number, int(count)))
        torch.library.opcheck(ops.combine.default, (rows.clone().requires_grad_(grad), routing, order, number, TOKENS))
    torch.library.opcheck(ops.dispatch_bwd.default, (rows, row_weights, routing, order, number, TOKENS))
    torch.library.opcheck(ops.combine_bwd.default, (x, routing, order, number, rows.shape[0]))
    copy = routing.clone()
    assert torch.equal(ops.combine(rows, copy, order, number, TOKENS), ops.combine(rows, routing, order, number, TOKENS))
    del routing
    with pytest.raises(RuntimeError, match="no routing"):
        ops.combine(rows, copy, order, number, TOKENS)
    with pytest.raises(RuntimeError, match="is gone"):
        ops.dispatch(x, ids, weights, order, 1 << 40, 1)
    world.close()


def layers(steps, capacity):
    """Two steps that do not depend on each other, and a dispatch whose results nobody uses."""

    def forward(x, ids, weights):
        rows, w, experts = steps[0].dispatch(x, ids, weights, capacity)
        others, v, _ = steps[1].dispatch(torch.tanh(x), ids.flip(1), weights, capacity)
        steps[2].dispatch(x.detach(), ids, weights.detach(), capacity)
        scaled = (1 + experts[:, None]) * rows * w[:, None]
        return steps[1].combine(others * v[:, None]) + 2 * steps[0].combine(scaled)

    return forward


def told(module, names=("_route", "_move", "_dispatch", "_combine", "_dispatch_bwd", "_combine_bwd")):
    """A list that grows by the name of each call of the library, from now on."""
    log = []
    for name in names:
        def call(*arguments, inner=getattr(module, name), name=name):
            log.append((name, arguments[0].number if hasattr(arguments[0], "number") else None))
            return inner(*arguments)
        setattr(module, name, call)
    return log


def compiled(backend, mode):
    import weft.torch

    world, group = opened()
    steps = [weft.torch.Step(group, TOPK, alignment=1 + i) for i in range(3)]
    forward = layers(steps, None if mode == "counted" else 3 * TOPK * TOKENS)
    graph = torch.compile(forward, backend=backend, fullgraph=True)
    log = told(weft.torch)
    for turn in range(3):
        x, ids, weights = choices(world.pe + 10 * turn, TOKENS if turn < 2 else TOKENS - world.pe)
        results = []
        for function in (forward, graph):
            given = x.clone().requires_grad_(), ids, weights.clone().requires_grad_()
            log.clear()
            y = function(*given)
            (y * torch.arange(y.numel(), device=y.device).view_as(y).cos()).sum().backward()  # the same of both, whatever their last bits
            results.append((y.detach(), given[0].grad, given[2].grad))
            calls = list(log) if function is forward else calls
            assert log == calls and len(log) == (12 if mode == "counted" else 9), (log, calls)
            with torch.no_grad():
                torch.testing.assert_close(function(x, ids, weights), y.detach())
        torch.testing.assert_close(*results)
    world.close()


def repeated():
    """Two dispatches of equal arguments are two calls, since each says that it changes the group's order: a compiler makes one of
    what has no effect, and other ranks would wait for the second."""
    import weft.torch

    world, group = opened()
    step = weft.torch.Step(group, TOPK)

    def forward(x, ids, weights):
        total = 0
        for _ in range(2):
            rows, w, _ = step.dispatch(x, ids, weights, 2 * TOPK * TOKENS)
            total = total + step.combine(rows * w[:, None])
        return total

    log = told(weft.torch)
    x, ids, weights = choices(world.pe)
    torch.compile(forward, backend="aot_eager", fullgraph=True)(x.requires_grad_(), ids, weights)
    assert [name for name, _ in log] == ["_dispatch", "_combine"] * 2, log
    world.close()


def outstanding():
    """Two dispatches of one step before the backward of the first, of other numbers of tokens."""
    from weft.torch import Step

    world, group = opened()
    step, one = Step(group, TOPK), Step(group, TOPK)
    many = [choices(world.pe + i, TOKENS - 2 * i) for i in range(3)]
    results = []
    for steps in ((step,) * 3, [Step(group, TOPK) for _ in range(3)]):
        made, grads = [], []
        for which, (x, ids, weights) in zip(steps, many):
            x, weights = x.clone().requires_grad_(), weights.clone().requires_grad_()
            rows, w, _ = which.dispatch(x, ids, weights)
            made.append((which, which.routing, rows, w, x, weights))
        for which, routing, rows, w, x, weights in made:
            y = which.combine(rows.tanh() * w[:, None], routing)
            y.sin().sum().backward()
            grads.append((y.detach(), x.grad, weights.grad))
        results.append(grads)
    torch.testing.assert_close(*results, rtol=0, atol=0)
    del made, which, routing, rows, w, x, weights, y
    step.routing = None
    assert len(step._made) == len(step._idle) == 3  # all came back
    step.dispatch(*many[0])
    assert len(step._made) == 3 and len(step._idle) == 2
    step.close()
    with pytest.raises(RuntimeError, match="before a dispatch"):
        step.combine(torch.zeros(0, HIDDEN, device=DEVICE))
    one.close()
    world.close()


def full():
    """More rows than the capacity: an overflow on all ranks, though only rank 0 receives too many."""
    import weft
    from weft.torch import Step

    world, group = opened()
    step = Step(group, TOPK)
    x, ids, weights = choices(world.pe)
    ids = torch.zeros_like(ids)
    with pytest.raises(weft.Error) as raised:
        step.dispatch(x, ids, weights, capacity=2 * TOPK * TOKENS - 1)
    assert raised.value.status == weft.Status.OVERFLOW
    rows, w, experts = step.dispatch(x, ids, weights, capacity=3 * TOPK * TOKENS)
    came = 2 * TOPK * TOKENS if world.pe == 0 else 0
    assert (experts[:came] == 0).all() and (experts[came:] == -1).all() and not w[came:].any() and not rows[came:].any()
    torch.testing.assert_close(step.combine(rows), TOPK * x)
    world.close()


@pytest.mark.parametrize("function,arguments", [("checked", ()), ("repeated", ()), ("outstanding", ())] + [
    ("full", ())] * (not ON_GPU) + [  # there nobody waits for what would tell it
    ("compiled", (backend, mode)) for backend, mode in (("aot_eager", "counted"), ("aot_eager", "static"), ("inductor", "counted"),
                                                        ("inductor", "static"))])
def test_ranks(function, arguments):
    ranks.run(__file__, function, 2, *arguments)

"""Goal: the binding of examples/pytorch, which the check against PyTorch uses, has weft's structs and calls right.

Method: a step of a layer whose expert e multiplies by e + 1, forward and backward, on arrays of Python, on every PE that
weftrun started; compared with loops. (examples/pytorch/moe_check.py is the check with PyTorch, by hand.)
Usage: weftrun -n N python3 pytorch.py ROOT LIBRARY
"""

import array
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "examples" / "pytorch"))
import weft_ep  # noqa: E402  (found by the path above)

TOKENS, TOPK, HIDDEN, EXPERTS = 5, 2, 8, 6


def floats(count, value=lambda i: 0.0):
    return array.array("f", [value(i) for i in range(count)])


def address(values):
    return values.buffer_info()[0]


def rows(values):
    return weft_ep.Rows(address(values), weft_ep.F32, HIDDEN)


def check(what, values, wanted):
    for i, (value, right) in enumerate(zip(values, wanted)):
        assert abs(value - right) <= 1e-5 * abs(right), f"{what}[{i}] is {value}, not {right}"


def main():
    world = weft_ep.Library(sys.argv[2]).world()
    group = world.group(experts=EXPERTS, tokens_max=TOKENS, topk_max=TOPK, row_bytes_max=4 * HIDDEN)
    route = group.route(TOPK)
    x = floats(TOKENS * HIDDEN, lambda i: 100 * world.pe + i + 1)
    grad_y = floats(TOKENS * HIDDEN, lambda i: 1 + i % 3)
    ids = array.array("q", [(world.pe + 2 * i) % EXPERTS for i in range(TOKENS * TOPK)])
    weights = floats(TOKENS * TOPK, lambda i: 0.25 + 0.5 * (i % 2))
    counts = route.update(address(ids), address(weights), TOKENS)
    n = counts.rows
    received, results, grad_results = (floats(n * HIDDEN + 4) for _ in range(3))
    experts = array.array("i", [-1] * (n + 1))
    route.dispatch(rows(x), rows(received), n, address(experts))
    factor = [counts.first_expert + e + 1 for e in experts[:n]]
    for i in range(n * HIDDEN):
        results[i] = factor[i // HIDDEN] * received[i]
    y, grad_x, grad_weights = floats(TOKENS * HIDDEN), floats(TOKENS * HIDDEN), floats(TOKENS * TOPK)
    route.combine(rows(results), rows(y))
    route.combine_backward(rows(grad_y), rows(results), rows(grad_results), address(grad_weights))
    for i in range(n * HIDDEN):
        grad_results[i] *= factor[i // HIDDEN]
    route.dispatch_backward(rows(grad_results), rows(grad_x))
    total = [sum(weights[t * TOPK + k] * (ids[t * TOPK + k] + 1) for k in range(TOPK)) for t in range(TOKENS)]
    check("y", y, [total[i // HIDDEN] * x[i] for i in range(TOKENS * HIDDEN)])
    check("grad_x", grad_x, [total[i // HIDDEN] * grad_y[i] for i in range(TOKENS * HIDDEN)])
    dots = [sum(x[t * HIDDEN + h] * grad_y[t * HIDDEN + h] for h in range(HIDDEN)) for t in range(TOKENS)]
    check("grad_weights", grad_weights, [(ids[c] + 1) * dots[c // TOPK] for c in range(TOKENS * TOPK)])
    try:
        route.dispatch(rows(x), weft_ep.Rows(address(received), 99, HIDDEN), n)
    except weft_ep.WeftError as error:
        assert "weft_ep_dispatch" in str(error)
    else:
        raise AssertionError("a type that there is not was taken")
    route.close()
    group.close()
    world.close()


if __name__ == "__main__":
    main()

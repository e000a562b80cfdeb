"""weft.ep on numpy arrays, and blocks as arrays, without torch: what comes to a rank and the sums that go back, beside what each rank
computes from all ranks' inputs. Values are small integers, so that sums are exact in every order."""

import os
import sys
import unittest

import ranks

try:
    import numpy
except ImportError:
    numpy = None

TOKENS, HIDDEN, LOCAL, TOPK = 23, 32, 3, 2


def inputs(rank, pes, dtype):
    generator = numpy.random.default_rng(7 + rank)
    tokens = TOKENS - 5 * rank if rank != 1 else 0  # a rank without tokens
    x = generator.integers(-4, 5, (tokens, HIDDEN)).astype(dtype)
    ids = numpy.argsort(generator.random((tokens, LOCAL * pes)), axis=1)[:, :TOPK].astype("int64" if dtype == "float32" else "int32")
    ids[generator.random(ids.shape) < 0.2] = -1
    return x, ids, generator.integers(1, 4, (tokens, TOPK)).astype("float32")


def layers(dtype):
    import weft
    from weft import ep

    with weft.World() as world:
        me, pes = world.pe, world.pes
        group = ep.Group(world, experts=LOCAL * pes, tokens_max=TOKENS, topk_max=TOPK, row_bytes_max=4 * HIDDEN)
        everyone = [inputs(rank, pes, dtype) for rank in range(pes)]
        x, ids, weights = everyone[me]
        for layout in (ep.Layout.RANK_MAJOR, ep.Layout.EXPERT_MAJOR):
            by_rank = layout == ep.Layout.RANK_MAJOR
            route = group.route(TOPK, layout)
            wanted = []  # (rank, token, choice) of each row that comes here
            for rank, (_, theirs, _) in enumerate(everyone):
                for token, chosen in enumerate(theirs):
                    here = [k for k, one in enumerate(chosen) if one // LOCAL == me]
                    wanted += [(rank, token, here[0])] if by_rank and here else [] if by_rank else [(rank, token, k) for k in here]
            if not by_rank:
                wanted.sort(key=lambda one: everyone[one[0]][1][one[1], one[2]])
            counts = route.update(ids, weights)
            assert counts.rows == len(wanted), (counts.rows, len(wanted))
            rows = numpy.zeros((counts.rows, HIDDEN), dtype)
            source = numpy.full((2, counts.rows), -1, "int32")
            shape = (counts.rows, TOPK) if by_rank else (counts.rows,)
            experts, held = numpy.full(shape, -1, "int32"), numpy.zeros(shape, "float32")
            route.dispatch(ep.Rows(x), ep.Rows(rows), weights=held, experts=experts, source_rank=source[0], source_token=source[1])
            assert [(int(r), int(t)) for r, t in source.T] == [one[:2] for one in wanted]
            for row, (rank, token, _) in enumerate(wanted):
                assert (rows[row] == everyone[rank][0][token]).all()
            if not by_rank:
                assert experts.tolist() == [everyone[r][1][t, k] - me * LOCAL for r, t, k in wanted]
                assert held.tolist() == [everyone[r][2][t, k] for r, t, k in wanted]
            sums = numpy.full_like(x, 99)
            route.combine(ep.Rows((rows * dtype_of(dtype)(me + 1))), ep.Rows(sums))
            for token, chosen in enumerate(ids):
                targets = [one // LOCAL + 1 for one in chosen if one >= 0]
                factor = sum(set(targets)) if by_rank else sum(targets)
                assert (sums[token] == x[token] * factor).all(), (token, chosen)
        for wrong, named in (({"ids": ids.astype("int16")}, TypeError), ({"ids": ids[:, :1]}, ValueError),
                             ({"ids": ids, "weights": weights.astype("float64")}, TypeError)):
            try:
                route.update(**wrong)
            except named:
                continue
            raise AssertionError(f"{named.__name__} was not raised")
        block = world.alloc(8 * pes)
        seen = block.numpy("int64", (pes,))
        seen[:] = -1
        world.barrier()
        for other in range(pes):
            world.put(block + 8 * me, numpy.array([100 + me]), other)
        world.barrier()
        assert seen.tolist() == [100 + rank for rank in range(pes)]
        del seen


def short():
    """Arrays that are too small, or of another type, for what a call reads and writes: each is refused, and the call can be made."""
    import weft
    from weft import ep

    with weft.World() as world:
        pes = world.pes
        group = ep.Group(world, experts=LOCAL * pes, tokens_max=8, topk_max=TOPK, row_bytes_max=4 * HIDDEN)
        x, ids = numpy.ones((8, HIDDEN), "float32"), numpy.full((8, TOPK), LOCAL * world.pe)
        weights, wide = numpy.ones((8, TOPK), "float32"), numpy.ones((8, TOPK), "float64")
        for layout, places in ((ep.Layout.RANK_MAJOR, (TOPK,)), (ep.Layout.EXPERT_MAJOR, ())):
            route = group.route(TOPK, layout)
            n = route.update(ids, weights).rows
            rows, back, more = numpy.zeros((n, HIDDEN), "float32"), numpy.zeros_like(x), numpy.ones((n, *places), "float32")
            whole, all_of_it = ep.Rows(rows), ep.Rows(x)
            less, fewer = ep.Rows(rows[:n - 1]), ep.Rows(x[:7])
            calls = [
                lambda: route.dispatch(fewer, whole),
                lambda: route.dispatch(all_of_it, whole, experts=numpy.zeros((n, *places), "int16")),
                lambda: route.combine(less, ep.Rows(back)), lambda: route.combine(whole, fewer),
                lambda: route.combine(whole, ep.Rows(back), bias=[x[:7]]), lambda: route.combine(whole, ep.Rows(back), bias=[x, x.T]),
                lambda: route.combine(whole, ep.Rows(back), bias=[x.astype("float64")]),
                lambda: route.combine(whole, ep.Rows(back), bias=[x, x, x]),
                lambda: route.combine(whole, ep.Rows(back), values=more[:n - 1], values_out=weights),
                lambda: route.combine(whole, ep.Rows(back), values=more, values_out=wide),
                lambda: route.combine(whole, ep.Rows(back), values=more, values_out=weights[:7]),
                lambda: route.dispatch_bwd(less, ep.Rows(back)), lambda: route.dispatch_bwd(whole, fewer),
                lambda: route.dispatch_bwd(whole, ep.Rows(back), more, wide),
                lambda: route.dispatch_bwd(whole, ep.Rows(back), more[:n - 1], weights),
                lambda: route.combine_bwd(fewer, whole), lambda: route.combine_bwd(all_of_it, less),
                lambda: route.combine_bwd(all_of_it, ep.Rows(numpy.zeros_like(rows)), less, weights, is_weighted=True),
                lambda: route.combine_bwd(all_of_it, ep.Rows(numpy.zeros_like(rows)), whole, wide, is_weighted=True),
            ]
            route.dispatch(all_of_it, whole)
            for number, call in enumerate(calls):
                try:
                    call()
                except (TypeError, ValueError):
                    continue
                raise AssertionError(f"{layout.name}: call {number} was made")
            route.combine(whole, ep.Rows(back), bias=[x, x], values=more, values_out=weights)
            assert (back == x * (3 if layout == ep.Layout.RANK_MAJOR else 2 + TOPK)).all()


def dtype_of(name):
    return numpy.dtype(name).type


@unittest.skipIf(numpy is None, "there is no numpy")
class Numpy(unittest.TestCase):
    def test_ranks(self):
        for count in ranks.counts(1, 2, 3):
            for dtype in ("float32", "float16"):
                with self.subTest(count=count, dtype=dtype):
                    ranks.run(__file__, "layers", count, dtype)

    def test_short(self):
        ranks.run(__file__, "short", 2)

    def test_no_torch(self):
        """Neither is imported with the package."""
        import subprocess

        code = "import sys, weft, weft.ep; assert not {'torch', 'numpy'} & set(sys.modules), sys.modules.keys()"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], env=os.environ).returncode, 0)


if __name__ == "__main__":
    if numpy is None:
        print(f"SKIPPED: {sys.executable} has no numpy (Debian: python3-numpy)")
        sys.exit(77)
    unittest.main()

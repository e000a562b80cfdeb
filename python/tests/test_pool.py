"""weft.torch.MemPool: pieces of a slab, what comes when it is full, and rows of expert parallelism in it; in CPU memory, and on a
GPU where there is one. The functions that torch calls on a GPU are called here as torch does, by their addresses."""

import ctypes
import random

import pytest
import ranks

torch = pytest.importorskip("torch")


def opened(size, on_device=False):
    import weft
    from weft.torch import MemPool

    world = weft.World(pe=0, pes=1, gather=lambda mine: mine, on_device=on_device)
    return world, MemPool(world, size)


def test_pieces():
    """Random sizes, made and dropped in any order: none overlaps another, the first gap is taken, and all comes back."""
    world, pool = opened(1 << 20)
    generator, alive = random.Random(5), {}
    outside = 0
    for turn in range(2000):
        if alive and generator.random() < 0.5:
            number, tensor = alive.popitem() if turn % 2 else (lambda key: (key, alive.pop(key)))(generator.choice(list(alive)))
            assert (tensor == number % 251).all()
            del tensor
        else:
            tensor = pool.empty(generator.randrange(1, 120_000), dtype=torch.uint8)
            tensor.fill_(turn % 251)
            assert tensor.data_ptr() % 64 == 0
            alive[turn] = tensor
            outside += not pool.contains(tensor)
            del tensor
    assert outside > 10  # the slab was full at times
    assert all((tensor == number % 251).all() for number, tensor in alive.items())
    alive.clear()
    assert pool.used() == 0
    whole = pool.empty((1 << 20) - 512, dtype=torch.uint8)
    assert pool.contains(whole) and not pool.contains(pool.empty(1024))
    view = whole[10:20].view(2, 5)
    del whole
    with pytest.raises(RuntimeError, match="drop them"):
        pool.close()
    del view
    assert pool.empty(0, 3).shape == (0, 3) and pool.empty(2, 3, dtype=torch.bfloat16).shape == (2, 3)
    with pytest.raises(RuntimeError, match="empty()"):
        pool.use()
    pool.close()
    pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        pool.empty(1)
    world.close()


def test_ends():
    """More pools than there are numbers, one after another; a world that ends before its tensors; too many at once."""
    import weft
    from weft.torch import MemPool

    for _ in range(40):
        world, pool = opened(1 << 16)
        kept = pool.empty(8)
        world.close()
        with pytest.raises(RuntimeError, match="ended"):
            pool.empty(8)
        del kept, pool
    world = weft.World(pe=0, pes=1, gather=lambda mine: mine)
    pools = [MemPool(world, 4096) for _ in range(16)]
    with pytest.raises(RuntimeError, match="16 pools"):
        MemPool(world, 4096)
    assert len({pool.address for pool in pools}) == 16
    for pool in pools:
        pool.close()
    world.close()


def test_callbacks():
    """As torch calls them: (bytes, device, stream) and (pointer, bytes, device, stream)."""
    from weft import _weft

    world, pool = opened(1 << 20)
    library = ctypes.CDLL(_weft.__file__)
    alloc, free = (getattr(library, f"wefti_slab_{what}_{pool._number}") for what in ("alloc", "free"))
    alloc.restype, alloc.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    free.restype, free.argtypes = None, [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    inside = alloc(1 << 19, 0, None)
    assert pool.address <= inside < pool.address + pool.size and pool.used() == 1 << 19
    outside = alloc(1 << 20, 0, None)
    assert outside and not pool.address <= outside < pool.address + pool.size and pool.used() == 1 << 19
    assert alloc(-1, 0, None) is None
    ctypes.memset(outside, 1, 1 << 20)
    free(outside, 1 << 20, 0, None)
    free(inside, 1 << 19, 0, None)
    assert pool.used() == 0
    pool.close()
    world.close()


def steps():
    """Two ranks put to each other's tensors of a pool, and dispatch and combine rows that lie there."""
    import weft
    from weft import ep
    from weft.torch import MemPool

    torch.set_num_threads(1)
    world = weft.World()
    pool, group = MemPool(world, 1 << 20), ep.Group(world, experts=4, tokens_max=8, topk_max=2, row_bytes_max=256)
    mine, theirs = pool.empty(4, dtype=torch.int64), torch.arange(4) + 10 * world.pe
    world.put(mine, theirs, 1 - world.pe)
    world.barrier()
    assert mine.tolist() == (torch.arange(4) + 10 * (1 - world.pe)).tolist()
    route = group.route(2, ep.Layout.EXPERT_MAJOR)
    x, sums = pool.empty(8, 64), pool.empty(8, 64)
    x.copy_(torch.arange(512).view(8, 64))
    ids = torch.tensor([[0, 2], [1, 3]] * 4)
    received = pool.empty(route.update(ids, torch.ones(8, 2)).rows, 64)
    assert pool.contains(received)
    route.dispatch(ep.Rows(x), ep.Rows(received))
    route.combine(ep.Rows(received), ep.Rows(sums))
    assert torch.equal(sums, 2 * x)
    world.barrier()
    world.close()


def test_ranks():
    ranks.run(__file__, "steps", 2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_cuda():
    torch.zeros(1, device="cuda")  # makes a context current
    world, pool = opened(64 << 20, on_device=True)
    with pool.use():
        x = torch.arange(1 << 20, device="cuda")
        y = x * 2
    assert pool.contains(x) and pool.contains(y) and pool.used() >= 16 << 20
    assert torch.equal(y.cpu(), 2 * torch.arange(1 << 20))
    large = pool.empty(100 << 20, dtype=torch.uint8)  # more than the slab
    assert not pool.contains(large) and not pool.contains(torch.empty(1 << 20, device="cuda"))
    large.fill_(7)
    assert int(large[-1]) == 7
    with pytest.raises(RuntimeError, match="drop them"):
        pool.close()
    world.close()

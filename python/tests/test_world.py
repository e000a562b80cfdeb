"""Worlds, memory, one-sided access and collectives of the package weft, with the standard library alone."""

import ctypes
import gc
import os
import signal
import struct
import sys
import threading
import time
import unittest

import ranks


def words(block, count):
    return struct.unpack(f"{count}q", bytes(block.view()[:8 * count]))


def puts():
    import weft

    with weft.World() as world:
        pe, pes = world.pe, world.pes
        block = world.alloc(4096)
        nxt = (pe + 1) % pes
        world.put(block, f"from {pe}".encode(), nxt)
        world.put(block + 64, bytearray(struct.pack("q", pe)), nxt)
        world.barrier()
        assert bytes(block.view()[:6]) == f"from {(pe - 1) % pes}".encode()
        got = bytearray(8)
        world.get(got, block + 64, nxt)
        assert struct.unpack("q", got) == (pe,)
        world.put_signal(block + 128, struct.pack("q", 7 + pe), block + 256, 5, nxt, weft.SignalOp.ADD)
        assert world.signal_wait(block + 256, weft.Compare.GE, 5) == 5
        assert words(block, 17)[16] == 7 + (pe - 1) % pes
        for _ in range(100):
            world.fetch_add(block + 512, 1, 0)
        world.barrier()
        assert pe != 0 or words(block, 65)[64] == 100 * pes
        if pe == 0:
            assert world.compare_swap(block + 512, 100 * pes, 3, 0) == 100 * pes
        world.quiet()
        world.barrier()
        block.free()
        assert block.address == 0


def collectives():
    import weft

    with weft.World(deadline=30) as world:
        pe, pes = world.pe, world.pes
        give, take = world.alloc(8 * 16), world.alloc(8 * 16 * pes)
        give.view()[:] = struct.pack("16q", *(100 * pe + i for i in range(16)))
        world.team.reduce(take, give, "int64", "sum", 16)
        assert words(take, 16) == tuple(100 * pes * (pes - 1) // 2 + pes * i for i in range(16))
        world.team.reduce(take, give, "int64", "max")
        assert words(take, 1) == (100 * (pes - 1),)
        world.team.fcollect(take, give)
        assert words(take, 16 * pes) == tuple(100 * who + i for who in range(pes) for i in range(16))
        world.team.broadcast(take, give, pes - 1, 8)
        assert words(take, 1) == (100 * (pes - 1),)
        world.barrier()
        world.team.alltoall(take, give, 8)
        assert words(take, pes) == tuple(100 * who + pe for who in range(pes))
        team = world.team.split(0, 2, (pes + 1) // 2)
        assert (team is None) == (pe % 2 == 1)
        if team is not None:
            assert team.pe == pe // 2 and team.pes == (pes + 1) // 2
            team.barrier()
            team.close()
        try:
            world.team.reduce(take, give, "int16")
            raise AssertionError("int16 was taken")
        except ValueError as error:
            assert "int16" in str(error)


def errors():
    import weft

    with weft.World() as world:
        block = world.alloc(64)
        for call, status, word in ((lambda: world.put(block, b"x", 99), weft.Status.RANGE, "PE 99"),
                                   (lambda: world.put(block + 64, b"x" * (1 << 40), 0, 1 << 40), None, ""),
                                   (lambda: world.put(ctypes.addressof(ctypes.create_string_buffer(64)), b"x", 0),
                                    weft.Status.RANGE, "heap")):
            if status is None:
                continue
            try:
                call()
                raise AssertionError("nothing was raised")
            except weft.Error as error:
                assert error.status == status and word in str(error), error
        try:
            world.put(block, memoryview(b"abcdef")[::2], 0)
            raise AssertionError("a strided buffer was taken")
        except ValueError:
            pass
        try:
            world.get(b"read only", block, 0)
            raise AssertionError("a read-only buffer was written")
        except ValueError:
            pass
    try:
        block.view()
        raise AssertionError("a block of a world that has ended was seen")
    except weft.Error as error:
        assert error.status == weft.Status.STATE
    try:
        block.free()
        world.barrier()
        raise AssertionError("a world that has ended was used")
    except weft.Error as error:
        assert error.status in (weft.Status.ARGUMENT, weft.Status.STATE)


def absent():
    import weft

    if int(os.environ["RANK"]) == 1:
        os.environ["WEFT_DEADLINE"] = "1"
    with weft.World(deadline=1) as world:
        if world.pe == 0:
            try:
                world.team.sync()
                raise AssertionError("a sync without PE 1 returned")
            except weft.DeadlineError as error:
                assert "PE 1" in str(error) and isinstance(error, TimeoutError) and error.status == weft.Status.TIMEOUT
        else:
            import time

            time.sleep(3)


def caught(status, *words):
    """A context in which a call must raise weft.Error of that status, with these words."""
    import weft

    class Caught:
        def __enter__(self):
            self.start = time.monotonic()
            return self

        def __exit__(self, kind, error, trace):
            assert kind is not None and issubclass(kind, weft.Error), kind
            assert error.status == status and all(word in str(error) for word in words), error
            assert time.monotonic() - self.start < 20  # the deadline is later
            self.text = str(error)
            return True

    return Caught()


def interrupted():
    """Ctrl-C while a call waits: at once here, and the others learn who it was and what."""
    import weft

    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have programs in the background ignore it
    with weft.World("interrupted") as world:
        if world.pe == 0:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            start = time.monotonic()
            try:
                world.signal_wait(world._note, weft.Compare.EQ, 1)
                raise AssertionError("the wait has ended")
            except KeyboardInterrupt:
                assert 0.4 < time.monotonic() - start < 10
            with caught(weft.Status.ABORTED, "PE 0", "130"):
                world.barrier()
        else:
            with caught(weft.Status.ABORTED, "PE 0", "130"):
                world.barrier()


def served():
    """A handler that raises nothing does not end the wait."""
    import weft

    seen = []
    signal.signal(signal.SIGUSR1, lambda *unused: seen.append(time.monotonic()))
    with weft.World() as world:
        if world.pe == 0:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            world.barrier()
            assert seen and time.monotonic() - seen[0] > 0.3, "it was served when the call had ended"
        else:
            time.sleep(1)
            world.barrier()


def raised():
    """An exception that leaves `with World()`."""
    import weft

    try:
        with weft.World("raised") as world:
            if world.pe == 1:
                raise ValueError("no such thing: \u00fc")
            with caught(weft.Status.ABORTED, "PE 1", "code 1", "(ValueError: no such thing: \u00fc)"):
                world.barrier()
    except ValueError:
        assert world.pe == 1
    with weft.World("left") as world:  # a good end is none
        world.barrier()
        if world.pe == 1:
            try:
                with weft.World("left again"):
                    sys.exit(0)
            except SystemExit:
                pass
        else:
            weft.World("left again").close()
        world.barrier()


def ended():
    """An exception that ends the program of PE 1, which has two worlds of one name: it is told once."""
    import weft

    worlds = [weft.World("ended") for _ in range(2)]
    if worlds[0].pe == 1:
        raise KeyError("gone")
    for world in worlds:
        with caught(weft.Status.ABORTED, "PE 1", "(KeyError: 'gone')") as told:
            world.barrier()
        assert told.text.count("gone") == 1, told.text


def many():
    import weft

    for i in range(20):
        world = weft.World(f"number {i}")
        other = weft.World(f"other {i}")
        assert other.alloc(128).view()[0] == 0
        world.barrier()
        if i % 2:
            world.close()
        del world, other
        gc.collect()


def garbage():
    """A world and routes in it are dropped in a cycle, the world first, as a Buffer is that no one destroys."""
    import weft
    from weft import ep

    for _ in range(10):
        world = weft.World(pe=0, pes=1, gather=lambda mine: mine)
        group = ep.Group(world, experts=4, tokens_max=4, topk_max=2, row_bytes_max=64)
        cycle = [world, group, group.route(2), group.route(2)]
        cycle.append(cycle)
        del world, group, cycle
        gc.collect()


class Worlds(unittest.TestCase):
    def test_alone(self):
        import weft

        with weft.World(pe=0, pes=1, gather=lambda mine: mine) as world:
            self.assertEqual((world.pe, world.pes), (0, 1))
            self.assertIn("PE", world.transport_map())

    def test_an_exchange_that_fails(self):
        import weft

        with self.assertRaises(weft.Error):
            weft.World(pe=0, pes=2, gather=lambda mine: mine)  # too short

    def test_size(self):
        """What a wheel takes, which is the packed extension and a few hundred KiB: under 30 MB, with kernels or without."""
        import zlib

        from weft import _weft

        with open(_weft.__file__, "rb") as file:
            raw = file.read()
        packed = len(zlib.compress(raw, 6))
        print(f"the extension: {len(raw) / 1e6:.1f} MB, packed {packed / 1e6:.1f} MB")
        self.assertLess(packed, 30e6)

    def test_docstrings(self):
        import inspect

        import weft
        from weft import ep

        for module in (weft, ep):
            for name, one in vars(module).items():
                if name.startswith("_") or not inspect.isclass(one) or one.__module__ != module.__name__:
                    continue
                self.assertTrue(one.__doc__ and one.__doc__.strip(), name)
                for part, function in vars(one).items():
                    if inspect.isfunction(function) and not part.startswith("_"):
                        self.assertTrue(function.__doc__, f"{name}.{part} has no docstring")

    def test_an_exchange_that_raises(self):
        import weft

        def gather(mine):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            weft.World(pe=0, pes=2, gather=gather)

    def test_a_program_that_ends(self):
        with self.assertRaises(AssertionError) as raised:
            ranks.run(__file__, "ended", 2)
        self.assertIn("rank 1 ended with 1", str(raised.exception))
        self.assertNotIn("rank 0 ended", str(raised.exception))

    def test_ranks(self):
        for function, counts in (("puts", (1, 2, 4)), ("collectives", (1, 3)), ("errors", (1, 2)), ("absent", (2,)),
                                 ("interrupted", (2,)), ("served", (2,)), ("raised", (2,)), ("many", (2,)), ("garbage", (1,))):
            for count in ranks.counts(*counts):
                with self.subTest(function=function, ranks=count):
                    ranks.run(__file__, function, count)


if __name__ == "__main__":
    unittest.main()

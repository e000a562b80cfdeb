"""weft for Python: symmetric memory, one-sided access, collectives, and expert parallelism (weft.ep, weft.torch).

    import weft
    with weft.World() as world:                      # all processes of weftrun, torchrun or mpirun; alone: a world of one
        block = world.alloc(1024)                    # the same place in every PE's heap
        world.put(block, b"hello", (world.pe + 1) % world.pes)
        world.barrier()

Arguments that stand for memory are a Block, a torch tensor, anything with the buffer protocol or __array_interface__, or an
address; sizes are bytes. A call that fails raises weft.Error with weft's text and its status. Handles belong to the process
that made them. Calls that may wait release the interpreter's lock, and end at the world's deadline. Signals are served while they
wait: an exception of a handler, KeyboardInterrupt say, ends the wait and aborts the world, as one does that ends `with World()`
or the program; the other PEs' calls raise weft.Error with Status.ABORTED, which names the PE and the exception. No torch and no
numpy are needed here.
"""

import enum
import sys
import weakref

from weft import _weft

__version__ = _weft.version()
__all__ = ["World", "Team", "Block", "Error", "Status", "SignalOp", "Compare"]


class Status(enum.IntEnum):
    """What a call may end with (weft/status.h)."""

    OK = 0
    ARGUMENT = -1
    RANGE = -2
    MEMORY = -3
    SYSTEM = -4
    TIMEOUT = -5
    MISMATCH = -6
    UNREACHABLE = -7
    AUTHENTICATION = -8
    PEER = -9
    ABORTED = -10
    UNSUPPORTED = -11
    STATE = -12
    OVERFLOW = -13


class Error(RuntimeError):
    """A call of weft failed; `status` says how, the text who and why."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = Status(status)


class DeadlineError(Error, TimeoutError):
    """WEFT_ERR_TIMEOUT: the text names the PEs that did not come."""


def _error(status, text):
    if status == Status.ABORTED:
        named = (world for world in list(_worlds) if f'world "{world._name}"' in text)  # several may have the name
        text += "".join(dict.fromkeys(world._reason() for world in named))
    return (DeadlineError if status == Status.TIMEOUT else Error)(status, text)


_weft.raises(_error)


class SignalOp(enum.IntEnum):
    """What put_signal does with the word at its target."""

    SET = 0
    ADD = 1


class Compare(enum.IntEnum):
    """How signal_wait compares the word with the value: word EQ value, and so on, as uint64."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


_REDUCED = {"int32": (0, 4), "int64": (1, 8), "float32": (2, 4), "float64": (3, 8)}
_OPERATIONS = {"sum": 0, "min": 1, "max": 2}


def _address(memory, writable=False):
    """(address, bytes) of what stands for memory; bytes is None where only the caller knows."""
    if isinstance(memory, int):
        return memory, None
    if isinstance(memory, Block):
        return memory.address, memory.bytes
    if hasattr(memory, "data_ptr"):  # a torch tensor
        if not memory.is_contiguous():
            raise ValueError("a tensor must be contiguous")
        return memory.data_ptr(), memory.numel() * memory.element_size()
    array = getattr(memory, "__array_interface__", None)
    if array is not None:
        address, is_readonly = array["data"]
        if writable and is_readonly:
            raise ValueError("the array is read-only")
        if array.get("strides") is not None:
            raise ValueError("an array must be contiguous")
        return address, memory.nbytes
    return _buffer_address(memory, writable)


def _buffer_address(memory, writable):
    import ctypes

    view = memoryview(memory)
    if not view.c_contiguous:
        raise ValueError("a buffer must be contiguous")
    if view.readonly:
        if writable:
            raise ValueError("the buffer is read-only")
        whole = ctypes.create_string_buffer(view.tobytes(), view.nbytes)  # alive while the tuple below is
        return _Kept(ctypes.addressof(whole), whole), view.nbytes
    return ctypes.addressof((ctypes.c_char * view.nbytes).from_buffer(view)), view.nbytes


class _Kept(int):
    """An address that keeps its memory alive."""

    def __new__(cls, address, memory):
        self = super().__new__(cls, address)
        self.memory = memory
        return self


class Block:
    """Symmetric memory: `bytes` bytes at the same place of every PE's heap. Free it, collectively, with free()."""

    def __init__(self, world, size, alignment):
        self._world = world
        self.address = _weft.heap_alloc(world._handle, alignment, size)
        self.bytes = size
        world._dependents.add(self)

    def _end(self):
        self.address = 0

    def free(self):
        """Collective over the world."""
        if self.address:
            address, self.address = self.address, 0
            _weft.heap_free(self._world._handle, address)

    def __add__(self, offset):
        """The address `offset` bytes behind."""
        if not 0 <= offset <= self.bytes:
            raise IndexError(f"byte {offset} of a block of {self.bytes}")
        return self.address + offset

    def view(self):
        """A writable memoryview of this PE's part."""
        import ctypes

        if not self.address:
            raise Error(Status.STATE, "the block has been freed, or its world has ended")

        return memoryview((ctypes.c_char * self.bytes).from_address(self.address)).cast("B")

    def numpy(self, dtype, shape):
        """This PE's part as a numpy array of that type and shape, from its first byte on."""
        import numpy

        count = int(numpy.prod(shape))
        return numpy.frombuffer(self.view(), dtype=dtype, count=count).reshape(shape)

    def tensor(self, dtype, shape):
        """The same as a torch tensor. It shares the memory, and must not be used after free()."""
        import math

        import torch

        return torch.frombuffer(self.view(), dtype=dtype, count=math.prod(shape)).reshape(shape)


_worlds: "weakref.WeakSet[World]" = weakref.WeakSet()  # that have not been closed
_REASON_BYTES = 256
_INTERRUPTED = 130  # _weft.c


def _code_of(kind, value):
    if issubclass(kind, SystemExit):
        return value.code if isinstance(value.code, int) else 0 if value.code is None else 1
    return _INTERRUPTED if issubclass(kind, KeyboardInterrupt) else 1


def _watch_for_the_end():
    """The worlds of a program that an exception ends are aborted, so that no other PE waits for it."""
    before = sys.excepthook

    def hook(kind, value, trace):
        for world in list(_worlds):
            world._abort_for(kind, value)
        before(kind, value, trace)

    hook.is_weft = True
    if not getattr(before, "is_weft", False):
        sys.excepthook = hook


class Team:
    """Some PEs of a world, numbered from 0. Collectives are called by all its members, in the same order."""

    def __init__(self, world, handle, is_owned):
        self.world, self._handle, self._is_owned = world, handle, is_owned
        self.pe, self.pes = _weft.team_pe(handle), _weft.team_pes(handle)
        world._dependents.add(self)

    def _end(self):
        self._handle = 0

    def split(self, start, stride, size):
        """The team of members start, start + stride, ... (`size` of them), or None where this PE is none. Collective."""
        handle = _weft.team_split(self._handle, start, stride, size)
        return Team(self.world, handle, True) if handle else None

    def close(self):
        """Collective, but for the world's own team."""
        if self._is_owned and self._handle:
            handle, self._handle = self._handle, 0
            _weft.team_destroy(handle)

    def sync(self):
        """Wait for all members; no promise about puts."""
        _weft.team_sync(self._handle)

    def barrier(self):
        """What every member put before is visible to every member after."""
        _weft.team_barrier(self._handle)

    def broadcast(self, dest, source, root=0, size=None):
        """The root's source to every dest: symmetric memory, `size` bytes (None: all of dest)."""
        to, room = _address(dest, True)
        _weft.broadcast(self._handle, to, _address(source)[0], room if size is None else size, root)

    def fcollect(self, dest, source, size=None):
        """The members' sources one after another into every dest; `size` bytes each (None: all of source)."""
        at, room = _address(source)
        _weft.fcollect(self._handle, _address(dest, True)[0], at, room if size is None else size)

    def alltoall(self, dest, source, size):
        """Member i's block j of `size` bytes to block i of member j."""
        _weft.alltoall(self._handle, _address(dest, True)[0], _address(source)[0], size)

    def reduce(self, dest, source, dtype, op="sum", count=None):
        """Element by element over all members, the same bits on all: dtype int32, int64, float32 or float64; op sum, min, max."""
        if dtype not in _REDUCED or op not in _OPERATIONS:
            raise ValueError(f"reduce of {dtype} by {op}: give one of {list(_REDUCED)} and of {list(_OPERATIONS)}")
        number, width = _REDUCED[dtype]
        at, room = _address(source)
        _weft.reduce(self._handle, _address(dest, True)[0], at, room // width if count is None else count, number,
                     _OPERATIONS[op])


class World:
    """This process's PE of a world. Collective to make; close() is local, and leaves no memory behind.

    name         tells worlds apart that meet through one launcher
    group        a torch process group or an mpi4py communicator through which the PEs meet; None: the launcher (weftrun,
                 torchrun, mpirun), or with pe, pes and gather a function that takes bytes and returns all PEs', joined
    deadline     seconds after which a call that waits fails; None: WEFT_DEADLINE, else 60
    heap_max     the most bytes that the symmetric heap may take; None: half of the machine's memory
    on_device    symmetric memory of the current CUDA device beside that of the host
    """

    def __init__(self, name=None, group=None, *, pe=0, pes=0, gather=None, deadline=None, heap_max=None, on_device=False):
        if group is not None:
            pe, pes, gather = _meet_by(group)
        self._dependents = weakref.WeakSet()  # what the world's end takes with it
        self._handle = _weft.world_create(name, pe, pes, gather, int((deadline or 0) * 1e9), heap_max or 0, on_device)
        self._closer = weakref.finalize(self, _weft.world_destroy, self._handle)
        self.pe, self.pes = _weft.world_pe(self._handle), _weft.world_pes(self._handle)
        self.on_device, self._name = on_device, name or "world"
        self._note = _weft.heap_alloc(self._handle, 64, _REASON_BYTES)  # why this PE aborted, for the others
        _worlds.add(self)
        _watch_for_the_end()
        self.team = Team(self, _weft.world_team(self._handle), False)

    def close(self):
        """End this PE's membership. Its blocks, teams and groups are gone."""
        if self._closer.alive:
            for one in list(self._dependents):
                one._end()
            _worlds.discard(self)
            self._handle = 0
            self._closer()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            self._abort_for(kind, value)
        self.close()

    def abort(self, code=1, reason=""):
        """Make every call of every PE that waits in this world fail, now and later: weft.Error with Status.ABORTED, this PE, the
        code (int32) and the reason (the first 255 bytes of it, read by PEs of this node)."""
        import ctypes

        ctypes.memmove(self._note, reason.encode()[:_REASON_BYTES - 1].ljust(_REASON_BYTES, b"\0"), _REASON_BYTES)
        _weft.world_abort(self._handle, code)

    def _abort_for(self, kind, value):
        """An exception ends this PE's part, unless it is a good end, or only what others' end has led to."""
        code = _code_of(kind, value)
        if self._handle and code != 0 and not (isinstance(value, Error) and value.status == Status.ABORTED):
            self.abort(code, f"{kind.__name__}: {value}")

    def _reason(self):
        """Why the world was aborted, in words that follow weft's; empty where nobody said so."""
        import ctypes

        status, culprit = _weft.world_fault(self._handle) if self._handle else (0, -1)
        at = _weft.pointer(self._handle, self._note, culprit) if status == Status.ABORTED and culprit >= 0 else 0
        said = ctypes.string_at(at, _REASON_BYTES).split(b"\0")[0].decode(errors="replace") if at else ""
        return f" ({said})" if said else ""

    def transport_map(self):
        """Which PEs this one reaches by what, as text."""
        return _weft.world_map(self._handle)

    def barrier(self):
        """What every PE put before is visible to every PE after."""
        self.team.barrier()

    def alloc(self, size, alignment=64):
        """A Block of `size` bytes. Collective."""
        return Block(self, size, alignment)

    def put(self, dest, source, pe, size=None):
        """Copy `size` bytes (None: all of source) from `source`, any memory, to `dest` of `pe`; source may be used at once."""
        at, room = _address(source)
        _weft.put(self._handle, _address(dest, True)[0], at, room if size is None else size, pe)

    def get(self, dest, source, pe, size=None):
        """Copy `size` bytes (None: all of dest) of `source` of `pe` to `dest`, any memory."""
        to, room = _address(dest, True)
        _weft.get(self._handle, to, _address(source)[0], room if size is None else size, pe)

    def put_signal(self, dest, source, signal, value, pe, op=SignalOp.SET, size=None):
        """put, and then set the uint64 at `signal` of `pe`, or add to it: who sees that sees the data."""
        at, room = _address(source)
        _weft.put_signal(self._handle, _address(dest, True)[0], at, room if size is None else size, _address(signal)[0], value,
                         op, pe)

    def signal_wait(self, signal, compare, value):
        """Wait until this PE's uint64 at `signal` compares so with `value`; returns what it is then."""
        return _weft.signal_wait(self._handle, _address(signal)[0], compare, value)

    def fetch_add(self, target, value, pe):
        """Add to the int64 at `target` of `pe`, atomically; returns what it was."""
        return _weft.fetch_add(self._handle, _address(target)[0], value, pe)

    def compare_swap(self, target, expected, value, pe):
        """Set the int64 at `target` of `pe` if it is `expected`, atomically; returns what it was."""
        return _weft.compare_swap(self._handle, _address(target)[0], expected, value, pe)

    def fence(self):
        """What was put before is seen by each PE no later than what is put there after."""
        _weft.fence(self._handle)

    def quiet(self):
        """What was put before is visible to all."""
        _weft.quiet(self._handle)


def _meet_by(group):
    """(pe, pes, gather) of a torch process group or an mpi4py communicator."""
    if hasattr(group, "Get_rank"):
        return group.Get_rank(), group.Get_size(), lambda mine: b"".join(group.allgather(mine))
    import torch
    import torch.distributed as dist

    on = "cuda" if dist.get_backend(group) == "nccl" else "cpu"

    def gather(mine):
        here = torch.frombuffer(bytearray(mine), dtype=torch.uint8).to(on)
        everybody = [torch.empty_like(here) for _ in range(group.size())]
        dist.all_gather(everybody, here, group=group)
        return b"".join(bytes(one.cpu().numpy().tobytes()) for one in everybody)

    return group.rank(), group.size(), gather

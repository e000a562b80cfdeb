"""The order of deep_ep's calls on streams, without a GPU: a Buffer in CPU memory gets streams that only keep who comes before whom,
and the extension's calls are put on the stream whose address they get. Also what calls of low latency keep between them."""

import contextlib
import itertools
import weakref

import pytest

torch = pytest.importorskip("torch")
import deep_ep  # noqa: E402
from deep_ep.events import EventHandle, EventOverlap  # noqa: E402
from deep_ep.streams import Call, Streams  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from weft import _weft  # noqa: E402

EXPERTS, TOKENS, HIDDEN, TOPK = 4, 6, 64, 2
STREAM_AT = {"slots_dispatch": 3, "slots_combine": 3, "dispatch_recv": 1, "dispatch": 2, "combine": 2, "combine_recv": 1, "route_update": 6,
             "route_query": 1}


class Alone:
    """A communicator of one rank."""

    @staticmethod
    def Get_rank():
        return 0

    @staticmethod
    def Get_size():
        return 1

    @staticmethod
    def allgather(mine):
        return [mine]


class FakeStream:
    def __init__(self, cuda):
        self.cuda_stream = 1000 + len(cuda.streams)
        self.before = set()  # what has to end before what comes next
        cuda.streams[self.cuda_stream] = self

    def run(self, name):
        self.done = name, frozenset(self.before)
        self.before.add(name)
        return self.done

    def wait_event(self, event):
        self.before |= event.before


class FakeCuda:
    """As much of torch.cuda as Streams asks for."""

    def __init__(self):
        self.streams, self.kept, self.is_capturing, self.recorded = {}, [], False, 0
        self.current = FakeStream(self)

    def Stream(self):
        return FakeStream(self)

    def Event(self):
        return FakeEvent(self)

    def current_stream(self):
        return self.current

    def is_current_stream_capturing(self):
        return self.is_capturing

    def ExternalStream(self, address):
        raise AssertionError(f"the stream {address} is asked whether it is idle")

    @contextlib.contextmanager
    def stream(self, stream):
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before


class FakeEvent:
    def __init__(self, cuda):
        self.cuda, self.before = cuda, frozenset()

    def record(self, stream=None):
        self.before = frozenset((stream or self.cuda.current).before)
        self.cuda.recorded += 1

    def wait(self):
        self.cuda.current.wait_event(self)


class FakeStreams(Streams):
    def keep(self, tensors, stream):
        self._cuda.kept.append((stream, [one for one in tensors if one is not None]))

    def is_idle(self, address):
        return True


@pytest.fixture
def rig(monkeypatch):
    """(buffer, cuda, log): log has (call, what comes before it, its stream) of each call of the extension."""
    buffer, cuda, log = deep_ep.Buffer(None, comm=Alone(), explicitly_destroy=True), FakeCuda(), []
    numbers = itertools.count()
    buffer._streams = FakeStreams(torch.device("cuda", 0), cuda)
    buffer._comm_stream = buffer._streams.comm

    def logged(name, place, inner):
        def call(*arguments):
            if arguments[place] != 0:  # which the host's own look at counts has
                stream = cuda.streams[arguments[place]]
                log.append((*stream.run(f"{name} {next(numbers)}"), stream))
            return inner(*arguments[:place], 0, *arguments[place + 1:])

        return call

    for name, place in STREAM_AT.items():
        monkeypatch.setattr(_weft, name, logged(name, place, getattr(_weft, name)))
    yield buffer, cuda, log
    monkeypatch.undo()
    buffer._streams = None
    buffer.destroy()


def inputs():
    x = torch.arange(TOKENS * HIDDEN).view(TOKENS, HIDDEN).remainder(16).to(torch.bfloat16)
    ids = torch.stack([torch.tensor([i % EXPERTS, (i + 1) % EXPERTS]) for i in range(TOKENS)])
    return x, ids, torch.ones(TOKENS, TOPK)


def dispatched(buffer, **more):
    x, ids, _ = inputs()
    return buffer.low_latency_dispatch(x, ids, TOKENS, EXPERTS, use_fp8=False, **more)


def combined(buffer, got, **more):
    x, ids, weights = inputs()
    return buffer.low_latency_combine(got[0], ids, weights, got[2], **more)


def test_calls_without_a_hook(rig):
    """On the caller's stream itself, without any event, since the calls before are on it, too."""
    buffer, cuda, log = rig
    mine = cuda.current
    mine.run("mine")
    got = dispatched(buffer)
    mine.run("expert")
    summed, event, hook = combined(buffer, got)
    assert [one[2] for one in log] == [mine] * 2 and "expert" in log[1][1] and cuda.recorded == 0
    assert event.event is None and hook is None and not cuda.kept
    assert torch.equal(summed, 2 * inputs()[0])


def test_whole_calls_have_one_order(rig):
    """Of low latency, on whichever streams: after asynchronous ones, those of other streams, and what else is on the communication
    stream; also asynchronous ones after those of other streams."""
    buffer, cuda, log = rig
    mine, other = cuda.current, cuda.Stream()
    kept = [dispatched(buffer, async_finish=True), dispatched(buffer)]
    assert log[1][2] is mine and log[0][0] in log[1][1]
    with cuda.stream(other):
        kept.append(dispatched(buffer))
    assert log[2][2] is other and log[1][0] in log[2][1]
    kept.append(dispatched(buffer, async_finish=True))
    assert log[3][2] is buffer.get_comm_stream() and log[2][0] in log[3][1]
    high_throughput(buffer, async_finish=True)
    kept.append(dispatched(buffer))
    assert log[-2][2] is buffer.get_comm_stream() and log[-2][0] in log[-1][1] and log[3][0] in log[-1][1]


def test_whole_calls_of_a_graph(rig):
    """On the communication stream, which orders those of the graph's streams and is joined with them; what is outside of the graph is
    neither waited for, nor forgotten in it."""
    buffer, cuda, log = rig
    comm, one, two = buffer.get_comm_stream(), cuda.Stream(), cuda.Stream()
    kept = [dispatched(buffer)]
    cuda.is_capturing = True
    for stream in (one, two, one):
        with cuda.stream(stream):
            kept.append(dispatched(buffer))
            combined(buffer, kept[-1])
    assert {call[2] for call in log[1:]} == {comm} and log[0][0] not in log[-1][1] and log[0][0] not in one.before
    assert all(log[i][0] in log[i + 1][1] for i in range(1, 6)) and log[4][0] in two.before and log[6][0] in one.before
    cuda.is_capturing = False
    with cuda.stream(cuda.Stream()):
        kept.append(dispatched(buffer))
    assert log[7][1] == {log[0][0]}


def test_memory_that_torch_fills(rig):
    """torch would fill a call's results on the caller's stream, beside the call that writes them: DeepEP refuses, too."""
    buffer, cuda, log = rig
    got, fills = dispatched(buffer), torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    try:
        for function in (lambda: dispatched(buffer), lambda: combined(buffer, got),
                         lambda: buffer.get_dispatch_layout(inputs()[1], EXPERTS)):
            with pytest.raises(AssertionError, match="fill_uninitialized_memory"):
                function()
        torch.utils.deterministic.fill_uninitialized_memory = False
        dispatched(buffer)
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = fills
        torch.use_deterministic_algorithms(False)


def test_asynchronous_calls(rig):
    buffer, cuda, log = rig
    x, ids, weights = inputs()
    cuda.current.run("mine")
    recv, count, handle, event, hook = got = dispatched(buffer, async_finish=True)
    assert log[0][2] is buffer.get_comm_stream() and "mine" in log[0][1] and hook is None
    assert log[0][0] not in cuda.current.before
    assert any(stream is log[0][2] and any(one is recv for one in tensors) and any(one is count for one in tensors)
               for stream, tensors in cuda.kept)
    event.current_stream_wait()
    assert log[0][0] in cuda.current.before
    summed, event, _ = combined(buffer, got, async_finish=True)
    assert log[1][0] not in cuda.current.before
    with event:
        pass
    assert log[1][0] in cuda.current.before and torch.equal(summed, 2 * x)
    for call in (dispatched, lambda buffer, **more: combined(buffer, got, **more)):
        with pytest.raises(AssertionError, match="one or the other"):
            call(buffer, async_finish=True, return_recv_hook=True)


def test_hooks(rig):
    """The halves are on the stream that was current at the call, whatever is current at the hook; the counts too."""
    buffer, cuda, log = rig
    mine, other = cuda.current, cuda.Stream()
    got = dispatched(buffer, return_recv_hook=True)
    with cuda.stream(other):
        got[4]()
    summed, _, hook = combined(buffer, got, return_recv_hook=True)
    with cuda.stream(other):
        hook()
    assert [one[2] for one in log] == [mine] * 4 and torch.equal(summed, 2 * inputs()[0])
    assert not buffer.get_comm_stream().before


def test_what_is_left_of_a_half_is_on_its_stream(rig):
    """The statistics are added up on the stream of the call, whatever is current at the hook."""
    buffer, cuda, log = rig
    mine, half, whole = cuda.current, Watched(cuda), Watched(cuda)
    x, ids, _ = inputs()
    more = {"cumulative_local_expert_recv_stats": torch.zeros(EXPERTS, dtype=torch.int32), "use_fp8": False}
    hook = buffer.low_latency_dispatch(x, ids, TOKENS, EXPERTS, return_recv_hook=True, **more)[4]
    with cuda.stream(cuda.Stream()), half:
        hook()
    with whole:
        buffer.low_latency_dispatch(x, ids, TOKENS, EXPERTS, async_finish=True, **more)
    assert half.streams == {mine} and whole.streams == {buffer.get_comm_stream()}
    assert torch.equal(more["cumulative_local_expert_recv_stats"], 2 * torch.bincount(ids.flatten()).to(torch.int32))


def test_a_half_comes_after_asynchronous_calls(rig):
    buffer, cuda, log = rig
    dispatched(buffer, async_finish=True)
    cuda.is_capturing = True  # an event of outside of a graph cannot be waited for in one
    got = dispatched(buffer, return_recv_hook=True)
    assert log[0][0] not in log[1][1]
    got[4]()
    cuda.is_capturing = False
    dispatched(buffer, return_recv_hook=True)[4]()
    assert log[0][0] in log[3][1]


def high_throughput(buffer, **more):
    x, ids, weights = inputs()
    per_rank, _, per_expert, in_rank, _ = buffer.get_dispatch_layout(ids, EXPERTS)
    return buffer.dispatch(x, topk_idx=ids, topk_weights=weights, num_tokens_per_rank=per_rank, num_tokens_per_expert=per_expert,
                           is_token_in_rank=in_rank, **more)


def test_previous_event(rig):
    """Behind the event; with the memory of the communication stream behind it alone, else behind what is on the caller's stream,
    too."""
    buffer, cuda, log = rig
    comm, other = buffer.get_comm_stream(), cuda.Stream()
    for is_apart in (False, True):
        other.run(f"theirs {is_apart}")
        previous = buffer._streams._cuda.Event()
        previous.record(other)
        cuda.current.run(f"mine {is_apart}")
        log.clear()
        more = {"previous_event": EventOverlap(EventHandle(previous)), "async_finish": True, "allocate_on_comm_stream": is_apart}
        x, ids, weights = inputs()
        in_rank, per_expert = torch.ones(TOKENS, 1, dtype=torch.bool), torch.bincount(ids.flatten()).to(torch.int32)
        given = {"num_tokens_per_rank": in_rank.sum(0), "num_tokens_per_expert": per_expert, "is_token_in_rank": in_rank}
        got = buffer.dispatch(x, topk_idx=ids, topk_weights=weights, **given, **more)
        summed, _, event = buffer.combine(got[0], got[4], **more)
        assert {one[2] for one in log} == {comm} and len(log) == 4
        for call, before, _ in log:
            assert f"theirs {is_apart}" in before and (f"mine {is_apart}" in before) != is_apart, (call, before)
            assert call not in cuda.current.before
        if is_apart:
            assert f"theirs {is_apart}" not in cuda.current.before
            assert any(stream is cuda.current and any(one is got[0] for one in tensors) for stream, tensors in cuda.kept)
        event.current_stream_wait()
        assert log[-1][0] in cuda.current.before and torch.equal(summed, x)


def test_high_throughput(rig):
    buffer, cuda, log = rig
    cuda.current.run("mine")
    got = high_throughput(buffer)
    assert {one[2] for one in log} == {buffer.get_comm_stream()} and all("mine" in one[1] for one in log)
    assert all(one[0] in cuda.current.before for one in log) and torch.equal(got[0], inputs()[0])


def test_layout(rig):
    """On the communication stream, behind the event alone where the call is apart: a dispatch behind an older event than the
    layout's finds it there."""
    buffer, cuda, log = rig
    comm, ids = buffer.get_comm_stream(), inputs()[1]
    seen, buffer._layout = Watched(cuda), buffer._layout_on_gpu
    for is_apart in (False, True):
        cuda.is_capturing = not is_apart
        cuda.current.run(f"mine {is_apart}")
        previous = EventOverlap(EventHandle(FakeEvent(cuda)))
        with seen:
            given = buffer.get_dispatch_layout(ids, EXPERTS, previous_event=previous, async_finish=is_apart,
                                               allocate_on_comm_stream=is_apart)
        assert seen.streams == {comm} and "mine False" in comm.before and "mine True" not in comm.before
        assert (given[4].event is not None) == is_apart
        assert any(stream is cuda.current and any(one is given[3] for one in tensors) for stream, tensors in cuda.kept)
        assert bool(buffer._numbers) == is_apart  # what a graph fills is not for others
        cuda.is_capturing = False
    del buffer._layout


class Watched(TorchDispatchMode):
    """The streams that are current where torch computes something."""

    def __init__(self, cuda):
        super().__init__()
        self.cuda, self.streams = cuda, set()

    def __torch_dispatch__(self, function, types, arguments=(), more=None):
        if not any(name in str(function) for name in ("empty", "view", "split", "detach", "alias")):
            self.streams.add(self.cuda.current)
        return function(*arguments, **(more or {}))


class MadeOn:
    """New tensors, each with the stream that was current."""

    def __init__(self, cuda):
        self.cuda, self.made = cuda, []

    def vector(self, dtype, *shape):
        tensor = torch.empty(shape, dtype=dtype)
        self.made.append((self.cuda.current, tensor))
        return tensor

    matrix = vector


class FakeGroup:
    @staticmethod
    def size():
        return 1


class Gone:
    """What destroys an ElasticBuffer's Buffer without an end of the rig's."""

    @staticmethod
    def destroy():
        pass


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("is_apart", [False, True])
@pytest.mark.parametrize("kind", [{}, {"do_expand": True}, {"do_expand": True, "allow_multiple_reduction": False}])
def test_elastic(rig, monkeypatch, kind, is_apart, is_async):
    """All of a call of ElasticBuffer is on the communication stream: behind previous_event alone where it is apart, rows behind
    previous_event_before_epilogue, too; and the caller's stream waits unless it is asynchronous."""
    buffer, cuda, log = rig
    kind = dict(kind)
    monkeypatch.setattr(deep_ep.elastic, "Buffer", lambda *a, **more: buffer)
    elastic = deep_ep.ElasticBuffer(FakeGroup, num_max_tokens_per_rank=TOKENS, hidden=HIDDEN, num_topk=TOPK,
                                    allow_multiple_reduction=kind.pop("allow_multiple_reduction", True))
    comm, mine, other = elastic.get_comm_stream(), cuda.current, cuda.Stream()
    new = buffer._new = MadeOn(cuda)
    x, ids, weights = inputs()
    other.run("theirs")
    mine.run("mine")
    previous, late = FakeEvent(cuda), FakeEvent(cuda)
    previous.record(other)
    other.run("late")
    late.record(other)
    more = {"previous_event": EventOverlap(EventHandle(previous)), "previous_event_before_epilogue": EventHandle(late),
            "async_with_compute_stream": is_async, "allocate_on_comm_stream": is_apart}

    def check(event, results):
        assert {one[2] for one in log} == {comm} and seen.streams == {comm}
        assert all("theirs" in one[1] and ("mine" in one[1]) != is_apart for one in log) and "late" in log[-1][1]
        assert (event.event is not None) == is_async and (log[-1][0] in mine.before) != is_async
        for kept in results:
            stream = next(stream for stream, tensor in new.made if tensor is kept)
            assert stream is (comm if is_apart else mine)  # whose memory it is: the other must be through with it, too
            assert not is_apart or any(stream is mine and any(one is kept for one in tensors) for stream, tensors in cuda.kept)
            assert not is_async or any(stream is comm and any(one is kept for one in tensors) for stream, tensors in cuda.kept)
        if is_async:
            assert any(stream is comm and any(one is x for one in tensors) for stream, tensors in cuda.kept)
            event.current_stream_wait()
        assert log[-1][0] in mine.before
        cuda.kept.clear()
        log.clear()

    seen = Watched(cuda)
    with seen:
        got, got_ids, got_weights, handle, event = elastic.dispatch(x, ids, weights, num_experts=EXPERTS, **kind, **more)
    assert "late" not in log[0][1]
    moved = log[-1][0]
    check(event, (got, got_weights, handle.seen.source_rank, handle.seen.experts))
    with elastic._buffer._streams.on(cuda.Stream()):  # what nobody has looked at yet comes behind the dispatch
        assert handle.recv_src_metadata.shape == (TOKENS, 2 + TOPK) and (moved in cuda.current.before) == is_async
    mine.before -= {"mine", "theirs", "late"}  # what the caller's stream had of them is in the communication stream already
    comm.before -= {"mine", "theirs", "late"}
    mine.run("mine")
    x = got if "do_expand" not in kind else got.clone()
    with seen:
        summed, _, event = elastic.combine(x, handle, topk_weights=got_weights, **more)
    check(event, (summed,))
    assert torch.equal(summed, inputs()[0] * (TOPK if kind else 1))
    elastic._buffer = Gone


def test_a_call_that_raises(rig):
    """The memory of what it has enqueued is dropped with it, so the caller's stream comes behind that, asynchronous or not."""
    buffer, cuda, _ = rig
    mine = cuda.current
    for is_apart in (False, True):
        with pytest.raises(RuntimeError, match="late"), Call(buffer._streams, None, is_apart):
            buffer.get_comm_stream().run(f"rows {is_apart}")
            raise RuntimeError("a rank is late")
        assert cuda.current is mine and f"rows {is_apart}" in mine.before


def test_what_handles_keep():
    """A route is taken again when its handle is gone, but the tensors that a program has of it are not."""
    buffer = deep_ep.Buffer(None, comm=Alone(), explicitly_destroy=True)
    x, ids, weights = inputs()
    got = dispatched(buffer)
    route, source = got[2].route, got[2][0]
    was = source.clone()
    del got
    again = buffer.low_latency_dispatch(x, ids.flip(0), TOKENS, EXPERTS, use_fp8=False)
    assert again[2].route is route and torch.equal(source, was) and again[2][0].data_ptr() != source.data_ptr()
    third = dispatched(buffer)
    assert third[2].route is not route
    assert torch.equal(combined(buffer, third)[0], 2 * x)
    wider = buffer.low_latency_dispatch(x, ids, 4 * TOKENS, EXPERTS, use_fp8=False)  # a larger group
    assert torch.equal(combined(buffer, third)[0], 2 * x) and torch.equal(combined(buffer, wider)[0], 2 * x)
    with pytest.raises(ValueError, match="5 tokens"):
        buffer.low_latency_dispatch(x, ids[:5], TOKENS, EXPERTS)
    with pytest.raises(TypeError, match="topk_idx"):
        buffer.low_latency_dispatch(x, ids.to(torch.int16), TOKENS, EXPERTS)
    with pytest.raises(TypeError, match="rows of int32"):
        buffer.low_latency_dispatch(x.to(torch.int32), ids, TOKENS, EXPERTS)
    for wrong in ({"x": third[0][:, 1:]}, {"topk_weights": weights.double()}, {"topk_idx": ids[1:]}, {"topk_idx": ids.to(torch.int16)},
                  {"out": x[1:]}, {"out": x.float()}):
        with pytest.raises(ValueError, match="x is|topk_idx is|out is"):
            buffer.low_latency_combine(**{"x": third[0], "topk_idx": ids, "topk_weights": weights, "handle": third[2], **wrong})
    assert torch.equal(buffer.low_latency_combine(third[0], ids.to(torch.int32), weights, third[2], out=torch.empty_like(x))[0], 2 * x)
    handle = third[2]
    buffer.destroy()
    with pytest.raises((RuntimeError, ValueError)):
        buffer.low_latency_combine(third[0], ids, weights, handle)


def test_routes_of_two_streams(rig):
    """Calls on the communication stream and on the caller's have routes of their own, and leave each other's alone."""
    buffer, cuda, _ = rig
    kept = [dispatched(buffer, async_finish=True), dispatched(buffer)]
    routes = [got[2].route for got in kept]
    del kept
    buffer._streams.is_idle = cuda.ExternalStream  # fails
    for _ in range(2):
        assert [dispatched(buffer, async_finish=is_async)[2].route for is_async in (True, False)] == routes


def test_default_device():
    """Results are where what was given is, whatever torch's default device."""
    buffer = deep_ep.Buffer(None, comm=Alone(), explicitly_destroy=True)
    x, ids, weights = inputs()
    torch.set_default_device("meta")
    try:
        per_rank, _, per_expert, in_rank, _ = buffer.get_dispatch_layout(ids, EXPERTS)
        got = buffer.dispatch(x, topk_idx=ids, topk_weights=weights, num_tokens_per_rank=per_rank, num_tokens_per_expert=per_expert,
                              is_token_in_rank=in_rank)
        low = buffer.low_latency_dispatch(x, ids, TOKENS, EXPERTS)
        made = [in_rank, *got[:3], *got[4], buffer.combine(got[0], got[4])[0], *low[0], low[1], *low[2][:2]]
        low = buffer.low_latency_dispatch(x, ids, TOKENS, EXPERTS, use_fp8=False)
        made.append(buffer.low_latency_combine(low[0], ids, weights, low[2])[0])
        with pytest.raises(TypeError, match="topk_idx is on meta"):
            buffer.get_dispatch_layout(ids.to("meta"), EXPERTS)
    finally:
        torch.set_default_device(None)
    assert {one.device.type for one in made} == {"cpu"} and torch.equal(made[-1], 2 * x)
    buffer.destroy()


@pytest.mark.parametrize("use_fp8", [False, True])
def test_a_hook_keeps_what_it_writes(use_fp8):
    """A program may drop what a half gave it before the hook, which receives into that."""
    buffer = deep_ep.Buffer(None, comm=Alone(), explicitly_destroy=True)
    x, ids, weights = inputs()
    given, count, handle, _, hook = buffer.low_latency_dispatch(x, ids, TOKENS, EXPERTS, use_fp8=use_fp8, return_recv_hook=True)
    written = [weakref.ref(one) for one in (*(given if use_fp8 else (given,)), count)]
    del given, count, handle
    assert all(one() is not None for one in written)
    hook()
    rows, _, handle, *_ = buffer.low_latency_dispatch(x, ids, TOKENS, EXPERTS, use_fp8=False)
    out, _, hook = buffer.low_latency_combine(rows, ids, weights, handle, return_recv_hook=True)
    written = [weakref.ref(one) for one in (out, rows)]
    del out, rows, handle
    assert all(one() is not None for one in written)
    hook()
    buffer.destroy()


@pytest.mark.skipif(not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), reason="this torch has no exchange functions")
def test_calls_that_are_like_earlier_ones():
    """What is right and packed is seen so without a look at attributes; what is not is made so, or named, after as before it."""
    buffer = deep_ep.Buffer(None, comm=Alone(), explicitly_destroy=True)
    x, ids, weights = inputs()
    first = dispatched(buffer)
    buffer._plan = first[2].held.plan.check_results = None  # whose calls would fail
    for tokens in (TOKENS, 1, 0):
        got = buffer.low_latency_dispatch(x[:tokens], ids[:tokens], TOKENS, EXPERTS, use_fp8=False)
        for more in ({}, {"out": torch.empty_like(x[:tokens])}, {"topk_idx": ids[:tokens].to(torch.int32)}):
            given = {"topk_idx": ids[:tokens], "topk_weights": weights[:tokens], "handle": got[2], **more}
            assert torch.equal(buffer.low_latency_combine(got[0], **given)[0], 2 * x[:tokens])
    del buffer._plan, first[2].held.plan.check_results
    for one in (torch.nn.Parameter(x), x.t().contiguous().t(), x.repeat_interleave(2, 1)[:, ::2]):
        with torch.no_grad():
            got = buffer.low_latency_dispatch(one, ids.t().contiguous().t(), TOKENS, EXPERTS, use_fp8=False)
            rows = got[0].transpose(1, 2).contiguous().transpose(1, 2)
            summed = buffer.low_latency_combine(rows, ids.t().contiguous().t(), weights.t().contiguous().t(), got[2])[0]
        assert torch.equal(got[1], first[1]) and torch.equal(summed, 2 * x)
    with pytest.raises(ValueError, match="5 tokens"):
        buffer.low_latency_dispatch(x, ids[:5], TOKENS, EXPERTS, use_fp8=False)
    with pytest.raises(TypeError, match="topk_idx"):
        buffer.low_latency_dispatch(x, ids.to(torch.int16), TOKENS, EXPERTS, use_fp8=False)
    buffer.destroy()

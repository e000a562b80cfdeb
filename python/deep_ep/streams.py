"""The streams of a Buffer's calls on a GPU, and the order among them, by events that are made once."""

import contextlib

import torch

from deep_ep.events import EventHandle, EventOverlap, after, has_event
from deep_ep.utils.envs import check_torch_deterministic, is_deterministic

_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_set_stream = getattr(torch._C, "_cuda_setStream", None)
_nowhere_else = contextlib.nullcontext()
_is_captured = getattr(torch._C, "_cuda_isCurrentStreamCapturing", torch.cuda.is_current_stream_capturing)


class Streams:
    """`comm` is the communication stream. Calls run on it after what is on the caller's stream, which waits for them unless they
    are asynchronous. Calls of low latency that are not run on the caller's stream itself, where they come after what `comm` had:
    their places among other work are the same, for half of the host's time. In a graph, where that does not count, only halves do."""

    def __init__(self, device, cuda=torch.cuda):
        self._cuda, self._index = cuda, device.index
        self.comm = cuda.Stream()
        self._before, self._behind = cuda.Event(), cuda.Event()
        #: whether the caller's stream is being captured
        self.is_captured = _is_captured if cuda is torch.cuda else cuda.is_current_stream_capturing
        self._raw_stream = _raw_stream if cuda is torch.cuda else None
        self._objects = {}  # of streams, by address: to make one takes longer than to use it
        self._ahead = None  # whether calls of low latency on `comm` that no stream has waited for were captured; None: there are none
        self._is_busy = False  # other calls on `comm` are asynchronous
        self._last = self.comm  # the stream of the last call of low latency that was not captured

    def here(self):
        """The caller's stream."""
        if self._raw_stream is None:
            return self._cuda.current_stream()
        address = self._raw_stream(self._index)
        found = self._objects.get(address)
        if found is None:
            found = self._objects[address] = self._cuda.current_stream()
        return found

    def join(self):
        """What is put on `comm` from now on comes after what is on the caller's stream, which is returned."""
        here = self.here()
        if here.cuda_stream != self.comm.cuda_stream:
            self._before.record(here)
            self.comm.wait_event(self._before)
        return here

    def wait(self, here):
        """The caller's stream waits for `comm`."""
        self._behind.record(self.comm)
        here.wait_event(self._behind)
        is_captured = self.is_captured()
        if self._ahead is is_captured:
            self._ahead = None
        self._is_busy = self._is_busy and is_captured

    def begin(self, is_half, is_async):
        """(the stream of a call of low latency, the caller's if it has to wait for that, whether it is captured). The group's calls
        have one order: a half comes after asynchronous ones that its stream has not waited for; a whole call after all of low latency,
        of other streams, too, and on the caller's stream after what `comm` still has. Of a graph and what is outside of it, only the
        caller knows."""
        if is_deterministic():
            check_torch_deterministic()
        here, is_captured = self.here(), self.is_captured()
        is_apart = is_async or (is_captured and not is_half)
        if is_apart:
            self.join()
            self._ahead = is_captured if is_async else self._ahead
        elif self._ahead is is_captured or (self._is_busy and not is_half):
            self.wait(here)
        stream = self.comm if is_apart else here
        if not is_captured:
            last = self._last
            if last is not here and last is not self.comm and not is_half:
                self._before.record(last)
                stream.wait_event(self._before)
            self._last = stream
        return stream, here if is_apart and not is_async else None, is_captured

    def run_beside(self):
        """A call of high throughput is on `comm`, and the caller's stream has not waited for it."""
        self._is_busy = self._is_busy or not self.is_captured()

    def is_idle(self, address):
        """Whether the stream of that address has nothing more to do."""
        return self._cuda.ExternalStream(address).query()

    def event(self):
        """A new event: what is on `comm` now."""
        event = self._cuda.Event()
        event.record(self.comm)
        return event

    def keep(self, tensors, stream):
        """The tensors' memory is not used again before what is on the stream now has ended."""
        for tensor in tensors:
            if tensor is not None:
                tensor.record_stream(stream)

    def on(self, stream, instead_of=None):
        """A context in which `stream` is current, and `instead_of` before and after, where the caller knows."""
        if instead_of is None or _set_stream is None or self._cuda is not torch.cuda or torch.cuda.current_device() != self._index:
            return self._cuda.stream(stream)
        return _Switched(stream, instead_of)


class _Switched:
    """torch.cuda.stream() of two streams of the current device, which need not be looked for: a sixth of its time."""

    def __init__(self, inside, outside):
        self._inside, self._outside = inside, outside

    def __enter__(self):
        stream = self._inside
        _set_stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)

    def __exit__(self, *raised):
        stream = self._outside
        _set_stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


class Call:
    """A context in which the communication stream is behind what is on the caller's stream, which waits for `previous_event`. The
    caller's stream is current, so that memory is its, and what torch computes is done inside of work(). is_apart: the communication
    stream is current, and so is its memory, and where there is an event it comes behind it alone. `streams` None, in CPU memory: the
    event is waited for."""

    _current = None

    def __init__(self, streams, previous_event, is_apart):
        self._streams, self._event, self._is_apart = streams, previous_event, is_apart

    def __enter__(self):
        streams = self._streams
        if streams is None:
            after(self._event)
            return self
        check_torch_deterministic()
        self._caller = streams.here()
        if not self._is_apart:
            after(self._event)
            streams.join()
            return self
        is_alone = has_event(self._event)
        if not is_alone:
            streams.join()
        self._current = streams.on(streams.comm, self._caller)
        self._current.__enter__()
        if is_alone:
            after(self._event)
        return self

    def __exit__(self, *raised):
        if self._current is not None:
            self._current.__exit__(*raised)
        if raised[0] is not None and self._streams is not None:
            self._streams.wait(self._caller)  # what was enqueued uses memory that is dropped now

    def work(self):
        """A context in which the communication stream is current. What is made inside is its memory."""
        if self._streams is None or self._is_apart:
            return _nowhere_else
        return self._streams.on(self._streams.comm, self._caller)

    def packed(self, tensor):
        """It, or None, or a packed copy of the communication stream's."""
        if tensor is None or tensor.is_contiguous():
            return tensor
        with self.work():
            return tensor.contiguous()

    def come_after(self, event):
        """The communication stream waits for the event, if there is one."""
        if has_event(event):
            with self.work():
                after(event)

    def end(self, is_async, given, results, is_of_work=True):
        """Its event, and the caller's stream waits unless it is asynchronous. The memory of what was given, and of results, is not
        used again before both streams are through with it. is_of_work: some results were made inside of work()."""
        tensors = *given, *results
        if self._streams is None:
            return EventOverlap(EventHandle(), tensors) if is_async else EventOverlap(None)
        if self._is_apart or is_of_work:
            self._streams.keep(results, self._caller)
        if not is_async:
            self._streams.wait(self._caller)
            return EventOverlap(None)
        self._streams.run_beside()
        self._streams.keep(tensors, self._streams.comm)
        return EventOverlap(EventHandle(self._streams.event()), tensors)

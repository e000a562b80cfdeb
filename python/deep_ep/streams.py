"""The streams of a Buffer's calls on a GPU, and the order among them, by events that are made once."""

import torch

_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)


class Streams:
    """`comm` is the communication stream. Calls run on it after what is on the caller's stream, which waits for them unless they
    are asynchronous; halves of low latency run on the caller's stream itself."""

    def __init__(self, device, cuda=torch.cuda):
        self._cuda, self._index = cuda, device.index
        self.comm = cuda.Stream()
        self._before, self._behind = cuda.Event(), cuda.Event()
        self._objects = {}  # of streams, by address: to make one takes longer than to use it
        self._ahead = None  # whether calls on `comm` that the caller's stream has not waited for were captured; None: there are none

    def here(self):
        """The caller's stream."""
        if _raw_stream is None or self._cuda is not torch.cuda:
            return self._cuda.current_stream()
        address = _raw_stream(self._index)
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
        self._ahead = None

    def begin(self, is_half):
        """(the stream of a call of low latency, the caller's): the group's calls have one order, so a half comes after
        asynchronous calls that its stream has not waited for. Of a graph and what is outside of it, only the caller knows."""
        if not is_half:
            return self.comm, self.join()
        here = self.here()
        if self._ahead is not None and self._ahead == self.is_captured():
            self.wait(here)
        return here, here

    def run_ahead(self):
        """An asynchronous call of low latency is on `comm`."""
        self._ahead = self.is_captured()

    def is_captured(self):
        """Whether the caller's stream is being captured."""
        return self._cuda.is_current_stream_capturing()

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

    def on(self, stream):
        """A context in which `stream` is current."""
        return self._cuda.stream(stream)

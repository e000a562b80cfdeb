"""Events of a stream, and what a caller may wait for. On the CPU calls are complete when they return."""

import torch


class EventHandle:
    """The work that is on the current stream now."""

    def __init__(self):
        self._event = torch.cuda.Event() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
        if self._event is not None:
            self._event.record()

    def current_stream_wait(self):
        if self._event is not None:
            torch.cuda.current_stream().wait_event(self._event)


class EventOverlap:
    """An event, or none, and the tensors that its work uses, which stay until this is released. As a context manager the
    current stream waits for the event at its end."""

    def __init__(self, event=None, extra_tensors=None):
        self.event = event
        self.extra_tensors = extra_tensors

    def current_stream_wait(self):
        assert self.event is not None
        self.event.current_stream_wait()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.event is not None:
            self.event.current_stream_wait()

"""Events of a stream, and what a caller may wait for. On the CPU calls are complete when they return."""

import torch


class EventHandle:
    """The work that is on the current stream now."""

    def __init__(self, event=None):
        """event: a torch.cuda.Event that has been recorded, whose work this then is."""
        self._event = event
        if event is None and torch.cuda.is_available() and torch.cuda.is_initialized():
            self._event = torch.cuda.Event()
            self._event.record()

    def current_stream_wait(self):
        if self._event is not None:
            self._event.wait()


class EventOverlap:
    """An event, or none, and the tensors that its work uses, which stay until this is released. As a context manager the
    current stream waits for the event at its end: `with event:`, or `with event(release_handle=True):`, which then drops the
    event."""

    event = extra_tensors = hook_after_wait = None
    _is_dropped = False

    def __init__(self, event=None, extra_tensors=None):
        self.event = event
        self.extra_tensors = extra_tensors

    def __call__(self, release_handle=False):
        self._is_dropped = release_handle
        return self

    def current_stream_wait(self, release_handle=False):
        """The current stream waits for the event. Then the hook is called, if one is registered, once; returns what it does. The event
        is then that of the hook's work, so that a stream that waits later has it, too. A hook that raises is called by the next wait
        again."""
        assert self.event is not None, "there is no event: the call was not asynchronous"
        self.event.current_stream_wait()
        result, hook = None, self.hook_after_wait
        if hook is not None:
            result = hook()
            self.hook_after_wait, self.event = None, EventHandle()
        if release_handle:
            self.event = None
        return result

    def wait(self):
        return self.current_stream_wait()

    def register_hook_after_wait(self, hook_after_wait):
        assert self.hook_after_wait is None, "there is a hook already"
        self.hook_after_wait = hook_after_wait

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        is_dropped, self._is_dropped = self._is_dropped, False
        if self.event is not None:
            self.current_stream_wait(is_dropped)


def has_event(previous):
    """Whether it names one: an EventOverlap, an EventHandle or None."""
    return getattr(previous, "event", previous) is not None


def after(*events):
    """The current stream waits for these, EventOverlaps, EventHandles or None, of whatever streams."""
    for one in events:
        if has_event(one):
            getattr(one, "event", one).current_stream_wait()

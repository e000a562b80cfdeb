"""The events, by the name under which DeepEP 2.x has them."""

from deep_ep.events import EventHandle, EventOverlap

__all__ = ["EventHandle", "EventOverlap"]

"""Buffer, by the name under which DeepEP 2.x has it."""

from deep_ep.buffer import Buffer, Config
from deep_ep.events import EventHandle, EventOverlap

__all__ = ["Buffer", "Config", "EventHandle", "EventOverlap"]

"""ElasticBuffer, by the name under which DeepEP 2.x has it."""

from deep_ep.elastic import ElasticBuffer, EPHandle
from deep_ep.events import EventHandle, EventOverlap

__all__ = ["ElasticBuffer", "EPHandle", "EventHandle", "EventOverlap"]

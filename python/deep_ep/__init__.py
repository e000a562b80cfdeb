"""DeepEP's interface (Buffer as in 1.2.1; ElasticBuffer as in 2.x) on weft, for programs as they are; docs/deep-ep.md says what
differs.

Ranks are those of a torch process group, of any number, in CPU memory (gloo) or on GPUs (nccl). A call that this package
does not have raises an exception that names it.
"""

import torch

from deep_ep.buffer import Buffer, Config
from deep_ep.elastic import ElasticBuffer, EPHandle
from deep_ep.events import EventHandle, EventOverlap
from deep_ep.utils.envs import get_logical_domain_size, get_physical_domain_size

__version__ = "2.1.0"
topk_idx_t = torch.int64
__path__ = __import__("pkgutil").extend_path(__path__, __name__)
__all__ = ["Buffer", "Config", "ElasticBuffer", "EPHandle", "EventHandle", "EventOverlap", "get_logical_domain_size",
           "get_physical_domain_size", "topk_idx_t"]


def __getattr__(name):
    if name == "HybridEPBuffer":
        raise AttributeError(f"deep_ep.{name} is not there: weft's deep_ep has Buffer and ElasticBuffer")
    raise AttributeError(f"module 'deep_ep' has no attribute '{name}'")

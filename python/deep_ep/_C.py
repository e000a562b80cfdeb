"""What programs take from DeepEP's extension."""

import torch

from deep_ep.buffer import Buffer as _Buffer
from deep_ep.buffer import Config
from deep_ep.events import EventHandle

topk_idx_t = torch.int64
__all__ = ["Config", "EventHandle", "get_elastic_buffer_alignment", "get_low_latency_rdma_size_hint", "is_sm90_compiled",
           "topk_idx_t"]
get_low_latency_rdma_size_hint = _Buffer.get_low_latency_rdma_size_hint


def is_sm90_compiled():
    return True


def get_elastic_buffer_alignment():
    """Bytes of which ElasticBuffer's sizes are multiples."""
    return 1 << 21

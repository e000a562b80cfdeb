"""What programs take from DeepEP's extension."""

import torch

from deep_ep.buffer import Config
from deep_ep.events import EventHandle

topk_idx_t = torch.int64
__all__ = ["Config", "EventHandle", "topk_idx_t"]


def is_sm90_compiled():
    return True

"""New tensors of torch, as its compiled code makes them: torch.empty takes longer."""

import torch

_guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
_empty_strided = {name: getattr(_guards, f"_empty_strided_{name}", None) for name in ("cpu", "cuda")}
_current_gpu = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)


class Memory:
    """Of one device, on the current stream."""

    __slots__ = ("_device", "_gpu", "_take")

    def __init__(self, device):
        self._device, self._take = device, _empty_strided.get(device.type)
        self._gpu = device.index if device.type == "cuda" else -1

    def vector(self, dtype, count):
        """A tensor [count], not set to anything."""
        if self._take is None or (self._gpu >= 0 and _current_gpu() != self._gpu):
            return torch.empty(count, dtype=dtype, device=self._device)
        return self._take((count,), (1,), dtype)

    def matrix(self, dtype, count, width):
        """A tensor [count][width], not set to anything."""
        if self._take is None or (self._gpu >= 0 and _current_gpu() != self._gpu):
            return torch.empty((count, width), dtype=dtype, device=self._device)
        return self._take((count, width), (width, 1), dtype)

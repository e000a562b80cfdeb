"""Arithmetic that programs of DeepEP import: rounding up, fp8 with a scale for 128 elements, comparisons."""

import torch

GROUP = 128  # elements of a scale
FP8_MAX = torch.finfo(torch.float8_e4m3fn).max


def ceil_div(x, y):
    return -(-x // y)


def align(x, y):
    """x rounded up to a multiple of y."""
    return ceil_div(x, y) * y


def safe_div(a, b):
    """a / b; 0 where both are 0."""
    return 0 if a == 0 and b == 0 else a / b


def calc_diff(x, y):
    """How far apart two tensors are: 0 alike, 1 as far as can be; of both with 1 added."""
    a, b = (one.double().flatten() + 1 for one in (x, y))
    return 1 - (2 * torch.dot(a, b) / (torch.dot(a, a) + torch.dot(b, b))).item()


def _grouped(x):
    """[m][n] -> [m][ceil(n / 128)][128], the last filled with zeros."""
    rows, width = x.shape
    if width % GROUP:
        wide = x.new_zeros(rows, align(width, GROUP))
        wide[:, :width] = x
        x = wide
    return x.reshape(rows, -1, GROUP)


def per_token_cast_to_fp8(x):
    """x [m][n] -> (fp8 [m][n], scales [m][ceil(n / 128)] float32)."""
    groups = _grouped(x).float()
    most = groups.abs().amax(2).clamp(min=1e-4)
    made = (groups * (FP8_MAX / most).unsqueeze(2)).to(torch.float8_e4m3fn)
    return made.reshape(x.shape[0], -1)[:, :x.shape[1]].contiguous(), most / FP8_MAX


def per_token_cast_back(x_fp8, x_scales):
    """Of these, bf16 [m][n]. Scales of int32 are four powers of two each, as ue8m0; as many for each row, in any shape."""
    rows, width = x_fp8.shape
    if x_fp8.numel() == 0:
        return torch.empty(rows, width, dtype=torch.bfloat16, device=x_fp8.device)
    if x_scales.dtype == torch.int32:
        exponents = x_scales.reshape(-1).view(torch.uint8).to(torch.int32)
        x_scales = (exponents << 23).view(torch.float32)
    groups = _grouped(x_fp8.to(torch.float32))
    wide = groups * x_scales.reshape(rows, -1)[:, :groups.shape[1]].unsqueeze(2)
    return wide.reshape(rows, -1)[:, :width].to(torch.bfloat16).contiguous()


def inplace_unique(x, num_slots):
    """Each row of x [m][n], numbers 0 .. num_slots - 1 and -1, becomes those that it has, once each, the most frequent kept
    where they are more than n; descending; then -1."""
    rows, width = x.shape
    counts = x.new_zeros(rows, num_slots + 1)
    counts.scatter_add_(1, torch.where(x < 0, num_slots, x), torch.ones_like(x))
    often, slot = counts[:, :num_slots].sort(1, descending=True)
    kept = torch.where(often > 0, slot, -1)[:, :width].to(x.dtype)
    x.fill_(-1)
    x[:, :kept.shape[1]] = kept.sort(1, descending=True).values


def create_grouped_scores(scores, group_idx, num_groups):
    """scores [m][experts], 0 but for the experts of the groups in group_idx [m][..]."""
    chosen = scores.new_zeros(scores.shape[0], num_groups).scatter_(1, group_idx, 1.0)
    return scores * chosen.repeat_interleave(scores.shape[1] // num_groups, 1)


def hash_tensor(t):
    """The sum of a tensor's words of 4 bytes, or bytes, as integers."""
    words = t.contiguous().flatten().view(torch.int32 if t.element_size() == 4 else torch.uint8)
    return int(words.sum())


def _leaves(things):
    for one in things:
        if isinstance(one, (tuple, list)):
            yield from _leaves(one)
        elif isinstance(one, torch.Tensor):
            yield one


def hash_tensors(*tensors):
    """The exclusive or of the hashes of all tensors, also of those in tuples."""
    value = 0
    for one in _leaves(tensors):
        value ^= hash_tensor(one)
    return value


def count_bytes(*tensors):
    """The bytes of all tensors, also of those in tuples."""
    return sum(one.numel() * one.element_size() for one in _leaves(tensors))

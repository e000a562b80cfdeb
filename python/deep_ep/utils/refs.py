"""What dispatch and combine have to give, computed with torch and its process group alone. Collective calls use the default
group; sums are float32, in ascending choice, rounded where a rank's partial is."""

import torch
import torch.distributed as dist

from deep_ep.utils.envs import get_global_seed


def _gathered(mine, most):
    """[R][most][..] of all ranks' [T][..], filled up with zeros. Collective."""
    whole = mine.new_zeros(most, *mine.shape[1:])
    whole[:mine.shape[0]] = mine
    raw = whole.view(torch.uint8)
    parts = [torch.empty_like(raw) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, raw)
    return torch.stack(parts).view(mine.dtype)


def dispatch(x, topk_idx, topk_weights, num_max_tokens_per_rank, num_experts):
    """x [T][H], or (data, scales); topk_idx [T][K], -1 for none; topk_weights [T][K] or None. Returns what comes to this rank,
    ordered by (source rank, token): (x, ids of local experts or -1, weights, source rank * num_max_tokens_per_rank + token
    [N] int32, tokens from each rank [R] int32). Collective."""
    most, me = num_max_tokens_per_rank, dist.get_rank()
    if topk_idx.shape[0] > most:
        raise ValueError(f"{topk_idx.shape[0]} tokens are more than num_max_tokens_per_rank, {most}")
    local = num_experts // dist.get_world_size()
    ids = _gathered(topk_idx + 1, most) - 1 - me * local  # filled up with -1
    ids = torch.where((ids >= 0) & (ids < local), ids, -1)
    comes = (ids >= 0).any(2)

    def of(tensor):
        return None if tensor is None else _gathered(tensor.contiguous(), most)[comes]

    rows = tuple(of(one) for one in x) if isinstance(x, tuple) else of(x)
    source = comes.flatten().nonzero().flatten().to(torch.int32)
    return rows, ids[comes].to(topk_idx.dtype), of(topk_weights), source, comes.sum(1).to(torch.int32)


def generate_pre_combine_data(src_token_global_idx, num_max_tokens_per_rank, num_topk, hidden):
    """[N][num_topk][hidden] bf16, within -1 .. 1: of a token and a choice always the same, with the same global seed."""
    device = src_token_global_idx.device
    choice = src_token_global_idx.long().unsqueeze(1) * num_topk + torch.arange(num_topk, device=device)
    phase = ((choice + 1) * 40503 % 65536).to(torch.float32) / 65536
    column = torch.arange(1, hidden + 1, device=device, dtype=torch.float32)
    return torch.sin(phase.unsqueeze(2) * column + float(get_global_seed() % 1024)).to(torch.bfloat16)


def ordered_accumulate(data, initial_value=None):
    """data [N][K][H] -> [N][H]: initial_value, float32, or 0, and then each of K in order."""
    total = torch.zeros_like(data[:, 0], dtype=torch.float32) if initial_value is None else initial_value.to(torch.float32)
    for one in data.unbind(1):
        total = total + one.to(torch.float32)
    return total.to(data.dtype)


def _reduced(y, group):
    """y [T][K][H], group [T][K]: the choices of a token in one group become their sum where the last of them is, and 0 before."""
    out = torch.zeros_like(y)
    for k in range(y.shape[1]):
        same = group == group[:, k:k + 1]
        total = ordered_accumulate(torch.where(same[:, :k + 1].unsqueeze(2), y[:, :k + 1], 0))
        out[:, k] = torch.where(same[:, k + 1:].any(1, keepdim=True), 0, total)
    return out


def combine(y, topk_idx, num_scaleout_ranks, num_scaleup_ranks, num_experts, bias, reduce_in_local, reduce_in_scaleup):
    """y [T][K][H], the results of a token's choices -> [T][H]: added up by rank (reduce_in_local), by domain
    (reduce_in_scaleup), and then, behind the biases, in ascending choice."""
    if reduce_in_scaleup and not reduce_in_local:
        raise ValueError("reduce_in_scaleup needs reduce_in_local")
    experts = num_experts // (num_scaleout_ranks * num_scaleup_ranks)
    if reduce_in_local:
        y = _reduced(y, topk_idx // experts)
    if reduce_in_scaleup:
        y = _reduced(y, topk_idx // (experts * num_scaleup_ranks))
    biases = bias if isinstance(bias, tuple) else (bias,)
    first = None
    for one in biases:
        if one is not None:
            first = one.to(torch.float32) if first is None else first + one.to(torch.float32)
    return ordered_accumulate(y, first)

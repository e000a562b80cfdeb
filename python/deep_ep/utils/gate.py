"""Scores of experts that send one rank more tokens than the others, for tests and timings."""

import torch

CHOSEN = 0.9  # scores above are those of chosen experts
STEPS = 20  # of the search for a factor


def get_unbalanced_scores(num_tokens, num_experts, num_ranks, num_topk, ratio, precise):
    """[num_tokens][num_experts] float32 in memory of the GPU, or the CPU where there is none: of the tokens that go to a rank by
    the num_topk highest scores, rank 0 has `ratio` times those of another. With `precise` the other ranks have equally many, and
    tokens go to fewer ranks than by chance; without it scores are random, those of rank 0's experts higher."""
    if ratio < 1:
        raise ValueError(f"ratio is {ratio}; it is at least 1")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    shape = (num_tokens, num_ranks, num_experts // num_ranks)
    if num_ranks == 1:
        scores = _uniform(shape, device)
    elif precise:
        scores = _precise(shape, num_topk, ratio, device)
    else:
        scores = _random(shape, _factor(shape, num_topk, ratio, device) if ratio > 1 else 1, device)
    return scores.reshape(num_tokens, num_experts)


def _uniform(shape, device):
    return torch.rand(shape, dtype=torch.float32, device=device)


def _ranks_of(scores, topk):
    """[T][R]: whether a token goes to a rank."""
    tokens, ranks, experts = scores.shape
    chosen = scores.reshape(tokens, -1).topk(topk, dim=1).indices // experts
    return torch.zeros(tokens, ranks, dtype=torch.bool, device=scores.device).scatter_(1, chosen, True)


# ---- by chance ----


def _random(shape, factor, device):
    scores = _uniform(shape, device)
    scores[:, 0] *= factor
    return scores


def _factor(shape, topk, ratio, device):
    """By which rank 0's scores have to be higher."""
    low, high = 1.0, 100.0
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        many = _ranks_of(_random(shape, middle, device), topk).sum(0).tolist()
        if many[0] * (len(many) - 1) > ratio * sum(many[1:]):
            high = middle
        else:
            low = middle
    return low


# ---- exactly ----


def _precise(shape, topk, ratio, device):
    """Each token gets a number of ranks, rank 0 its share of the tokens, and the others what is left in turn."""
    tokens, ranks, experts = shape
    least, most = -(-topk // experts), min(topk, ranks, int((ranks - 1) / ratio) + 1)
    if least > most:
        raise ValueError(f"{topk} choices among {experts} experts a rank and {ranks} ranks cannot be {ratio} to 1")
    width = _ranks_of(_uniform(shape, device), topk).sum(1).clamp(least, most)
    first = min(round(ratio * int(width.sum()) / (ratio + ranks - 1)), tokens)
    chance = torch.rand(tokens, device=device) + (width == ranks)  # who goes everywhere goes to rank 0
    to_first = torch.zeros(tokens, dtype=torch.bool, device=device)
    to_first[chance.topk(first).indices] = True
    to_first |= width == ranks
    others = torch.randperm(ranks - 1, device=device) + 1
    begins = torch.cumsum(width - to_first.long(), 0) - (width - to_first.long())
    column = torch.arange(topk, device=device) % width.unsqueeze(1)  # which of a token's ranks a choice goes to
    turn = begins.unsqueeze(1) + column - to_first.long().unsqueeze(1)
    rank = torch.where(to_first.unsqueeze(1) & (column == 0), 0, others[turn % (ranks - 1)])
    many = torch.zeros(tokens, ranks, dtype=torch.int64, device=device).scatter_add_(1, rank, torch.ones_like(rank))
    order = _uniform(shape, device).argsort(2)  # which of a rank's experts: the first so many of a random order
    chosen = order < many.unsqueeze(2)
    return torch.where(chosen, CHOSEN + 0.001 + 0.099 * _uniform(shape, device), CHOSEN * _uniform(shape, device))

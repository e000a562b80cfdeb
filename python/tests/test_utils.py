"""deep_ep.utils: what programs import from there, on small cases whose results are known."""

import pytest

torch = pytest.importorskip("torch")

from deep_ep.utils import envs, math, testing  # noqa: E402


def test_math():
    assert math.ceil_div(7, 3) == 3 and math.align(7, 4) == 8 and math.align(8, 4) == 8
    assert math.safe_div(0, 0) == 0 and math.safe_div(6, 3) == 2
    x = torch.randn(5, 300)
    assert math.calc_diff(x, x) < 1e-12 and math.calc_diff(x, -x) > 0.1
    fp8, scales = math.per_token_cast_to_fp8(x)
    assert fp8.shape == x.shape and fp8.dtype == torch.float8_e4m3fn and scales.shape == (5, 3)
    back = math.per_token_cast_back(fp8, scales)
    assert back.dtype == torch.bfloat16 and torch.allclose(back.float(), x, rtol=0.08, atol=0.02)
    ones = torch.full((5, 1), 0x7f7f7f7f, dtype=torch.int32)  # four scales of 2 ** 0
    assert torch.equal(math.per_token_cast_back(fp8, ones).float(), fp8.float())
    assert math.per_token_cast_back(fp8[:0], scales[:0]).shape == (0, 300)


def test_choices():
    x = torch.tensor([[3, 3, -1, 0], [2, 1, 1, 2], [-1, -1, -1, -1]])
    math.inplace_unique(x, 4)
    assert x.tolist() == [[3, 0, -1, -1], [2, 1, -1, -1], [-1, -1, -1, -1]]
    scores = torch.arange(1, 9).float().reshape(1, 8)
    assert math.create_grouped_scores(scores, torch.tensor([[1, 3]]), 4).tolist() == [[0, 0, 3, 4, 0, 0, 7, 8]]


def test_hashes():
    a, b = torch.arange(6, dtype=torch.int32), torch.tensor([1, 2, 3], dtype=torch.int64)
    assert math.hash_tensor(a) == 15 and math.hash_tensors(a, None, (b, [a])) == math.hash_tensor(b)
    assert math.count_bytes(a, (b, None)) == 24 + 24


def test_sizes():
    assert [testing.parse_num_bytes(one) for one in ("1G", "64M", "512k", "1048576", "1.5KiB")] == [
        1 << 30, 64 << 20, 512 << 10, 1 << 20, 1536]
    for wrong in ("", "-1", "x", "1Q"):
        with pytest.raises(ValueError, match="number of bytes"):
            testing.parse_num_bytes(wrong)
    envs.init_seed(7)
    assert envs.get_global_seed() == envs.get_local_seed() == 7

"""deep_ep.utils: what programs import from there, on small cases whose results are known."""

import time

import pytest

torch = pytest.importorskip("torch")

from deep_ep.utils import envs, gate, math, refs, testing  # noqa: E402


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
    # Scales packed by four as they lie in memory, not a row of words each: what view(-1, n // 128) of slots gives.
    fp8, scales = math.per_token_cast_to_fp8(torch.randn(8, 512))
    powers = torch.randint(120, 130, (8, 4), dtype=torch.uint8)
    back = math.per_token_cast_back(fp8, (powers.to(torch.int32) << 23).view(torch.float32))
    for shape in ((8, 1), (2, 4)):
        assert torch.equal(math.per_token_cast_back(fp8, powers.view(torch.int32).view(shape)), back)
    # One column whose stride is not one, as of slots [words][tokens] seen as [tokens][words].
    assert torch.equal(math.per_token_cast_back(fp8, powers.view(torch.int32).view(1, 8).T), back)


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
    assert [testing.parse_num_bytes(one) for one in ("1G", "64M", "512k", "1048576", "1.5KiB", " 4 K ", "2TB")] == [
        1 << 30, 64 << 20, 512 << 10, 1 << 20, 1536, 4096, 2 << 40]
    for wrong in ("", "-1", "0", "x", "1Q", "1e3", "1_0", "inf", "nan", "1.2.3", "1G1"):
        with pytest.raises(ValueError, match="number of bytes"):
            testing.parse_num_bytes(wrong)
    envs.init_seed(7)
    assert envs.get_global_seed() == envs.get_local_seed() == 7


@pytest.mark.parametrize("precise", [True, False])
@pytest.mark.parametrize("tokens,experts,ranks,topk,ratio", [(3000, 64, 8, 6, 1.0), (3000, 64, 8, 6, 2.0), (3000, 16, 16, 4, 4.0),
                                                             (2000, 8, 2, 1, 1.0), (1, 64, 8, 8, 2.0), (50, 4, 1, 2, 3.0)])
def test_gate(tokens, experts, ranks, topk, ratio, precise):
    many = torch.zeros(ranks)
    for _ in range(ranks):
        scores = gate.get_unbalanced_scores(tokens, experts, ranks, topk, ratio, precise).cpu()
        assert scores.shape == (tokens, experts) and scores.dtype == torch.float32
        chosen = scores.topk(topk).indices // (experts // ranks)
        many += torch.zeros(tokens, ranks).scatter_(1, chosen, 1.0).sum(0)
    if tokens > 1000:
        assert abs(many[0] / many[1:].mean() - ratio) < 0.1 * ratio
        assert not precise or many[1:].max() < 1.02 * many[1:].min()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_times_without_a_gpu():
    """bench takes the clock's, and kernels, of which there are none, have no number."""
    calls = []

    def call():
        calls.append(time.sleep(0.002))

    average, least, most = testing.bench(call, num_warmups=2, num_tests=5, post_fn=lambda: calls.append(None))
    assert 0.002 <= least <= average <= most and len(calls) == 12
    testing.flush_l2_cache()
    one = testing.bench_kineto(call, "dispatch", num_tests=3, barrier_comm_profiling=True)
    two = testing.bench_kineto(call, ("dispatch", "combine"), num_tests=3, num_kernels_per_period=2)
    assert one != one and [len(each) for each in two] == [2, 2] and all(x != x for each in two for x in each) and len(calls) == 20


def test_machine(tmp_path, monkeypatch):
    """What envs tells of NICs and links, of a machine that has one NIC and an nvidia-smi that tells of two links."""
    (tmp_path / "mlx5_0" / "ports" / "1").mkdir(parents=True)
    (tmp_path / "mlx5_0" / "ports" / "1" / "rate").write_text("200 Gb/sec (4X HDR)\n")
    (tmp_path / "mlx5_0" / "hca_type").write_text("MT4131\n")
    monkeypatch.setattr(envs, "INFINIBAND", str(tmp_path))
    assert envs.get_rdma_gbs() == 25 and envs.get_rdma_gbs("mlx5_1") == 0
    assert envs.check_fast_rdma_atomic_support() and not envs.check_fast_rdma_atomic_support("mlx5_1")
    program = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert envs.get_nvlink_gbs() == 0
    program.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA'; echo '  Link 0: 26.5 GB/s'; echo '  Link 1: 23.5 GB/s'\n")
    program.chmod(0o755)
    assert envs.get_nvlink_gbs() == 45 and envs.get_nvlink_gbs(1) == 50


def test_gate_refuses():
    with pytest.raises(ValueError, match="ratio"):
        gate.get_unbalanced_scores(8, 8, 2, 1, 0.5, True)
    with pytest.raises(ValueError, match="cannot be"):
        gate.get_unbalanced_scores(8, 8, 8, 4, 7.0, True)


def test_sums():
    y = torch.tensor([[1.0, 256.0, 1.0], [2.0, 4.0, 8.0]]).bfloat16().unsqueeze(2)  # 257 is not a bf16
    ids = torch.tensor([[0, 1, 2], [5, -1, 4]])  # of ranks with two experts each
    bias = torch.tensor([[1.0], [16.0]]).bfloat16()
    assert refs.ordered_accumulate(y).flatten().tolist() == [258, 14]
    assert refs.ordered_accumulate(y, bias.float()).flatten().tolist() == [260, 30]
    assert refs.combine(y, ids, 1, 3, 6, None, False, False).flatten().tolist() == [258, 14]
    assert refs.combine(y, ids, 1, 3, 6, None, True, False).flatten().tolist() == [256, 14]  # (256) + 1: to even
    assert refs.combine(y, ids, 1, 3, 6, bias, True, False).flatten().tolist() == [258, 30]
    assert refs.combine(y, ids, 1, 3, 6, (bias, bias), True, True).flatten().tolist() == [258, 46]
    with pytest.raises(ValueError, match="reduce_in_local"):
        refs.combine(y, ids, 1, 3, 6, None, False, True)
    data = refs.generate_pre_combine_data(torch.tensor([3, 0, 3]), 4, 2, 16)
    assert data.shape == (3, 2, 16) and torch.equal(data[0], data[2]) and not torch.equal(data[0], data[1])
    assert not torch.equal(data[0, 0], data[0, 1]) and data.abs().max() <= 1

"""How programs of DeepEP start, and what they ask of the machine."""

import os
import random
import re
import subprocess

import torch
import torch.distributed as dist

INFINIBAND = "/sys/class/infiniband"
_state = {"local_rank": 0, "seed": 0}
is_deterministic = getattr(torch._C, "_get_deterministic_algorithms", torch.are_deterministic_algorithms_enabled)


def init_seed(global_seed):
    """Seeds torch and random with the global seed and the rank."""
    _state["seed"] = global_seed
    torch.manual_seed(get_local_seed())
    random.seed(get_local_seed())


def get_global_seed():
    return _state["seed"]


def get_local_seed():
    return _state["seed"] + (dist.get_rank() if dist.is_initialized() else 0)


def init_dist(local_rank, num_local_ranks, seed=0):
    """The processes of WORLD_SIZE nodes, this one's number RANK, with num_local_ranks each: with nccl and a GPU each, bf16 by
    default, or with gloo where there is no GPU. Returns (rank, ranks, group)."""
    nodes, node = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    has_gpu = torch.cuda.is_available()
    where = f"tcp://{os.environ.get('MASTER_ADDR', '127.0.0.1')}:{os.environ.get('MASTER_PORT', '8361')}"
    more = {"device_id": torch.device("cuda", local_rank)} if has_gpu else {}
    if has_gpu:
        torch.cuda.set_device(local_rank)
        torch.set_default_device("cuda")
    _state["local_rank"] = local_rank
    dist.init_process_group("nccl" if has_gpu else "gloo", init_method=where, world_size=nodes * num_local_ranks,
                            rank=node * num_local_ranks + local_rank, **more)
    torch.set_default_dtype(torch.bfloat16)
    init_seed(seed)
    return dist.get_rank(), dist.get_world_size(), dist.new_group(list(range(nodes * num_local_ranks)))


def dist_print(s="", once_in_node=False):
    """Print on all ranks, or on the first of each node; then all meet."""
    if _state["local_rank"] == 0 or not once_in_node:
        print(s, flush=True)
    dist.barrier()


def get_physical_domain_size(group):
    """(ranks across networks, ranks that share links): weft's GPUs share links."""
    return 1, group.size()


def get_logical_domain_size(group, allow_hybrid_mode=True):
    return 1, group.size()


def check_nvlink_connections(group):
    """Nothing: weft asks for peer access when a Buffer is made, and says what is missing."""


def check_torch_deterministic():
    """Fails where torch fills new tensors on the stream that is current there, beside what another stream writes into them."""
    fills = is_deterministic() and torch.utils.deterministic.fill_uninitialized_memory
    assert not fills, "with deterministic algorithms turn torch.utils.deterministic.fill_uninitialized_memory off"


def get_nvlink_gbs(factor=0.9):
    """GB/s of all NVLinks of the first GPU together, as nvidia-smi tells, times factor; 0 where it tells nothing."""
    try:
        told = subprocess.run(["nvidia-smi", "nvlink", "-s", "-i", "0"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    return factor * sum(float(rate) for rate in re.findall(r"([\d.]+) GB/s", told))


def _of_nic(nic_name, what):
    path = os.path.join(INFINIBAND, nic_name, what)
    if not os.path.exists(path):
        return ""
    with open(path) as file:
        return file.read().strip()


def get_rdma_gbs(nic_name="mlx5_0"):
    """GB/s of a NIC's first port; 0 where it is not there."""
    rate = _of_nic(nic_name, "ports/1/rate")  # "200 Gb/sec (4X HDR)"
    return float(rate.split()[0]) / 8 if rate else 0


def check_fast_rdma_atomic_support(nic_name="mlx5_0"):
    """Whether the NIC is an MT4131. weft asks for none."""
    return _of_nic(nic_name, "hca_type") == "MT4131"

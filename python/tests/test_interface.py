"""The interface of deep_ep beside DeepEP's own and beside the calls of programs: each parameter is there, in its place and with
its default, and each call can be made.

Read from repositories of GitHub, at these commits:
  deepseek-ai/DeepEP            of 2.x deep_ep/buffers/legacy.py (189df34), deep_ep/buffers/elastic.py (0297fc8),
                                deep_ep/utils/event.py (def8651), csrc/legacy/buffer.hpp (5996f70), csrc/elastic/buffer.hpp
                                (2297b88); of 1.x deep_ep/buffer.py (dcfd954, before 1.2.1)
  neuralmagic/DeepEP            deep_ep/buffer.py (320bf52, between 1.2.1 and 2.0), whose order of Buffer's arguments is taken: 2.x
                                has no use_fabric, and nobody gives what comes after it by position
  NVIDIA/Megatron-LM            megatron/core/transformer/moe/fused_a2a.py (02ad939)
  vllm-project/vllm             vllm/distributed/device_communicators/all2all.py (0014300), and deepep_ht.py (055e47c), deepep_ll.py
                                (055e47c), deepep_v2.py (02bd2a4) in vllm/model_executor/layers/fused_moe/prepare_finalize
  sgl-project/sglang            deepep.py (003a81b), deepep_v2.py (0134da0) in python/sglang/srt/layers/moe/token_dispatcher
  NVIDIA/TensorRT-LLM           deep_ep_utils.py (0fbbb91) and communication/deep_ep_low_latency.py (0fccc5b) in
                                tensorrt_llm/_torch/modules/fused_moe, which have a deep_ep of their own by now, with num_nvl_peers
                                and calls of fp4 besides
  NVIDIA-NeMo/Automodel         nemo_automodel/components/moe/megatron/fused_a2a.py (a version that has ElasticBuffer)
In verl (volcengine/verl) no calls were found but those of Megatron-LM, in NVIDIA/TransformerEngine none."""

import inspect

import pytest

torch = pytest.importorskip("torch")

import deep_ep  # noqa: E402
import deep_ep.utils  # noqa: E402

OVERLAP = {"previous_event": None, "async_finish": False, "allocate_on_comm_stream": False}
ELASTIC_OVERLAP = {"previous_event": None, "previous_event_before_epilogue": None, "async_with_compute_stream": False,
                   "allocate_on_comm_stream": False}
BUFFER = {
    "__init__": {"group": ..., "num_nvl_bytes": 0, "num_rdma_bytes": 0, "low_latency_mode": False, "num_qps_per_rank": 24,
                 "allow_nvlink_for_low_latency_mode": True, "allow_mnnvl": False, "use_fabric": False,
                 "explicitly_destroy": False, "enable_shrink": False, "comm": None},
    "destroy": {}, "is_sm90_compiled": {}, "capture": {}, "get_comm_stream": {},
    "set_num_sms": {"new_num_sms": ...},
    "get_low_latency_rdma_size_hint": {"num_max_dispatch_tokens_per_rank": ..., "hidden": ..., "num_ranks": ...,
                                       "num_experts": ...},
    "get_local_buffer_tensor": {"dtype": ..., "size": None, "offset": 0, "use_rdma_buffer": False},
    "get_dispatch_config": {"num_ranks": ...}, "get_combine_config": {"num_ranks": ...},
    "get_dispatch_layout": {"topk_idx": ..., "num_experts": ..., **OVERLAP},
    "dispatch": {"x": ..., "handle": None, "num_tokens_per_rank": None, "num_tokens_per_rdma_rank": None,
                 "is_token_in_rank": None, "num_tokens_per_expert": None, "topk_idx": None, "topk_weights": None,
                 "expert_alignment": 1, "num_worst_tokens": 0, "config": None, **OVERLAP},
    "combine": {"x": ..., "handle": ..., "topk_weights": None, "bias": None, "config": None, **OVERLAP},
    "clean_low_latency_buffer": {"num_max_dispatch_tokens_per_rank": ..., "hidden": ..., "num_experts": ...},
    "low_latency_dispatch": {"x": ..., "topk_idx": ..., "num_max_dispatch_tokens_per_rank": ..., "num_experts": ...,
                             "cumulative_local_expert_recv_stats": None, "dispatch_wait_recv_cost_stats": None,
                             "use_fp8": True, "round_scale": False, "use_ue8m0": False, "async_finish": False,
                             "return_recv_hook": False},
    "low_latency_combine": {"x": ..., "topk_idx": ..., "topk_weights": ..., "handle": ..., "use_logfmt": False,
                            "zero_copy": False, "async_finish": False, "return_recv_hook": False, "out": None,
                            "combine_wait_recv_cost_stats": None},
    "get_next_low_latency_combine_buffer": {"handle": ...},
    "low_latency_update_mask_buffer": {"rank_to_mask": ..., "mask": False},
    "low_latency_query_mask_buffer": {"mask_status": ...},
    "low_latency_clean_mask_buffer": {},
}
BUFFER["internode_dispatch"], BUFFER["internode_combine"] = BUFFER["dispatch"], BUFFER["combine"]
CONFIG = {
    "__init__": {"num_sms": 20, "num_max_nvl_chunked_send_tokens": 6, "num_max_nvl_chunked_recv_tokens": 256,
                 "num_max_rdma_chunked_send_tokens": 6, "num_max_rdma_chunked_recv_tokens": 256},
    "get_nvl_buffer_size_hint": {"hidden_bytes": ..., "num_ranks": ...},
    "get_rdma_buffer_size_hint": {"hidden_bytes": ..., "num_ranks": ...},
}
ELASTIC = {
    "__init__": {"group": ..., "num_bytes": None, "num_cpu_bytes": 0, "num_max_tokens_per_rank": 0, "hidden": 0, "num_topk": 0,
                 "use_fp8_dispatch": False, "deterministic": False, "allow_hybrid_mode": True,
                 "allow_multiple_reduction": True, "prefer_overlap_with_compute": True, "sl_idx": 3, "num_allocated_qps": 0,
                 "num_cpu_timeout_secs": 300, "num_gpu_timeout_secs": 100, "explicitly_destroy": False},
    "destroy": {}, "capture": {}, "get_comm_stream": {}, "get_physical_domain_size": {}, "get_logical_domain_size": {},
    "get_buffer_size_hint": {"group": ..., "num_max_tokens_per_rank": ..., "hidden": ..., "num_topk": 0,
                             "use_fp8_dispatch": False, "allow_hybrid_mode": True, "allow_multiple_reduction": True},
    "barrier": {"use_comm_stream": True, "with_cpu_sync": False, "sequential": True},
    "get_theoretical_num_sms": {"num_experts": ..., "num_topk": ..., "num_scaleout_topk": 0, "rdma_gbs": 0, "nvlink_gbs": 0,
                                "sm_read_gbs": 200, "sm_write_gbs": 50},
    "get_theoretical_num_qps": {"num_sms": ...},
    "dispatch": {"x": ..., "topk_idx": None, "topk_weights": None, "cumulative_local_expert_recv_stats": None,
                 "num_experts": None, "num_max_tokens_per_rank": None, "expert_alignment": None, "num_sms": 0, "num_qps": 0,
                 **ELASTIC_OVERLAP, "handle": None, "do_handle_copy": True, "do_cpu_sync": None, "do_expand": False,
                 "do_zero_padding": False, "use_tma_aligned_col_major_sf": False},
    "combine": {"x": ..., "handle": ..., "topk_weights": None, "bias": None, "num_sms": 0, "num_qps": 0, **ELASTIC_OVERLAP},
}
EVENT = {
    "__init__": {"event": None, "extra_tensors": None}, "current_stream_wait": {"release_handle": False}, "wait": {},
    "__call__": {"release_handle": False}, "register_hook_after_wait": {"hook_after_wait": ...},
}
HANDLE = ("do_expand num_experts expert_alignment num_max_tokens_per_rank num_sms topk_idx num_recv_tokens num_expanded_tokens "
          "num_recv_tokens_per_expert_list psum_num_recv_tokens_per_scaleup_rank psum_num_recv_tokens_per_expert "
          "num_unaligned_recv_tokens_per_expert recv_src_metadata dst_buffer_slot_idx token_metadata_at_forward "
          "channel_linked_list").split()

WAITS = "previous_event async_finish allocate_on_comm_stream"
COUNTS = "topk_idx topk_weights num_tokens_per_rank num_tokens_per_rdma_rank is_token_in_rank num_tokens_per_expert"
HALVES = "async_finish return_recv_hook"
SIZES = "num_max_dispatch_tokens_per_rank hidden num_ranks num_experts"
CALLS = {  # (the class, what of it, how many arguments come by position, which by name)
    "Megatron-LM": [
        (deep_ep.Buffer, "get_dispatch_config", 1, ""), (deep_ep.Buffer, "get_combine_config", 1, ""),
        (deep_ep.Config, "get_nvl_buffer_size_hint", 2, ""), (deep_ep.Config, "get_rdma_buffer_size_hint", 2, ""),
        (deep_ep.Buffer, "__init__", 3, ""), (deep_ep.EventOverlap, "__init__", 1, ""),
        (deep_ep.Buffer, "get_dispatch_layout", 2, WAITS), (deep_ep.Buffer, "dispatch", 1, f"{COUNTS} {WAITS}"),
        (deep_ep.Buffer, "combine", 2, f"topk_weights {WAITS}"), (deep_ep.Buffer, "combine", 1, f"handle {WAITS}"),
        (deep_ep.Buffer, "dispatch", 1, f"handle {WAITS}"), (deep_ep.Buffer, "set_num_sms", 1, ""),
    ],
    "vLLM": [
        (deep_ep.Buffer, "__init__", 0, "group num_nvl_bytes num_rdma_bytes low_latency_mode num_qps_per_rank "
                                        "allow_nvlink_for_low_latency_mode allow_mnnvl explicitly_destroy enable_shrink"),
        (deep_ep.Buffer, "get_low_latency_rdma_size_hint", 0, SIZES), (deep_ep.Buffer, "set_num_sms", 1, ""),
        (deep_ep.Buffer, "low_latency_query_mask_buffer", 1, ""), (deep_ep.Buffer, "low_latency_clean_mask_buffer", 0, ""),
        (deep_ep.Buffer, "get_local_buffer_tensor", 0, "dtype use_rdma_buffer"), (deep_ep.Buffer, "destroy", 0, ""),
        (deep_ep.Buffer, "get_dispatch_layout", 0, f"topk_idx num_experts {WAITS}"),
        (deep_ep.Buffer, "dispatch", 0, f"x handle {COUNTS} expert_alignment config {WAITS}"),
        (deep_ep.Buffer, "combine", 0, f"x handle topk_weights config {WAITS}"), (deep_ep.Buffer, "capture", 0, ""),
        (deep_ep.Buffer, "low_latency_dispatch", 4, f"use_fp8 round_scale use_ue8m0 {HALVES}"),
        (deep_ep.Buffer, "low_latency_combine", 4, f"zero_copy out {HALVES}"),
        (deep_ep.ElasticBuffer, "__init__", 0, "group num_max_tokens_per_rank hidden num_topk use_fp8_dispatch allow_hybrid_mode "
                                               "prefer_overlap_with_compute allow_multiple_reduction num_cpu_timeout_secs "
                                               "num_gpu_timeout_secs explicitly_destroy"),
        (deep_ep.ElasticBuffer, "get_theoretical_num_sms", 0, "num_experts num_topk"),
        (deep_ep.ElasticBuffer, "dispatch", 0, "x topk_idx topk_weights num_experts num_max_tokens_per_rank do_expand do_cpu_sync "
                                               "async_with_compute_stream"),
        (deep_ep.ElasticBuffer, "combine", 0, "x handle topk_weights async_with_compute_stream allocate_on_comm_stream"),
        (deep_ep.ElasticBuffer, "destroy", 0, ""),
    ],
    "SGLang": [
        (deep_ep.Buffer, "__init__", 3, "low_latency_mode num_qps_per_rank allow_mnnvl"),
        (deep_ep.Config, "__init__", 0, " ".join(CONFIG["__init__"])),
        (deep_ep.Buffer, "get_low_latency_rdma_size_hint", 4, ""), (deep_ep.Buffer, "clean_low_latency_buffer", 3, ""),
        (deep_ep.Buffer, "get_dispatch_layout", 2, WAITS),
        (deep_ep.Buffer, "dispatch", 1, f"{COUNTS} {WAITS} expert_alignment config"),
        (deep_ep.Buffer, "combine", 2, f"{WAITS} config"),
        (deep_ep.Buffer, "low_latency_dispatch", 4, f"use_fp8 round_scale use_ue8m0 {HALVES}"),
        (deep_ep.Buffer, "low_latency_combine", 0, f"x topk_idx topk_weights handle {HALVES}"),
        (deep_ep.ElasticBuffer, "__init__", 1, "num_max_tokens_per_rank hidden num_topk use_fp8_dispatch allow_hybrid_mode sl_idx "
                                               "prefer_overlap_with_compute"),
        (deep_ep.ElasticBuffer, "get_theoretical_num_sms", 2, ""), (deep_ep.ElasticBuffer, "get_theoretical_num_qps", 1, ""),
        (deep_ep.ElasticBuffer, "dispatch", 1, "topk_idx topk_weights num_experts num_max_tokens_per_rank expert_alignment num_sms "
                                               "num_qps use_tma_aligned_col_major_sf do_cpu_sync do_expand"),
        (deep_ep.ElasticBuffer, "combine", 1, "handle topk_weights num_sms num_qps"),
    ],
    "TensorRT-LLM": [
        (deep_ep.Buffer, "get_dispatch_config", 1, ""), (deep_ep.Buffer, "get_combine_config", 1, ""),
        (deep_ep.Config, "get_nvl_buffer_size_hint", 2, ""), (deep_ep.Config, "get_rdma_buffer_size_hint", 2, ""),
        (deep_ep.Buffer, "__init__", 3, "comm"), (deep_ep.Buffer, "__init__", 3, "low_latency_mode num_qps_per_rank comm"),
        (deep_ep.Buffer, "get_low_latency_rdma_size_hint", 4, ""), (deep_ep.Buffer, "get_dispatch_layout", 2, ""),
        (deep_ep.Buffer, "dispatch", 1, "topk_idx topk_weights num_tokens_per_rank num_tokens_per_rdma_rank is_token_in_rank "
                                        "num_tokens_per_expert"),
        (deep_ep.Buffer, "combine", 2, ""), (deep_ep.Buffer, "low_latency_dispatch", 4, "use_fp8"),
        (deep_ep.Buffer, "low_latency_combine", 4, ""),
    ],
    "NeMo": [
        (deep_ep.Buffer, "is_sm90_compiled", 0, ""), (deep_ep.Buffer, "__init__", 3, "explicitly_destroy"),
        (deep_ep.Buffer, "destroy", 0, ""),
        (deep_ep.ElasticBuffer, "__init__", 1, "num_max_tokens_per_rank hidden num_topk num_gpu_timeout_secs explicitly_destroy "
                                               "num_allocated_qps"),
        (deep_ep.ElasticBuffer, "dispatch", 1, "topk_idx topk_weights num_experts num_max_tokens_per_rank num_sms num_qps "
                                               "async_with_compute_stream allocate_on_comm_stream"),
        (deep_ep.ElasticBuffer, "dispatch", 1, "handle num_sms num_qps async_with_compute_stream allocate_on_comm_stream"),
        (deep_ep.ElasticBuffer, "combine", 2, "topk_weights num_sms num_qps async_with_compute_stream allocate_on_comm_stream"),
        (deep_ep.ElasticBuffer, "destroy", 0, ""),
    ],
}


@pytest.mark.parametrize("owner,table", [(deep_ep.Buffer, BUFFER), (deep_ep.Config, CONFIG), (deep_ep.ElasticBuffer, ELASTIC),
                                         (deep_ep.EventOverlap, EVENT)])
def test_parameters(owner, table):
    for name, wanted in table.items():
        there = {n: one.default for n, one in inspect.signature(getattr(owner, name)).parameters.items() if n != "self"}
        assert list(there) == list(wanted), f"{owner.__name__}.{name}"
        for parameter, default in wanted.items():
            had = there[parameter]
            assert had is inspect.Parameter.empty if default is ... else had == default, f"{name}, {parameter}: {had}"


@pytest.mark.parametrize("program", CALLS)
def test_calls(program):
    for owner, name, count, names in CALLS[program]:
        is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
        inspect.signature(getattr(owner, name)).bind(*range(count + (not is_static)), **dict.fromkeys(names.split()))


def test_handle():
    assert list(inspect.signature(deep_ep.EPHandle).parameters)[:len(HANDLE)] == HANDLE


def test_names():
    for name in ("Buffer", "Config", "ElasticBuffer", "EPHandle", "EventHandle", "EventOverlap", "__version__", "topk_idx_t",
                 "get_physical_domain_size", "get_logical_domain_size"):
        assert hasattr(deep_ep, name), name
    from deep_ep import Buffer, Config  # noqa: F401
    from deep_ep._C import Config as compiled, EventHandle  # noqa: F401
    from deep_ep.utils import EventHandle as one, EventOverlap as two

    assert one is deep_ep.EventHandle and two is deep_ep.EventOverlap and compiled is deep_ep.Config
    assert deep_ep.Buffer.num_sms == 20
    for absent in ("HybridEPBuffer", "no_such_name"):
        assert not hasattr(deep_ep, absent)
    with pytest.raises(ImportError):
        from deep_ep import HybridEPBuffer  # noqa: F401


def test_path(tmp_path, monkeypatch):
    """Another directory may hold more of the package."""
    (tmp_path / "deep_ep_more").mkdir()
    (tmp_path / "deep_ep_more" / "kept_elsewhere.py").write_text("value = 3\n")
    monkeypatch.setattr(deep_ep, "__path__", [*deep_ep.__path__, str(tmp_path / "deep_ep_more")])
    from deep_ep import kept_elsewhere

    assert kept_elsewhere.value == 3


def test_events():
    event = deep_ep.EventOverlap(deep_ep.EventHandle(), (torch.ones(1),))
    with event:
        assert event.extra_tensors is not None
    event.current_stream_wait()
    event.register_hook_after_wait(lambda: 5)
    assert event.wait() == 5 and event.current_stream_wait() is None
    with event(release_handle=True) as same:
        assert same is event
    assert event.event is None
    nothing = deep_ep.EventOverlap()
    with nothing, pytest.raises(AssertionError):
        nothing.current_stream_wait()
    assert nothing.event is None


def test_events_after_a_hook(monkeypatch):
    """A hook that raised is called again; who waits after it waits for what it has put on its stream."""
    from deep_ep import events

    waits = []

    class Kept(events.EventHandle):
        def __init__(self, name="the hook's"):
            self.name = name

        def current_stream_wait(self):
            waits.append(self.name)

    monkeypatch.setattr(events, "EventHandle", Kept)
    event, tries = events.EventOverlap(Kept("the call's")), []

    def hook():
        tries.append(len(waits))
        if len(tries) == 1:
            raise RuntimeError("once")
        return 7

    event.register_hook_after_wait(hook)
    with pytest.raises(RuntimeError, match="once"):
        event.wait()
    assert event.wait() == 7 and event.wait() is None
    assert waits == ["the call's", "the call's", "the hook's"] and tries == [1, 2]


def test_module_paths():
    """Where DeepEP 2.x has its classes, and programs import them from."""
    from deep_ep import _C
    from deep_ep.buffers import elastic, legacy
    from deep_ep.utils import event

    assert legacy.Buffer is deep_ep.Buffer and elastic.ElasticBuffer is deep_ep.ElasticBuffer
    assert elastic.EPHandle is deep_ep.EPHandle and event.EventOverlap is deep_ep.EventOverlap
    assert _C.is_sm90_compiled() and _C.topk_idx_t == deep_ep.topk_idx_t and _C.get_elastic_buffer_alignment() == 2 << 20
    assert _C.get_low_latency_rdma_size_hint(8, 256, 2, 4) == deep_ep.Buffer.get_low_latency_rdma_size_hint(8, 256, 2, 4) > 0

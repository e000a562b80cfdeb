"""The interface of deep_ep beside what public callers use of it: each name is there, with these parameters and defaults.

The table was read from DeepEP's own documentation of its calls and from the call sites in Megatron-LM
(megatron/core/transformer/moe/fused_a2a.py), vLLM (model_executor/layers/fused_moe/deepep_*_prepare_finalize.py,
distributed/device_communicators/all2all.py) and SGLang (srt/layers/moe/token_dispatcher/deepep.py)."""

import inspect

import pytest

torch = pytest.importorskip("torch")

import deep_ep  # noqa: E402
import deep_ep.utils  # noqa: E402

OVERLAP = {"previous_event": None, "async_finish": False, "allocate_on_comm_stream": False}
BUFFER = {
    "__init__": {"group": ..., "num_nvl_bytes": 0, "num_rdma_bytes": 0, "low_latency_mode": False, "num_qps_per_rank": 24,
                 "allow_nvlink_for_low_latency_mode": True, "allow_mnnvl": False, "explicitly_destroy": False,
                 "enable_shrink": False, "use_fabric": False, "comm": None},
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
    "__init__": {"group": ..., "num_bytes": None, "num_max_tokens_per_rank": 0, "hidden": 0, "num_topk": 0,
                 "use_fp8_dispatch": False, "deterministic": False, "allow_hybrid_mode": True,
                 "allow_multiple_reduction": True, "prefer_overlap_with_compute": True, "explicitly_destroy": False},
    "destroy": {}, "capture": {}, "get_comm_stream": {}, "get_physical_domain_size": {}, "get_logical_domain_size": {},
    "barrier": {"use_comm_stream": True, "with_cpu_sync": False},
    "get_theoretical_num_sms": {"num_experts": ..., "num_topk": ...},
    "dispatch": {"x": ..., "topk_idx": None, "topk_weights": None, "num_experts": None, "num_max_tokens_per_rank": None,
                 "expert_alignment": None, "num_sms": 0, "previous_event": None, "async_with_compute_stream": False,
                 "allocate_on_comm_stream": False, "handle": None, "do_cpu_sync": None, "do_expand": False},
    "combine": {"x": ..., "handle": ..., "topk_weights": None, "bias": None, "num_sms": 0, "previous_event": None,
                "async_with_compute_stream": False, "allocate_on_comm_stream": False},
}


@pytest.mark.parametrize("owner,table", [(deep_ep.Buffer, BUFFER), (deep_ep.Config, CONFIG), (deep_ep.ElasticBuffer, ELASTIC)])
def test_calls(owner, table):
    for name, wanted in table.items():
        there = inspect.signature(getattr(owner, name)).parameters
        for parameter, default in wanted.items():
            assert parameter in there, f"{owner.__name__}.{name} has no {parameter}"
            had = there[parameter].default
            assert had is inspect.Parameter.empty if default is ... else had == default, f"{name}, {parameter}: {had}"
        must = [n for n, one in there.items() if one.default is one.empty and n != "self"]
        assert must == [n for n in wanted if wanted[n] is ...], f"{owner.__name__}.{name} wants {must}"


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


def test_module_paths():
    """Where DeepEP 2.x has its classes, and programs import them from."""
    from deep_ep import _C
    from deep_ep.buffers import elastic, legacy
    from deep_ep.utils import event

    assert legacy.Buffer is deep_ep.Buffer and elastic.ElasticBuffer is deep_ep.ElasticBuffer
    assert elastic.EPHandle is deep_ep.EPHandle and event.EventOverlap is deep_ep.EventOverlap
    assert _C.is_sm90_compiled() and _C.topk_idx_t == deep_ep.topk_idx_t and _C.get_elastic_buffer_alignment() == 2 << 20
    assert _C.get_low_latency_rdma_size_hint(8, 256, 2, 4) == deep_ep.Buffer.get_low_latency_rdma_size_hint(8, 256, 2, 4) > 0

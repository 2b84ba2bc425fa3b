"""Experts against a plain loop, and the account of the routed scaling factor."""

import pytest
import torch

from harness.checks.meter import Meter
from harness.checks.moe_layer import MissingPart, Parts
from harness.checks.moe_scale import check_scale, scale_cases
from harness.platforms import NAMES
from reference.moe import scaling
from reference.moe.experts import ExpertSpec, activate, run_experts
from reference.moe.fusion import FUSED_METHODS, PLAIN, WITH_FLAG


def inputs(tokens=5, hidden=8, intermediate=6, experts=4, top_k=2):
    generator = torch.Generator().manual_seed(2)
    x, w13, w2 = (
        torch.randn(shape, generator=generator, dtype=torch.float64)
        for shape in ((tokens, hidden), (experts, 2 * intermediate, hidden), (experts, hidden, intermediate))
    )
    ids = torch.stack([torch.randperm(experts, generator=generator)[:top_k] for _ in range(tokens)])
    return x, w13, w2, ids, torch.rand(tokens, top_k, generator=generator, dtype=torch.float64)


def loop(x, w13, w2, ids, weights, spec):
    out = torch.zeros_like(x)
    for t, chosen in enumerate(ids.tolist()):
        for column, e in enumerate(chosen):
            scale = weights[t, column]
            row = x[t] * (scale if spec.weights_on == "input" else 1)
            gate, up = (w13[e] @ row).chunk(2)
            out[t] += (w2[e] @ activate(gate, up, spec)) * (1 if spec.weights_on == "input" else scale)
    return out


@pytest.mark.parametrize("activation", ["silu", "gelu", "gelu_tanh", "swiglu_oai"])
@pytest.mark.parametrize("weights_on", ["input", "output"])
def test_experts_agree_with_a_loop(activation, weights_on):
    spec = ExpertSpec(activation=activation, limit=2.0, weights_on=weights_on)
    assert torch.allclose(run_experts(*inputs(), spec), loop(*inputs(), spec), rtol=1e-12, atol=1e-12)


def test_rounding_between_stages_is_seen_and_small():
    exact, rounded = (run_experts(*inputs(), ExpertSpec(), store=store) for store in (None, torch.bfloat16))
    assert 0 < (exact - rounded).norm() / exact.norm() < 2**-7


def test_clamp_holds_gate_above_and_up_on_both_sides():
    spec = ExpertSpec(activation="swiglu_oai", limit=7.0)
    far = activate(torch.tensor(50.0), torch.tensor(-50.0), spec)
    assert torch.equal(far, activate(torch.tensor(7.0), torch.tensor(-7.0), spec))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"w2": torch.zeros(4, 8, 5)}, r"do not fit; expected \(tokens, hidden\)"),
        ({"weights": torch.zeros(5, 3)}, "do not fit 5 tokens"),
        ({"ids": torch.full((5, 2), 9)}, "expert ids reach from 9 to 9; expected 0 to 3"),
    ],
)
def test_experts_refuse(change, text):
    given = dict(zip(("x", "w13", "w2", "ids", "weights"), inputs(), strict=True)) | change
    with pytest.raises(ValueError, match=text):
        run_experts(**given, spec=ExpertSpec())


def test_unknown_activation_is_refused():
    with pytest.raises(ValueError, match="activation='relu'; expected one of silu"):
        activate(torch.zeros(1), torch.zeros(1), ExpertSpec(activation="relu"))


@pytest.mark.parametrize("platform", NAMES)
def test_reference_scales_once(platform):
    for case in scale_cases(platform, WITH_FLAG):
        meter = Meter()
        check_scale(case, None, seed=0, device="cpu", meter=meter)
        assert meter.bytes > 0


@pytest.mark.parametrize("wrong", ["model", "top-k"])
def test_wrong_account_is_seen(monkeypatch, wrong):
    monkeypatch.setattr("harness.checks.moe_scale.applied_by", lambda *_a, **_k: wrong)
    found = {"model": r"exponent .* is 2 \(applied twice\)", "top-k": r"exponent .* is 0 \(nobody applied it\)"}[wrong]
    method = "mxfp4_marlin" if wrong == "model" else PLAIN
    case = next(c for c in scale_cases("cuda", WITH_FLAG) if c.method == method)
    with pytest.raises(AssertionError, match=found):
        check_scale(case, None, seed=0, device="cpu", meter=Meter())


@pytest.mark.parametrize("method", FUSED_METHODS)
def test_fused_methods_serve_cuda_only(method):
    assert [platform for platform in NAMES if scaling.serves(platform, method)] == ["cuda"]


def test_unserved_method_is_refused():
    with pytest.raises(ValueError, match="expert_pack has no kernels on ascend; it serves cuda"):
        scaling.applied_by("ascend", "expert_pack", in_topk=False)


def test_a_missing_part_is_no_attribute_and_names_the_driver():
    parts = Parts("the layer", here=1)
    assert not hasattr(parts, "elsewhere")
    with pytest.raises(MissingPart, match=r"the layer is asked for 'elsewhere', which harness/checks/moe_layer\.py"):
        _ = parts.elsewhere

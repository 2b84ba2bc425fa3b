"""The router's reference on answers worked out by hand, what it refuses, and the mistakes that the suite names."""

import math
from dataclasses import replace

import pytest
import torch

from harness.checks.meter import Meter
from harness.checks.moe_routers import reference_route
from harness.checks.moe_routing import check_routing
from harness.checks.moe_routing_cases import FACTOR, routing_cases
from harness.checks.moe_tolerances import bound
from reference.moe.routing import RoutingSpec, route, scores_of, weigh

CASES = {case.id: case for case in routing_cases("cpu")}
LOGITS = torch.tensor([[3.0, 2.0, 1.0, 0.0]]).log1p()  # softmax: 0.4, 0.3, 0.2, 0.1


def test_case_ids_are_unique():
    assert len(CASES) == len(routing_cases("cpu"))


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.id)
def test_reference_passes_its_own_suite(case):
    meter = Meter()
    check_routing(case, reference_route, seed=11, device="cpu", meter=meter)
    assert meter.bytes > 0


@pytest.mark.parametrize(
    ("spec", "weights"),
    [
        (RoutingSpec(top_k=2, renormalize=False), [0.4, 0.3]),
        (RoutingSpec(top_k=2), [4 / 7, 3 / 7]),
        (RoutingSpec(top_k=2, factor=2.5), [4 / 7, 3 / 7]),
        (RoutingSpec(top_k=2, factor=2.5, factor_on_output=True), [10 / 7, 7.5 / 7]),
    ],
)
def test_weights_by_hand(spec, weights):
    found = route(LOGITS.double(), spec)
    assert found.ids.tolist() == [[0, 1]]
    assert found.weights[0].tolist() == pytest.approx(weights)


def test_bias_chooses_and_does_not_weigh():
    found = route(LOGITS, RoutingSpec(top_k=1, renormalize=False), torch.tensor([0.0, 0.0, 0.0, 1.0]))
    assert (found.ids.item(), round(found.weights.item(), 6)) == (3, 0.1)


@pytest.mark.parametrize(("score", "ids"), [("max", [[0, 1]]), ("best_two", [[2, 3]])])
def test_group_scores(score, ids):
    logits = torch.tensor([[0.9, 0.1, 0.6, 0.5]]).logit()
    spec = RoutingSpec(top_k=2, scoring="sigmoid", groups=2, top_groups=1, group_score=score)
    assert route(logits, spec).ids.tolist() == ids


def test_margin_is_the_nearest_other_choice():
    assert route(LOGITS.double(), RoutingSpec(top_k=2)).margin.item() == pytest.approx(0.1)
    assert route(LOGITS.double(), RoutingSpec(top_k=4)).margin.item() == math.inf


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"top_k": 5}, "top_k=5; expected 1 to 4 of 4 experts in reach"),
        ({"top_k": 3, "groups": 2}, "top_k=3; expected 1 to 2"),
        ({"groups": 3}, "4 experts do not split into 3 groups"),
        ({"scoring": "relu"}, "scoring='relu'; expected one of softmax"),
        ({"factor": 0.0}, "factor=0 would drop the routed experts"),
        ({"factor_on_output": True}, "factor_on_output needs a factor"),
    ],
)
def test_impossible_routing_is_refused(change, text):
    with pytest.raises(ValueError, match=text):
        route(LOGITS, replace(RoutingSpec(top_k=2), **change))


def test_nan_is_refused():
    with pytest.raises(ValueError, match="1 of 4 router logits are NaN"):
        route(torch.tensor([[1.0, math.nan, 0.0, 2.0]]), RoutingSpec(top_k=2))


def biased_weight(router, logits, spec, bias):
    ids = reference_route(router, logits, spec, bias)[1]
    return weigh(scores_of(logits.float(), spec.scoring) + bias, ids.long(), spec), ids


def changed(**change):
    return lambda router, logits, spec, bias: reference_route(router, logits, replace(spec, **change), bias)


def next_group(router, logits, spec, bias):
    """Choose from the groups beside the right ones."""
    size = logits.shape[1] // spec.groups
    weights, ids = reference_route(router, logits.roll(size, 1), spec, None if bias is None else bias.roll(size))
    return weights, ids


BUGS = {
    "bias in the weight": (
        "biased_topk_impl-small-sigmoid-renorm-factor_later-biased-fp32",
        biased_weight,
        "weights taken from the biased scores",
    ),
    "renormalisation dropped": (
        "grouped_topk_gpu-v3-softmax-renorm-factor_on_output-fp32",
        changed(renormalize=False),
        "weights not renormalised",
    ),
    "renormalised too much": (
        "fused_topk_torch_native-small-softmax-fp32",
        changed(renormalize=True),
        "weights renormalised",
    ),
    "factor dropped": (
        "grouped_topk_gpu-v3-softmax-renorm-factor_on_output-fp32",
        changed(factor_on_output=False),
        "weights without the factor",
    ),
    "factor too early": (
        "grouped_topk_gpu-small-softmax-renorm-factor_later-fp32",
        changed(factor_on_output=True),
        "with the factor, which somebody applies later",
    ),
    "group mask off by one": (
        "biased_grouped_topk_impl-v3-sigmoid-renorm-factor_on_output-biased-fp32",
        next_group,
        "chose .* instead of .* this is no near-tie",
    ),
    "group score": (
        "biased_grouped_topk_impl-v3-sigmoid-renorm-factor_on_output-biased-fp32",
        changed(group_score="max"),
        "this is no near-tie",
    ),
    "shared column": (
        "grouped_topk_gpu-small-softmax-renorm-factor_on_output-shared-fp32",
        changed(factor_on_output=False),
        f"the shared column weighs {1 / FACTOR:g}",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_bug_is_named(bug):
    case, wrong, text = BUGS[bug]
    with pytest.raises(AssertionError, match=text):
        check_routing(CASES[f"cpu-{case}"], wrong, seed=11, device="cpu", meter=Meter())


def test_a_near_tie_is_no_mistake():
    case = CASES["cpu-fused_topk_torch_native-small-sigmoid-renorm-bf16"]
    ties = [check_routing(case, reference_route_in_bf16, seed=seed, device="cpu", meter=Meter()) for seed in range(40)]
    assert sum(ties) > 0


def reference_route_in_bf16(router, logits, spec, bias):
    found = route(logits, spec, bias, dtype=torch.bfloat16)
    return found.weights, found.ids.int()


LOW = {"fp32": torch.float32, "bf16": torch.bfloat16}


@pytest.mark.parametrize("dtype", LOW)
def test_bounds_are_neither_broken_nor_loose(dtype):
    errors = {"score": 0.0, "weight": 0.0}
    for case in CASES.values():
        if case.dtype == dtype:
            logits, bias = case.inputs(0)
            right, scores = scores_of(logits.double(), case.scoring), scores_of(logits.to(LOW[dtype]), case.scoring)
            ids = route(logits, case.spec, bias).ids
            pairs = {"score": (scores, right), "weight": (weigh(scores, ids, case.spec), weigh(right, ids, case.spec))}
            for name, (found, wanted) in pairs.items():
                errors[name] = max(errors[name], float(((found.double() - wanted).abs() / wanted).max()))
    for name, error in errors.items():
        limit = bound(f"routing.{name}", dtype, "cpu").relative
        assert error <= limit <= 8 * error

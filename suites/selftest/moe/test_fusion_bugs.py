"""Each wrong way to finish a MoE layer is seen, and named."""

import pytest
import torch

from harness.checks.meter import Meter
from harness.checks.moe_cases import fusion_cases
from harness.checks.moe_explain import describe, first_difference
from harness.checks.moe_fusion import check_fusion
from harness.checks.moe_trace import WrongResult
from reference.moe.fusion import PLAIN, WITH_FLAG

CASES = {case.id: case for case in fusion_cases("cpu", WITH_FLAG)}
SHARED, ALONE, ADDED = (
    "cpu-mxfp4_marlin-shared-unscaled-bf16",
    "cpu-mxfp4_marlin-alone-unscaled-bf16",
    "cpu-plain-shared-unscaled-bf16",
)


def beside(routed, shared, factor):
    shared.add_(routed, alpha=factor)
    shared.as_strided((1,), (1,), 0).zero_()
    return shared


BUGS = {
    "factor twice": (
        SHARED,
        lambda r, s, f: s.add_(r * f, alpha=f),
        r"holds shared \+ 6.25 \* routed: factor applied twice \(exponent 2\)",
    ),
    "factor never": (SHARED, lambda r, s, _: s.add_(r), r"holds shared \+ routed: factor never applied \(exponent 0\)"),
    "factor never, no shared": (
        ALONE,
        lambda r, _s, _f: r,
        r"expected 2.5 \* routed.*holds routed: factor never applied",
    ),
    "factor on the sum": (SHARED, lambda r, s, f: s.add_(r).mul_(f), "shared multiplied by the factor"),
    "shared twice": (SHARED, lambda r, s, f: s.add_(s).add_(r, alpha=f), "shared added twice"),
    "shared never": (ADDED, lambda r, _s, _f: r, "holds routed: factor never applied .*, shared not added"),
    "routed never": (SHARED, lambda _r, s, _f: s, "holds shared: routed not added"),
    "other tensor": (
        SHARED,
        lambda r, s, f: r.mul_(f).add_(s),
        "returned the routed tensor; expected the shared tensor; its value is right",
    ),
    "scratch in routed": (
        SHARED,
        lambda r, s, f: s.add_(r.mul_(f)),
        "the routed tensor must not change, and holds 2.5",
    ),
    "new tensor": (SHARED, lambda r, s, f: s + r * f, "returned a new tensor"),
    "new view": (SHARED, lambda r, s, f: s.add_(r, alpha=f)[:], "returned a new view of the shared tensor"),
    "nothing": (SHARED, lambda _r, _s, _f: None, "it returned None; expected the shared tensor"),
    "beside": (SHARED, beside, "bytes beside the shared tensor changed"),
    "two roundings": (f"{SHARED}-rounded", lambda r, s, f: s.add_(r * f), r"2.5 \* routed: factor applied once"),
    "rows dropped": (
        f"{SHARED}-strided",
        lambda r, s, f: s.add_(torch.cat([r[:2], 0 * r[2:]]), alpha=f),
        "no combination",
    ),
    "write for no token": (f"{SHARED}-empty", beside, "bytes beside the shared tensor changed"),
}


def check(case, step):
    def as_step(_method, routed, shared, factor, **_flag):
        return step(routed, shared, factor)

    check_fusion(case, as_step, seed=3, device="cpu", meter=Meter())


@pytest.mark.parametrize("bug", BUGS)
def test_bug_is_named(bug):
    case, step, text = BUGS[bug]
    with pytest.raises(AssertionError, match=text):
        check(CASES[case], step)


SCALED = [c.id for c in CASES.values() if c.already_scaled and c.method != PLAIN and c.form != "empty"]


@pytest.mark.parametrize("case", SCALED)
def test_ignored_flag_is_seen(case):
    with pytest.raises(AssertionError, match=r"holds .*2\.5 \* routed: factor applied once"):
        check(CASES[case], lambda r, s, f: r.mul_(f) if s is None else s.add_(r, alpha=f))


def test_describe_does_not_invent():
    x = torch.tensor([[2.0, -4.0]])
    assert describe(x + 100, x, x, 2.5) == "no combination of routed, shared and powers of the factor"


def test_first_difference_sees_the_sign_of_zero():
    assert "1 of 2 elements differ, the first at [0, 1]: -0.0, expected 0.0" in first_difference(
        torch.tensor([[1.0, -0.0]]), torch.tensor([[1.0, 0.0]])
    )


def test_a_wrong_result_leads_to_the_line_that_returned_it(monkeypatch):
    monkeypatch.setattr("harness.checks.moe_fusion.STEP_NAME", "test_step")

    def test_step(routed, shared, factor):
        return shared.add_(routed, alpha=factor * factor)

    with pytest.raises(
        WrongResult, match=r"it returned at .*: `return shared.add_\(routed, alpha=factor \* factor\)`"
    ) as caught:
        check(CASES[SHARED], test_step)
    assert caught.value.location.rpartition(":")[0].endswith("test_fusion_bugs.py")

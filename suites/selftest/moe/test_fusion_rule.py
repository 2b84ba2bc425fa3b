"""The truth table and the reference's own step say the same, and refuse what makes no sense."""

import pytest
import torch

from harness.checks.meter import Meter
from harness.checks.moe_cases import fusion_cases
from harness.checks.moe_fusion import check_fusion
from harness.checks.moe_step import reference_step
from reference.moe.fusion import (
    PLAIN,
    WITH_FLAG,
    WITHOUT_FLAG,
    QuantMethod,
    ReferenceExperts,
    maybe_fuse_routed_scale_and_shared_add,
    rule,
)

CASES = fusion_cases("cpu", WITH_FLAG)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_reference_follows_the_table(case):
    meter = Meter()
    check_fusion(case, reference_step, seed=7, device="cpu", meter=meter)
    assert meter.bytes > 0


def test_case_ids_are_unique():
    assert len({case.id for case in CASES}) == len(CASES) == 170


def test_expert_pack_is_plain_before_the_flag():
    row = rule(WITHOUT_FLAG, "expert_pack", shared=True, already_scaled=False)
    assert row == rule(WITHOUT_FLAG, PLAIN, shared=True, already_scaled=False)


def test_the_flag_is_not_read_before_it_existed():
    assert rule(WITHOUT_FLAG, "mxfp4_marlin", shared=True, already_scaled=True).exponent == 1


def test_unknown_method_is_refused_by_name():
    with pytest.raises(ValueError, match=r"method='mxfp5' is not known; expected plain or one of .*expert_pack"):
        rule(WITH_FLAG, "mxfp5", shared=False, already_scaled=False)


@pytest.mark.parametrize(
    ("shared", "factor", "text"),
    [
        (torch.zeros(2, 3), 2.5, r"shared is \(2, 3\).*routed is \(2, 4\)"),
        (torch.zeros(2, 4).half(), 2.5, r"torch.float16, routed is .* torch.float32"),
        (None, float("nan"), "expected a finite number"),
    ],
)
def test_the_reference_refuses(shared, factor, text):
    with pytest.raises(ValueError, match=text):
        maybe_fuse_routed_scale_and_shared_add(ReferenceExperts(QuantMethod(PLAIN)), torch.zeros(2, 4), shared, factor)

from harness.checks.moe_fusion import check_fusion
from harness.checks.moe_step import step_of


def test_fusion(fusion_case, cell, meter):
    """The value, the object returned, and every byte of both operands follow the truth table."""
    check_fusion(fusion_case, step_of(cell.sut.root), seed=cell.seed, device=cell.device, meter=meter)

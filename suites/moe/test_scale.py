from harness.checks.moe_scale import check_scale


def test_scale(scale_case, cell, meter):
    """Through router, experts, model and last step the routed scaling factor is applied exactly once."""
    check_scale(scale_case, cell.sut.root, seed=cell.seed, device=cell.device, meter=meter)

from harness.checks.moe_routers import route_of
from harness.checks.moe_routing import check_routing


def test_routing(routing_case, cell, meter):
    """SGLang's top-k functions choose the reference's experts with the reference's weights."""
    check_routing(routing_case, route_of(cell.sut.root), seed=cell.seed, device=cell.device, meter=meter)

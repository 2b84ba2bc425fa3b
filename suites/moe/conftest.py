from harness.checks.moe_cases import fusion_cases
from harness.checks.moe_formats import CHECKS
from harness.checks.moe_generation import generation_of
from harness.checks.moe_routing_cases import routing_cases
from harness.checks.moe_scale import scale_cases
from harness.checks.params import cell_of

CASES = {
    "fusion_case": lambda cell: fusion_cases(cell.platform, generation_of(cell.sut.root)),
    "routing_case": lambda cell: routing_cases(cell.platform),
    "scale_case": lambda cell: scale_cases(cell.platform, generation_of(cell.sut.root)),
    "conversion": lambda cell: [f"{cell.platform}-{name}" for name in CHECKS],
}


def pytest_generate_tests(metafunc):
    for name, cases in CASES.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, cases(cell_of(metafunc.config)), ids=lambda case: getattr(case, "id", case))

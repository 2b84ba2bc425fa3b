from harness.checks.moe_cases import fusion_cases
from harness.checks.moe_generation import generation_of
from harness.checks.params import cell_of


def pytest_generate_tests(metafunc):
    if "fusion_case" in metafunc.fixturenames:
        cell = cell_of(metafunc.config)
        cases = fusion_cases(cell.platform, generation_of(cell.sut.root))
        metafunc.parametrize("fusion_case", cases, ids=lambda case: case.id)

from harness.checks import kv_cases
from harness.checks.params import platform_of

CASES = {"case": kv_cases.legal, "illegal": kv_cases.illegal}


def pytest_generate_tests(metafunc):
    for name, cases in CASES.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, [*cases(platform_of(metafunc.config))], ids=lambda case: case.id)

import pytest

from harness.checks.moe_import_targets import REPORT, import_targets
from harness.checks.params import cell_of


def pytest_generate_tests(metafunc):
    if "target" in metafunc.fixturenames:
        cell = cell_of(metafunc.config)
        targets = import_targets(cell.platform, cell.sut.root)
        metafunc.parametrize("target", targets, ids=lambda target: target.id)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    """Start the imports of the chosen cases now, so that they run beside the other suites."""
    if session.config.option.collectonly:
        return
    for item in session.items:
        target = getattr(item, "callspec", None) and item.callspec.params.get("target")
        if target is not None:
            cell_of(session.config).prefetch_fresh(REPORT, *target.arguments)

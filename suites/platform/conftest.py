import pytest

from harness.checks.moe_import_targets import TOGETHER, Imports, import_targets, together
from harness.checks.params import cell_of


def targets_of(cell):
    return import_targets(cell.platform, cell.sut.root)


def pytest_generate_tests(metafunc):
    if "target" in metafunc.fixturenames:
        metafunc.parametrize("target", targets_of(cell_of(metafunc.config)), ids=lambda target: target.id)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    """Start the imports now, where one of their cases was chosen, so that they run beside the other suites."""
    chosen = any("target" in getattr(item, "fixturenames", ()) for item in session.items)
    if chosen and not session.config.option.collectonly:
        cell = cell_of(session.config)
        cell.prefetch_fresh(TOGETHER, together(targets_of(cell)))


@pytest.fixture(scope="session")
def imports(cell):
    return Imports(cell, targets_of(cell))

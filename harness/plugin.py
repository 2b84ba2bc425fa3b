"""The pytest plugin: options, fixtures, case ids and outcomes for the suites of poolparity.

It is loaded in every pytest run of an environment that has poolparity, so it imports little, adds its options only to
runs that are about it (other projects have a `--platform` of their own), and acts only on items that lie in our suites
(`suites/selftest`, the tests of poolparity itself, is plain pytest). In a cell's child the prepared cell is handed in;
in a plain `pytest suites/kv --sut … --platform …` the pytest process itself becomes the cell.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.data import fixtures_dir, suites_dir
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from harness.cells.context import Cell
    from harness.checks.meter import Meter
    from harness.sut.drivers.port import Driver
    from harness.verdicts.outcomes import CaseResult
    from harness.verdicts.recording import Record

CELL = pytest.StashKey["Cell"]()
SUITES = pytest.StashKey[Path]()
_EXPECTATIONS = pytest.StashKey[list[Any]]()
_CASE = pytest.StashKey[str]()
_RECORD = pytest.StashKey["Record"]()

_SELFTEST = "selftest"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options of a plain pytest run of our suites."""
    config = pluginmanager.get_plugin("pytestconfig")
    if not isinstance(config, pytest.Config) or not _is_about_us(config):
        return
    group = parser.getgroup("poolparity", "poolparity: conformance suites for SGLang's pools")
    group.addoption("--sut", action="append", help="system under test: sglang==X, a path, path@ref, or reference")
    group.addoption("--platform", action="append", help="cuda (the default), rocm, ascend, xpu or cpu")
    group.addoption("--mode", default="auto", choices=("auto", "native", "emulated"), help="default: auto")
    group.addoption("--poolparity-seed", type=int, default=0, help="seed of the slots that a case chooses")


def _is_about_us(config: pytest.Config) -> bool:
    """Whether a command line has `--sut`, or names something in our suites."""
    given = config.invocation_params
    if any(arg == "--sut" or arg.startswith("--sut=") for arg in given.args):
        return True
    named = [given.dir / arg.partition("::")[0] for arg in given.args if not arg.startswith("-")]
    try:
        suites = suites_dir()
        return any(place.exists() and _in_suite(place.resolve(), suites) for place in [*named, given.dir])
    except (InfrastructureError, OSError):
        return False


def _only(config: pytest.Config, option: str) -> str | None:
    given: list[str | None] = config.getoption(option, None) or [None]
    if len(given) > 1:
        msg = f"{option} was given {len(given)} times; expected one: a pytest process is one cell; use `poolparity run`"
        raise pytest.UsageError(msg)
    return given[0]


def cell_of(config: pytest.Config) -> Cell:
    """Return the cell of this run; a plain pytest run becomes one when it is first asked for."""
    if CELL not in config.stash:
        config.stash[CELL] = _become_cell(config)
    return config.stash[CELL]


def _become_cell(config: pytest.Config) -> Cell:
    from harness import platforms, sut  # noqa: PLC0415 - only where our suites run
    from harness.cells.context import Cell  # noqa: PLC0415
    from harness.errors import PoolparityError  # noqa: PLC0415

    try:
        tree = sut.resolve(_only(config, "--sut") or sut.default_sut())
        platform = platforms.get(_only(config, "--platform") or platforms.DEFAULT[0])
        mode, seed = config.getoption("--mode", "auto"), config.getoption("--poolparity-seed", 0)
        cell = Cell(tree, platform.name, mode, seed)
        cell.prepare()
    except PoolparityError as error:
        raise pytest.UsageError(str(error)) from error
    return cell


def _in_suite(path: Path, suites: Path) -> str | None:
    """Return the suite that a file belongs to, or None."""
    if path == suites or not path.is_relative_to(suites):
        return None
    suite = path.relative_to(suites).parts[0]
    return None if suite == _SELFTEST else suite


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give every case its id: `<suite>/<function without test_>[<parameters>]`."""
    suite = _in_suite(item.path, item.config.stash.get(SUITES, suites_dir()))
    if suite is not None:
        case = item.stash[_CASE] = f"{suite}/{item.name.removeprefix('test_')}"
        item.extra_keyword_matches.add(case)  # so that `-k` takes a case id out of a report
        # A warning of the SUT is no failure, whatever this project's own configuration makes of warnings.
        item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Drop what pytest makes of an empty parameter list: a platform without legal cases has none to skip."""
    items[:] = [item for item in items if _CASE not in item.stash or not item.name.endswith("[NOTSET]")]


def case_of(item: pytest.Item) -> str:
    """Return the id of a case; the node id of an item that is none."""
    return item.stash.get(_CASE, item.nodeid)


def _record(item: pytest.Item) -> Record:
    from harness.verdicts.recording import Record  # noqa: PLC0415 - only where our suites run

    if _RECORD not in item.stash:
        item.stash[_RECORD] = Record(case_of(item))
    return item.stash[_RECORD]


def result_of(item: pytest.Item) -> CaseResult:
    """Return what came of a case, after it ran."""
    return _record(item).result()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judge each phase of a case, and let pytest's own report say the same."""
    report = yield
    if _CASE not in item.stash:
        return report
    record = _record(item)
    record.seconds += call.duration
    cell = cell_of(item.config)
    if call.excinfo is not None:
        record.raised(call.excinfo.value, cell.sut.root)
    elif call.when == "call":
        record.returned()
    if call.when == "teardown" or record.cause is not None:
        record.expect(_expectations(item.config), version=cell.sut.version, platform=cell.platform, mode=cell.mode)
    record.show(report)
    return report


def _expectations(config: pytest.Config) -> list[Any]:
    from harness.verdicts.expectations import load  # noqa: PLC0415 - only where our suites run

    if _EXPECTATIONS not in config.stash:
        # They speak of SGLang; the reference has nothing to be excused for.
        everything = load(fixtures_dir() / "expectations")
        config.stash[_EXPECTATIONS] = [] if cell_of(config).sut.is_reference else everything
    return config.stash[_EXPECTATIONS]


@pytest.fixture(scope="session")
def cell(pytestconfig: pytest.Config) -> Cell:
    """The cell: SUT, platform, mode, seed."""
    return cell_of(pytestconfig)


@pytest.fixture
def driver(cell: Cell) -> Driver:
    """The driver of the SUT's pool API."""
    return cell.driver


@pytest.fixture
def meter(request: pytest.FixtureRequest) -> Meter:
    """Counts the bytes that this case compares."""
    return _record(request.node).meter

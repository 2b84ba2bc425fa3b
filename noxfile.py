"""The project's sessions. `nox -l` lists them; README.md says which two you need."""

import nox

nox.needs_version = ">=2024.4.15"
nox.options.sessions = ["lint", "tests"]
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_external_run = True

RELEASES = [f"sglang==0.5.{patch}" for patch in range(16, 24)]
OLD, NEW = "sglang==0.5.17", "sglang==0.5.23"
PLATFORMS = ["cuda", "rocm", "ascend", "xpu", "cpu"]
LINTERS = ("ruff>=0.6", "mypy>=1.11", "types-psutil")


def install(session, *packages, extras=""):
    """Install the project from this folder, with the pins of constraints.txt."""
    session.install("-c", "constraints.txt", "-e", f".{extras}", *packages)


def repeated(option, values):
    """Return `--option value` for each value."""
    return [part for value in values for part in (option, value)]


@nox.session
def conformance(session):
    """The main job: a real SGLang release judged on emulated CUDA, ROCm and Ascend."""
    install(session)
    session.run("poolparity", "run", *(session.posargs or ["--sut", NEW]))


@nox.session
def tests(session):
    """Tests of the harness and the reference, and the fast suites of one old and one new release on every platform."""
    install(session, extras="[tests,triton]")
    session.run("pytest", "suites/selftest", "-m", "not slow", *session.posargs)


@nox.session
def mutants(session):
    """See every planted bug of the reference killed by its tests: minutes, for whoever changes the reference."""
    install(session, extras="[tests]")
    session.run("pytest", "suites/selftest", "-m", "slow", *session.posargs)


@nox.session
def story(session):
    """What a gate would have said of six upstream changes: trees built from a release (docs/mutants.md)."""
    install(session)
    session.run("poolparity", "story", *session.posargs)


@nox.session
def lint(session):
    """Run ruff (check and format) and mypy --strict."""
    install(session, *LINTERS)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def sweep(session):
    """All releases on all platforms. Red where a release has a bug that a later one fixed (docs/known-gaps.md)."""
    install(session)
    arguments = [*repeated("--sut", RELEASES), *repeated("--platform", PLATFORMS)]
    session.run("poolparity", "run", *arguments, *session.posargs, success_codes=[0, 1])

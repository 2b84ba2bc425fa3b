"""From names to things: SUT strings to trees on disk, and `--mode native` to a device that is really here."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from harness import platforms, sut
from harness.errors import InfrastructureError
from harness.reports.plain import as_text
from harness.reports.progress import note
from harness.sut.spec import SutTree


def check_native(mode: str, names: Sequence[str]) -> None:
    """InfrastructureError, with what the detection found, for the first platform that `--mode native` cannot have."""
    if mode != "native":
        return
    for name in names:
        found = platforms.get(name).detect_native()
        if not found.present:
            msg = (
                f"--mode native: {name} is not on this machine ({found.reason}); expected its hardware and kernels; "
                "run where they are, or use --mode emulated"
            )
            raise InfrastructureError(msg)


def resolve_all(names: Sequence[str], console: Console) -> list[SutTree]:
    """Resolve every SUT before the first cell starts, so that a wrong name costs nothing.

    Two names for the same tree stay two rows. Raises what `harness.sut.resolve` raises.
    """
    asked = list(dict.fromkeys(names)) or [sut.default_sut()]
    trees = []
    for name in asked:
        with console.status(as_text(f"looking for {name}")):
            tree = sut.resolve(name)
        note(console, f"{name}: {tree.identity}")
        trees.append(tree)
    return trees

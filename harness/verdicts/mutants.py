"""What became of a mutant, and of all of them: pure rules of `poolparity mutate`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from harness.verdicts.exit_code import CLEAN, MEASURED_NOTHING, RED

MIN_KILLED = 0.95


class Fate(StrEnum):
    """The outcome of a mutant (docs/contract.md)."""

    KILLED = "killed"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"
    NOT_APPLICABLE = "not-applicable"


class MutantResult(msgspec.Struct, frozen=True, kw_only=True):
    """One mutant. `killed_by` is `platform: case`, `why` the message of that case, or why it is equivalent.

    `named` mutants are somebody's description of a bug: each of them must be killed.
    """

    name: str
    operator: str
    file: str
    outcome: Fate
    killed_by: str = ""
    why: str = ""
    location: str = ""
    diff: str = ""
    named: bool = False
    wrongly_marked: bool = False


def killed_share(results: Sequence[MutantResult]) -> float:
    """Return the share of the mutants that are not equivalent, and could be written, that was killed."""
    asked = [r for r in results if r.outcome in (Fate.KILLED, Fate.SURVIVED)]
    return sum(r.outcome is Fate.KILLED for r in asked) / len(asked) if asked else 0.0


def exit_code_of(results: Sequence[MutantResult], minimum: float = MIN_KILLED) -> int:
    """Return 0 when all is as it should be, 1 otherwise, and 4 when no mutant was asked.

    1: fewer than `minimum` killed; a named mutant that survives or no longer applies; a mutant that is marked
    equivalent and was killed.
    """
    if not any(r.outcome in (Fate.KILLED, Fate.SURVIVED) for r in results):
        return RED if results else MEASURED_NOTHING
    named_alive = any(r.named and r.outcome in (Fate.SURVIVED, Fate.NOT_APPLICABLE) for r in results)
    wrong = any(r.wrongly_marked for r in results)
    return RED if named_alive or wrong or killed_share(results) < minimum else CLEAN

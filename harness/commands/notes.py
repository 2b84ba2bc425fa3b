"""Why a failure is expected, for reports: cells write only the id of an expectation."""

from __future__ import annotations

from harness.data import fixtures_dir
from harness.verdicts.expectations import load


def expectation_notes() -> dict[str, str]:
    """Map the id of each expectation to its reference and reason; UsageError when their files are broken."""
    entries = load(fixtures_dir() / "expectations")
    return {entry.id: f"{entry.reference}: {entry.reason} (until {entry.expires})" for entry in entries}

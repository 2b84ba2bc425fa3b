"""What a suite needs to turn the platform's matrix into cases while pytest collects."""

from __future__ import annotations

import pytest

from harness.plugin import cell_of

__all__ = ["cell_of", "platform_of"]


def platform_of(config: pytest.Config) -> str:
    """Return the name of the platform that is judged in this run."""
    return cell_of(config).platform

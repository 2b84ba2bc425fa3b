"""A SUT string, and the tree that was found for it: one SGLang tree on disk, or the reference."""

from __future__ import annotations

from pathlib import Path

import msgspec

REFERENCE = "reference"
PACKAGE = "sglang"


class SutTree(msgspec.Struct, frozen=True, kw_only=True):
    """One system under test.

    `name` is what the user wrote; `root` the folder that holds `sglang/` (None: the reference); `version` a release
    number where one is known; `identity` says exactly which code this is.
    """

    name: str
    root: Path | None
    version: str | None
    identity: str

    @property
    def is_reference(self) -> bool:
        """Whether this is the specification itself."""
        return self.root is None

"""Which files of the SUT ran: what a bisection looks at when it asks what changed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from harness.verdicts.location import sut_location


@contextmanager
def touching(root: Path | None) -> Iterator[set[str]]:
    """Collect the files of the SUT at `root` (None: the reference) in which a function is called inside the block.

    Files are named as in locations: `sglang/…/file.py`. Code of other threads is not seen.
    """
    seen: set[str] = set()
    codes: set[str] = set()

    def on_call(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and (path := frame.f_code.co_filename) not in codes:
            codes.add(path)
            seen.update(filter(None, [sut_location(path, 1, root).removesuffix(":1")]))

    before = sys.getprofile()
    sys.setprofile(on_call)
    try:
        yield seen
    finally:
        sys.setprofile(before)

"""What a SUT tree says about itself: its version, and the requirements that it declares for a platform.

A wheel carries `sglang-<version>.dist-info/METADATA` (the CUDA list); a checkout carries one `pyproject*.toml` per
platform beside its `sglang` folder. Only text is read: nothing of the SUT is imported.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

_VERSION = re.compile(r"""^(?:__version__|version)\b[^=\n]*=\s*(?:version\s*=\s*)?["']([^"']+)["']""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SutFacts:
    """A SUT's own statements.

    `declared`: canonical distribution names, None where the tree declares nothing for the platform.
    `pins`: the exact versions among them. `source`: the file that was read.
    """

    version: str | None
    declared: frozenset[str] | None = None
    pins: dict[str, str] = field(default_factory=dict)
    source: str = ""


def _parse(lines: Iterable[str]) -> tuple[frozenset[str], dict[str, str]]:
    """Names and exact pins of requirement lines whose markers hold here; lines that are no requirement are left out."""
    names: set[str] = set()
    pins: dict[str, str] = {}
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue  # e.g. "sglang[runtime_common]" spelled with a local path: it names no distribution to look up
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = canonicalize_name(requirement.name)
        names.add(name)
        for specifier in requirement.specifier:
            if specifier.operator == "==":
                pins[name] = specifier.version
    return frozenset(names), pins


def _wheel_metadata(root: Path) -> Path | None:
    found = sorted(root.glob("sglang-*.dist-info/METADATA"))
    return found[-1] if found else None


def _from_pyproject(path: Path, extras: Sequence[str]) -> list[str]:
    project = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
    lines = list(project.get("dependencies", []))
    for extra in extras:
        lines += project.get("optional-dependencies", {}).get(extra, [])
    return lines


def _version(root: Path) -> str | None:
    metadata = _wheel_metadata(root)
    if metadata is not None:
        return HeaderParser().parsestr(metadata.read_text(encoding="utf-8"))["Version"]
    for name in ("_version.py", "version.py"):
        path = root / "sglang" / name
        if path.is_file() and (match := _VERSION.search(path.read_text(encoding="utf-8"))):
            try:
                return str(Version(match.group(1)))
            except InvalidVersion:
                continue
    return None


def read_sut(root: Path, read_from: Sequence[str], extras: Sequence[str] = ()) -> SutFacts:
    """Read what the tree at `root` (the folder that holds `sglang/`) declares.

    `read_from`: file names in order of preference; "METADATA" stands for the wheel's.
    """
    version = _version(root)
    for name in read_from:
        if name == "METADATA":
            metadata = _wheel_metadata(root)
            if metadata is not None:
                headers = HeaderParser().parsestr(metadata.read_text(encoding="utf-8"))
                names, pins = _parse(headers.get_all("Requires-Dist") or [])
                return SutFacts(version, names, pins, metadata.name)
        elif (root / name).is_file():
            names, pins = _parse(_from_pyproject(root / name, extras))
            return SutFacts(version, names, pins, name)
    return SutFacts(version)

"""Model geometries from data: a TOML file with a `geometry` table and the source of each of its numbers.

The project keeps its presets in fixtures/models; this module is given a path or the text, and knows no folder.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reference.geometry import PoolGeometry


@dataclass(frozen=True, slots=True)
class Preset:
    """A model: what its pools look like, whatever size they are. `mtp_layers` is how many draft layers it ships."""

    title: str
    mtp_layers: int
    fields: dict[str, Any]
    sources: dict[str, str]

    def geometry(self, *, device_tokens: int, **overrides: Any) -> PoolGeometry:
        """Return a pool of this model that holds device_tokens; overrides replace any field of `PoolGeometry`."""
        return PoolGeometry(**{**self.fields, "device_tokens": device_tokens, **overrides})


def load_preset(source: str | Path) -> Preset:
    """Read a preset from a path, or from its text when `source` is a str.

    Raises ValueError when a table is missing, or a number has no source.
    """
    data = tomllib.loads(source.read_text() if isinstance(source, Path) else source)
    missing = {"title", "mtp_layers", "geometry", "sources"} - data.keys()
    if missing:
        msg = f"preset source={str(source)[:60]!r} lacks {', '.join(sorted(missing))}"
        raise ValueError(msg)
    fields, sources = data["geometry"], data["sources"]
    unsourced = (fields.keys() | {"mtp_layers"}) - sources.keys()
    if unsourced:
        msg = f"preset {data['title']!r}: no source for {', '.join(sorted(unsourced))}"
        raise ValueError(msg)
    if "indexer_layers" in fields:
        fields["indexer_layers"] = tuple(fields["indexer_layers"])
    return Preset(data["title"], data["mtp_layers"], fields, sources)

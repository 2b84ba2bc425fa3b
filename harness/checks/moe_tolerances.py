"""The one table of tolerances: how far a result may be from the reference, by operation, dtype and platform."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from harness.data import fixtures_dir
from harness.errors import InfrastructureError

# 2 to this power is the distance between 1 and the next number of a dtype.
_EXPONENT: Final = {"fp32": -23, "fp16": -10, "bf16": -7, "fp8_e4m3": -3, "fp8_e5m2": -2}


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound for one element (`ulp`, of the dtype, relative to the largest term) and for a whole tensor.

    `relative_norm` bounds |found - expected| / |expected| in the Euclidean norm. `measured_ulp` and `measured_norm` are
    what the reference's own run in that dtype shows; a bound far above them is a defect of the table.
    """

    operation: str
    dtype: str
    ulp: float
    relative_norm: float
    measured_ulp: float
    measured_norm: float
    why: str

    @property
    def relative(self) -> float:
        """The bound for one element as a fraction of its magnitude."""
        return float(self.ulp * 2.0 ** _EXPONENT[self.dtype])


@cache
def _rows() -> list[dict[str, Any]]:
    path = fixtures_dir() / "tolerances.toml"
    try:
        rows: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["bound"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        msg = f"cannot read the tolerances in {path}: {error}; reinstall poolparity, or restore the file"
        raise InfrastructureError(msg) from error
    return rows


def bound(operation: str, dtype: str, platform: str) -> Bound:
    """Return the first row that speaks of the operation, dtype and platform; InfrastructureError when none does."""
    for row in _rows():
        if (row["operation"], row["dtype"]) == (operation, dtype) and platform in row.get("platforms", [platform]):
            numbers = {name: float(row[name]) for name in ("ulp", "relative_norm", "measured_ulp", "measured_norm")}
            return Bound(operation, dtype, why=" ".join(row["why"].split()), **numbers)
    msg = (
        f"no tolerance for operation {operation!r} in {dtype} on {platform}; expected a [[bound]] in "
        "fixtures/tolerances.toml; add one with its derivation, never a number in a test"
    )
    raise InfrastructureError(msg)

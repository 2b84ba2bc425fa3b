"""The cases of the fusion step: every method of a generation x shared or not x scaled or not x dtype and form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from reference.moe.fusion import FUSED_METHODS, PLAIN, Generation, Rule, rule

DTYPES: Final = ("bf16", "fp16", "fp32")
# Forms of the operands. "" is contiguous with values whose results are exact in every dtype; "rounded" has values that
# need rounding; "same" passes one tensor as both; "strided" has a step of 2 in the last dimension; "empty" no tokens.
EXACT, ROUNDED, SAME, STRIDED, EMPTY = "", "rounded", "same", "strided", "empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionCase:
    """One call of the fusion step."""

    platform: str
    generation: Generation
    method: str
    shared: bool
    already_scaled: bool
    dtype: str = "bf16"
    form: str = EXACT

    @property
    def id(self) -> str:
        """The parameters as they stand in the case id."""
        shared, scaled = "shared" if self.shared else "alone", "scaled" if self.already_scaled else "unscaled"
        parts = [self.platform, self.method, shared, scaled, self.dtype]
        return "-".join([*parts, self.form] if self.form else parts)

    @property
    def rule(self) -> Rule:
        """The row of the truth table that the call must follow."""
        return rule(self.generation, self.method, shared=self.shared, already_scaled=self.already_scaled)

    def __str__(self) -> str:
        """The call in words, as messages have it."""
        fused = self.generation.fuses(self.method)
        name = FUSED_METHODS[self.method].class_name if fused else "plain method"
        parts = [f"fused {name}" if fused else name]
        parts += ["routed is shared" if self.form == SAME else "shared given" if self.shared else "no shared"]
        parts += ["scaled by top-k already" if self.already_scaled else "not scaled yet"]
        return ", ".join([*parts, self.dtype] + ([self.form] if self.form in (ROUNDED, STRIDED, EMPTY) else []))


def _of_method(base: FusionCase) -> Iterator[FusionCase]:
    for dtype, form in product(DTYPES, (EXACT, ROUNDED)):
        yield replace(base, dtype=dtype, form=form)
    yield replace(base, form=STRIDED)
    yield replace(base, form=EMPTY)
    if base.shared:
        yield replace(base, form=SAME)


def fusion_cases(platform: str, generation: Generation) -> list[FusionCase]:
    """Every case of a generation on a platform."""
    points = product((PLAIN, *generation.methods), (True, False), (False, True))
    return [
        case
        for method, shared, scaled in points
        for case in _of_method(
            FusionCase(platform=platform, generation=generation, method=method, shared=shared, already_scaled=scaled)
        )
    ]

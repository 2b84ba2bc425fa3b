"""The operands of the fusion step: views inside guarded storage, so that a write beside the tensor is seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from harness.checks.moe_cases import EMPTY, ROUNDED, SAME, STRIDED, FusionCase
from reference.dtypes import torch_dtype

# DeepSeek-V3's routed scaling factor. 2.5, 6.25 and 0.4 cannot be mistaken for each other in a table of small integers.
FACTOR: Final = 2.5
TOKENS: Final = 3
HIDDEN: Final = 16
_GUARD_ROWS: Final = 2


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor (tokens, hidden) that is a view into `storage`; what lies beside it are guards."""

    storage: torch.Tensor
    view: torch.Tensor

    def copied(self) -> torch.Tensor:
        """The whole storage as it is now, in CPU memory."""
        return self.storage.detach().to("cpu", copy=True)

    def put_into(self, storage: torch.Tensor, value: torch.Tensor) -> None:
        """Write `value` where the view lies in a copy of the storage."""
        storage.as_strided(self.view.shape, self.view.stride(), self.view.storage_offset()).copy_(value)


@dataclass(frozen=True, slots=True)
class Operands:
    """What one call gets. `shared` is None, an operand, or the very same operand as `routed`."""

    routed: Operand
    shared: Operand | None


def _values(shape: tuple[int, int], form: str, limit: int, generator: torch.Generator) -> torch.Tensor:
    if form == ROUNDED:
        return torch.randn(shape, generator=generator) * limit
    # Even integers up to `limit` that are not 0: their multiples by 2.5 are integers, and so is every sum.
    magnitude = torch.randint(1, limit // 2 + 1, shape, generator=generator) * 2
    sign = torch.randint(0, 2, shape, generator=generator) * 2 - 1
    return (magnitude * sign).float()


def _operand(case: FusionCase, limit: int, device: str, generator: torch.Generator) -> Operand:
    step = 2 if case.form == STRIDED else 1
    shape = (TOKENS + 2 * _GUARD_ROWS, HIDDEN * step)
    values = _values(shape, case.form, limit, generator)
    # A copy of its own even where nothing had to be converted: `detach` would share the generator's memory.
    storage = values.to(dtype=torch_dtype(case.dtype), device=device, copy=True)
    last = _GUARD_ROWS if case.form == EMPTY else _GUARD_ROWS + TOKENS
    return Operand(storage, storage[_GUARD_ROWS:last, ::step])


def operands(case: FusionCase, seed: int, device: str) -> Operands:
    """Make the operands of a case: |routed| <= 48 and |shared| <= 60, so that results stay below 256, exact in bf16."""
    generator = torch.Generator().manual_seed(seed)
    routed = _operand(case, 48, device, generator)
    if not case.shared:
        return Operands(routed, None)
    return Operands(routed, routed if case.form == SAME else _operand(case, 60, device, generator))

"""What a wrong result of the fusion step is: how often the factor went in, what became of the shared output."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

import torch

_TIMES: Final = {-1: "divided by", 0: "never applied", 1: "applied once", 2: "applied twice", 3: "applied three times"}


def _number(value: float) -> str:
    return f"{value:g}"


def formula(shared: float, routed: float) -> str:
    """Write a combination of the two inputs by its coefficients."""
    parts = [("shared", shared), ("routed", routed)]
    named = [name if factor == 1 else f"{_number(factor)} * {name}" for name, factor in parts if factor]
    return " + ".join(named) or "0"


def _candidates(factor: float, *, has_shared: bool) -> Iterator[tuple[float, float, str]]:
    shared = {1.0: "", 0.0: "shared not added", 2.0: "shared added twice", factor: "shared multiplied by the factor"}
    choices = shared.items() if has_shared else [(0.0, "")]
    for (a, said), exponent in product(choices, _TIMES):
        said_factor = f"factor {_TIMES[exponent]} (exponent {exponent})"
        yield a, factor**exponent, f"{said_factor}, {said}" if said else said_factor
    if has_shared:
        yield 1.0, 0.0, "routed not added"


def describe(found: torch.Tensor, routed: torch.Tensor, shared: torch.Tensor | None, factor: float) -> str:
    """Say which combination of the inputs a result is; the first one that matches within the dtype's rounding.

    All tensors: (tokens, hidden), CPU. `routed` and `shared` are the inputs before the call.
    """
    if found.shape != routed.shape:
        return f"a tensor of shape {tuple(found.shape)}; expected {tuple(routed.shape)}"
    values, x = found.double(), routed.double()
    s = None if shared is None else shared.double()
    tolerance = 4 * torch.finfo(routed.dtype).eps
    for a, b, said in _candidates(factor, has_shared=s is not None):
        terms = [b * x] if s is None else [a * s, b * x]
        size = sum(term.abs() for term in terms)
        if bool(((values - sum(terms)).abs() <= tolerance * size).all()):
            return f"{formula(a, b)}: {said}"
    return "no combination of routed, shared and powers of the factor"


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The elements' bytes: uint8 (..., element size)."""
    flat = tensor.contiguous().reshape(-1, 1)
    return flat.view(torch.uint8).reshape(*tensor.shape, tensor.element_size())


def same_bytes(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two CPU tensors agree in shape, dtype and every bit."""
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return False
    return torch.equal(_bytes(found), _bytes(expected))


def first_difference(found: torch.Tensor, expected: torch.Tensor) -> str:
    """Say where two tensors of one shape and dtype first differ in their bits, and in how many elements."""
    unequal = (_bytes(found) != _bytes(expected)).any(-1)
    at = tuple(int(i) for i in unequal.nonzero()[0])
    count = int(unequal.sum())
    return (
        f"{count} of {found.numel()} elements differ, the first at {list(at)}: {found[at].item()!r}, "
        f"expected {expected[at].item()!r}"
    )

"""The judgement of one call of the fusion step: the value, the object returned, and every byte of both operands."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from harness.checks.meter import Meter
from harness.checks.moe_cases import SAME, FusionCase
from harness.checks.moe_explain import describe, first_difference, formula, same_bytes
from harness.checks.moe_generation import STEP_NAME
from harness.checks.moe_operands import FACTOR, Operand, Operands, operands
from harness.checks.moe_step import Step
from harness.checks.moe_trace import WrongResult, returning_line
from reference.moe.fusion import Rule, Side, expected


@dataclass(frozen=True, slots=True)
class _Before:
    """The operands before the call, in CPU memory: the tensors, and the storages that they lie in."""

    values: dict[Side, torch.Tensor]
    storages: dict[Side, torch.Tensor]


def _before(given: Operands) -> _Before:
    sides: dict[Side, Operand] = {"routed": given.routed}
    sides |= {"shared": given.shared} if given.shared is not None else {}
    values = {side: operand.view.to("cpu", copy=True) for side, operand in sides.items()}
    return _Before(values, {side: operand.copied() for side, operand in sides.items()})


def _sides(case: FusionCase, given: Operands) -> dict[Side, Operand]:
    """The distinct operands by name; a tensor that is both goes by the name of the one that the rule mutates."""
    if given.shared is None:
        return {"routed": given.routed}
    if case.form == SAME:
        return {case.rule.mutated or "routed": given.routed}
    return {"routed": given.routed, "shared": given.shared}


def _returned(result: object, row: Rule, given: Operands) -> str | None:
    """Say what is wrong with the object that was returned; None when it is the right argument."""
    tensors: dict[Side, Operand | None] = {"routed": given.routed, "shared": given.shared}
    wanted = tensors[row.returned]
    if wanted is not None and result is wanted.view:
        return None
    if not isinstance(result, torch.Tensor):
        return f"it returned {result!r}; expected the {row.returned} tensor"
    for side, operand in tensors.items():
        if operand is not None and result is operand.view:
            return f"it returned the {side} tensor; expected the {row.returned} tensor"
        if operand is not None and result.numel() and result.data_ptr() == operand.view.data_ptr():
            return f"it returned a new view of the {side} tensor; expected the {row.returned} tensor itself"
    return f"it returned a new tensor {tuple(result.shape)} {result.dtype}; expected the {row.returned} tensor itself"


def _content(side: Side, operand: Operand, before: _Before, value: torch.Tensor | None) -> str | None:
    """Say what is wrong with an operand after the call. `value` is what it must hold, None for "as before"."""
    wanted = before.storages[side].clone()
    if value is not None:
        operand.put_into(wanted, value)
    found = operand.copied()
    if same_bytes(found, wanted):
        return None
    view = operand.view.to("cpu", copy=True)
    inside = value if value is not None else before.values[side]
    if same_bytes(view, inside):
        return f"bytes beside the {side} tensor changed: {first_difference(found, wanted)}"
    must = "must not change" if value is None else "must hold the result"
    holds = describe(view, before.values["routed"], before.values.get("shared"), FACTOR)
    return f"the {side} tensor {must}, and holds {holds}; {first_difference(view, inside)}"


def _value(result: object, before: _Before, wanted: torch.Tensor) -> str | None:
    """Say what is wrong with the value of a result that is not the right object (else its operand is judged)."""
    if not isinstance(result, torch.Tensor):
        return None
    found = result.detach().to("cpu", copy=True)
    if same_bytes(found, wanted):
        return "its value is right"
    return f"its value is {describe(found, before.values['routed'], before.values.get('shared'), FACTOR)}"


def _problems(case: FusionCase, given: Operands, before: _Before, wanted: torch.Tensor, result: object) -> list[str]:
    row, problems = case.rule, []
    returned = _returned(result, row, given)
    if returned is not None:
        value = _value(result, before, wanted)
        problems.append(f"{returned}; {value}" if value else returned)
    for side, operand in _sides(case, given).items():
        content = _content(side, operand, before, wanted if row.mutated == side else None)
        problems += [content] if content else []
    return problems


def _call(step: Step, case: FusionCase, given: Operands) -> object:
    shared = given.shared.view if given.shared is not None else None
    return step(case.method, given.routed.view, shared, FACTOR, already_scaled=case.already_scaled)


def _wanted(case: FusionCase, given: Operands) -> torch.Tensor:
    """Return the right value, computed on the operands' own device from operands that nothing else uses."""
    shared = given.shared.view if given.shared is not None else None
    return expected(case.rule, given.routed.view, shared, FACTOR).to("cpu", copy=True)


def check_fusion(case: FusionCase, step: Step, *, seed: int, device: str, meter: Meter) -> None:
    """Call the step once and compare everything with the truth table; AssertionError names each difference."""
    wanted = _wanted(case, operands(case, seed, device))
    given = operands(case, seed, device)
    before = _before(given)
    problems = _problems(case, given, before, wanted, _call(step, case, given))
    meter.compared(sum(operand.storage.nbytes for operand in _sides(case, given).values()))
    if problems:
        line = returning_line(lambda: _call(step, case, operands(case, seed, device)), STEP_NAME)
        value = formula(float(case.rule.adds_shared), FACTOR**case.rule.exponent)
        right = f"expected {value} in the {case.rule.returned} tensor, which is returned"
        msg = f"{case}: {right}; but {'; and '.join(problems)}; it returned at {line}"
        raise WrongResult(msg, line.place)

"""The judgement of one answer of a router: which experts, with which weights, and what a wrong answer looks like."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from harness.checks.meter import Meter
from harness.checks.moe_routers import Answer, Route
from harness.checks.moe_routing_cases import FACTOR, RoutingCase
from harness.checks.moe_tolerances import Bound, bound
from harness.checks.moe_trace import WrongResult, returning_line
from reference.moe.routing import Routing, RoutingSpec, route, scores_of, weigh


def _check_form(case: RoutingCase, weights: torch.Tensor, ids: torch.Tensor, tokens: int) -> None:
    columns = case.spec.top_k + (1 if case.spec.shared else 0)
    if weights.shape != (tokens, columns) or ids.shape != (tokens, columns):
        msg = (
            f"{case.router.name} returned weights {tuple(weights.shape)} and ids {tuple(ids.shape)}; "
            f"expected ({tokens}, {columns}) each"
        )
        raise AssertionError(msg)


def _check_shared(case: RoutingCase, weights: torch.Tensor, ids: torch.Tensor, experts: int, limit: Bound) -> None:
    """Check the last column: the id of a shared copy, with the weight that lets it count once in the end."""
    wanted = {*range(experts, experts + case.spec.shared)}
    strangers = {int(i) for i in ids} - wanted
    if strangers:
        msg = f"{case.router.name}: the shared column names {sorted(strangers)}; expected one of {sorted(wanted)}"
        raise AssertionError(msg)
    spec = case.spec
    weight = 1.0 if spec.factor_on_output else 1.0 / FACTOR
    wrong = ((weights.double() - weight).abs() > limit.relative * weight).nonzero().flatten()
    if len(wrong):
        when = "is in the weights already" if spec.factor_on_output else "is applied later"
        msg = (
            f"{case.router.name}: the shared column weighs {weights[wrong[0]].item():.7g} for token {int(wrong[0])}; "
            f"expected {weight:.7g}, as the factor {FACTOR} {when}: the shared expert must count once"
        )
        raise AssertionError(msg)


def _check_choice(case: RoutingCase, found: torch.Tensor, right: Routing, choice: torch.Tensor, error: float) -> int:
    """Check the chosen sets; return how many tokens chose otherwise in a near-tie, which is not wrong."""
    other = (found != right.ids).any(dim=-1)
    # Two scores err, each by `error`; a group's score may be the sum of two.
    near = right.margin <= (4 if case.spec.group_score == "best_two" else 2) * error
    for token in (other & ~near).nonzero().flatten().tolist():
        chosen, wanted = set(found[token].tolist()), set(right.ids[token].tolist())
        extra, missed = sorted(chosen - wanted), sorted(wanted - chosen)
        scored = ", ".join(f"{e}: {choice[token, e].item():.6g}" for e in [*extra, *missed])
        msg = (
            f"{case.router.name}: token {token} chose {extra or 'an expert twice'} instead of {missed} (scores that "
            f"choose: {scored}); the margin is {right.margin[token].item():.3g} and the gate's error {error:.3g}, so "
            "this is no near-tie"
        )
        raise AssertionError(msg)
    return int((other & near).sum())


def _variants(spec: RoutingSpec) -> Iterator[tuple[str, RoutingSpec, float]]:
    """Wrong ways to weigh that have a name: what differs, with which spec, times which power of the factor."""
    if spec.factor_on_output:
        powers = {-1: "without the factor", 1: "with the factor twice", 2: "with the factor three times"}
    else:
        powers = {
            -1: "divided by the factor",
            1: "with the factor, which somebody applies later",
            2: "with the factor twice",
        }
    other = replace(spec, renormalize=not spec.renormalize)
    forgot = "not renormalised" if spec.renormalize else "renormalised"
    yield forgot, other, 1.0
    for power, said in powers.items():
        yield said, spec, FACTOR**power
        yield f"{forgot}, {said}", other, FACTOR**power


def _explain(
    case: RoutingCase,
    weights: torch.Tensor,
    ids: torch.Tensor,
    logits: torch.Tensor,
    bias: torch.Tensor | None,
    relative: float,
) -> str:
    scores = scores_of(logits.double(), case.scoring)
    candidates = [(said, scores, spec, times) for said, spec, times in _variants(case.spec)]
    if bias is not None:
        candidates.insert(0, ("taken from the biased scores", scores + bias.double(), case.spec, 1.0))
    for said, by, spec, times in candidates:
        value = weigh(by, ids, spec) * times
        if bool(((weights - value).abs() <= relative * value.abs()).all()):
            return f"it looks like weights {said}"
    return "no known mistake explains it"


def check_routing(case: RoutingCase, call: Route, *, seed: int, device: str, meter: Meter) -> int:
    """Ask the router once; AssertionError for a wrong choice or weight. Returns the number of near-ties."""
    try:
        return _judge(case, call, seed, device, meter)
    except AssertionError as wrong:
        line = returning_line(lambda: _judge(case, call, seed, device, Meter()), case.router.name)
        raise WrongResult(str(wrong), line.place) from None


def _judge(case: RoutingCase, call: Route, seed: int, device: str, meter: Meter) -> int:
    logits, bias = case.inputs(seed)
    answer: Answer = call(case.router, logits.to(device), case.spec, None if bias is None else bias.to(device))
    weights, ids = (tensor.cpu() for tensor in answer)
    _check_form(case, weights, ids, logits.shape[0])
    limit, gate = (bound(f"routing.{name}", case.dtype, case.platform) for name in ("weight", "score"))
    if case.spec.shared:
        _check_shared(case, weights[:, -1], ids[:, -1], logits.shape[1], limit)
        weights, ids = weights[:, :-1], ids[:, :-1]
    found, order = ids.long().sort(dim=-1)
    weights = weights.gather(1, order).double()
    right = route(logits, case.spec, bias)
    scores = scores_of(logits.double(), case.scoring)
    choice = scores if bias is None else scores + bias.double()
    near_ties = _check_choice(case, found, right, choice, gate.relative * float(choice.abs().max()))
    wanted = weigh(scores, found, case.spec)
    meter.compared(answer[0].nbytes + answer[1].nbytes)
    wrong = ((weights - wanted).abs() > limit.relative * wanted.abs()).nonzero()
    if len(wrong):
        token, column = wrong[0].tolist()
        msg = (
            f"{case.router.name}: token {token}, expert {int(found[token, column])} weighs "
            f"{weights[token, column].item():.7g}; expected {wanted[token, column].item():.7g} within {limit.ulp} ulp "
            f"of {case.dtype}; {len(wrong)} of {weights.numel()} weights are off, {near_ties} tokens in a near-tie; "
            f"{_explain(case, weights, found, logits, bias, 4 * limit.relative)}"
        )
        raise AssertionError(msg)
    return near_ties

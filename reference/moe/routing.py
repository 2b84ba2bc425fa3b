"""The router: scores, the choice of experts, and their weights. Computed in float64 unless asked otherwise.

Source: FACTS.md section 5.5, and the papers of the models that brought each form: grouped top-k with the group's best
score (DeepSeek-V2), with the sum of its best two and a correction bias that chooses and does not weigh (DeepSeek-V3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import torch

SCORINGS: Final = ("softmax", "sigmoid", "sqrtsoftplus")
GroupScore = Literal["max", "best_two"]
# Added to the sum that renormalises, so that a row of zero weights stays zero (SGLang has it from 0.5.17 on).
RENORMALIZE_EPSILON: Final = 1e-20


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingSpec:
    """One way to route.

    `top_k` counts routed experts only. With `groups` > 1 the experts are `groups` equal runs of ids, of which
    `top_groups` may be chosen from. `shared` is how many copies of a fused shared expert there are: one more column
    then names any of them. `factor` is the routed scaling factor; with `factor_on_output` it is in the weights that
    the router returns, else somebody applies it later.
    """

    top_k: int
    scoring: str = "softmax"
    renormalize: bool = True
    groups: int = 1
    top_groups: int = 1
    group_score: GroupScore = "max"
    shared: int = 0
    factor: float | None = None
    factor_on_output: bool = False


@dataclass(frozen=True, slots=True)
class Routing:
    """What the router decided. Columns are ordered by expert id, because their order means nothing.

    `ids`: int64 (tokens, top_k). `weights`: (tokens, top_k). `shared_weight`: what the shared column weighs.
    `margin`: (tokens,), how far the choice is from another one: the smallest gap between a chosen and a passed-over
    score, of experts and of groups. A gate whose scores err by more than half of it may choose otherwise.
    """

    ids: torch.Tensor
    weights: torch.Tensor
    shared_weight: float
    margin: torch.Tensor


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def check_router(logits: torch.Tensor, spec: RoutingSpec, bias: torch.Tensor | None = None) -> None:
    """Raise ValueError for what no router can do: wrong shapes, NaN, more experts than there are, unknown scoring."""
    _require(
        logits.ndim == len(("tokens", "experts")),
        f"logits have shape {tuple(logits.shape)}; expected (tokens, experts)",
    )
    experts = logits.shape[1]
    nan = int(logits.isnan().sum())
    _require(nan == 0, f"{nan} of {logits.numel()} router logits are NaN; expected numbers")
    _require(spec.scoring in SCORINGS, f"scoring={spec.scoring!r}; expected one of {', '.join(SCORINGS)}")
    _require(
        spec.groups > 0 and experts % spec.groups == 0, f"{experts} experts do not split into {spec.groups} groups"
    )
    _require(
        0 < spec.top_groups <= spec.groups, f"top_groups={spec.top_groups} of {spec.groups} groups; expected 1 to all"
    )
    reachable = experts // spec.groups * spec.top_groups
    _require(
        0 < spec.top_k <= reachable, f"top_k={spec.top_k}; expected 1 to {reachable} of {experts} experts in reach"
    )
    _require(spec.group_score in ("max", "best_two"), f"group_score={spec.group_score!r}; expected 'max' or 'best_two'")
    _require(spec.factor != 0, "factor=0 would drop the routed experts; expected another number or None")
    _require(not spec.factor_on_output or spec.factor is not None, "factor_on_output needs a factor; it is None")
    if bias is not None:
        _require(bias.shape == (experts,), f"correction bias has shape {tuple(bias.shape)}; expected ({experts},)")


def scores_of(logits: torch.Tensor, scoring: str) -> torch.Tensor:
    """Return the scores of logits (tokens, experts) in the logits' dtype; `scoring` is one of SCORINGS."""
    if scoring == "softmax":
        return logits.softmax(dim=-1)
    if scoring == "sigmoid":
        return logits.sigmoid()
    return torch.nn.functional.softplus(logits).sqrt()


def _gap(values: torch.Tensor, k: int) -> torch.Tensor:
    """The distance between the k-th and the next best value of each row; infinite where there is no next one."""
    best = values.topk(min(k + 1, values.shape[1]), dim=-1).values
    if best.shape[1] == k:
        return torch.full_like(best[:, 0], float("inf"))
    return best[:, k - 1] - best[:, k]


def _group_limited(choice: torch.Tensor, spec: RoutingSpec) -> tuple[torch.Tensor, torch.Tensor]:
    """Put minus infinity where a group was not chosen; return that and the gap between groups."""
    grouped = choice.view(choice.shape[0], spec.groups, -1)
    if spec.group_score == "max":
        group = grouped.amax(dim=-1)
    else:
        group = grouped.topk(min(2, grouped.shape[-1]), dim=-1).values.sum(dim=-1)
    allowed = torch.zeros_like(group, dtype=torch.bool)
    allowed.scatter_(1, group.topk(spec.top_groups, dim=-1).indices, True)
    limited = grouped.masked_fill(~allowed.unsqueeze(-1), float("-inf"))
    return limited.view_as(choice), _gap(group, spec.top_groups)


def shared_weight(spec: RoutingSpec) -> float:
    """Return the weight of a shared column: it must count once, whoever applies the routed scaling factor."""
    return 1.0 if spec.factor is None or spec.factor_on_output else 1.0 / spec.factor


def weigh(scores: torch.Tensor, ids: torch.Tensor, spec: RoutingSpec) -> torch.Tensor:
    """Return the weights of chosen experts: their raw scores, renormalised and scaled as `spec` says.

    `scores`: (tokens, experts) as `scores_of` returns them; `ids`: int64 (tokens, top_k).
    """
    weights = scores.gather(1, ids)
    if spec.renormalize:
        weights = weights / (weights.sum(dim=-1, keepdim=True) + RENORMALIZE_EPSILON)
    if spec.factor_on_output and spec.factor is not None:
        weights = weights * spec.factor
    return weights


def route(
    logits: torch.Tensor, spec: RoutingSpec, bias: torch.Tensor | None = None, *, dtype: torch.dtype = torch.float64
) -> Routing:
    """Route tokens by their logits (tokens, experts), computing in `dtype`.

    `bias` (experts,) is the correction bias: the biased score chooses, the raw score weighs. Raises ValueError as
    `check_router` does.
    """
    check_router(logits, spec, bias)
    scores = scores_of(logits.to(dtype), spec.scoring)
    choice = scores if bias is None else scores + bias.to(dtype)
    limited, group_gap = _group_limited(choice, spec)
    ids = limited.topk(spec.top_k, dim=-1).indices.sort(dim=-1).values
    margin = torch.minimum(_gap(limited, spec.top_k), group_gap)
    return Routing(ids, weigh(scores, ids, spec), shared_weight(spec), margin)

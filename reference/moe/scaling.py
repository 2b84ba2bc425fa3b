"""Who applies the routed scaling factor, on which platform and for which method: somebody must, and only once.

Source: FACTS.md sections 5.2 and 5.3. Four places can: the router (in the weights), the experts (in their own sum), the
model (after the experts), the last step (with the shared add, see `fusion`).
"""

from __future__ import annotations

from typing import Final, Literal

from reference.moe.fusion import FUSED_METHODS, PLAIN

Place = Literal["top-k", "experts", "model", "last step"]
PLACES: Final[tuple[Place, ...]] = ("top-k", "experts", "model", "last step")
# Platforms whose kernels for plain methods multiply while they sum over the experts; elsewhere the model does it.
_EXPERTS_SCALE: Final = frozenset({"cuda", "xpu"})


def serves(platform: str, method: str) -> bool:
    """Whether a method has kernels on a platform; plain methods have them everywhere. ValueError for unknown ones."""
    if method == PLAIN:
        return True
    if method not in FUSED_METHODS:
        msg = f"method={method!r} is not known; expected {PLAIN} or one of {', '.join(FUSED_METHODS)}"
        raise ValueError(msg)
    return platform in FUSED_METHODS[method].serves


def applied_by(platform: str, method: str, *, in_topk: bool) -> Place:
    """Say who applies the factor; `in_topk` is SGLang's own flag that the router does.

    Raises ValueError for a method that the platform does not serve. On ROCm this is the path without aiter.
    """
    if not serves(platform, method):
        msg = f"{method} has no kernels on {platform}; it serves {', '.join(sorted(FUSED_METHODS[method].serves))}"
        raise ValueError(msg)
    if in_topk:
        return "top-k"
    if method != PLAIN:
        return "last step"
    return "experts" if platform in _EXPERTS_SCALE else "model"

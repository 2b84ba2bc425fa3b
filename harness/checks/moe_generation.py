"""Which generation of the fusion step a SUT has, told by its sources: the classes that are there, never a version.

The sources are read and not imported, because the case ids depend on the answer and an import may be what is broken.
The evidence lies in the quantisation methods and not in the step alone, so that a step which forgot a method or the
flag is judged by what the methods need.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from reference.moe.fusion import FUSED_METHODS, WITH_FLAG, FusedMethod, Generation

STEP_MODULE: Final = "sglang.srt.layers.quantization.mxfp4_flashinfer_trtllm_moe"
STEP_NAME: Final = "maybe_fuse_routed_scale_and_shared_add"
# FusedMoE tells top-k to apply the factor for a method whose class says so (0.5.19 and later, FACTS.md section 5.3).
_CLASS_SAYS_SO: Final = "fuse_routed_scaling_factor_in_topk = True"
_STEP_READS: Final = "experts.should_fuse_routed_scaling_factor_in_topk"


def source(root: Path, module: str) -> str:
    """Return the text of a module below `root`; empty when there is no such file."""
    path = root.joinpath(*module.split(".")).with_suffix(".py")
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def generation_of(root: Path | None) -> Generation:
    """Return the generation of the tree at `root`; None is the reference, which has the newest."""
    if root is None:
        return WITH_FLAG
    sources = {method.key: source(root, method.module) for method in FUSED_METHODS.values()}
    known = tuple(key for key, text in sources.items() if _has_class(text, FUSED_METHODS[key]))
    texts = [*sources.values(), source(root, STEP_MODULE)]
    flag = any(_CLASS_SAYS_SO in text or _STEP_READS in text for text in texts)
    return replace(WITH_FLAG, name=f"of this tree: {', '.join(known)}", methods=known, reads_flag=flag)


def _has_class(text: str, method: FusedMethod) -> bool:
    return f"\nclass {method.class_name}" in text

"""Stand-in for SGLang's `load_jit`: instead of compiling a kernel, it returns a module of doubles.

The seam is below SGLang's own Python wrappers, so its choice of kernel, its chunking and its argument order all run.
What the C++ compiler refuses by `static_assert` is refused here when the module is loaded, so SGLang's
`can_use_hicache_jit_kernel` answers as on the hardware.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final, NoReturn

from harness.emulation.doubles.calls import CallLog
from harness.emulation.doubles.jit_kernel import Compilation, CompileError, EntryPoint
from harness.emulation.doubles.jit_page_unified import PAGE_UNIFIED
from harness.emulation.doubles.jit_register import REGISTER
from harness.emulation.doubles.jit_staged import STAGED
from harness.emulation.doubles.jit_tma import TMA
from harness.emulation.memory import AddressSpace
from harness.errors import EmulationGap

ENTRY_POINTS: Final[Mapping[str, EntryPoint]] = {**REGISTER, **TMA, **STAGED, **PAGE_UNIFIED}
"""`Class::function` of `jit/csrc/kvcacheio/*.cuh` -> its double."""

_CPP_NAME: Final = re.compile(r"&?(?:sglang::)?(?P<owner>\w+)<(?P<args>[^<>]*)>::(?P<function>\w+(?:<\w+>)?)$")


def jit_loader(
    platform: str, memory: AddressSpace, calls: CallLog, *, available: bool = True
) -> Callable[..., SimpleNamespace]:
    """Return a `load_jit` for a platform; with `available=False` every load fails, as a compile without toolchain does.

    The module that it returns has exactly the functions that the caller exports. Functions of a kernel that has no
    double raise EmulationGap when they are called.
    """

    def load_jit(
        *args: str, cuda_wrappers: Sequence[tuple[str, str]] | None = None, **_compiler_options: Any
    ) -> SimpleNamespace:
        marker = "_".join(str(arg) for arg in args)
        if not available:
            msg = f"JIT module {marker}: compiling is switched off for this case; SGLang must take its other branch"
            raise CompileError(msg)
        exports = {name: _export(platform, memory, calls, marker, cpp_name) for name, cpp_name in (cuda_wrappers or ())}
        return SimpleNamespace(**exports)

    return load_jit


def _export(platform: str, memory: AddressSpace, calls: CallLog, marker: str, cpp_name: str) -> Callable[..., Any]:
    match = _CPP_NAME.match(cpp_name)
    entry = ENTRY_POINTS.get(f"{match['owner']}::{match['function']}") if match else None
    if match is None or entry is None:
        return functools.partial(_no_double, marker, cpp_name)
    template = tuple(arg.strip() for arg in match["args"].split(","))
    compiled = Compilation(platform, template, memory, calls, f"jit.{entry.name}")
    entry.check(compiled)
    return functools.partial(entry.run, compiled)


def _no_double(marker: str, cpp_name: str, *_args: object) -> NoReturn:
    msg = (
        f"JIT module {marker}: {cpp_name} was called, and poolparity has no double for it; run this case on the "
        "hardware, or add a double in harness/emulation/doubles"
    )
    raise EmulationGap(msg)

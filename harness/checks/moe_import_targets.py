"""What the platform suite imports in fresh processes: the MLA pools and the fusion step, as a server does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from harness.cells.fresh import FreshError
from harness.checks.meter import Meter
from harness.checks.moe_generation import STEP_MODULE, STEP_NAME, generation_of
from reference.moe.fusion import FUSED_METHODS

_POOL_HOST: Final = ("sglang.srt.mem_cache.pool_host.mla", "MLATokenToKVPoolHost")
_DEVICE_POOLS: Final = {"ascend": ("sglang.srt.hardware_backend.npu.memory_pool_npu", "NPUMLATokenToKVPool")}
_DEVICE_POOL: Final = ("sglang.srt.mem_cache.memory_pool", "MLATokenToKVPool")
# What the platform suite runs in fresh processes.
ALONE: Final = "harness.checks.moe_imports:import_names"
TOGETHER: Final = "harness.checks.moe_imports:import_all"
_CALL_STEP: Final = "harness.checks.moe_step:call_once"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTarget:
    """A module that must import on a platform, the names that it must bind then, and what to call after it."""

    platform: str
    name: str
    module: str
    names: tuple[str, ...]
    call: str = ""
    called_names: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The parameters as they stand in the case id."""
        return f"{self.platform}-{self.name}"

    @property
    def arguments(self) -> tuple[str, list[str], str]:
        """What `moe_imports.import_names` gets in the fresh process."""
        return self.module, list(self.names), self.call


def _modules(platform: str, root: Path | None) -> tuple[tuple[str, str], tuple[str, str], str]:
    """(module, class) of the host pool and of the device pool, and the fusion step's module."""
    device = _DEVICE_POOLS.get(platform, _DEVICE_POOL)
    if root is None:
        return ("reference.host_pool", _POOL_HOST[1]), ("reference.device_pool", device[1]), "reference.moe.fusion"
    return _POOL_HOST, device, STEP_MODULE


def import_targets(platform: str, root: Path | None) -> list[ImportTarget]:
    """Return the targets for the SUT at `root`; None is the reference, whose own modules stand for SGLang's."""
    host, device, step = _modules(platform, root)
    classes = () if root is None else tuple(FUSED_METHODS[key].class_name for key in generation_of(root).methods)
    return [
        ImportTarget(
            platform=platform,
            name=_DEVICE_POOLS.get(platform, _DEVICE_POOL)[0].rpartition(".")[2],
            module=device[0],
            names=(device[1],),
        ),
        ImportTarget(platform=platform, name="pool_host.mla", module=host[0], names=(host[1],)),
        ImportTarget(
            platform=platform,
            name="moe_fusion",
            module=step,
            names=(STEP_NAME,),
            call="" if root is None else _CALL_STEP,
            called_names=classes,
        ),
    ]


class Fresh(Protocol):
    """What of a cell is needed here."""

    def fresh(self, function: str, *args: Any, **kwargs: Any) -> Any:
        """Call a function in a process in which the SUT was never imported."""


class Imports:
    """The imports of one cell: all in one fresh process, as a server has them; what fails there is tried alone."""

    def __init__(self, cell: Fresh, targets: Sequence[ImportTarget]) -> None:
        self._cell = cell
        self._targets = targets
        self._found: dict[str, list[str] | None] | None = None

    def bound(self, target: ImportTarget) -> list[str]:
        """Return the names that a target binds; raises what its import raises when it is the first of a process."""
        if self._found is None:
            self._found = self._together()
        found = self._found.get(target.id)
        return found if found is not None else self._cell.fresh(ALONE, *target.arguments)

    def _together(self) -> dict[str, list[str] | None]:
        try:
            answers = self._cell.fresh(TOGETHER, together(self._targets))
        except FreshError:
            return {}  # one of them took the process down: each will have to say for itself
        return dict(zip((target.id for target in self._targets), answers, strict=True))


def together(targets: Sequence[ImportTarget]) -> list[tuple[str, list[str], str]]:
    """Return the argument of `moe_imports.import_all`."""
    return [target.arguments for target in targets]


def check_import(target: ImportTarget, bound: list[str], meter: Meter) -> None:
    """Check that every wanted name is bound, and no other was reported."""
    wanted = [*target.names, *target.called_names]
    meter.compared(len("\n".join(wanted).encode()))
    if bound != wanted:
        msg = f"{target.module} on {target.platform} binds {bound}; expected {wanted}"
        raise AssertionError(msg)

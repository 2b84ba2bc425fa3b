"""What the platform suite imports in fresh processes: the MLA pools and the fusion step, as a server does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.checks.meter import Meter
from harness.checks.moe_generation import STEP_MODULE, STEP_NAME, generation_of
from harness.checks.moe_imports import ImportReport
from reference.moe.fusion import FUSED_METHODS

_POOL_HOST: Final = ("sglang.srt.mem_cache.pool_host.mla", "MLATokenToKVPoolHost")
_DEVICE_POOLS: Final = {"ascend": ("sglang.srt.hardware_backend.npu.memory_pool_npu", "NPUMLATokenToKVPool")}
_DEVICE_POOL: Final = ("sglang.srt.mem_cache.memory_pool", "MLATokenToKVPool")
# What the platform suite runs in fresh processes.
REPORT: Final = "harness.checks.moe_imports:report_import"
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
        """What `moe_imports.report_import` gets in the fresh process."""
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
        ImportTarget(platform=platform, name="pool_host.mla", module=host[0], names=(host[1],)),
        ImportTarget(
            platform=platform,
            name=_DEVICE_POOLS.get(platform, _DEVICE_POOL)[0].rpartition(".")[2],
            module=device[0],
            names=(device[1],),
        ),
        ImportTarget(
            platform=platform,
            name="moe_fusion",
            module=step,
            names=(STEP_NAME,),
            call="" if root is None else _CALL_STEP,
            called_names=classes,
        ),
    ]


class ImportBroken(AssertionError):  # noqa: N818 - a failed check, told by another process
    """A module does not import. `location` is the SUT's line, which has no frame in this process."""

    def __init__(self, message: str, location: str) -> None:
        super().__init__(message)
        self.location = location


def check_import(target: ImportTarget, report: ImportReport, meter: Meter) -> None:
    """Judge a report: every wanted name is bound; AssertionError with the chain of a broken import."""
    if report["error"]:
        msg = f"{target.module} cannot be imported on {target.platform}: {report['error']}"
        raise ImportBroken(msg, report["location"])
    wanted = [*target.names, *target.called_names]
    meter.compared(len("\n".join(wanted).encode()))
    if report["bound"] != wanted:
        msg = f"{target.module} on {target.platform} binds {report['bound']}; expected {wanted}"
        raise AssertionError(msg)

"""0.5.17: adds decode context parallelism (`dcp_size`, `dcp_rank`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.sut.drivers.generations.signature import COMMON, Generation, common_arguments
from harness.sut.drivers.port import PoolRequest


def dcp_arguments(request: PoolRequest) -> dict[str, Any]:
    """The DCP arguments, by the names that they have had since."""
    return {"dcp_size": request.geometry.dcp_size, "dcp_rank": request.geometry.dcp_rank}


def build_host(host_class: Any, target: Any, _drafts: Sequence[Any], request: PoolRequest) -> Any:
    """Build the host pool; there are no drafts, as `packs_drafts` says."""
    return host_class(device_pool=target, **common_arguments(request), **dcp_arguments(request))


GENERATION = Generation(
    "0.5.17",
    frozenset({"device_pool", "dcp_size", "dcp_rank"}),
    COMMON | {"device_pool", "dcp_size", "dcp_rank"},
    packs_drafts=False,
    build_host=build_host,
)

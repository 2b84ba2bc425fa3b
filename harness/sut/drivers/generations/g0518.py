"""0.5.18 and 0.5.19: draft device pools are packed after the target layers (`mtp_draft_device_pools`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.sut.drivers.generations.g0517 import dcp_arguments
from harness.sut.drivers.generations.signature import COMMON, Generation, common_arguments
from harness.sut.drivers.port import PoolRequest


def build_host(host_class: Any, target: Any, drafts: Sequence[Any], request: PoolRequest) -> Any:
    """Build the host pool with its drafts."""
    arguments = {**common_arguments(request), **dcp_arguments(request)}
    return host_class(device_pool=target, mtp_draft_device_pools=tuple(drafts), **arguments)


GENERATION = Generation(
    "0.5.18",
    frozenset({"device_pool", "mtp_draft_device_pools", "dcp_size"}),
    COMMON | {"device_pool", "mtp_draft_device_pools", "dcp_size", "dcp_rank"},
    packs_drafts=True,
    build_host=build_host,
)

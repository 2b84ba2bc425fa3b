"""0.5.16: the device pool is the first argument; no decode context parallelism, no drafts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.sut.drivers.generations.signature import COMMON, Generation, common_arguments
from harness.sut.drivers.port import PoolRequest


def build_host(host_class: Any, target: Any, _drafts: Sequence[Any], request: PoolRequest) -> Any:
    """Build the host pool; there are no drafts, as `packs_drafts` says."""
    return host_class(device_pool=target, **common_arguments(request))


GENERATION = Generation(
    "0.5.16", frozenset({"device_pool"}), COMMON | {"device_pool"}, packs_drafts=False, build_host=build_host
)

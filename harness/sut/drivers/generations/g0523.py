"""0.5.23: the host pool captures buffer infos instead of device pools, and is told the sizes it used to read there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.sut.drivers.generations.g0517 import dcp_arguments
from harness.sut.drivers.generations.signature import COMMON, Generation, common_arguments
from harness.sut.drivers.port import PoolRequest


def _info(pool: Any) -> Any:
    return pool.get_device_pool_infos()[0].buffer_info


def build_host(host_class: Any, target: Any, drafts: Sequence[Any], request: PoolRequest) -> Any:
    """Build the host pool from the buffer infos of the target and of its drafts."""
    arguments = {**common_arguments(request), **dcp_arguments(request)}
    return host_class(
        buffer_info=_info(target),
        draft_buffer_infos=tuple(_info(draft) for draft in drafts),
        device_capacity_tokens=target.size,
        start_layer=target.start_layer,
        end_layer=target.end_layer,
        target_layer_num=target.layer_num,
        **arguments,
    )


_NAMES = {"buffer_info", "draft_buffer_infos", "device_capacity_tokens", "start_layer", "end_layer", "target_layer_num"}

GENERATION = Generation(
    "0.5.23",
    frozenset(_NAMES),
    COMMON | _NAMES | {"dcp_size", "dcp_rank"},
    packs_drafts=True,
    build_host=build_host,
)

"""0.5.20 to 0.5.22: as 0.5.18, with a dummy (allocator-only) mode that the suites do not ask for."""

from __future__ import annotations

from harness.sut.drivers.generations.g0518 import build_host
from harness.sut.drivers.generations.signature import COMMON, Generation

GENERATION = Generation(
    "0.5.20",
    frozenset({"device_pool", "mtp_draft_device_pools", "dcp_size", "is_dummy"}),
    COMMON | {"device_pool", "mtp_draft_device_pools", "dcp_size", "dcp_rank"},
    packs_drafts=True,
    build_host=build_host,
)

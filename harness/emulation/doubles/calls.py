"""The record of which doubles ran: a plain list of names, in order."""

from __future__ import annotations

CallLog = list[str]
"""Names of doubles, e.g. `jit.launch_one_mla`, `aot.transfer_kv_direct`, `ascend.transfer_kv_dim_exchange`."""

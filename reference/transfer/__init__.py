"""What every transfer kernel means, in plain index arithmetic on bytes.

A function here does what the vendor kernel of the same shape does, and refuses what would violate its preconditions:
ValueError or IndexError naming the argument, its value and the bound, before anything is written. Sources: FACTS.md
section 4.
"""

from __future__ import annotations

from reference.transfer.ascend import Exchange, TransferDirection, dim_exchange
from reference.transfer.paged import direct_lf_pf, direct_pf_lf, staged_lf_pf, unified_load, unified_write_back
from reference.transfer.state import state_lf_pf, state_pf_lf
from reference.transfer.token import all_layer, direct, lf_pf, one_layer, per_layer, pf_lf

__all__ = [
    "Exchange",
    "TransferDirection",
    "all_layer",
    "dim_exchange",
    "direct",
    "direct_lf_pf",
    "direct_pf_lf",
    "lf_pf",
    "one_layer",
    "per_layer",
    "pf_lf",
    "staged_lf_pf",
    "state_lf_pf",
    "state_pf_lf",
    "unified_load",
    "unified_write_back",
]
